"""The terminal interface: how soon it is there, how long anything holds it up, and what memory it takes.

Each round is the real program on a terminal, in a process of its own; what happens in it is told by `watched`. What
holds the loop up is given by what its thread computed meanwhile, as on a machine without anybody else.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from on_terminal import OnTerminal
from programs import HERE, Program, write_manifest
from report import Measured
from watched import FRAME, LAST, Figures

from hilt.model.content import Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, ToolResult, Usage, now, user_text
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, ResultRecord, new_meta

STARTS = 15
ROUNDS = 7
REPLY = 200_000
"""Characters."""
MESSAGES = 5_000
TIMES = 1_000_000
FLOODS = {"notes": "note ", "panels": "line ", "widgets": "widget "}
"""What each kind of flood puts on the screen."""

_MEGABYTE = 1024 * 1024
_DELTA, _PIECES = 20, 200
"""A script has so many deltas of a text; for smaller ones there are more texts."""
_KEY, _STEP = "q", "\x1b[17~"
"""A letter that is typed, and F6: leaves a panel for the input."""
_KEYS = 50
_PAUSE = 0.1
_DEADLINE = 10.0
_HINT = "sk anything"
"""The input before anything is typed, behind the cursor."""
_MARKDOWN = """# A heading

Some words of a paragraph that goes on for a while, with **strong** words, `code` and a [link](https://example.org).

```python
def one(a, b):
    '''Say it.'''
    return [x for x in range(a) if x % b == 0]
```

- a list
- of things
  - and others

| a | b |
|---|---|
| 1 | two |

"""


def run(
    starts: int = STARTS,
    rounds: int = ROUNDS,
    reply: int = REPLY,
    messages: int = MESSAGES,
    floods: Sequence[str] = tuple(FLOODS),
    times: int = TIMES,
) -> list[Measured]:
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder))
        script, session = bench.script(reply), bench.session(messages)
        return [
            Measured("tui: first frame / python -c pass", bench.first_frames(starts), 25.0),
            *_held(f"a reply of {reply // 1000} KB", [bench.watched("answer", *script) for _ in range(rounds)]),
            *_held(
                f"looking about {messages:,} messages",
                [bench.watched("wander", *script, "--session", bench.copied(session)) for _ in range(rounds)],
            ),
            *_memory(bench, script, session, rounds, messages),
            *(goal for kind in floods for goal in _flooded(bench, script, kind, times)),
        ]


def _held(what: str, found: list[Figures]) -> list[Measured]:
    longest, over = [1000 * one["longest"] for one in found], [one["over"] for one in found]
    return [
        Measured(f"tui: {what}, longest hold of the loop", longest, 1000 * FRAME, "ms"),
        Measured(f"tui: {what}, holds longer than a frame", over, 0, ""),
    ]


def _memory(bench: "_Bench", script: list[str], session: Path, rounds: int, messages: int) -> list[Measured]:
    ratios, each = [], []
    for _ in range(rounds):
        none = bench.watched("nothing", *script)["bytes"]
        long = bench.watched("nothing", *script, "--session", bench.copied(session))["bytes"]
        ratios.append(long / none)
        each.append((long - none) / messages / 1024)
    return [
        Measured(f"tui: memory with {messages:,} messages / with none", ratios, 1.5),
        Measured("tui: memory for a message of 0.9 KB", each, 5.0, "KB"),
    ]


def _flooded(bench: "_Bench", script: list[str], kind: str, times: int) -> list[Measured]:
    found, waits = bench.flooded(kind, times, *script)
    what = f"tui: {times:,} {kind}"
    return [
        Measured(f"{what}, drawn a second", [found["drawn_a_second"]], 30, "/s"),
        Measured(f"{what}, longest hold of the loop", [1000 * found["longest"]], 1000 * FRAME, "ms"),
        Measured(f"{what}, growth of memory", [found["grown"] / _MEGABYTE], 8, "MB"),
        Measured(f"{what}, until a key is seen", waits, 100, "ms"),
    ]


class _Bench:
    """A user's home, and the programs that are run there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        home = folder / "home"
        home.mkdir()
        (home / "config.toml").touch()  # it is not the first time
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        self._environment = {**os.environ, "HILT_HOME": str(home), "PYTHONPATH": path}

    # What is measured

    def first_frames(self, starts: int) -> list[float]:
        self._first_frame()  # write the bytecode, fill the caches
        ratios = []
        for number in range(starts):  # each comes first every other time
            ours = self._first_frame() if number % 2 else 0.0
            base = self._bare()
            ratios.append((ours or self._first_frame()) / base)
        return ratios

    def watched(self, experiment: str, *arguments: str | Path) -> Figures:
        with self._running(experiment, *arguments) as (terminal, into):
            terminal.ends()
            return _figures(terminal, into)

    def flooded(self, kind: str, times: int, *arguments: str) -> tuple[Figures, list[float]]:
        """And the milliseconds after which each key that was pressed meanwhile is seen."""
        argv = (sys.executable, "-I", "-S", "-E", str(HERE / "flooder.py"), kind, str(times), LAST)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            extension = write_manifest(Program("flooder", argv), Path(folder))
            with self._running("flood", *arguments, "--ext", extension) as (terminal, into):
                terminal.shows(FLOODS[kind])
                if kind == "panels":
                    terminal.type(_STEP)
                waits = list(_pressed(terminal, into))
                terminal.ends()
                return _figures(terminal, into), waits

    # What it takes

    def script(self, size: int) -> list[str]:
        """Flags for a model that says so much, twenty characters at a time."""
        text = (_MARKDOWN * (size // len(_MARKDOWN) + 1))[:size]
        step = _DELTA * _PIECES
        blocks = [{"type": "text", "text": text[at : at + step]} for at in range(0, size, step)]
        path = self._folder / "script.jsonl"
        path.write_text(json.dumps({"content": blocks}) + "\n")
        return ["--provider", "script", "--script", str(path)]

    def session(self, messages: int) -> Path:
        path = self._folder / "long.jsonl"
        with SessionLog.create(path, new_meta(str(self._folder), "script", "script"), durability="os") as log:
            for number in range(messages):
                log.append(_record(number))
        return path

    def copied(self, session: Path) -> Path:
        """It is written to."""
        copy = session.with_name("copy.jsonl")
        copy.write_bytes(session.read_bytes())
        return copy

    @contextmanager
    def _running(self, experiment: str, *arguments: str | Path) -> Iterator[tuple[OnTerminal, Path]]:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            into = Path(folder, "figures.json")
            argv = [sys.executable, str(HERE / "watched.py"), str(into), experiment, *map(str, arguments)]
            with OnTerminal(argv, self._environment, self._folder) as terminal:
                yield terminal, into

    def _first_frame(self) -> float:
        began = time.perf_counter()
        argv = [sys.executable, "-m", "hilt", "--no-session"]
        with OnTerminal(argv, self._environment, self._folder) as terminal:
            assert terminal.shows(_HINT, patience=6 * _DEADLINE), terminal.seen
            return time.perf_counter() - began

    def _bare(self) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], env=self._environment, check=True)
        return time.perf_counter() - began


def _pressed(terminal: OnTerminal, until: Path) -> Iterator[float]:
    """The milliseconds until each of some keys is seen."""
    for number in range(1, _KEYS + 1):
        if until.exists():
            return
        began = time.perf_counter()
        terminal.type(_KEY)
        if not terminal.shows(_KEY * number, patience=_DEADLINE):
            return
        yield 1000 * (time.perf_counter() - began)
        terminal.reads(_PAUSE)


def _figures(terminal: OnTerminal, into: Path) -> Figures:
    assert into.exists(), terminal.seen.decode(errors="replace")
    figures: Figures = json.loads(into.read_text())
    return figures


def _record(number: int) -> MessageRecord | ResultRecord:
    """Questions, calls, their results and answers, in turn."""
    match number % 4:
        case 0:
            return MessageRecord(user_text(f"question {number}: " + "what about this and that? " * 8))
        case 1:
            call = ToolCall(f"call{number}", "bash", {"command": f"ls -la {number}"})
            content = (Thinking("let me think " * 20), Text("I will look."), call)
            return MessageRecord(AssistantMessage(content, now(), "script", "script", Usage(1000, 100), "tool_use"))
        case 2:
            output = "\n".join([f"line {row} of the output" for row in range(30)])
            return ResultRecord(ToolResult(f"call{number - 1}", "bash", (Text(output),)))
        case _:
            answer = AssistantMessage((Text(_MARKDOWN * 3),), now(), "script", "script", Usage(1000, 100))
            return MessageRecord(answer)


if __name__ == "__main__":
    for measured in run():
        print(measured.line(), flush=True)
