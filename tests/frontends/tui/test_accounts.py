"""`/login` and `/logout`: a key is given unseen, tried where it will be used, kept, used, and forgotten."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.api_server import ApiServer, Reply
from support.chat_server import answers
from support.hilt_process import Hilt
from support.program import Program, program

KEY = "sk-very-secret-0123456789"
WORKS = Reply.json(200, {"data": []})
REFUSED = Reply.json(401, {"error": {"message": f"no such key: {KEY}"}})


@asynccontextmanager
async def at(hilt: Hilt, server: ApiServer, *arguments: str) -> AsyncIterator[Program]:
    """A program that knows the provider at this server, and has no key for it."""
    async with program(hilt, "--provider", "kimi", "--model", "m", "--base-url", server.url, *arguments) as window:
        yield window


def stored(hilt: Hilt) -> dict[str, dict[str, str]]:
    file = hilt.home / "auth.json"
    return json.loads(file.read_text()) if file.exists() else {}


def files_with(hilt: Hilt, text: str) -> list[str]:
    return [path.name for path in hilt.files() if text.encode() in path.read_bytes()]


async def test_it_opens_without_the_key_that_its_model_needs_and_says_how_to_give_one(hilt: Hilt) -> None:
    async with program(hilt, "--provider", "kimi") as window:
        await window.shows("kimi-for-coding")
        window.say("hi")
        await window.shows("there is no API key for kimi", "login kimi")


async def test_a_key_is_not_seen_is_tried_kept_and_used_from_then_on(hilt: Hilt) -> None:
    async with ApiServer(WORKS, answers("hello there")) as server, at(hilt, server) as window:
        window.say("/login")
        await window.shows("log in to", "Anthropic", "OpenAI", "Kimi", "or set the key in the environment")
        await window.type("kimi", "enter")
        shown = await window.shows("◈ API key for Kimi", "make one at https://")
        assert "•" not in shown
        await window.type(KEY)
        shown = await window.shows("•" * len(KEY))
        assert KEY not in shown and KEY[:8] not in shown
        await window.press("enter")
        await window.shows("trying the key for Kimi", "logged in to Kimi: the key works")
        assert stored(hilt) == {"kimi": {"api_key": KEY}}
        window.say("hi")
        await window.shows("hello there")
        assert [one.headers["authorization"] for one in server.requests] == [f"Bearer {KEY}"] * 2
        assert window.session.active.info.id == "m"
    assert files_with(hilt, KEY) == ["auth.json"]
    assert (hilt.home / "auth.json").stat().st_mode & 0o777 == 0o600


async def test_a_refused_key_is_not_kept_and_not_shown(hilt: Hilt) -> None:
    async with ApiServer(REFUSED) as server, at(hilt, server) as window:
        window.say("/login kimi")
        await window.type(KEY, "enter")
        shown = await window.shows("the key was refused and not stored", "copy it again")
        assert KEY not in shown
        assert stored(hilt) == {}
    assert files_with(hilt, KEY) == []


async def test_a_key_that_cannot_be_tried_is_kept_and_that_is_said(hilt: Hilt) -> None:
    ill = Reply.json(500, {"error": {"message": f"ill, says {KEY}"}})
    async with ApiServer(ill) as server, at(hilt, server) as window:
        window.say("/login kimi")
        await window.type(KEY, "enter")
        shown = await window.shows("logged in to Kimi: the key could not be checked")
        assert KEY not in shown
        assert stored(hilt) == {"kimi": {"api_key": KEY}}


async def test_another_key_for_the_model_in_use_is_used_at_once(hilt: Hilt) -> None:
    hilt.home.mkdir()
    (hilt.home / "auth.json").write_text(json.dumps({"kimi": {"api_key": "sk-of-yesterday"}}))
    replies = (answers("first"), WORKS, answers("second"))
    async with ApiServer(*replies) as server, at(hilt, server) as window:
        window.say("hi")
        await window.shows("first")
        window.say("/login kimi")
        await window.type(KEY, "enter")
        await window.shows("the key works")
        window.say("hi again")
        await window.shows("second")
        keys = [one.headers["authorization"].removeprefix("Bearer ") for one in server.requests]
        assert keys == ["sk-of-yesterday", KEY, KEY]
        assert window.session.active.info.id == "m"


async def test_the_key_of_another_provider_is_not_sent_to_the_address_of_this_one(hilt: Hilt) -> None:
    async with ApiServer(WORKS) as server, ApiServer(WORKS) as configured:
        hilt.home.mkdir()
        (hilt.home / "config.toml").write_text(f'provider = "openai"\nbase_url = "{configured.url}"\n')
        async with at(hilt, server) as window:
            window.say("/login openai")
            await window.type(KEY, "enter")
            await window.shows("logged in to OpenAI: the key works")
        assert server.requests == []
        assert [one.headers["authorization"] for one in configured.requests] == [f"Bearer {KEY}"]


async def test_a_key_is_tried_at_the_address_of_the_flags_also_when_they_name_no_provider(hilt: Hilt) -> None:
    async with ApiServer(WORKS) as server, program(hilt, "--base-url", server.url) as window:
        window.say("/login openai")
        await window.type(KEY, "enter")
        await window.shows("the key works")
        assert [one.headers["authorization"] for one in server.requests] == [f"Bearer {KEY}"]


async def test_dismissing_the_list_or_the_key_keeps_nothing(hilt: Hilt) -> None:
    async with ApiServer(WORKS) as server, at(hilt, server) as window:
        for keys in (("escape",), ("enter", "escape")):
            window.say("/login")
            await window.shows("log in to")
            for key in keys:
                await window.press(key)
            await window.until(lambda: window.dialog is None, "it is closed")
        window.say("/login kimi")
        await window.shows("API key for Kimi")
        await window.press("enter")  # with nothing in it
        await window.until(lambda: window.dialog is None, "it is closed")
        assert (stored(hilt), server.requests) == ({}, [])


async def test_a_key_is_forgotten_by_name_from_the_list_or_all_at_once(hilt: Hilt) -> None:
    hilt.home.mkdir()
    keys = {name: {"api_key": f"sk-{name}-0123456789"} for name in ("anthropic", "openai", "google")}
    (hilt.home / "auth.json").write_text(json.dumps(keys))
    async with program(hilt, *hilt.script()) as window:
        window.say("/logout openai")
        await window.shows("logged out of openai")
        assert stored(hilt).keys() == {"anthropic", "google"}
        window.say("/logout")
        shown = await window.shows("forget the key of", "Anthropic", "Google", "a key is stored", "all of them")
        assert "Kimi" not in shown and "sk-" not in shown
        await window.type("google", "enter")
        await window.shows("logged out of google")
        window.say("/logout all")
        await window.shows("logged out of all")
        assert stored(hilt) == {}
        window.say("/logout")
        await window.shows("there is no key stored")
        assert window.dialog is None


async def test_a_file_of_keys_that_cannot_be_read_is_left_alone_and_told(hilt: Hilt) -> None:
    hilt.home.mkdir()
    (hilt.home / "auth.json").write_text("{not json")
    async with program(hilt, *hilt.script()) as window:
        window.say("/login kimi")
        await window.shows("auth.json is not valid JSON")
    assert (hilt.home / "auth.json").read_text() == "{not json"
