"""Models that extensions answer for: which one a name means, and who is asked at each call."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from hilt.errors import AuthError, ProviderError, Unavailable, UsageError
from hilt.model.content import Text
from hilt.model.conversation import user_text
from hilt.model.events import Event, Noticed
from hilt.model.extensions import ExtensionState, ExtensionStatus, Reloaded
from hilt.model.models import ModelInfo
from hilt.model.ports import Provider
from hilt.model.stream import Completed, ModelRequest
from hilt.providers.catalogue import Catalogue
from hilt.providers.script import Script
from hilt.providers.sourced import Sourced, claimed, named, offered
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner
from support.agent import says, script
from support.sources import Source

OWN = ModelInfo("big", "", context_window=1000)


class Neighbours:
    """Extensions of which one is in this state."""

    def __init__(self, state: ExtensionState) -> None:
        self.state = state

    def statuses(self) -> tuple[ExtensionStatus, ...]:
        return (ExtensionStatus("ext", "", "jsonrpc", self.state, "user", ""),)

    async def reload(self, name: str = "") -> Reloaded:
        raise NotImplementedError

    async def enable(self, name: str) -> str:
        raise NotImplementedError

    async def disable(self, name: str) -> str:
        raise NotImplementedError

    async def settled(self) -> None: ...

    async def caught_up(self) -> None: ...

    def panel_key(self, extension: str, panel_id: str, key: str, text: str = "") -> None: ...

    def panel_resize(self, extension: str, panel_id: str, width: int, height: int) -> None: ...

    def panel_closed(self, extension: str, panel_id: str) -> None: ...


class Bench:
    """A provider over a registry, with what it told."""

    def __init__(self, open_: Callable[[], Provider], state: ExtensionState = "failed", name: str = "openai") -> None:
        self.registry = Registry()
        self.told: list[Event] = []
        self.opened = 0
        self._open = open_
        self.provider = Sourced(name, self.registry, lambda: Neighbours(state), self._tell, self._counted)

    async def _tell(self, event: Event) -> None:
        self.told.append(event)

    def _counted(self) -> Provider:
        self.opened += 1
        return self._open()

    async def ask(self, info: ModelInfo) -> str:
        request = ModelRequest(info, "", (user_text("hi"),))
        async with aclosing(self.provider.stream(request)) as items:
            completed = [item async for item in items][-1]
        assert isinstance(completed, Completed)
        return "".join(block.text for block in completed.content if isinstance(block, Text))


def keyless() -> Provider:
    raise AuthError("there is no API key for openai", hint="run `hilt login openai`")


def nobody() -> Provider:
    raise UsageError("no extension answers for myapi at present")


def test_models_of_compatible_servers_are_claimed_with_openais_api() -> None:
    catalogue = Catalogue.load()
    assert [catalogue.find(name, "m").spoken for name in ("anthropic", "openai", "google")] == [
        "anthropic",
        "openai",
        "google",
    ]
    assert catalogue.find("kimi", "kimi-for-coding").spoken == catalogue.find("ollama", "qwen3").spoken == "openai"
    assert catalogue.find("script", "gpt-5").spoken == "script"


def test_a_name_means_a_listed_model_or_any_of_an_api_that_is_nobody_elses() -> None:
    registry = Registry()
    own, taken = Source("MyApi", models=(OWN,)), Source("openai", models=(ModelInfo("inner", ""),))
    with registry.publish(Owner("ext"), (own.offer(), taken.offer())):
        sources = registry.snapshot().sources
        found = {name: named(sources, "", name) for name in ("big", "MyApi/big", "myapi:other/x", "inner", "openai/y")}
        assert [info and (info.provider, info.id, info.extension) for info in found.values()] == [
            ("MyApi", "big", "ext"),
            ("MyApi", "big", "ext"),
            ("MyApi", "other/x", "ext"),
            ("openai", "inner", "ext"),
            None,
        ]
        assert found["big"] and found["big"].context_window == 1000 and found["big"].spoken == "MyApi"
        assert named(sources, "myapi", "") == named(sources, "MYAPI", "myapi/big") == found["big"]
        assert named(sources, "openai", "gpt-5") is None and named(sources, "other", "x") is None
        assert [info.id for info in offered(sources)] == ["big", "inner"]
        kimi = claimed(Catalogue.load().find("kimi", "kimi-for-coding"), sources)
        assert kimi.extension == "ext" and claimed(ModelInfo("x", "google"), sources).extension == ""


def test_an_api_without_a_listed_model_needs_one_to_be_named() -> None:
    registry = Registry()
    with registry.publish(Owner("ext"), (Source("myapi").offer(),)), pytest.raises(UsageError) as caught:
        named(registry.snapshot().sources, "myapi", "")
    assert "ext" in caught.value.hint and "--model" in caught.value.hint


async def test_whoever_claims_the_api_at_the_moment_answers(tmp_path: Path) -> None:
    bench = Bench(lambda: script(tmp_path, says("built in"), says("again")))
    info = Catalogue.load().find("openai", "gpt-5")
    first, second = Source("openai", [Text("ext")]), Source("openai", [Text("restarted")])
    assert await bench.ask(info) == "built in"
    with bench.registry.publish(Owner("ext"), (first.offer(),)):
        assert await bench.ask(info) == "ext"
    with bench.registry.publish(Owner("ext"), (second.offer(),)):
        assert await bench.ask(info) == "restarted"
    assert bench.opened == 1
    assert await bench.ask(info) == "again"
    assert await bench.ask(info) == "(script ended)"
    began, ended = (told.message for told in bench.told if isinstance(told, Noticed))  # once each
    assert began == "extension ext answers for openai, in place of the built-in adapter"
    assert ended == "extension ext no longer answers for openai: the built-in adapter does"


async def test_without_a_key_of_ones_own_an_extension_that_is_gone_is_named() -> None:
    bench = Bench(keyless)
    info = Catalogue.load().find("openai", "gpt-5")
    with bench.registry.publish(Owner("ext"), (Source("openai", [Text("x")]).offer(),)):
        await bench.ask(info)
    for _ in range(2):  # each time
        with pytest.raises(ProviderError) as caught:
            await bench.ask(info)
        assert not isinstance(caught.value, Unavailable) and "extension ext" in caught.value.message
        assert "/reload-ext ext" in caught.value.hint and "hilt login openai" in caught.value.hint


async def test_a_model_of_its_own_is_worth_another_try_while_its_extension_restarts() -> None:
    mine = ModelInfo("big", "myapi", extension="ext")
    with pytest.raises(Unavailable, match=r"extension ext, which answers for myapi/big, .*: it is restarting"):
        await Bench(nobody, "restarting", "myapi").ask(mine)
    with pytest.raises(ProviderError) as caught:
        await Bench(nobody, "failed", "myapi").ask(mine)
    assert not isinstance(caught.value, Unavailable)


async def test_nobody_ever_answered_and_the_reason_is_the_adapters() -> None:
    with pytest.raises(AuthError, match="no API key"):
        await Bench(keyless).ask(ModelInfo("m", "openai"))
    with pytest.raises(ProviderError, match="no extension answers"):
        await Bench(nobody).ask(ModelInfo("m", "openai"))


async def test_an_adapter_is_closed_with_the_last_stream_that_reads_it(tmp_path: Path) -> None:
    closed = asyncio.Event()

    class Watched(Script):
        async def aclose(self) -> None:
            closed.set()

    path = tmp_path / "script.jsonl"
    path.write_text('{"content": [{"type": "text", "text": "a"}]}\n')
    bench = Bench(lambda: Watched(path))
    stream = bench.provider.stream(ModelRequest(ModelInfo("m", "openai"), "", (user_text("hi"),)))
    await anext(stream)
    await bench.provider.aclose()
    assert not closed.is_set()
    items = [item async for item in stream]
    assert isinstance(items[-1], Completed) and closed.is_set()


async def test_cancelling_a_stream_ends_the_extensions_own() -> None:
    bench, source = Bench(keyless), Source("openai", [])
    with bench.registry.publish(Owner("ext"), (source.offer(),)):
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(bench.ask(ModelInfo("m", "openai")))
            await source.hanging.wait()
            task.cancel()
    assert source.closed == 1
