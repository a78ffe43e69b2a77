"""A few words of shell between us and a program that needs its descriptors moved or its limits set.

`/bin/sh` is on every system and starts in under a millisecond, where a second Python takes thirty. The shell
gets the pipes as its stdin and stdout, so it only ever moves one-digit descriptors (dash knows no others),
and replaces itself with the program.
"""

import os
import resource
import sys
from collections.abc import Iterator
from math import inf
from typing import Literal, TypeAlias

from msgspec import Struct

Pipes: TypeAlias = Literal["stdio", "fd34", "either"]
"""`stdio`: lines on stdin and stdout. `fd34`: the program reads from 3 and writes to 4. `either`: one or the other."""

_OPEN = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
"""Where a shell finds descriptors that it has no word for."""
_FARTHEST_BACK = 19


class Limits(Struct, frozen=True):
    """What one program may use. None leaves it as it is for us; nothing is ever raised."""

    memory: int | None = None
    """Bytes of memory that can be written to. Address space would be another matter: some reserve it freely."""
    processes: int | None = None
    """Of this user's, all programs together and threads too: that is how the kernel counts."""
    files: int | None = None
    """Open at the same time."""
    file_size: int | None = None
    """Bytes."""
    cpu: int | None = None
    """Seconds of processor time."""
    core: int | None = None
    """Bytes that are written of its memory when it crashes."""
    nice: int = 0
    """How far it stands back behind us when others want the processor as well."""


def wrap(argv: tuple[str, ...], pipes: Pipes, limits: Limits, far: tuple[int, ...] = ()) -> tuple[str, ...]:
    """What to start instead; the program itself where nothing needs doing.

    `far` are the descriptors that it inherits to have as stdout (`fd34`), or as stdin and stdout (`either`).
    """
    words = list(_limit_words(limits))
    if pipes == "stdio" and not words:
        return argv
    words.append(f'exec "$@" {_moves(pipes, far)}')
    return ("/bin/sh", "-c", " && ".join(words), "sh", *argv)


def stand_back(leader: int, nice: int) -> None:
    """Lower the priority of a program that has just been started, and of all that it will start."""
    if nice <= 0:
        return
    level = min(os.getpriority(os.PRIO_PROCESS, 0) + nice, _FARTHEST_BACK)
    try:
        os.setpriority(os.PRIO_PGRP, leader, level)
    except OSError:
        return  # it has ended already
    try:
        # Where each session has its own share of the processor, only the share's priority counts. Few may change it
        # more than ten times a second, so this may be refused; then it is at least last in its own session.
        with open(f"/proc/{leader}/autogroup", "wb", buffering=0) as share:  # noqa: PTH123 - fewer steps, at each start
            share.write(b"%d" % level)
    except OSError:
        pass


def _moves(pipes: Pipes, far: tuple[int, ...]) -> str:
    """From left to right: what was stdin and stdout goes to 3 and 4 before others take their place."""
    match pipes:
        case "stdio":
            return ""
        case "fd34":
            return f"3<&0 4>&1 </dev/null >{_OPEN}/{far[0]}"
        case "either":
            return f"3<&0 4>&1 <{_OPEN}/{far[0]} >{_OPEN}/{far[1]}"


def _limit_words(limits: Limits) -> Iterator[str]:
    yield from _narrowed("ulimit {}-c {}", resource.RLIMIT_CORE, limits.core, 512)
    yield from _narrowed("ulimit {}-d {}", resource.RLIMIT_DATA, limits.memory, 1024)
    # Most shells, or dash.
    processes = "{{ ulimit {0}-u {1} 2>/dev/null || ulimit {0}-p {1}; }}"
    yield from _narrowed(processes, resource.RLIMIT_NPROC, limits.processes, 1)
    yield from _narrowed("ulimit {}-n {}", resource.RLIMIT_NOFILE, limits.files, 1)
    yield from _narrowed("ulimit {}-f {}", resource.RLIMIT_FSIZE, limits.file_size, 512)
    if limits.cpu is not None:
        # A second between the two: the first ends it with a signal that says why, which the other's does not.
        soft, hard = _ours(resource.RLIMIT_CPU)
        yield f"ulimit -S -t {int(min(limits.cpu, soft))}"
        yield f"ulimit -H -t {int(min(limits.cpu + 1, hard))}"


def _narrowed(words: str, which: int, most: int | None, unit: int) -> Iterator[str]:
    """To `most`, counted in the shell's units, if it is not as narrow already."""
    soft, hard = _ours(which)
    if most is not None and most < hard:
        # What holds for now stays as it is where that is less: many programs raise it themselves if they need to.
        yield words.format("" if most < soft else "-H ", most // unit)


def _ours(which: int) -> tuple[float, float]:
    """What holds for us, and how far it can be raised."""
    soft, hard = (inf if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(which))
    return soft, hard
