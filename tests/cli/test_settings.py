"""What an extension may read of the user's configuration, and what not."""

from pathlib import Path
from typing import Any

import pytest

from hilt.cli.config import Config
from hilt.cli.settings import Settings, small_model
from hilt.errors import ConfigError, HiltError
from hilt.home import Home

USUAL = ("defaultModel", "smallModel", "agent.compactAt", "agent.maxTurns")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HILT_SMALL_MODEL", "PIGLET_SMALL_MODEL"):
        monkeypatch.delenv(name, raising=False)


def settings(folder: Path, config: str = "") -> Settings:
    if config:
        (folder / "config.toml").write_text(config)
    return Settings(Home(folder))


def test_the_four_usual_keys_are_there_with_or_without_a_file(tmp_path: Path) -> None:
    bare = settings(tmp_path).get([*USUAL, "nothing"], "ext")
    assert bare == {"defaultModel": "", "smallModel": "", "agent.compactAt": 0, "agent.maxTurns": 50}
    config = 'provider = "openai"\nmodel = "gpt-5"\nsmall_model = "gpt-5-mini"\ncompact_at = 9000\nmax_steps = 3\n'
    assert settings(tmp_path, config).get(USUAL, "ext") == {
        "defaultModel": "openai/gpt-5",
        "smallModel": "gpt-5-mini",
        "agent.compactAt": 9000,
        "agent.maxTurns": 3,
    }


def test_its_own_settings_come_first_and_are_nobody_elses(tmp_path: Path) -> None:
    config = """
max_steps = 9
[retry]
attempts = 4
[extensions.ext.settings]
max_tool_errors = 3
max_steps = 1
"dotted.name" = "whole"
api_key = "its own"
[extensions.ext.settings.deep]
er = [1, {x = 2}]
[extensions."project:ext".settings]
max_tool_errors = 5
"""
    read = settings(tmp_path, config)
    keys = ("max_tool_errors", "max_steps", "dotted.name", "api_key", "deep.er", "deep", "retry.attempts", "deep.er.x")
    assert read.get(keys, "ext") == {
        "max_tool_errors": 3,
        "max_steps": 1,
        "dotted.name": "whole",
        "api_key": "its own",
        "deep.er": [1, {"x": 2}],
        "deep": {"er": [1, {"x": 2}]},
        "retry.attempts": 4,
    }
    assert read.get(keys[:2], "project:ext") == {"max_tool_errors": 5, "max_steps": 9}
    assert read.get(("extensions", "extensions.ext.settings.api_key", "extensions.ext"), "other") == {}


def test_the_file_is_read_anew_each_time_and_a_mistake_in_it_is_told(tmp_path: Path) -> None:
    read = settings(tmp_path, "max_steps = 2\n")
    assert read.get(("max_steps",), "ext") == {"max_steps": 2}
    (tmp_path / "config.toml").write_text("max_steps = 3\n")
    assert read.get(("max_steps",), "ext") == {"max_steps": 3}
    (tmp_path / "config.toml").write_text("max_steps = \n")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        read.get(("max_steps",), "ext")


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        ('provider = "ollama"\nbase_url = "http://me:pass@box/v1"\n', "base_url", None),
        ('provider = "ollama"\nbase_url = "http://[::/v1@x"\n', "base_url", None),
        ('provider = "ollama"\nbase_url = "http://box/v1"\n', "base_url", "http://box/v1"),
        ("extension_tokens = 5\n", "extension_tokens", 5),
        ('[guards.by_name]\nmy_token_guard = "block"\n', "guards.by_name.my_token_guard", None),
    ],
)
def test_what_looks_like_a_secret_is_left_out(tmp_path: Path, config: str, key: str, value: Any) -> None:
    read = settings(tmp_path, config)
    assert read.get((key,), "ext") == ({} if value is None else {key: value})
    assert "pass" not in str(read.get((key, "base_url", "guards", "guards.by_name"), "ext"))


def test_the_small_model_may_be_named_in_the_environment() -> None:
    assert small_model(Config(), {"PIGLET_SMALL_MODEL": "p"}) == "p"
    assert small_model(Config(), {"PIGLET_SMALL_MODEL": "p", "HILT_SMALL_MODEL": "h"}) == "h"
    assert small_model(Config(small_model="c"), {"HILT_SMALL_MODEL": "h"}) == "c"


def test_the_text_that_is_kept_for_an_extension_is_read_from_its_data(tmp_path: Path) -> None:
    read = settings(tmp_path)
    assert read.read("memory") == "" and read.directory() == str(tmp_path / "extensions")
    (tmp_path / "data" / "memory").mkdir(parents=True)
    (tmp_path / "data" / "memory" / "memory.md").write_text("\n# remember\n\n")
    assert read.read("memory") == "# remember"
    (tmp_path / "auth.md").write_text("secret")
    for wrong in ("../auth", "", "..", "a/b", "a\\b", "\0"):
        with pytest.raises(HiltError, match="invalid extension name"):
            read.read(wrong)


def test_a_text_that_is_none_is_told_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "data" / "x" / "x.md").mkdir(parents=True)
    with pytest.raises(HiltError, match=r"x\.md"):
        settings(tmp_path).read("x")
