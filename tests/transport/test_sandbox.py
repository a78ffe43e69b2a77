"""What a confined program can and cannot do, tried from inside: one table for every kind of confinement."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hilt.transport import bubblewrap, landlock
from hilt.transport.sandbox import confine
from support.probe import ATTEMPTS
from transport.children import until
from transport.confinement import World, neighbours, run, without_bubblewrap, world

OUTCOMES = {"+": "done", "-": "denied", "o": "absent"}

# For the columns see COLUMNS, in the same order.
TABLE = """
read a key                        + o o o o o o o - - - -
list the keys                     + o o o o o o o - - - -
link a key                        + o o o o o o o - - - -
read the host's keys              + o o o o o o o - - - -
write the host's home             + - - - - - - - - - - -
create a secret that was missing  + - - - - - - - - - - -
read the home                     + + + o o o + + + + - +
write outside                     + - - - o o + - - - - +
write through a link              + - - - o o + - - - - +
write its code                    + - - - - - - - - - - -
write its data                    + + + + + + + + + + + +
read the system                   + + + + + + + + + + + +
read the project                  + + + o o + + + + + - +
write the project                 + - - o o + + - - - - +
write to /tmp                     + + + + + + + + - - - -
share memory                      + + + + + + + + - - - -
connect to a server               + o + o o o o o - + - -
send a datagram                   + o + o o o o o - + - -
connect to a socket file          + - - - - - - o - - - -
connect to a nameless socket      + - - - - - - o - - - -
see a sibling                     + o o o o o o o + + + +
signal a sibling                  + o o o o o o o - - - -
trace a sibling                   + o o o o o o o - - - -
read a sibling's memory           + o o o o o o o - - - -
outlive the host                  + + + + + + + + + + + +
run a program                     + - + - - - + + - + - +
run its own program               + + + + + + + + + + + +
run what it wrote                 + - + - - - + + - + - +
mount something                   R - - - - - - - - - - -
make a namespace                  + - - - - - - - + + + +
write to the kernel               R - - - - - - - - - - -
"""
"""`R`: for the superuser only. What has outlived the program is ended with it by bubblewrap: see `private`."""

Change = dict[str, Any]
COLUMNS: dict[str, Callable[[World], Change] | None] = {
    "no sandbox": None,
    "standard": lambda made: {},
    "granted": lambda made: {"network": True, "programs": True},
    "reading nothing": lambda made: {"readable": ()},
    "strict": lambda made: {"level": "strict", "readable": ()},
    "strict, with the project": lambda made: {"level": "strict", "readable": (), "writable": (made.project,)},
    "writing everything": lambda made: {"writable": None, "programs": True},
    "no landlock": lambda made: {},
    "landlock": lambda made: {},
    "landlock, granted": lambda made: {"network": True, "programs": True},
    "landlock, strict": lambda made: {"level": "strict", "readable": ()},
    "landlock, writing everything": lambda made: {"writable": None, "programs": True},
}


def expected(column: int) -> dict[str, str]:
    superuser = "done" if os.geteuid() == 0 else "denied"
    rows = [line.rsplit(maxsplit=len(COLUMNS)) for line in TABLE.strip().splitlines()]
    return {row[0]: {**OUTCOMES, "R": superuser}[row[1 + column]] for row in rows}


@pytest.mark.parametrize("name", COLUMNS)
async def test_what_the_probe_can_do_is_what_the_table_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world() as made, neighbours(made):
        argv = made.argv
        private = False
        if change := COLUMNS[name]:
            if name.startswith("landlock"):
                without_bubblewrap(monkeypatch, tmp_path)
            if name == "no landlock":
                monkeypatch.setattr(landlock, "_known", 0)
            confined = confine(argv, made.policy(**change(made)))
            argv, private = confined.argv, confined.by == "bubblewrap"
            assert confined.by == ("landlock" if name.startswith("landlock") else "bubblewrap")
        outcomes = run(argv, made)
        assert outcomes == expected([*COLUMNS].index(name))
        assert outcomes.keys() == ATTEMPTS.keys()
        # What it was told was done happened in the world, or else in a place of its own.
        for path, attempt in {
            made.data / "mark": "write its data",
            made.code / "mark": "write its code",
            made.project / "mark": "write the project",
            made.outside / "mark": "write outside",
            made.home / ".netrc": "create a secret that was missing",
        }.items():
            assert path.exists() == (outcomes[attempt] == "done")
        for place in ("temporary", "memory"):
            assert Path(made.known[place]).exists() == (name == "no sandbox")
        if private:
            await until(lambda: not made.left())
        else:
            assert made.left()  # else that would show nothing


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become somebody else")
@pytest.mark.parametrize("means", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("level", ["standard", "strict"])
def test_an_ordinary_user_is_confined_as_well(
    means: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, nobody = "/usr/bin/python3", 65534
    if not os.access(python, os.X_OK):
        pytest.skip("there is no Python that everybody can run")
    monkeypatch.setattr("sys.executable", python)
    with world(Path("/var/lib")) as made, neighbours(made):
        helper = made.root / "start.py"  # ours may be out of reach
        helper.write_bytes(Path(landlock.__file__).with_name("landlock_start.py").read_bytes())
        monkeypatch.setattr(landlock, "START", helper)
        for folder, folders, files in os.walk(made.root):
            for one in (folder, *(os.path.join(folder, name) for name in (*folders, *files))):
                os.chown(one, nobody, nobody)
        if means == "landlock":
            without_bubblewrap(monkeypatch, tmp_path)
        readable = None if level == "standard" else ()
        policy = made.policy(level=level, readable=readable)
        confined = confine((python, *made.argv[1:]), policy, "/usr/bin:/bin")
        become = (
            shutil.which("setpriv", path="/usr/bin:/bin") or "",
            f"--reuid={nobody}",
            f"--regid={nobody}",
            "--clear-groups",
        )
        outcomes = run((*become, *confined.argv), made)
    column = {"standard": "standard", "strict": "strict"}[level]
    if means == "landlock":
        column = {"standard": "landlock", "strict": "landlock, strict"}[level]
    assert confined.by == means
    assert outcomes == expected([*COLUMNS].index(column))


def test_the_one_that_is_looked_for_first_is_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strangers = tmp_path / "bwrap"
    strangers.write_text("#!/bin/sh\nexit 1\n")
    strangers.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(bubblewrap, "_known", None)
    command, why = bubblewrap.working()
    assert not why
    assert not Path(command[0]).is_relative_to(tmp_path)
