"""`hilt models`, `hilt login` and `hilt logout`."""

import asyncio
import json
import socket
from pathlib import Path
from stat import S_IMODE

import pexpect

from support.api_server import ApiServer, Reply
from support.hilt_process import DEADLINE, Ended, Hilt

KEY = "sk-test-0123456789abcdef"


async def login(hilt: Hilt, url: str, key: str = KEY) -> Ended:
    return await asyncio.to_thread(lambda: hilt.run("login", "openai", "--base-url", url, stdin=key + "\n"))


def stored(hilt: Hilt) -> dict[str, dict[str, str]]:
    path = hilt.home / "auth.json"
    return json.loads(path.read_text()) if path.exists() else {}


def test_models_are_listed_with_windows_and_prices(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    models = json.loads(hilt.run("models", "--json").out)
    assert {"id", "provider", "context_window", "price_input", "price_output"} <= set(models[0])
    sonnet = next(model for model in models if model["id"] == "claude-sonnet-4-5")
    assert sonnet["context_window"] >= 200_000 and sonnet["price_output"] > sonnet["price_input"] > 0
    only = json.loads(hilt.run("models", "SONNET", "--provider", "anthropic", "--json").out)
    assert only and all("sonnet" in model["id"] and model["provider"] == "anthropic" for model in only)
    table = hilt.run("--list-models").out
    assert "claude-sonnet-4-5" in table and table == hilt.run("models").out
    assert hilt.files() == []


async def test_a_key_that_works_is_stored_privately_and_forgotten_on_request(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    async with ApiServer(Reply.json(200, {"data": []})) as server:
        done = await login(hilt, server.url)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert done.code == 0 and "the key works" in done.out
    assert KEY not in done.out + done.err
    assert stored(hilt)["openai"]["api_key"] == KEY
    assert S_IMODE((hilt.home / "auth.json").stat().st_mode) == 0o600
    assert S_IMODE(hilt.home.stat().st_mode) == 0o700
    assert hilt.run("logout", "openai").out == "logged out of openai\n"
    assert stored(hilt) == {}
    assert hilt.run("logout", "all").out == "there was no key stored for all\n"


async def test_a_key_that_is_refused_is_not_stored_and_not_shown(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    refusal = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    async with ApiServer(Reply.json(401, refusal)) as server:
        done = await login(hilt, server.url)
    assert done.code == 1
    assert "refused and not stored" in done.err and "--no-check" in done.err
    assert KEY not in done.out + done.err
    assert stored(hilt) == {}


async def test_a_key_that_cannot_be_checked_is_stored_with_a_warning(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        done = await login(hilt, f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert done.code == 0 and "not checked" in done.out and "could not be checked" in done.err
    assert stored(hilt)["openai"]["api_key"] == KEY


def test_no_key_at_all_is_a_mistake_and_no_check_asks_nobody(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    empty = hilt.run("login", "anthropic", "--no-check", stdin="")
    assert empty.code == 2 and "no key was given" in empty.err
    broken = hilt.run("login", "anthropic", "--no-check", stdin="two words\n")
    assert broken.code == 2 and "two words" not in broken.err
    assert stored(hilt) == {}
    assert hilt.run("login", "claude", "--no-check", stdin=KEY).code == 0
    assert stored(hilt) == {"anthropic": {"api_key": KEY}}


def test_a_key_typed_at_a_terminal_is_not_echoed(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    terminal = pexpect.spawn(
        str(hilt.command()[0]),
        ["-m", "hilt", "login", "anthropic", "--no-check"],
        env=hilt.environment,
        cwd=str(hilt.project),
        timeout=DEADLINE,
        encoding="utf-8",
    )
    terminal.expect("API key for Anthropic .*key, not shown: ")
    terminal.sendline(KEY)
    terminal.expect("logged in to anthropic")
    said = terminal.before + terminal.after
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0
    assert KEY not in said + terminal.before
    assert stored(hilt)["anthropic"]["api_key"] == KEY
