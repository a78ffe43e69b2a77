"""Small, narrow and colourless terminals: what matters is still to be read."""

import re
from typing import Any

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt
from support.screen import Terminal, needs_tmux

pytestmark = needs_tmux
SAID = "The **turnips** grow in three rows, and the beets in four; all want water.\n\n- first\n- second\n"
WIDE = "The turnips grow in three rows, and the beets in four; all want water."


def started(hilt: Hilt, *arguments: str, env: tuple[str, ...] = (), **more: Any) -> Terminal:
    return Terminal(["env", *env, *hilt.command(*arguments)], hilt.environment, hilt.project, **more)


def talked(terminal: Terminal) -> str:
    terminal.wait_for("Ask anything")
    terminal.type("how are they?")
    terminal.press("Enter")
    return terminal.wait_for("second")


def test_the_size_is_that_of_the_window_whatever_the_environment_says(hilt: Hilt) -> None:
    with started(hilt, *hilt.script(says(SAID)), env=("COLUMNS=80", "LINES=24")) as terminal:
        assert WIDE in talked(terminal)
        terminal.resize(40, 24)
        terminal.wait_until(lambda screen: WIDE in " ".join(screen.split()) and WIDE not in screen, "it fits")


def test_it_reads_well_at_80_and_at_40_columns_and_survives_every_size_between(hilt: Hilt) -> None:
    script = hilt.script(calls(("bash", {"command": "echo " + "word " * 30})), says(SAID))
    with started(hilt, *script) as terminal:
        wide = talked(terminal)
        assert WIDE in wide
        terminal.resize(40, 24)
        narrow = terminal.wait_until(lambda screen: WIDE in " ".join(screen.split()) and WIDE not in screen, "it fits")
        for word in ("┃ how are they?", "turnips", "first", "second", "› Ask anything", "script"):
            assert word in narrow
        terminal.type("/mod")
        terminal.wait_for("/model")
        terminal.press("Enter")
        terminal.wait_for("type to filter")
        for columns, rows in ((20, 8), (10, 4), (1, 1), (200, 50), (3, 24), (40, 3)):
            terminal.resize(columns, rows)
        terminal.resize(80, 24)
        terminal.wait_for("─ model ──")
        terminal.press("Escape")
        terminal.wait_until_gone("type to filter")
        terminal.wait_for(WIDE)
        terminal.type("/exit")
        terminal.press("Enter")
        terminal.wait_for("left with 0")


@pytest.mark.parametrize("env", [("NO_COLOR=1",), ("TERM=dumb",), ("TERM=vt100", "COLORTERM=")], ids=str)
def test_it_reads_without_colour(hilt: Hilt, env: tuple[str, ...]) -> None:
    turns = (calls(("bash", {"command": "exit 3"})), says(SAID), calls(("bash", {"command": "touch ran"})))
    with started(hilt, *hilt.script(*turns, says("as you wish")), "--permissions", "ask", env=env) as terminal:
        terminal.wait_for("asks first")
        terminal.type("how are they?")
        terminal.press("Enter")
        screen = terminal.wait_for("Esc no")
        assert "◈ Allow bash?" in screen and "› 1 y  Yes, once" in screen  # what Enter takes has a mark
        terminal.type("y")
        screen = terminal.wait_for("second")
        assert ("┃ how are they?" in screen and "failed" in screen) or "exit" in screen
        if env == ("NO_COLOR=1",):
            assert not re.search(r"\x1b\[[0-9;]*[34]8;[25];", "\n".join(terminal.screen(colours=True)))


def test_the_theme_of_the_terminals_own_colours_uses_no_others(hilt: Hilt) -> None:
    with started(hilt, *hilt.script(says(SAID)), env=("HILT_THEME=system",)) as terminal:
        talked(terminal)
        assert "8;2;" not in "\n".join(terminal.screen(colours=True))


def test_a_theme_is_chosen_and_is_there_the_next_time(hilt: Hilt) -> None:
    ground = "48;2;253;253;252"
    with started(hilt, *hilt.script(says(SAID))) as terminal:
        talked(terminal)
        assert ground not in "".join(terminal.screen(colours=True))
        terminal.type("/theme light")
        terminal.press("Enter")
        terminal.wait_until(lambda _: ground in "".join(terminal.screen(colours=True)), "it is light")
        terminal.type("/exit")
        terminal.press("Enter")
        terminal.wait_for("left with 0")
    with started(hilt, *hilt.script(says(SAID))) as terminal:
        terminal.wait_for("Ask anything")
        assert ground in "".join(terminal.screen(colours=True))
