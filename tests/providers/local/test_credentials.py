"""Keys: the order in which they are found, and a file that others cannot read and no crash can break."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilt.errors import ConfigError, UsageError
from hilt.providers.credentials import Credentials


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored(folder: Path, content: object, permissions: int = 0o600) -> Path:
    path = folder / "auth.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(permissions)
    return path


def test_the_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = stored(tmp_path, {"openai": {"api_key": "from-file"}})
    environment = {"OPENAI_API_KEY": " from-environment\n"}
    assert Credentials(path, environment).key("openai", " from-flag ") == "from-flag"
    assert Credentials(path, environment).key("openai") == "from-environment"
    assert Credentials(path, {"OPENAI_API_KEY": "  "}).key("openai") == "from-file"
    assert Credentials(path, {}).key("anthropic") == ""


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("ANTHROPIC_API_KEY", "anthropic"), ("ANTHROPIC_API_KEY", "claude"), ("OPENAI_API_KEY", "openai"),
        ("GEMINI_API_KEY", "google"), ("GOOGLE_API_KEY", "gemini"), ("KIMI_API_KEY", "kimi"),
        ("MOONSHOT_API_KEY", "moonshot"), ("OLLAMA_API_KEY", "ollama"),
    ],
)  # fmt: skip
def test_each_provider_has_its_variables(tmp_path: Path, variable: str, provider: str) -> None:
    assert Credentials(tmp_path / "auth.json", {variable: "the-key"}).key(provider) == "the-key"


def test_the_process_environment_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-process")
    assert Credentials(tmp_path / "auth.json").key("openai") == "from-process"


def test_a_saved_key_is_private_found_again_and_leaves_the_rest_as_it_was(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    credentials = Credentials(home / "auth.json", {})
    credentials.save("gemini", " secret-one\n")
    assert (mode(home), mode(home / "auth.json")) == (0o700, 0o600)
    assert json.loads((home / "auth.json").read_text()) == {"google": {"api_key": "secret-one"}}

    before = {"google": {"api_key": "old", "oauth": {"refresh_token": "r"}}, "other": [1], "kimi": {"x": None}}
    path = stored(home, before)
    credentials.save("google", "secret-two")
    before["google"] = {"api_key": "secret-two", "oauth": {"refresh_token": "r"}}
    assert json.loads(path.read_text()) == before
    assert credentials.key("google") == "secret-two"
    assert [each.name for each in home.iterdir()] == ["auth.json"]


def test_a_directory_that_others_can_enter_is_closed_but_a_shared_one_is_left(tmp_path: Path) -> None:
    for permissions, after in ((0o755, 0o700), (0o1777, 0o1777)):
        home = tmp_path / oct(permissions)
        home.mkdir()
        home.chmod(permissions)
        credentials = Credentials(home / "auth.json", {})
        credentials.save("openai", "secret-one")
        assert mode(home) == after
        assert any("0700" in warning for warning in credentials.warnings) == (after == 0o700)


def test_saving_replaces_a_link_and_never_writes_through_it(tmp_path: Path) -> None:
    outside = stored(tmp_path, {"kimi": {"api_key": "elsewhere"}})
    untouched = outside.read_bytes()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    link = home / "auth.json"
    link.symlink_to(outside)
    Credentials(link, {}).save("openai", "secret-one")
    assert outside.read_bytes() == untouched
    assert not link.is_symlink() and mode(link) == 0o600


def test_a_file_that_cannot_be_written_is_reported_and_the_old_one_stays(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with pytest.raises(ConfigError, match=r"cannot (read|write) .*auth\.json"):
        Credentials(blocked / "auth.json", {}).save("openai", "secret-one")
    directory = tmp_path / "auth.json"
    directory.mkdir()
    with pytest.raises(ConfigError):
        Credentials(directory, {}).save("openai", "secret-one")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_failed_rename_leaves_no_copy_of_the_key_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path, {"kimi": {"api_key": "old-secret"}})
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        Credentials(path, {}).save("openai", "secret-one")
    assert path.read_bytes() == before and [each.name for each in tmp_path.iterdir()] == ["auth.json"]


@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "nul\0", "esc\x1b[0m", "smart“quote”", "tab\there"])
def test_a_key_with_anything_unprintable_is_refused_wherever_it_comes_from(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "auth.json"
    with pytest.raises(UsageError, match="command line"):
        Credentials(path, {}).key("openai", bad)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        Credentials(path, {"OPENAI_API_KEY": bad}).key("openai")
    with pytest.raises(UsageError, match="openai") as caught:
        Credentials(path, {}).save("openai", bad)
    assert bad not in str(caught.value) and not path.exists()
    stored(tmp_path, {"openai": {"api_key": bad}})
    with pytest.raises(ConfigError, match="openai"):
        Credentials(path, {}).key("openai")


def test_an_empty_key_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="empty"):
        Credentials(tmp_path / "auth.json", {}).save("openai", " \n")
    assert not (tmp_path / "auth.json").exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"openai": ', "\x00", "[" * 5000, '"text"'])
def test_a_corrupt_file_is_reported_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = stored(tmp_path, content)
    credentials = Credentials(path, {})
    for act in (lambda: credentials.key("openai"), lambda: credentials.save("openai", "k-123"),
                lambda: credentials.remove("all")):  # fmt: skip
        with pytest.raises(ConfigError) as caught:
            act()
        assert str(path) in str(caught.value) and "log in again" in caught.value.hint
    assert path.read_text() == content
    assert credentials.all_secrets() == () and credentials.warnings


@pytest.mark.parametrize("entry", [3, None, {"api_key": 3}, ["k"]])
def test_an_entry_of_the_wrong_shape_is_reported_by_name(tmp_path: Path, entry: object) -> None:
    path = stored(tmp_path, {"openai": entry, "kimi": {"api_key": "fine-key"}})
    with pytest.raises(ConfigError, match=r'"openai".*api_key'):
        Credentials(path, {}).key("openai")
    assert Credentials(path, {}).key("kimi") == "fine-key"


def test_a_pipe_in_place_of_the_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "auth.json")
    with pytest.raises(ConfigError, match="not a file"):
        Credentials(tmp_path / "auth.json", {}).key("openai")


def test_a_file_too_large_for_keys_is_refused_without_being_read(tmp_path: Path) -> None:
    path = stored(tmp_path, "{}")
    os.truncate(path, 2 * 1024 * 1024)
    with pytest.raises(ConfigError, match="not a file of keys"):
        Credentials(path, {}).key("openai")


def test_a_file_that_others_can_read_is_tightened_and_that_is_said_once(tmp_path: Path) -> None:
    path = stored(tmp_path, {"openai": {"api_key": "the-key"}}, 0o644)
    credentials = Credentials(path, {})
    assert credentials.key("openai") == "the-key"
    assert mode(path) == 0o600
    credentials.key("openai")
    assert len(credentials.warnings) == 1 and str(path) in credentials.warnings[0]


def test_the_target_of_a_link_is_not_touched_but_reported(tmp_path: Path) -> None:
    target = stored(tmp_path, {"openai": {"api_key": "the-key"}}, 0o644)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    credentials = Credentials(link, {})
    assert credentials.key("openai") == "the-key"
    assert mode(target) == 0o644 and "0600" in credentials.warnings[0]


def test_remove_forgets_one_or_all_and_says_whether_there_was_anything(tmp_path: Path) -> None:
    path = stored(tmp_path, {"gemini": {"api_key": "a"}, "openai": {"api_key": "b"}, "kimi": {"api_key": "c"}})
    credentials = Credentials(path, {})
    assert credentials.remove("google") and not credentials.remove("google")
    assert set(json.loads(path.read_text())) == {"openai", "kimi"}
    assert credentials.remove("all") and not credentials.remove("all")
    assert json.loads(path.read_text()) == {} and mode(path) == 0o600
    assert not Credentials(tmp_path / "none.json", {}).remove("all")


def test_all_secrets_are_those_of_the_flag_the_environment_and_the_file_at_any_depth(tmp_path: Path) -> None:
    path = stored(tmp_path, {"openai": {"api_key": "file-key", "oauth": {"access_token": "deep", "user": "ada"}}})
    credentials = Credentials(path, {"KIMI_API_KEY": "env-key ", "HOME": "/home/ada"})
    credentials.key("anthropic", "flag-key")
    assert credentials.all_secrets() == ("deep", "env-key", "file-key", "flag-key")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=40) | st.text('{}[]":,1openaiapi_key', max_size=40).map(str.encode))
def test_whatever_the_file_holds_there_is_a_key_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed-auth.json"
    path.write_bytes(data)
    credentials = Credentials(path, {})
    try:
        key = credentials.key("openai")
    except ConfigError:
        return
    finally:
        assert path.read_bytes() == data
    assert isinstance(key, str)
