"""The status line: what it says, in which order, and what gives way where there is little room."""

from typing import Any

import pytest
from rich.cells import cell_len

from hilt.frontends.tui.look import DARK, Look
from hilt.frontends.tui.scene import Facts, Scene
from hilt.frontends.tui.status import conversation, home_relative, surroundings
from hilt.model.conversation import Usage
from hilt.model.events import StatusShown
from hilt.model.extensions import ExtensionState, ExtensionStatus

LOOK = Look.of(DARK)


def facts(**more: Any) -> Facts:
    usual: dict[str, Any] = {
        "model": "big-model",
        "mode": "ask",
        "cwd": "/srv/garden",
        "branch": "main",
        "window": 200_000,
        "context": 50_000,
        "usage": Usage(input=12_345, output=678, cache_read=100_000, cost_usd=1.234),
    }
    return Facts(**{**usual, **more})


def extension(name: str, state: ExtensionState) -> ExtensionStatus:
    return ExtensionStatus(name, "1", "frames", state, "user", f"/x/{name}")


def first(width: int = 200, **more: Any) -> str:
    return "".join(text for text, _ in conversation(facts(**more), width, LOOK))


def second(width: int = 200, *words: StatusShown, **more: Any) -> str:
    scene = Scene(facts=facts(**more), statuses=words)
    return "".join(text for text, _ in surroundings(scene, width, LOOK))


def test_it_tells_the_model_the_mode_how_full_it_is_and_what_it_cost() -> None:
    assert first() == "big-model  asks first  25% of 200k  ↑112k ↓678  $1.23"
    assert first(jail=True).endswith("$1.23  jailed")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mode": "ask"}, "asks first"),
        ({"mode": "accept-edits"}, "edits freely"),
        ({"mode": "yolo"}, "runs freely"),
        ({"mode": "yolo", "step": True}, "asks at each step"),
    ],
)
def test_the_mode_is_said_in_words(more: dict[str, Any], said: str) -> None:
    assert f"  {said}  " in first(**more)
    assert f"  {more['mode']}  " in first(50, **more) or more.get("step")


def test_what_nobody_knows_is_left_out() -> None:
    assert first(window=0, context=0, usage=None) == "big-model  asks first"
    assert first(window=0, context=1234, usage=Usage()) == "big-model  asks first  1.2k tokens"


@pytest.mark.parametrize(("context", "style"), [(139_000, LOOK.dim), (150_000, LOOK.warn), (199_000, LOOK.error)])
def test_an_almost_full_conversation_stands_out(context: int, style: Any) -> None:
    parts = conversation(facts(context=context), 200, LOOK)
    assert next(given for text, given in parts if " of " in text) == style


@pytest.mark.parametrize("width", range(1, 90))
def test_what_does_not_fit_is_left_out_from_the_end_and_never_cut(width: int) -> None:
    row, whole = first(width), first(width if width < 60 else 200)
    assert whole.startswith(row)
    assert cell_len(row) <= width or row == "big-model"  # who answers is always said


def test_wide_letters_are_counted_by_their_width() -> None:
    row = second(40, StatusShown("ext", "k", "日本語" * 6), cwd="/日本語", branch="")
    assert cell_len(row) <= 40


def test_it_tells_where_the_tools_work_and_what_extensions_say() -> None:
    row = second(200, StatusShown("tester", "k", "3 tests fail"))
    assert row == "/srv/garden (main)  tester: 3 tests fail"
    assert second(branch="") == "/srv/garden"


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([], ""),
        (["ready"], "✓ 1 extension"),
        (["ready", "ready", "disabled", "stopped"], "✓ 2 extensions"),
        (["disabled"], ""),
        (["ready", "starting", "starting"], "◌ 2 of 3 extensions starting"),
        (["starting", "failed", "ready"], "✗ b failed (/ext)"),
        (["failed", "failed", "restarting"], "✗ a failed +1 (/ext)"),
        (["restarting", "ready"], "↻ a restarting (/ext)"),
        (["untrusted", "restarting"], "? a untrusted (/ext)"),
    ],
)
def test_the_extensions_are_well_starting_or_the_one_that_is_not_is_named(
    states: list[ExtensionState], said: str
) -> None:
    row = second(extensions=[extension(name, state) for name, state in zip("abcd", states, strict=False)])
    assert row == (f"{said}  " if said else "") + "/srv/garden (main)"


def test_names_of_strangers_cannot_command_the_terminal() -> None:
    bad = "a\x1b[2J\u202e\nb"
    row = first(model=bad) + second(
        200, StatusShown(bad, "k", bad), cwd=f"/{bad}", branch=bad, extensions=[extension(bad, "failed")]
    )
    assert row.isprintable()


def test_the_home_directory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert home_relative("/home/someone/garden") == "~/garden"
    assert home_relative("/home/someone") == "~"
    assert home_relative("/home/someone-else") == "/home/someone-else"
