"""Models as extensions see and change them: the list, the switch, the user's file of models, the keys."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hilt.agent.session import Session
from hilt.cli.chooser import Chooser
from hilt.cli.flags import parse
from hilt.cli.ground import Ground
from hilt.cli.modelling import Modelling
from hilt.errors import ConfigError, UsageError
from hilt.model.conversation import user_text
from hilt.model.events import Failed, Noticed, StateChanged
from hilt.model.models import ModelInfo
from hilt.model.services import ModelOverride
from hilt.registry.snapshot import Owner
from support.agent import DEADLINE, Harness, running, says, script
from support.sources import Source

KEY = "sk-0123456789abcdef"


@dataclass
class User:
    models: Modelling
    harness: Harness
    ground: Ground

    @property
    def session(self) -> Session:
        return self.harness.session

    @property
    def home(self) -> Path:
        return self.ground.home.root


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def user(folder: Path, *flags: str, config: str = "", models: str = "") -> AsyncIterator[User]:
    home = folder / "home"
    home.mkdir()
    for name, text in (("config.toml", config), ("models.json", models)):
        if text:
            (home / name).write_text(text)
    ground = Ground.survey(parse(["--provider", "demo", *flags]))
    choosers: list[Chooser] = []
    async with (
        asyncio.timeout(DEADLINE),
        running(script(folder, says("a")), switch=lambda name, now: choosers[0].switch(name, now)) as harness,
    ):
        session = harness.session
        choosers.append(
            Chooser(ground, session.parts.registry, session.bus, lambda: session.extensions, extensible=True)
        )
        session.active = choosers[0].start(None)
        yield User(Modelling(session, choosers[0], ground), harness, ground)


async def test_the_list_is_sorted_and_says_which_is_in_use_and_whose_each_is(tmp_path: Path) -> None:
    async with user(tmp_path) as it:
        own = Source("myapi", models=(ModelInfo("big", "", name="Big", context_window=7, reasoning=True),))
        with it.session.parts.registry.publish(Owner("ext"), (own.offer(),)):
            listed = it.models.list()
        assert [(one.provider, one.id) for one in listed] == sorted((one.provider, one.id) for one in listed)
        assert [one.id for one in listed if one.current] == ["demo"]
        big = next(one for one in listed if one.provider == "myapi")
        assert (big.id, big.api, big.name, big.context_window, big.reasoning, big.extension) == (
            "big",
            "myapi",
            "Big",
            7,
            True,
            "ext",
        )
        kimi = next(one for one in listed if one.provider == "kimi" and one.id == "kimi-for-coding")
        assert kimi.api == "openai" and kimi.name == "kimi-for-coding" and kimi.extension == ""
        await it.models.switch("openai/gpt-99", "ext", keep=False)
        assert [one.id for one in it.models.list() if one.current] == ["gpt-99"]  # though nobody lists it


async def test_a_switch_counts_from_the_next_turn_and_is_told(tmp_path: Path) -> None:
    async with user(tmp_path) as it:
        await it.models.switch("openai/gpt-5", "ext", keep=False)
        assert (it.session.active.info.provider, it.session.active.info.id) == ("openai", "gpt-5")
        assert it.harness.of(StateChanged)[-1].model == "gpt-5"
        assert any("ext switched to openai/gpt-5" in event.message for event in it.harness.of(Noticed))
        assert it.session.parts.log.model == ("openai", "gpt-5")
        assert not (it.home / "config.toml").exists()
        for wrong, why in (("", "modelId is required"), ("nope", 'unknown model "nope"')):
            with pytest.raises(UsageError, match=why):
                await it.models.switch(wrong, "ext", keep=False)


async def test_a_switch_in_mid_turn_waits_for_its_end_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with user(tmp_path) as it:
        source = Source("demo", [])
        with it.session.parts.registry.publish(Owner("ext"), (source.offer(),)):
            job = await it.session.prompt(user_text("for ever"))
            await source.hanging.wait()
            await it.models.switch("openai/gpt-5", "ext", keep=True)
            assert it.session.active.info.id == "demo" and "/model openai/gpt-5" in it.session.waiting
            with pytest.raises(UsageError, match="unknown model"):
                await it.models.switch("nope", "ext", keep=False)
            it.session.abort()
            await job.result()
            await it.session.idle()
        assert it.session.active.info.id == "gpt-5"
        assert 'model = "gpt-5"' in (it.home / "config.toml").read_text()
        assert it.harness.of(Failed) == []


async def test_a_default_is_kept_in_the_users_own_file_and_nothing_else_in_it_changes(tmp_path: Path) -> None:
    config = '# mine\nmodel = "gpt-4.1"  # old\nmax_steps = 7\n\n[retry]\nattempts = 2\n'
    async with user(tmp_path, config=config) as it:
        await it.models.switch("openai/gpt-5", "ext", keep=True)
        assert (it.home / "config.toml").read_text() == (
            'provider = "openai"\n# mine\nmodel = "gpt-5"  # old\nmax_steps = 7\n\n[retry]\nattempts = 2\n'
        )


async def test_a_default_never_sends_a_key_to_an_address_that_is_anothers(tmp_path: Path) -> None:
    config = 'provider = "ollama"\nmodel = "x"\nbase_url = "http://box:1/v1"\n'
    async with user(tmp_path, config=config) as it:
        with pytest.raises(ConfigError, match="base_url, which is ollama's"):
            await it.models.switch("openai/gpt-5", "ext", keep=True)
        assert (it.home / "config.toml").read_text() == config and it.session.active.info.id == "gpt-5"


async def test_what_the_user_writes_about_models_counts_after_a_look_at_the_file(tmp_path: Path) -> None:
    async with user(tmp_path) as it:
        await it.models.switch("openai/gpt-5", "ext", keep=False)
        before = await it.models.sync()
        said = {"providers": {"openai": {"models": [{"id": "gpt-5", "contextWindow": 5}, {"id": "gpt-mine"}]}}}
        (it.home / "models.json").write_text(json.dumps(said))
        assert await it.models.sync() == before + 1
        assert it.session.active.info.context_window == 5
        (it.home / "models.json").write_text("{")
        with pytest.raises(ConfigError, match=r"models\.json"):
            await it.models.sync()
        assert any(one.id == "gpt-mine" for one in it.models.list())  # what was known stays


async def test_facts_about_models_are_written_beside_what_stands_there(tmp_path: Path) -> None:
    there = {"note": "mine", "providers": {"claude": {"x": 1, "models": [{"id": "a", "name": "A", "y": 2}]}}}
    async with user(tmp_path, models=json.dumps(there)) as it:
        overrides = {
            "anthropic/a": ModelOverride(context_window=9),
            "openai/gpt-5": ModelOverride(name="Five", max_tokens=3),
            "ollama/org/m": ModelOverride(),
        }
        assert await it.models.write(overrides) == 3
        assert json.loads((it.home / "models.json").read_text()) == {
            "note": "mine",
            "providers": {
                "claude": {"x": 1, "models": [{"id": "a", "name": "A", "y": 2, "contextWindow": 9}]},
                "openai": {"models": [{"id": "gpt-5", "name": "Five", "maxTokens": 3}]},
                "ollama": {"models": [{"id": "org/m"}]},
            },
        }
        five = next(one for one in it.models.list() if one.id == "gpt-5" and one.provider == "openai")
        assert (five.name, five.max_output) == ("Five", 3)


@pytest.mark.parametrize(
    ("name", "override", "why"),
    [
        ("openai/gpt-5", ModelOverride(context_window=-1), "contextWindow"),
        ("gpt-5", ModelOverride(), "provider/id"),
        ("/x", ModelOverride(), "provider/id"),
    ],
)
async def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, name: str, override: ModelOverride, why: str
) -> None:
    before = '{"providers": {}}'
    async with user(tmp_path, models=before) as it:
        with pytest.raises((ConfigError, UsageError)) as caught:
            await it.models.write({"openai/fine": ModelOverride(), name: override})
        assert why in f"{caught.value.message} {caught.value.hint}"
        assert (it.home / "models.json").read_text() == before


async def test_a_key_that_is_handed_out_is_never_shown_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-0123456789")
    async with user(tmp_path) as it:
        assert it.models.key("openai") == KEY and it.models.key("anthropic") == ""
        (it.home / "auth.json").write_text(
            '{"google": {"api_key": "go-0123456789"}, "x": {"api_key": "xx-0123456789"}}'
        )
        (it.home / "auth.json").chmod(0o600)
        names = [it.models.provider(name) for name in ("Gemini", "azure", "vertex", "bedrock", "copilot", "X")]
        assert names == ["google", "azure-openai", "google-vertex", "amazon-bedrock", "github-copilot", "x"]
        keys = [it.models.key(name) for name in ("gemini", "azure", "X")]
        assert keys == ["go-0123456789", "az-0123456789", "xx-0123456789"]
        assert it.ground.mask.text(" ".join(keys)) == " ".join(["[key hidden]"] * 3)
        (it.home / "auth.json").write_text("{")
        with pytest.raises(ConfigError):
            it.models.key("gemini")
