"""Who answers: the rules by which flags, configuration and keys become one provider and one model."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from hilt.errors import AuthError, ConfigError, Unavailable, UsageError
from hilt.model.conversation import user_text
from hilt.model.stream import ModelRequest
from hilt.providers.catalogue import DEMO, SCRIPT, Catalogue
from hilt.providers.choose import PROVIDERS, Choice, build, choose, verify
from hilt.providers.credentials import Credentials
from hilt.providers.demo import Demo
from hilt.providers.script import Script

Chooser = Callable[..., Choice]


@pytest.fixture
def pick(tmp_path: Path) -> Chooser:
    def pick(
        *, keys: dict[str, str] | None = None, models: str = "", script: Path | None = None, **flags: str
    ) -> Choice:
        if models:
            (tmp_path / "models.json").write_text(models)
        asked = {"provider": "", "model": "", "api_key": "", "base_url": ""} | flags
        return choose(
            **asked,
            script=script,
            credentials=Credentials(tmp_path / "auth.json", keys or {}),
            catalogue=Catalogue.load(tmp_path / "models.json"),
        )

    return pick


def named(choice: Choice) -> tuple[str, str]:
    return choice.info.provider, choice.info.id


def test_with_no_key_at_all_the_demo_answers_and_one_line_says_so(pick: Chooser) -> None:
    choice = pick()
    assert choice.info == DEMO and choice.notice and isinstance(choice.open(), Demo)
    assert "demo" in choice.notice and "hilt login" in choice.notice and "\n" not in choice.notice
    assert '"made-up"' in pick(model="made-up").notice


def test_a_demo_that_was_asked_for_needs_no_notice(pick: Chooser) -> None:
    for choice in (pick(provider="demo"), pick(model="demo"), pick(configured_provider="demo")):
        assert choice.info == DEMO and not choice.notice


def test_a_script_needs_its_file_and_the_file_alone_is_enough(pick: Chooser, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"content": []}')
    for choice in (pick(script=path), pick(provider="script", script=path, keys={"OPENAI_API_KEY": "k"})):
        assert choice.info == SCRIPT and not choice.notice and isinstance(choice.open(), Script)
    with pytest.raises(UsageError) as caught:
        pick(provider="script")
    assert "--script" in caught.value.hint
    with pytest.raises(UsageError, match="--provider openai"):
        pick(provider="openai", script=path)
    assert "price" in pick(script=path, model="made-up").notice
    assert pick(script=path, model="gpt-5").info.price is not None


def test_a_bad_script_is_reported_when_it_is_opened(pick: Chooser, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        pick(script=tmp_path / "missing.jsonl").open()


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (["MOONSHOT_API_KEY"], ("kimi", "kimi-for-coding")),
        (["MOONSHOT_API_KEY", "GOOGLE_API_KEY"], ("google", "gemini-2.5-pro")),
        (["MOONSHOT_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"], ("openai", "gpt-5")),
        (["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], ("anthropic", "claude-sonnet-4-5")),
    ],
)
def test_without_a_choice_the_first_provider_with_a_key_and_its_default_model_answer(
    pick: Chooser, keys: list[str], chosen: tuple[str, str]
) -> None:
    choice = pick(keys=dict.fromkeys(keys, "the-key"))
    assert named(choice) == chosen and not choice.notice


def test_the_configured_provider_is_used_when_it_can_be(pick: Chooser) -> None:
    keys = {"ANTHROPIC_API_KEY": "a-key", "KIMI_API_KEY": "k-key"}
    configured = {"configured_provider": "moonshot", "configured_model": "kimi-k2.5"}
    assert named(pick(keys=keys, **configured)) == ("kimi", "kimi-k2.5")
    only = {"ANTHROPIC_API_KEY": "a-key"}
    assert named(pick(keys=only, **configured)) == ("anthropic", "claude-sonnet-4-5")
    assert named(pick(**configured, configured_base_url="http://box")) == ("kimi", "kimi-k2.5")
    assert named(pick(configured_provider="ollama", configured_model="qwen3")) == ("ollama", "qwen3")
    assert pick(**configured).info == DEMO


def test_a_flag_wins_over_the_configuration(pick: Chooser) -> None:
    keys = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "o-key"}
    configured = {"configured_provider": "openai", "configured_model": "gpt-4.1"}
    assert named(pick(keys=keys, provider="claude", **configured)) == ("anthropic", "claude-sonnet-4-5")
    assert named(pick(keys=keys, provider="openai", **configured)) == ("openai", "gpt-4.1")
    assert named(pick(keys=keys, model="gpt-5-mini", **configured)) == ("openai", "gpt-5-mini")
    assert named(pick(keys=keys, model="claude-opus-4-5", **configured)) == ("anthropic", "claude-opus-4-5")


def test_a_configured_model_alone_never_goes_to_a_provider_that_does_not_serve_it(pick: Chooser) -> None:
    keys = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "o-key"}
    assert named(pick(keys=keys, configured_model="gpt-4.1")) == ("openai", "gpt-4.1")
    assert named(pick(keys=keys, configured_model="openai/gpt-4.1")) == ("openai", "gpt-4.1")
    assert named(pick(keys={"ANTHROPIC_API_KEY": "a"}, configured_model="gpt-4.1")) == (
        "anthropic",
        "claude-sonnet-4-5",
    )


@pytest.mark.parametrize(
    ("flags", "chosen"),
    [
        ({"model": "gpt-5"}, ("openai", "gpt-5")),
        ({"model": "gemini-2.5-flash"}, ("google", "gemini-2.5-flash")),
        ({"model": "openai/gpt-5"}, ("openai", "gpt-5")),
        ({"model": "gemini:new-one"}, ("google", "new-one")),
        ({"model": "ollama/qwen3:8b"}, ("ollama", "qwen3:8b")),
        ({"model": "ollama:org/model"}, ("ollama", "org/model")),
        ({"provider": "openai", "model": "openai/gpt-5"}, ("openai", "gpt-5")),
        ({"provider": "ollama", "model": "qwen3:8b"}, ("ollama", "qwen3:8b")),
        ({"provider": "openai", "model": "anthropic/claude-x"}, ("openai", "anthropic/claude-x")),
        ({"provider": "openai", "model": "openai/gpt-5", "base_url": "http://hub"}, ("openai", "openai/gpt-5")),
        ({"provider": "ANTHROPIC", "model": "gpt-5"}, ("anthropic", "gpt-5")),
    ],
)
def test_a_model_id_can_tell_the_provider(pick: Chooser, flags: dict[str, str], chosen: tuple[str, str]) -> None:
    keys = dict.fromkeys(["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"], "the-key")
    assert named(pick(keys=keys, **flags)) == chosen


def test_an_id_that_somebody_serves_is_not_taken_apart(pick: Chooser) -> None:
    models = '{"providers": {"ollama": {"models": [{"id": "openai/oss"}]}}}'
    assert named(pick(models=models, model="openai/oss")) == ("ollama", "openai/oss")


def test_an_unknown_model_is_accepted_with_a_notice_about_its_price(pick: Chooser) -> None:
    choice = pick(keys={"OPENAI_API_KEY": "k"}, model="gpt-99-turbo")
    assert named(choice) == ("openai", "gpt-99-turbo")
    assert "gpt-99-turbo" in choice.notice and "price" in choice.notice and "\n" not in choice.notice


def test_a_provider_without_key_and_address_says_how_to_get_one(pick: Chooser) -> None:
    with pytest.raises(AuthError, match="google") as caught:
        pick(provider="gemini")
    assert "hilt login google" in caught.value.hint and "GEMINI_API_KEY" in caught.value.hint
    with pytest.raises(AuthError, match="openai"):
        pick(model="gpt-5", keys={"ANTHROPIC_API_KEY": "a-key"})


def test_an_address_makes_the_key_optional(pick: Chooser) -> None:
    assert named(pick(provider="openai", base_url="http://box")) == ("openai", "gpt-5")
    assert named(pick(base_url="http://box", model="local")) == ("openai", "local")
    models = '{"providers": {"openai": {"models": [{"id": "mine", "baseUrl": "http://box"}]}}}'
    assert named(pick(models=models, provider="openai", model="mine")) == ("openai", "mine")


def test_ollama_needs_a_model_and_no_key(pick: Chooser) -> None:
    with pytest.raises(UsageError) as caught:
        pick(provider="ollama")
    assert "--model" in caught.value.hint
    info = pick(provider="ollama", model="qwen3").info
    assert (info.context_window, info.max_output) == (32768, 8192)


def test_an_unknown_provider_lists_the_known_ones_and_suggests_the_nearest(pick: Chooser) -> None:
    with pytest.raises(UsageError, match="anthropic, openai, google, kimi, ollama, demo, script") as caught:
        pick(provider="antropic")
    assert "anthropic" in caught.value.hint
    with pytest.raises(UsageError) as other:
        pick(provider="zzz")
    assert other.value.hint == ""
    with pytest.raises(ConfigError, match="configured"):
        pick(configured_provider="zzz")


class Server:
    """Answers each request with the next status, then none at all, and keeps what it was asked."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)
        self.requests: list[str] = []
        self._busy = 0
        self._closing = asyncio.Event()
        self._idle = asyncio.Condition()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        self._server.close()
        async with asyncio.timeout(5), self._idle:
            await self._idle.wait_for(lambda: self._busy == 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._busy += 1
        try:
            await self._answer(reader, writer)
            writer.close()
            await writer.wait_closed()
        except OSError:
            pass  # the client has gone, as clients may
        finally:
            async with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if not self.statuses:
            await self._closing.wait()
            return
        body = b'{"data": [], "models": [], "error": {"message": "no"}}'
        head = f"HTTP/1.1 {self.statuses.pop(0)}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
        await writer.drain()


async def refused(choice: Choice) -> None:
    adapter = choice.open()
    with pytest.raises(AuthError):
        _ = [item async for item in adapter.stream(ModelRequest(choice.info, "", (user_text("hi"),)))]
    await adapter.aclose()


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google", "kimi", "ollama"])
async def test_verify_asks_the_provider_and_raises_when_the_key_is_refused(provider: str) -> None:
    server = Server("200 OK", "401 Unauthorized")
    async with server as address:
        await verify(provider, "the-key-12345", address)
        with pytest.raises(AuthError) as caught:
            await verify(provider, "the-key-12345", address)
    assert all("the-key-12345" in request for request in server.requests) and len(server.requests) == 2
    assert "the-key-12345" not in str(caught.value)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google", "kimi", "ollama", "demo"])
async def test_an_adapter_carries_the_name_it_was_asked_for(provider: str) -> None:
    adapter = build(provider, "the-key")
    assert adapter.name == provider
    await adapter.aclose()


async def test_a_choice_opens_an_adapter_with_its_address_and_key(pick: Chooser) -> None:
    server = Server("401 Unauthorized")
    async with server as address:
        choice = pick(keys={"OPENAI_API_KEY": "the-key-12345"}, base_url=address, model="gpt-5")
        await refused(choice)
    assert "Bearer the-key-12345" in server.requests[0]


async def test_kimi_keys_are_tried_at_both_addresses_and_its_coding_model_has_its_own(
    pick: Chooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, coding = Server("401 Unauthorized"), Server("200 OK", "401 Unauthorized")
    async with platform as platform_address, coding as coding_address:
        vendor = structs.replace(PROVIDERS["kimi"], base_url=platform_address)
        monkeypatch.setattr("hilt.providers.choose.PROVIDERS", {**PROVIDERS, "kimi": vendor})
        monkeypatch.setattr("hilt.providers.choose.KIMI_CODING", coding_address)
        await verify("kimi", "the-key-12345")
        assert (len(platform.requests), len(coding.requests)) == (1, 1)
        choice = pick(keys={"KIMI_API_KEY": "the-key-12345"})
        await refused(choice)
    assert choice.info.id == "kimi-for-coding" and len(coding.requests) == 2


async def test_verify_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.providers.choose._CHECK_SECONDS", 0.2)
    async with Server() as address:
        with pytest.raises(Unavailable, match="did not answer"):
            async with asyncio.timeout(5):
                await verify("openai", "key", address)


async def test_verify_has_nothing_to_ask_of_the_models_without_a_network() -> None:
    await verify("demo", "")
    with pytest.raises(UsageError):
        build("script", "")


def test_importing_and_choosing_a_script_stays_cheap() -> None:
    code = (
        "import sys; from pathlib import Path; import hilt.providers.choose as c, hilt.providers.script\n"
        "from hilt.providers.catalogue import Catalogue; from hilt.providers.credentials import Credentials\n"
        "c.choose(provider='', model='', api_key='', base_url='', script=Path('x'),\n"
        "    credentials=Credentials(Path('/nowhere/auth.json'), {}), catalogue=Catalogue.load())\n"
        "dear = {'httpx2', 'jsonschema_rs', 'yaml', 'difflib', 'hashlib', 'tempfile', 'shlex'}\n"
        "print(sorted(dear & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
