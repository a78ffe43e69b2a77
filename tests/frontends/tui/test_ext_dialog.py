"""`/ext`: every extension as it is at this moment, and what can be done about it."""

from pathlib import Path
from typing import Any

import pytest

from support.extending import Made, chaos
from support.hilt_process import Hilt
from support.offerer import Ask
from support.offering import offering
from support.program import Program, program


def _slowly(ask: Ask) -> Any:
    import sys

    print("a line on stderr \x1b[2J", file=sys.stderr, flush=True)
    if ask.params["args"] == "die":
        ask.die()
    return {"action": "noop"}


def weeder(**more: Any) -> Made:
    offers: list[tuple[str, dict[str, Any]]] = [
        ("command", {"name": "weed", "description": "weeds"}),
        ("tool", {"name": "hoe", "description": "hoes", "parameters": {"type": "object"}}),
    ]
    return offering("weeder", *offers, answers={"command/execute": _slowly}, **more)


def ext(hilt: Hilt, *made: Made) -> list[str]:
    return [word for one in made for word in ("--ext", str(one.write(hilt.folder)))]


async def until(window: Program, name: str, state: str) -> None:
    def now() -> str:
        return next((one.state for one in window.session.extensions.statuses() if one.name == name), "")

    await window.until(lambda: now() == state, f"{name} is {state}, and not {now()}")


async def kept(hilt: Hilt, window: Program, choice: str) -> None:
    config = hilt.home / "config.toml"
    await window.until(lambda: config.exists() and choice in config.read_text(), f"{choice} is kept")


@pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])
async def test_it_shows_what_each_is_offers_and_costs_and_follows_what_happens(hilt: Hilt, dialect: Any) -> None:
    async with program(hilt, *hilt.script(), *ext(hilt, weeder(dialect=dialect)), size=(100, 40)) as window:
        await until(window, "weeder", "ready")
        window.say("/ext")
        await window.shows("extensions", "› weeder", "✓ ready", "hoe, /weed", f"({dialect}, flag, sandbox off)")
        await window.shows("0 restarts", "d disable · r reload · l log")
        calls = window.session.extensions.statuses()[0].calls
        window.say("/weed")
        await window.until(lambda: window.session.extensions.statuses()[0].calls > calls, "it was called")
        await window.shows(f"{calls + 1} calls", "ms on average", "ms at worst", "s waited for")
        window.say("/weed die")
        await window.shows("1 restarts", "last error")


async def test_one_is_disabled_and_enabled_and_that_is_kept(hilt: Hilt) -> None:
    weeder().write(hilt.home / "extensions")
    async with program(hilt, *hilt.script()) as window:
        await until(window, "weeder", "ready")
        window.say("/ext")
        await window.shows("✓ ready")
        await window.press("d")
        await until(window, "weeder", "disabled")
        await window.shows("– disabled", "e enable")
        await kept(hilt, window, "enabled = false")
        await window.press("e")
        await until(window, "weeder", "ready")
        await window.shows("✓ ready", "d disable")
        await kept(hilt, window, "enabled = true")


async def test_one_is_reloaded_and_what_came_of_it_is_said(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(), *ext(hilt, weeder())) as window:
        await until(window, "weeder", "ready")
        before = window.session.extensions.statuses()[0].pid
        window.say("/ext")
        await window.shows("✓ ready")
        await window.press("r")
        await window.shows("reloaded: 1 stopped, 1 loaded (1 ready)", "extensions", "✓ ready")
        assert window.session.extensions.statuses()[0].pid != before


async def test_its_log_is_read_from_the_end_and_made_harmless(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(), *ext(hilt, weeder())) as window:
        await until(window, "weeder", "ready")
        window.say("/ext")
        await window.shows("✓ ready")
        await window.press("l")
        await window.shows("weeder › log", "[hilt] starting weeder")
        await window.press("escape")
        await window.shows("✓ ready")
        await window.press("escape")
        log = Path(window.session.extensions.statuses()[0].log)
        log.parent.mkdir(exist_ok=True)
        log.write_text("".join(f"line {number}\x1b[2J\x1b]0;owned\x07\n" for number in range(20_000)))
        window.say("/ext")
        await window.shows("✓ ready")
        await window.press("enter")
        shown = await window.shows("weeder › log", "line 19999")
        assert "\x1b" not in shown and "owned" not in shown
        await window.press("home")
        await window.shows_no("line 19999")


async def test_one_that_failed_says_why_and_the_status_line_names_it(hilt: Hilt) -> None:
    broken = Made("broken", {"exec": "/bin/sh", "args": ["-c", "echo no seeds left >&2; exit 3"]})
    async with program(hilt, *hilt.script(), *ext(hilt, weeder(), broken), size=(100, 40)) as window:
        await window.until(lambda: "✗ broken failed" in window.rows[-1], "the status line names it")
        await window.pilot.click(offset=(5, 39))
        await window.shows("extensions", "✗ failed")
        await window.shows("› broken", "no seeds left")


async def test_a_click_or_the_arrows_choose_one(hilt: Hilt) -> None:
    made = [chaos(name, "hello", "ready") for name in ("alder", "beech", "cedar")]
    async with program(hilt, *hilt.script(), *ext(hilt, *made)) as window:
        for one in made:
            await until(window, one.name, "ready")
        window.say("/ext")
        await window.shows("› alder")
        await window.press("down")
        await window.shows("› beech")
        first = next(number for number, text in enumerate(window.rows) if "alder" in text)
        await window.pilot.click(offset=(6, first))
        await window.shows("› alder", "/alder")
        await window.pilot.click(offset=(6, first + 2))
        await window.shows("› cedar", "/cedar")
        await window.press("down")
        assert "› cedar" in window.text


async def test_without_extensions_it_says_how_to_get_one(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script()) as window:
        window.say("/ext")
        await window.shows("There are none", "hilt ext install")
        await window.press("d", "r", "l", "enter", "escape")
        await window.until(lambda: window.dialog is None, "it is closed")
