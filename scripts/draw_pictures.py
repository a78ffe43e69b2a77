"""Draws the pictures of the terminal interface in the documents: the real program, with real extensions and a script.

`--check` draws them and compares, and changes nothing. What differs from run to run is given fixed values.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from rich.segment import Segment
from screen_svg import svg
from textual._compositor import LayoutUpdate

from hilt.extensions.host import RunningExtensions
from hilt.model.extensions import ExtensionStatus
from support.agent import calls, says
from support.hilt_process import Hilt
from support.program import Program, program

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
KIT = ROOT / "examples" / "extensions" / "project-kit"
BUILDS = ROOT / "scripts" / "pictured" / "builds.py"

PARSER = '''"""Reads tables from text."""


def parse(text):
    rows = [line.split("|") for line in text.splitlines()]
    header = rows[0]
    return [dict(zip(header, row)) for row in rows[1:]]  # TODO: quoted cells
'''
TESTS = """from parser import parse


def test_a_table():
    assert parse("a|b\\n1|2") == [{"a": "1", "b": "2"}]


def test_an_empty_file():
    assert parse("") == []
"""
FIX: dict[str, Any] = {
    "path": "parser.py",
    "edits": [
        {
            "oldText": "    header = rows[0]\n",
            "newText": "    if not rows:\n        return []\n    header = rows[0]\n",
        }
    ],
}
CHECK = """import test_parser

tests = [getattr(test_parser, name) for name in dir(test_parser) if name.startswith("test_")]
for test in tests:
    test()
print(len(tests), "passed")
"""
TIDE = {"name": "tide", "version": "0.2.0", "description": "Tells when the tide is high", "exec": "./tide"}
ANSWER = """`parse("")` raised an **IndexError**: without lines there is no header to take. \
Now it returns an empty list.

```python
>>> parse("")
[]
```

Both tests pass. One thing is left, which `/todos` finds: quoted cells."""


def usage(sent: int, written: int, cached: int = 0) -> dict[str, int]:
    return {"input": sent, "output": written, "cache_read": cached}


CONVERSATION = [
    calls(("read", {"path": "parser.py"}), usage=usage(2_140, 61)),
    calls(("edit", FIX), usage=usage(310, 142, 2_140)),
    calls(("bash", {"command": "python3 check.py"}), usage=usage(240, 38, 2_450)),
    says(ANSWER, usage=usage(190, 96, 2_690)),
]
ASKED = "parse() fails on an empty file. Fix it, please."


@dataclass(frozen=True)
class Scene:
    title: str
    """What somebody is told who does not see the picture."""
    act: Callable[[Program], Awaitable[object]]
    flags: tuple[str, ...] = ()
    size: tuple[int, int] = (92, 35)
    theme: str = "dark"
    first_time: bool = False
    """Without a model that was named, and without extensions."""
    environment: tuple[tuple[str, str], ...] = ()


# What happens in each


async def talk(window: Program) -> None:
    window.say(ASKED)
    await window.shows("quoted cells.", "↓337" if window.app.size.width > 60 else "1% of")
    await window.until(lambda: not window.session.busy, "it is done")


async def type_slash(window: Program) -> None:
    await talk(window)
    await window.press("slash", "up")
    await window.shows("/todos")


async def be_asked(window: Program) -> None:
    window.say(ASKED)
    await window.shows("Allow edit?")
    await listening(window)


async def open_panel(window: Program) -> None:
    await talk(window)
    window.say("/builds")
    await window.shows("IndexError: list index", "red since", "builds: 1 red", "esc closes")


async def look_at_extensions(window: Program) -> None:
    await talk(window)
    window.say("/ext")
    await window.shows("3, 1.8 ms on average")


async def pick_a_model(window: Program) -> None:
    await talk(window)
    window.say("/model")
    await window.type("sonnet")
    await window.shows("claude-sonnet")


async def be_welcomed(window: Program) -> None:
    await window.shows("try the demo")


async def be_asked_for_trust(window: Program) -> None:
    await window.shows("tide")
    await listening(window)


async def listening(window: Program) -> None:
    await window.until(lambda: window.dialog and window.dialog.listening, "it listens")
    await window.shows_no("does not count")


SCENES = {
    "conversation": Scene("A conversation: a file is read, an edit shown as a diff, a command run", talk),
    "commands": Scene("The list of commands while one is typed", type_slash),
    "permission": Scene("hilt asks before an edit and shows the diff", be_asked, ("--no-yolo",), (92, 30)),
    "panel": Scene("A panel of an extension, and a note", open_panel, ("--ext", str(BUILDS))),
    "extensions": Scene("/ext: every extension live", look_at_extensions, ("--ext", str(BUILDS))),
    "welcome": Scene("The welcome: log in, try the demo, open a project", be_welcomed, size=(92, 18), first_time=True),
    "models": Scene("The list of models, filtered", pick_a_model, environment=(("ANTHROPIC_API_KEY", "sk-none"),)),
    "trust": Scene("hilt asks whether what came with a folder may run", be_asked_for_trust, size=(92, 24)),
    "light": Scene("The same conversation in the light theme", talk, theme="light"),
    "narrow": Scene("The same conversation in forty columns", talk, size=(40, 34)),
}


# Drawing them


async def draw(scene: Scene, folder: Path) -> str:
    hilt = Hilt(folder, HILT_THEME=scene.theme, **dict(scene.environment))
    lay_out(hilt.project, with_extension=scene.act is be_asked_for_trust)
    flags: tuple[str, ...] = ()
    if not scene.first_time:
        flags = (*hilt.script(*CONVERSATION), "--model", "claude-sonnet-4-5", "--ext", str(KIT), *scene.flags)
    with steady(), redirect_stdout(StringIO()):
        async with program(hilt, *flags, size=scene.size) as window:
            extensions = window.session.extensions
            await window.until(
                lambda: all(one.state in ("ready", "untrusted") for one in extensions.statuses()), "they are ready"
            )
            await scene.act(window)
            await settled(window)
            return svg(rows_of(window, str(folder)), scene.size[0], window.app.look.palette, scene.title)


async def settled(window: Program) -> None:
    """Until everything that has happened is on the screen."""
    before: list[str] = []
    async with asyncio.timeout(10):
        while window.app.scene.dirty or window.rows != before:
            before = window.rows
            await window.pilot.pause(0.1)


def lay_out(project: Path, *, with_extension: bool) -> None:
    (project / "parser.py").write_text(PARSER)
    (project / "test_parser.py").write_text(TESTS)
    (project / "check.py").write_text(CHECK)
    if with_extension:
        own = project / ".hilt" / "extensions" / "tide"
        own.mkdir(parents=True)
        (own / "extension.json").write_text(json.dumps(TIDE))
        (own / "tide").write_text("#!/bin/sh\necho there is no sea here >&2\n")
        (own / "tide").chmod(0o755)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def steady() -> ExitStack:
    """What depends on the machine and the moment is always the same."""
    stack = ExitStack()
    stack.enter_context(mock.patch("hilt.frontends.tui.transcript.call.elapsed", return_value=""))
    measured = RunningExtensions.statuses

    def statuses(host: RunningExtensions) -> list[ExtensionStatus]:
        return [
            msgspec.structs.replace(
                one,
                pid=4100 + at,
                start_ms=38,
                mean_ms=1.8 if one.calls else 0.0,
                worst_ms=4.0 if one.calls else 0.0,
                busy_ms=21.0,
                directory=f"~/.local/state/hilt/extensions/{one.name}",
                source="user",
            )
            for at, one in enumerate(measured(host))
        ]

    stack.enter_context(mock.patch.object(RunningExtensions, "statuses", statuses))
    return stack


def rows_of(window: Program, home: str) -> list[list[Segment]]:
    app = window.app
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    return [[_at_home(segment, home) for strip in row for segment in strip] for row in update.strips]


def _at_home(segment: Segment, home: str) -> Segment:
    """Where a whole path is shown, it is one of everybody's."""
    text = segment.text.replace(home, "~")
    return Segment(text + " " * (len(segment.text) - len(text)), segment.style)


async def pictures(names: Sequence[str]) -> dict[str, str]:
    drawn = {}
    for name in names:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # whose length decides where lines are broken
            drawn[name] = await draw(SCENES[name], Path(folder))
    return drawn


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [name for name in arguments if name != "--check"] or list(SCENES)
    stale = []
    for name, drawn in asyncio.run(pictures(names)).items():
        path = PICTURES / f"{name}.svg"
        if not check:
            path.write_text(drawn, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != drawn:
            stale.append(path.name)
    if stale:
        print(f"out of date: {', '.join(stale)}; run make pictures", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
