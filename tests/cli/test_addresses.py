"""Which server a run talks to: a configured address belongs to the provider it was configured for."""

import asyncio
import json
from pathlib import Path

import pytest

from support.api_server import ApiServer, Reply, events
from support.hilt_process import Hilt

ANSWER = events(
    {"choices": [{"delta": {"content": "from the box"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}
)


def configure(hilt: Hilt, text: str) -> None:
    hilt.home.mkdir(mode=0o700, exist_ok=True)
    (hilt.home / "config.toml").write_text(text)


async def test_a_resumed_session_never_sends_its_key_to_another_providers_address(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, ANTHROPIC_API_KEY="sk-ant-0123456789", HTTPS_PROXY="http://127.0.0.1:9")
    # A session of anthropic's that ends in a failure, because its address leads nowhere here.
    flags = ("--provider", "anthropic", "--base-url", "http://127.0.0.1:9")
    configure(hilt, "[retry]\nattempts = 1\n")
    assert (await asyncio.to_thread(hilt.run, "-p", "hi", *flags)).code == 1
    async with ApiServer(Reply.json(500, {})) as box:
        configure(hilt, f'provider = "ollama"\nmodel = "m"\nbase_url = "{box.url}"\n[retry]\nattempts = 1\n')
        done = await asyncio.to_thread(hilt.run, "-c", "-p", "again")
        assert box.requests == []
    assert done.code == 1 and "anthropic" in done.err


@pytest.mark.parametrize("name", ["ollama", "openai"])
async def test_a_configured_address_is_used_by_its_own_provider(tmp_path: Path, name: str) -> None:
    hilt = Hilt(tmp_path)
    replies = [Reply.json(404, {}), Reply.sse(ANSWER)] if name == "openai" else [Reply.sse(ANSWER)]
    async with ApiServer(*replies) as box:
        configure(hilt, f'provider = "{name}"\nmodel = "m"\nbase_url = "{box.url}"\n')
        done = await asyncio.to_thread(hilt.run, "-p", "hi")
    assert done.out == "from the box\n"


def test_an_address_without_a_provider_is_refused_because_it_would_be_shown_anyones_key(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, OPENAI_API_KEY="sk-0123456789")
    configure(hilt, 'base_url = "http://127.0.0.1:9"\n')
    done = hilt.run("-p", "hi")
    assert done.code == 1 and "config.toml: base_url without provider" in done.err and "hint:" in done.err


async def test_a_switch_of_models_takes_the_address_of_the_new_one(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, OPENAI_API_KEY="sk-0123456789")
    async with (
        ApiServer(Reply.json(404, {}), Reply.sse(ANSWER)) as box,
        ApiServer(Reply.json(404, {}), Reply.sse(ANSWER)) as other,
    ):
        models = {
            "providers": {
                "openai": {"models": [{"id": "one", "baseUrl": box.url}, {"id": "two", "baseUrl": other.url}]}
            }
        }
        hilt.home.mkdir(mode=0o700)
        (hilt.home / "models.json").write_text(json.dumps(models))

        def talk() -> None:
            with hilt.rpc("--provider", "openai", "--model", "one") as rpc:
                rpc.prompt("hi")
                assert rpc.ask("set_model", model="two")["data"] == {"model": "two", "provider": "openai"}
                rpc.prompt("hi again")

        await asyncio.to_thread(talk)
        assert [seen.json["model"] for seen in box.requests] == ["one", "one"]
        assert [seen.json["model"] for seen in other.requests] == ["two", "two"]


async def test_a_key_given_by_flag_serves_the_other_models_of_its_provider_and_no_other_provider(
    tmp_path: Path,
) -> None:
    hilt = Hilt(tmp_path)
    async with ApiServer(Reply.json(404, {}), Reply.sse(ANSWER)) as box:

        def talk() -> None:
            flags = (
                "--provider",
                "openai",
                "--model",
                "gpt-5",
                "--api-key",
                "sk-flag-0123456789",
                "--base-url",
                box.url,
            )
            with hilt.rpc(*flags) as rpc:
                assert rpc.ask("set_model", model="openai/gpt-5-mini")["success"]
                refused = rpc.ask("set_model", model="claude-sonnet-4-5")
                assert not refused["success"] and "no API key for anthropic" in refused["error"]
                rpc.prompt("hi")

        await asyncio.to_thread(talk)
        assert box.requests[-1].headers["authorization"] == "Bearer sk-flag-0123456789"
