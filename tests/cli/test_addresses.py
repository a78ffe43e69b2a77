"""Which server a run talks to: a configured address belongs to the provider it was configured for."""

import asyncio
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
