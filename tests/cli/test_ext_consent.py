"""Installing in a terminal: all of it is shown, and only a yes that was typed afterwards counts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from support.ext_site import ExtSite, canary
from support.extending import tool
from support.hilt_process import until

QUESTION = r"Install one\? \[y/N\] "


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


@contextmanager
def installing(site: ExtSite, source: Path) -> Iterator["pexpect.spawn[str]"]:
    terminal = site.terminal("install", str(source))
    try:
        yield terminal
    finally:
        terminal.close(force=True)


def listens(terminal: "pexpect.spawn[str]") -> None:
    """Keys count as soon as what is typed is shown again."""
    until(terminal.getecho, "listening")


def ended(terminal: "pexpect.spawn[str]") -> Any:
    terminal.expect(pexpect.EOF)
    return terminal.wait()


def test_a_yes_installs(site: ExtSite) -> None:
    with installing(site, site.make(tool("one", version="4"))) as terminal:
        terminal.expect(QUESTION)
        listens(terminal)
        terminal.send("y\r")
        terminal.expect("installed one 4")
        assert ended(terminal) == 0
    assert site.row("one")["pinned"]


@pytest.mark.parametrize("keys", ["n\r", "\r", "\x1b", "perhaps\r"])
def test_everything_else_is_a_no_that_installs_nothing_and_exits_with_1(site: ExtSite, keys: str) -> None:
    with installing(site, site.make(canary("one"))) as terminal:
        terminal.expect(QUESTION)
        listens(terminal)
        terminal.send(keys)
        terminal.expect("nothing was installed")
        assert ended(terminal) == 1
    assert site.left() == {} and not list(site.folder.rglob("was-here"))


def test_ctrl_c_at_the_question_installs_nothing_and_exits_with_130(site: ExtSite) -> None:
    with installing(site, site.make(canary("one"))) as terminal:
        terminal.expect(QUESTION)
        listens(terminal)
        terminal.send("\x03")
        assert ended(terminal) == 130
    assert site.left() == {} and not list(site.folder.rglob("was-here"))


def test_what_was_typed_before_the_question_does_not_count(site: ExtSite) -> None:
    with installing(site, site.make(canary("one"))) as terminal:
        terminal.send("y\ry\r")
        terminal.expect(QUESTION)
        listens(terminal)
        terminal.send("\r")
        terminal.expect("nothing was installed")
        assert ended(terminal) == 1
    assert site.left() == {}


def test_the_command_is_shown_to_its_end_with_hidden_characters_visible(site: ExtSite) -> None:
    made: Any = tool("one")
    made.manifest["args"] = ["-c", "x" * 10_000 + "the-end", "\u202egnp\x1b[2J\u200b"]  # A18, A33
    with installing(site, site.make(made)) as terminal:
        terminal.expect(QUESTION)
        shown = terminal.before or ""
    shown = shown.replace("\r\n    > ", "")
    assert "x" * 10_000 + "the-end" in shown
    assert "‹U+202E›gnp‹U+001B›[2J‹U+200B›" in shown
    assert "\u202e" not in shown and "\x1b[2J" not in shown


def test_what_was_read_before_the_yes_is_not_told_again(site: ExtSite) -> None:
    site.install(tool("one", version="1"))
    site.make(tool("one", version="2"))
    terminal = site.terminal("update", "one")
    terminal.expect(r"Update one\? ")
    listens(terminal)
    terminal.send("y\r")
    assert ended(terminal) == 0
    assert "updated one to 2" in (terminal.before or "") and "version: 1" not in (terminal.before or "")


def test_ctrl_c_at_one_of_several_questions_asks_none_of_the_others(site: ExtSite) -> None:
    site.install(tool("a", version="1"), tool("b", version="1"))
    for name in "ab":
        site.make(tool(name, version="2"))
    terminal = site.terminal("update", "--all")
    terminal.expect(r"Update a\? ")
    listens(terminal)
    terminal.send("\x03")
    assert ended(terminal) == 130
    assert "Update b?" not in (terminal.before or "") and site.row("b")["version"] == "1"


def test_a_count_goes_on_in_place_in_a_narrow_terminal_too(site: ExtSite) -> None:
    terminal = site.terminal("install", f"{site.repository(tool('one')).path}@v1", "--yes")
    terminal.setwinsize(24, 40)
    assert ended(terminal) == 0
    counts = re.findall(r"[^\r\n]*%[^\r\n]*(?=\r[^\r\n])", terminal.before or "")
    assert counts and all(len(count) < 40 for count in counts)
