"""What keeps the interface quick: what is there before the first frame, and what is left for after one.

No figure is judged here; `benchmarks/tui.py` does that.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from textual.strip import Strip

from hilt.frontends.tui.drawing import cutting, parsing
from hilt.frontends.tui.drawing.markdown import Flow, markdown
from hilt.frontends.tui.drawing.paint import Paint
from hilt.frontends.tui.look import DARK, Look
from hilt.frontends.tui.transcript.answer import Answer
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.said import Said
from hilt.frontends.tui.transcript.window import Place, Window
from support.hilt_process import DEADLINE, Hilt

LOOK = Look.of(DARK)
LATER = ("hilt.agent", "hilt.extensions", "hilt.tools", "msgspec", "pygments", "markdown_it", "httpx2", "rich.markdown")
"""What would take longer than all that is needed for the first frame."""
LONG = "Some *words* of a paragraph that goes on for a while.\n\n" * 2_000
VARIED = """# A heading of some words

A paragraph of words, and 漢字 of twice the width, and **more** of them.

- an item of a list
  - and one within it, of more words
    > with a quote in it

```python
x = [1, 2]\twith a tab
y = "漢字"
```

| one | another | 漢字 |
|-----|---------|------|
| 1   | some words | x |

> | within | a quote |
> |---|---|
> | 1 | 2 |

---
"""

# Right after the first frame comes what is loaded then: in its place, tell what there is, and end.
UNTIL_FIRST_FRAME = """
import asyncio, json, os, sys, threading
from hilt.cli import faces, flags, terminal
from hilt.frontends.tui.app import HiltApp

def tell():
    print(json.dumps([threading.current_thread() is threading.main_thread(), [*sys.modules]]), flush=True)
    os._exit(0)

async def headless(self, run=HiltApp.run_async):
    await run(self, headless=True)

terminal._load, HiltApp.run_async = tell, headless
asyncio.run(terminal.show(flags.parse([]), faces.Interrupts(), lambda: None))
"""


def test_the_first_frame_waits_for_nothing_that_comes_later(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", UNTIL_FIRST_FRAME],
        env=hilt.environment,
        cwd=hilt.project,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    held_up, modules = json.loads(done.stdout)
    assert not held_up, "what comes later is loaded beside"
    assert "hilt.frontends.tui.app" in modules
    assert [name for name in modules if name.startswith(LATER)] == []


# Markdown


def test_listings_and_tables_are_not_parsed_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0

    def counted(lines: list[str]) -> object:
        nonlocal parsed
        parsed += sum(len(line) + 1 for line in lines)
        return parsing.units(lines)

    monkeypatch.setattr(cutting, "units", counted)
    text = ("Words of a sentence. " * 15 + "\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n") * 50
    flow = Flow()
    flow.feed(text)
    flow.close()
    flow.advance(float("inf"))
    assert parsed < 8 * len(text)


def test_at_every_width_there_are_as_many_rows_as_are_drawn() -> None:
    flow = Flow()
    flow.feed(VARIED)
    flow.close()
    flow.advance(float("inf"))
    for width in (*range(100, 1, -7), *range(2, 80)):
        drawn = [block.draw(width, Paint.of(LOOK)) for block in flow._blocks]
        assert flow.height(width) == sum(map(len, drawn)), width


def test_one_that_makes_do_has_the_first_rows_and_later_all() -> None:
    flow = Flow()
    flow.feed(LONG)
    flow.partial = not flow.advance(0)
    some = flow.height(40)
    assert 0 < some < 100
    assert len(flow.lines(40, LOOK)) == some
    flow.partial = False
    assert flow.height(40) == len(markdown(LONG, 40, LOOK))


# What takes long to lay out


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("_PATIENCE", "_IN_SIGHT"):
        monkeypatch.setattr(f"hilt.frontends.tui.transcript.answer.{patience}", 0.0)


@pytest.mark.usefixtures("hurried")
def test_an_answer_that_grows_is_in_sight_as_far_as_it_is_laid_out() -> None:
    answer = Answer()
    answer.feed(LONG)
    begun = [strip.text for strip in answer.rows(40, LOOK)]
    assert answer.unready
    assert begun[0].startswith("Some words")
    assert answer.advance(float("inf"))
    whole = [strip.text for strip in answer.rows(40, LOOK)]
    assert not answer.unready
    assert whole[: len(begun)] == begun
    answer.finish()
    answer.feed(LONG)
    assert len(answer.rows(40, LOOK)) >= len(begun), "what was in sight does not go"


@pytest.mark.usefixtures("hurried")
def test_what_is_copied_is_complete_also_where_it_was_not_laid_out() -> None:
    window = Window(LOOK, 40, 10)
    window.show([Said("go"), Answer.of(LONG), Said("on")])
    rows = [strip.text for strip, _, _ in window.between(Place(0, 1, 0), Place(2, 1, 2))]
    assert len(rows) > 2_000
    assert not any("laid out" in row for row in rows)


class Growing(Block):
    """Has some of its rows, and then all."""

    unready, partial = True, True

    def rows(self, width: int, look: Look) -> list[Strip]:
        return [Strip.blank(1)] * (30 if self.unready else 90)

    def guess(self, width: int) -> int:
        return 90


def test_what_is_being_read_stays_when_more_of_it_is_laid_out() -> None:
    window, block = Window(LOOK, 40, 10), Growing()
    window.show([block])
    window.scroll(-5)
    before = window.in_sight()[0].row
    block.unready = False
    block.touch()
    assert window.in_sight()[0].row == before
