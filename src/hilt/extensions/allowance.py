"""How much of the machine one extension may use, and whether that is what ended it.

Owns the defaults, which honest extensions do not reach, and who may change them: a manifest can only ask for less, the
user decides. How a process is held to it is the transport's business.
"""

import signal
from collections.abc import Iterator

from msgspec import Struct

from hilt.packages.manifest import Limits
from hilt.transport import trampoline
from hilt.transport.process import Exit

_MEGABYTE = 1024 * 1024
_NICE = 5
_USUAL = Limits(memory_mb=4096, open_files=4096, file_size_mb=4096)
_MORE_PROCESSES = 2048
"""The kernel counts all of the user's, so what is started later beside hilt must fit in as well."""

_MEMORY = ("memoryerror", "cannot allocate memory", "out of memory", "bad_alloc", "memory allocation of")
_PROCESSES = ("resource temporarily unavailable", "can't start new thread", "cannot fork", "eagain")
_FILES = ("too many open files", "emfile")
_FILE_SIZE = ("file too large", "efbig", "file size limit exceeded")


class Allowance(Struct, frozen=True):
    """What holds for one process of it; None is as much as the user may."""

    limits: Limits
    nice: int

    def for_start(self) -> trampoline.Limits:
        limits = self.limits
        return trampoline.Limits(
            memory=limits.memory_mb and limits.memory_mb * _MEGABYTE,
            processes=limits.processes,
            files=limits.open_files,
            file_size=limits.file_size_mb and limits.file_size_mb * _MEGABYTE,
            cpu=limits.cpu_seconds,
            core=0,
            nice=self.nice,
        )

    def culprit(self, exit_: Exit | None, complaints: str) -> str:
        """Which limit explains its end, or may; empty if none does. `complaints` is what it said last."""
        number = exit_.signal if exit_ else None
        said = complaints.casefold()
        return next(self._explanations(number, said), "")

    def _explanations(self, number: int | None, said: str) -> Iterator[str]:
        limits = self.limits
        if number == signal.SIGXFSZ and limits.file_size_mb:
            yield f"it wrote a file larger than {limits.file_size_mb} MB (limits.file_size_mb)"
        if number == signal.SIGXCPU and limits.cpu_seconds:
            yield f"it used more than {limits.cpu_seconds} s of processor time (limits.cpu_seconds)"
        if number == signal.SIGKILL and limits.cpu_seconds:
            yield f"perhaps it used more than {limits.cpu_seconds} s of processor time (limits.cpu_seconds)"
        if limits.memory_mb and any(words in said for words in _MEMORY):
            yield f"perhaps it is out of memory, of which it may use {limits.memory_mb} MB (limits.memory_mb)"
        if limits.open_files and any(words in said for words in _FILES):
            yield f"perhaps it has too many files open: {limits.open_files} may be (limits.open_files)"
        if limits.file_size_mb and any(words in said for words in _FILE_SIZE):
            yield f"perhaps it wrote a file larger than {limits.file_size_mb} MB (limits.file_size_mb)"
        if limits.processes and any(words in said for words in _PROCESSES):
            yield f"perhaps there are too many processes: you may have {limits.processes} (limits.processes)"


def allowance(declared: Limits, chosen: Limits, nice: int | None, running: int | None) -> Allowance:
    """What follows from the manifest and the user's choices, where 0 is no limit.

    `running` is how many processes there are now, if that can be known.
    """
    processes = None if running is None else running + _MORE_PROCESSES

    def most(usual: int | None, asked: int | None, choice: int | None) -> int | None:
        if choice is not None:
            return choice if choice > 0 else None
        return min((limit for limit in (usual, asked) if limit is not None), default=None)

    limits = Limits(
        memory_mb=most(_USUAL.memory_mb, declared.memory_mb, chosen.memory_mb),
        processes=most(processes, declared.processes, chosen.processes),
        open_files=most(_USUAL.open_files, declared.open_files, chosen.open_files),
        file_size_mb=most(_USUAL.file_size_mb, declared.file_size_mb, chosen.file_size_mb),
        cpu_seconds=most(_USUAL.cpu_seconds, declared.cpu_seconds, chosen.cpu_seconds),
    )
    return Allowance(limits, _NICE if nice is None else nice)


def processes_now() -> int | None:
    """All on the machine, threads too: no fewer than the user's, of whom not all need be visible from a container."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:  # noqa: PTH123 - fewer steps, at each start
            total = file.read(128).split()[3].partition(b"/")[2]
        return int(total) or None
    except (OSError, ValueError, IndexError):
        return None
