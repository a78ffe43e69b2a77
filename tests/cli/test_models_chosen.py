"""Who answers when extensions may: at the start, once they are up, and when the user switches."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hilt.agent.bus import Bus
from hilt.agent.parts import ActiveModel, NoExtensions
from hilt.cli.chooser import Chooser
from hilt.cli.flags import parse
from hilt.cli.ground import Ground
from hilt.errors import AuthError, ConfigError, HiltError, UsageError
from hilt.model.models import ModelInfo
from hilt.providers.catalogue import DEMO
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta
from support.sources import Source

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "KIMI_API_KEY", "MOONSHOT_API_KEY")
OWN = Source("myapi", models=(ModelInfo("big", "", context_window=1000), ModelInfo("small", "")))


class Choosing:
    def __init__(self, ground: Ground, *, extensible: bool = True) -> None:
        self.registry = Registry()
        self.chooser = Chooser(ground, self.registry, Bus(), NoExtensions, extensible=extensible)

    def start(self, log: SessionLog | None = None) -> ActiveModel:
        return self.chooser.start(log)

    def later(self, active: ActiveModel, *sources: Source) -> ActiveModel:
        """What the first request finds when these have come up."""
        assert active.pending
        with self.registry.publish(Owner("ext"), tuple(source.offer() for source in sources)):
            return active.pending()

    def switch(self, model: str, active: ActiveModel, *sources: Source) -> ActiveModel:
        with self.registry.publish(Owner("ext"), tuple(source.offer() for source in sources)):
            return self.chooser.switch(model, active)


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Choosing]:
    """A user with these flags, this config.toml and these keys."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)

    def given(*flags: str, config: str = "", extensible: bool = True, **keys: str) -> Choosing:
        (tmp_path / "home").mkdir(exist_ok=True)
        (tmp_path / "home" / "config.toml").write_text(config)
        for name, key in keys.items():
            monkeypatch.setenv(name, key)
        return Choosing(Ground.survey(parse([*flags])), extensible=extensible)

    return given


def who(active: ActiveModel) -> tuple[str, str, str]:
    return active.info.provider, active.info.id, active.info.extension


def resumed(provider: str, model: str) -> SessionLog:
    return SessionLog.in_memory(new_meta("/p", provider, model))


@pytest.mark.parametrize(
    ("flags", "config", "chosen"),
    [
        (["--model", "myapi/big"], "", ("myapi", "big", "ext")),
        (["--model", "myapi:big"], "", ("myapi", "big", "ext")),
        (["--model", "myapi/unlisted/x"], "", ("myapi", "unlisted/x", "ext")),
        (["--model", "small"], "", ("myapi", "small", "ext")),
        (["--provider", "myapi"], "", ("myapi", "big", "ext")),
        (["--provider", "MyApi", "--model", "small"], "", ("myapi", "small", "ext")),
        ([], 'provider = "myapi"', ("myapi", "big", "ext")),
        ([], 'provider = "myapi"\nmodel = "small"', ("myapi", "small", "ext")),
        (["--model", "other"], 'provider = "myapi"', ("myapi", "other", "ext")),
    ],
)
@pytest.mark.parametrize("keys", [{}, {"OPENAI_API_KEY": "sk-0123456789"}])
def test_a_model_of_an_extension_is_chosen_once_it_is_up(
    given: Callable[..., Choosing], keys: dict[str, str], flags: list[str], config: str, chosen: tuple[str, str, str]
) -> None:
    choosing = given(*flags, config=config, **keys)
    assert who(choosing.later(choosing.start(), OWN)) == chosen


def test_a_session_with_a_model_of_an_extension_goes_on_with_it(given: Callable[..., Choosing]) -> None:
    choosing = given()
    active = choosing.start(resumed("myapi", "small"))
    assert who(active) == ("myapi", "small", "")
    assert who(choosing.later(active, OWN)) == ("myapi", "small", "ext")
    with pytest.raises(ConfigError, match='the configured provider "myapi" is not known'):
        choosing.later(active)
    plain = given("--model", "gpt-5", OPENAI_API_KEY="sk-0123456789")
    assert who(plain.later(plain.start(resumed("myapi", "small")), OWN)) == ("openai", "gpt-5", "")


@pytest.mark.parametrize(
    ("flags", "config", "kind"),
    [
        (["--provider", "myapi"], "", UsageError),
        ([], 'provider = "myapi"', ConfigError),
        (["--provider", "openai"], "", AuthError),
        (["--model", "claude-sonnet-4-5"], "", AuthError),
    ],
)
def test_without_extensions_it_fails_at_once_and_with_them_in_the_same_words_later(
    given: Callable[..., Choosing], flags: list[str], config: str, kind: type[HiltError]
) -> None:
    with pytest.raises(kind) as at_once:
        given(*flags, config=config, extensible=False).start()
    choosing = given(*flags, config=config)
    with pytest.raises(kind) as later:
        choosing.later(choosing.start())
    assert (at_once.value.message, at_once.value.hint) == (later.value.message, later.value.hint)


def test_what_no_extension_can_put_right_fails_at_once_all_the_same(
    given: Callable[..., Choosing], tmp_path: Path
) -> None:
    for flags in (["--provider", "script"], ["--provider", "ollama"], ["--script", str(tmp_path / "missing")]):
        with pytest.raises(HiltError):
            given(*flags).start()


@pytest.mark.parametrize(
    ("flags", "config", "chosen"),
    [
        (["--provider", "openai"], "", ("openai", "gpt-5")),
        (["--model", "gpt-5"], "", ("openai", "gpt-5")),
        ([], 'provider = "openai"', ("openai", "gpt-5")),
        ([], 'provider = "kimi"', ("kimi", "kimi-for-coding")),
    ],
)
def test_a_key_that_is_missing_is_not_missed_by_an_extension_that_answers_for_the_api(
    given: Callable[..., Choosing], flags: list[str], config: str, chosen: tuple[str, str]
) -> None:
    choosing = given(*flags, config=config)
    active = choosing.later(choosing.start(), Source("openai"))
    assert (active.info.provider, active.info.id) == chosen


def test_a_configured_provider_without_a_key_comes_before_another_with_one_if_an_extension_answers(
    given: Callable[..., Choosing],
) -> None:
    choosing = given(config='provider = "openai"', ANTHROPIC_API_KEY="sk-ant-0123456789")
    active = choosing.start()
    assert active.info.provider == "anthropic"
    assert choosing.later(active, Source("openai")).info.provider == "openai"
    assert choosing.later(active).info.provider == "anthropic"


def test_where_all_is_known_nothing_waits_for_an_extension(given: Callable[..., Choosing]) -> None:
    assert given(OPENAI_API_KEY="sk-0123456789").start().pending is None
    assert given("--provider", "openai", "--model", "gpt-99").start().pending is None
    assert given("--model", "gpt-5", config='provider = "openai"').start().pending is None
    assert given("--provider", "demo").start().pending is None
    with_nothing = given("--provider", "demo", config="")
    assert with_nothing.start().info == DEMO


def test_the_notice_about_the_demo_is_given_when_it_is_certain(given: Callable[..., Choosing]) -> None:
    choosing = given("--model", "myapi/big")
    active = choosing.start()
    assert active.info == DEMO and not active.notice
    assert "no API key found" in choosing.later(active).notice
    assert "no API key found" in given("--model", "myapi/big", extensible=False).start().notice
    assert "no API key found" in given().start().notice and given().start().pending is None


def test_switching_finds_models_of_extensions_and_leaves_them_again(given: Callable[..., Choosing]) -> None:
    choosing = given(OPENAI_API_KEY="sk-0123456789")
    openai = choosing.start()
    own = choosing.switch("myapi/big", openai, OWN)
    assert who(own) == ("myapi", "big", "ext") and "price" in own.notice
    assert who(choosing.switch("small", openai, OWN)) == ("myapi", "small", "ext")
    assert who(choosing.switch("unlisted", own, OWN)) == ("myapi", "unlisted", "ext")  # as with any server of one's own
    assert who(choosing.switch("gpt-5", own, OWN))[:2] == ("openai", "gpt-5")
    assert who(choosing.switch("openai/gpt-5", own, OWN))[:2] == ("openai", "gpt-5")
    for model, current in (("myapi/big", openai), ("unlisted", own)):
        with pytest.raises(UsageError, match="unknown model"):
            choosing.switch(model, current)
    with pytest.raises(AuthError):
        choosing.switch("claude-sonnet-4-5", openai, OWN)
    assert choosing.switch("claude-sonnet-4-5", openai, Source("anthropic")).info.provider == "anthropic"


def test_the_list_names_who_answers_for_each(given: Callable[..., Choosing]) -> None:
    choosing = given()
    with choosing.registry.publish(Owner("ext"), (OWN.offer(), Source("openai").offer())):
        models = {(info.provider, info.id): info.extension for info in choosing.chooser.models()}
    assert models["myapi", "big"] == models["openai", "gpt-5"] == models["kimi", "kimi-for-coding"] == "ext"
    assert models["anthropic", "claude-sonnet-4-5"] == ""


def test_what_the_user_says_of_a_model_holds_for_those_of_extensions_too(
    given: Callable[..., Choosing], tmp_path: Path
) -> None:
    choosing = given("--model", "small")
    said = '{"providers": {"MyApi": {"models": [{"id": "small", "contextWindow": 5}, {"id": "big", "name": "Huge"}]}}}'
    (tmp_path / "home" / "models.json").write_text(said)
    small = choosing.later(choosing.start(), OWN)
    assert who(small) == ("myapi", "small", "ext") and small.info.context_window == 5
    with choosing.registry.publish(Owner("ext"), (OWN.offer(),)):
        (big,) = [info for info in choosing.chooser.models() if (info.provider, info.id) == ("myapi", "big")]
    assert (big.name, big.context_window, big.extension) == ("Huge", 1000, "ext")


def test_whoever_answers_is_told_the_address_that_was_meant_for_the_adapter(given: Callable[..., Choosing]) -> None:
    choosing = given("--provider", "ollama", "--model", "m")
    assert choosing.start().info.base_url == "http://localhost:11434/v1"
    elsewhere = given("--provider", "openai", "--base-url", "http://box:1/v1")
    assert elsewhere.start().info.base_url == "http://box:1/v1"
    assert given("--provider", "openai", OPENAI_API_KEY="sk-0123456789").start().info.base_url == ""


def test_a_key_is_that_of_the_flag_for_the_first_provider_only(given: Callable[..., Choosing]) -> None:
    choosing = given("--provider", "openai", "--api-key", "sk-of-the-flag", MISTRAL_API_KEY="mi-0123456789")
    choosing.start()
    keys = {name: choosing.chooser.key(name) for name in ("OpenAI", "anthropic", "mistral", "Gemini", "x/../y")}
    assert keys == {"OpenAI": "sk-of-the-flag", "anthropic": "", "mistral": "mi-0123456789", "Gemini": "", "x/../y": ""}
