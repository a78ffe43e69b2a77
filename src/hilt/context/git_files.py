"""The files of a repository as git knows them: those it keeps, and those it neither keeps nor ignores.

The repository may be anybody's. Nothing that its configuration names is run, nothing is fetched and nothing written;
git gets neither a terminal nor much time, and what it says is only read up to a limit.
"""

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

_STEP_MS = 50
_CHUNK = 1 << 16
_MOST_BYTES = 16 * 1024 * 1024
_REAPING = 1.0

_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "safe.bareRepository=explicit",
)
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES")
"""Of git's variables, those that are the user's settings. Others point it at another repository, if a hook runs us."""
_OURS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}


class Patience(Protocol):
    @property
    def over(self) -> bool: ...


class Known(Struct, frozen=True):
    paths: list[str]
    """As git gives them: of a repository within, only the folder, with a slash."""
    cut: bool
    """There was more."""


def git_files(root: Path, skipped: Sequence[str], most: int, patience: Patience) -> Known | None:
    """What git knows below a folder; None where there is no git, no repository, or no answer in time."""
    git = shutil.which("git")
    if git is None or not Path(git).is_absolute():  # one from a folder that comes along with the project is not ours
        return None
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    excluded = [f"--exclude={name}" for name in skipped]
    wanted = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", *excluded, "--"]
    try:
        process = subprocess.Popen(
            [git, "--no-pager", *settings, *wanted],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env=_environment(os.environ),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    with process:
        try:
            said, cut = _read(process, most, patience)
            if not cut and process.wait(_REAPING) != 0:
                return None
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)
    entries = said.split(b"\0")[:-1]
    return Known([os.fsdecode(entry) for entry in entries[:most]], cut) if entries or not cut else None


def _read(process: "subprocess.Popen[bytes]", most: int, patience: Patience) -> tuple[bytes, bool]:
    """Everything it says, or what it has said when there is no more time or room."""
    assert process.stdout is not None
    fd, said, entries = process.stdout.fileno(), bytearray(), 0
    poll = select.poll()  # `select` itself takes no descriptor above 1,023
    poll.register(fd, select.POLLIN)
    while not patience.over and entries <= most and len(said) <= _MOST_BYTES:
        if poll.poll(_STEP_MS):
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                return bytes(said), False
            said += chunk
            entries += chunk.count(b"\0")
    return bytes(said), True


def _end(process: "subprocess.Popen[bytes]") -> None:
    """At once, with whatever it has started."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if not name.startswith("GIT_") or name in _KEPT} | _OURS
