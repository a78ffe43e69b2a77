"""A few words of shell between us and a program that needs its descriptors moved or its limits set.

`/bin/sh` is on every system and starts in under a millisecond, where a second Python takes thirty. The shell
gets the pipes as its stdin and stdout, so it only ever moves one-digit descriptors (dash knows no others),
and replaces itself with the program.
"""

import resource
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

Pipes: TypeAlias = Literal["stdio", "fd34"]

_MOVE = "3<&0 4>&1 </dev/null >&2"
"""The program reads from 3 and writes to 4; its stdin is empty, and what it prints joins its complaints."""


class Limits(Struct, frozen=True):
    """What one program may use. None leaves it as it is for us."""

    memory: int | None = None
    """Bytes of address space."""
    processes: int | None = None
    """Of this user's, all programs together: that is how the kernel counts."""
    files: int | None = None
    """Open at the same time."""
    file_size: int | None = None
    """Bytes."""
    cpu: int | None = None
    """Seconds of processor time."""


def wrap(argv: tuple[str, ...], pipes: Pipes, limits: Limits) -> tuple[str, ...]:
    """What to start instead; the program itself where nothing needs doing."""
    words = list(_limit_words(limits))
    if pipes == "stdio" and not words:
        return argv
    words.append(f'exec "$@" {_MOVE if pipes == "fd34" else ""}')
    return ("/bin/sh", "-c", " && ".join(words), "sh", *argv)


def _limit_words(limits: Limits) -> Iterator[str]:
    if limits.memory is not None:
        yield f"ulimit -v {_allowed(limits.memory, resource.RLIMIT_AS) // 1024}"
    if limits.processes is not None:
        most = _allowed(limits.processes, resource.RLIMIT_NPROC)
        yield f"{{ ulimit -u {most} 2>/dev/null || ulimit -p {most}; }}"  # most shells, or dash
    if limits.files is not None:
        yield f"ulimit -n {_allowed(limits.files, resource.RLIMIT_NOFILE)}"
    if limits.file_size is not None:
        yield f"ulimit -f {_allowed(limits.file_size, resource.RLIMIT_FSIZE) // 512}"
    if limits.cpu is not None:
        # A second between the two: the first ends it with a signal that says why, which the other's does not.
        yield f"ulimit -S -t {_allowed(limits.cpu, resource.RLIMIT_CPU)}"
        yield f"ulimit -H -t {_allowed(limits.cpu + 1, resource.RLIMIT_CPU)}"


def _allowed(value: int, which: int) -> int:
    """No more than we may give: asking for more would be refused."""
    hard = resource.getrlimit(which)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
