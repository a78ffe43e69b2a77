"""One choice in `config.toml` is changed, and not a byte besides; or it is said what to write by hand."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.cli.configuring import amended, choose
from hilt.errors import ConfigError
from support.properties import patient


def changed(tmp_path: Path, text: str, name: str = "x", **values: Any) -> str:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    choose(path, name, values or {"enabled": False})
    return path.read_bytes().decode()


# As people write such files


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[extensions.x]\nenabled = false\n"),
        ("max_steps = 3", "max_steps = 3\n\n[extensions.x]\nenabled = false\n"),
        ("# mine\n", "# mine\n\n[extensions.x]\nenabled = false\n"),
        ("[extensions.x]", "[extensions.x]\nenabled = false\n"),
        ("[extensions.x] # why\n# so\n", "[extensions.x] # why\nenabled = false\n# so\n"),
        ("[extensions.x]\nenabled = true\n", "[extensions.x]\nenabled = false\n"),
        ("[extensions.x]\nenabled=true# on\nnice = 3\n", "[extensions.x]\nenabled = false# on\nnice = 3\n"),
        ('[extensions.x]\n"enabled" = true  # on\n', "[extensions.x]\nenabled = false  # on\n"),
        ('[ "extensions" . x ]\nenabled = true\n', '[ "extensions" . x ]\nenabled = false\n'),
        (
            "[extensions.x]\nenabled = true\n[extensions.y]\nenabled = true\n",
            "[extensions.x]\nenabled = false\n[extensions.y]\nenabled = true\n",
        ),
        (
            "[extensions.y]\nenabled = true\n\n[guards]\n# none\n",
            "[extensions.y]\nenabled = true\n\n[guards]\n# none\n\n[extensions.x]\nenabled = false\n",
        ),
        ("[extensions.x]\r\nenabled = true # on\r\n", "[extensions.x]\r\nenabled = false # on\r\n"),
        ("# a\u2028[extensions.x]\n", "# a\u2028[extensions.x]\n\n[extensions.x]\nenabled = false\n"),
    ],
)
def test_only_the_one_line_changes(tmp_path: Path, before: str, after: str) -> None:
    assert changed(tmp_path, before) == after


def test_a_list_over_several_lines_is_replaced_whole_with_the_comment_behind_it(tmp_path: Path) -> None:
    text = '[extensions.x]\ngrants = [\n  "net",\n  "exec",\n]  # both\nnice = 3\n'
    after = changed(tmp_path, text, grants=("net",))

    assert after == '[extensions.x]\ngrants = ["net"]  # both\nnice = 3\n'


def test_a_hash_in_a_text_is_no_comment(tmp_path: Path) -> None:
    text = '[extensions.x]\ngrants = ["fs.read:/a#b"] # c\n'

    assert changed(tmp_path, text, grants=("net",)) == '[extensions.x]\ngrants = ["net"] # c\n'


def test_names_that_need_quotes_get_them(tmp_path: Path) -> None:
    assert changed(tmp_path, "", "project:a.b") == '[extensions."project:a.b"]\nenabled = false\n'


def test_several_choices_are_kept_at_once_or_not_at_all(tmp_path: Path) -> None:
    both: dict[str, Any] = {"grants": ("net",), "revoked": ("exec",)}
    assert tomllib.loads(changed(tmp_path, "", **both))["extensions"]["x"] == {"grants": ["net"], "revoked": ["exec"]}
    text = '[extensions.x]\ngrants = []\nrevoked = [ # mind\n  "net",\n]\n'
    with pytest.raises(ConfigError):
        changed(tmp_path, text, **both)
    assert (tmp_path / "config.toml").read_text() == text


# As people might write them, too


@pytest.mark.parametrize(
    "text",
    [
        "extensions = { x = { enabled = true } }\n",
        "extensions = {}\n",
        "extensions.x.enabled = true\n",
        "[extensions]\nx.enabled = true\n",
        "[extensions]\nx = { enabled = true }\n",
        '[extensions.x]\nsandbox = """strict"""\n"enab\\u006ced" = true\n',
    ],
)
def test_a_file_written_otherwise_is_left_alone_and_what_to_write_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        changed(tmp_path, text)

    assert str(tmp_path / "config.toml") in caught.value.message
    assert "[extensions.x]" in caught.value.hint and "enabled = false" in caught.value.hint
    assert (tmp_path / "config.toml").read_text() == text


def test_comments_within_a_list_are_not_lost_so_it_is_left_alone(tmp_path: Path) -> None:
    text = '[extensions.x]\ngrants = [\n  "net", # for the weather\n]\n'
    with pytest.raises(ConfigError) as caught:
        changed(tmp_path, text, grants=("net", "exec"))

    assert 'grants = ["net","exec"]' in caught.value.hint
    assert (tmp_path / "config.toml").read_text() == text


@pytest.mark.parametrize("text", ["[extensions.x\n", "enabled = 1\n", "max_steps = 'many'\n", "\ufeffmax_steps = 3\n"])
def test_a_damaged_file_is_told_as_such_and_left_alone(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        changed(tmp_path, text)

    assert (tmp_path / "config.toml").read_text() == text


def test_a_file_that_is_kept_elsewhere_and_linked_stays_there(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "home").mkdir()
    real, link = tmp_path / "dotfiles" / "hilt.toml", tmp_path / "home" / "config.toml"
    real.write_text("# mine\n")
    link.symlink_to("../dotfiles/hilt.toml")
    choose(link, "x", {"enabled": False})

    assert link.is_symlink() and real.read_text() == "# mine\n\n[extensions.x]\nenabled = false\n"
    assert os.listdir(real.parent) == ["hilt.toml"]


def test_a_file_that_cannot_be_written_is_told_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("/proc/self/comm.toml")  # a place where nobody can make a file
    with pytest.raises(ConfigError) as caught:
        choose(tmp_path / "config.toml", "x", {"enabled": False})

    assert "enabled = false" in caught.value.hint


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_told_at_once(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "config.toml")
    with pytest.raises(ConfigError):
        choose(tmp_path / "config.toml", "x", {"enabled": False})


def test_a_new_file_is_private(tmp_path: Path) -> None:
    changed(tmp_path, "")

    assert stat.S_IMODE((tmp_path / "config.toml").stat().st_mode) == 0o600


# Whatever they write

LINES = st.sampled_from(
    [
        "# a comment",
        "",
        "[extensions.x]",
        "[extensions.y]",
        "[extensions]",
        "[guards]",
        "enabled = true  # c",
        "enabled=false",
        'grants = ["net"]',
        "grants = [ # why",
        '  "exec",',
        "]",
        "nice = 3",
        "max_steps = 4",
        "x.nice = 1",
        'off = ["tool:a#b"]',
        "x = {}",
    ]
)


@patient
@given(lines=st.lists(LINES, max_size=12), values=st.sampled_from([{"enabled": False}, {"grants": ("net", "exec")}]))
def test_either_exactly_that_has_changed_with_all_comments_or_it_is_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], values: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    text = "\n".join(lines)
    path.write_text(text)
    try:
        after = amended(path, "x", values).decode()
    except ConfigError:
        assert path.read_text() == text
        return
    before, now = tomllib.loads(text), tomllib.loads(after)
    wanted = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    mine = before.setdefault("extensions", {}).setdefault("x", {})
    mine.update(wanted)
    assert now == before
    assert after.count("# ") == text.count("# ")
