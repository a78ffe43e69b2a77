"""A program that gives up rights and becomes another: run by path, with `python -I -S`, and never imported.

    landlock_start.py FILES NETWORK SCOPES SOCKETS TMPDIR [RIGHTS PATH]... -- PROGRAM [ARGUMENT]...

The first three are the rights that are taken away, but for what a pair gives back; SOCKETS is `any`, `unnamed` (none
to other programs of this machine) or `none`; TMPDIR may be empty. It decides nothing: `landlock` has worked out
all of it. If any of it cannot be done, the program is not started. It imports as little as it can, for it is in
the way of every start, and all of it at once: later it may have lost the right to.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # no stub, but a tenth of the time of `signal`
import ctypes
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # known to checkers by its name; the module it usually comes from takes as long as all the others
    from collections.abc import Iterator
    from typing import NoReturn

REFUSED = 125
"""The exit code of a program that was not started because it could not be confined."""
_MISSING = 127

_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_BOUND_READ, _BOUND_DROP, _AMBIENT, _CLEAR_ALL = 23, 24, 47, 4
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH = 1
_OF_FILES = 0b1100_0000_0000_0111
"""The rights that make sense for something that is no directory."""
_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_IO_URING_SETUP = 425
_UNIX = 1
_PERMISSION_DENIED, _NO_SUCH_CALL = 0x00050000 | 13, 0x00050000 | 38
_ALLOW, _KILL = 0x7FFF0000, 0x80000000


def main(words: list[str]) -> NoReturn:
    end = words.index("--")
    files, network, scopes = (int(word) for word in words[:3])
    sockets, temporary = words[3:5]
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        _check(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "renounce new privileges")
        _drop_capabilities(libc)
        if files or network or scopes:
            _restrict(libc, struct.pack("QQQ", files, network, scopes), words[5:end])
        if sockets != "any":
            _close_sockets(libc, every=sockets == "none")
    except (OSError, AttributeError, KeyError) as error:
        _give_up(REFUSED, f"the sandbox cannot be set up, so the program is not started: {error!r}")
    if temporary:
        os.environ["TMPDIR"] = temporary
    _restore_signals()
    program = words[end + 1 :]
    try:
        os.execv(program[0], program)  # noqa: S606  that is what it is for
    except OSError as error:
        _give_up(_MISSING, f"{program[0]!r} cannot be started: {error.strerror}")


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """For the superuser, who has some that let one read any process's memory. What is not in the bound ends at exec."""
    libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    for number in range(64):
        present = libc.prctl(_BOUND_READ, number, 0, 0, 0)
        if present < 0:
            return  # the kernel knows of no more
        if present and os.geteuid() == 0:
            _check(libc.prctl(_BOUND_DROP, number, 0, 0, 0), "renounce privileges")


def _restrict(libc: ctypes.CDLL, rights: bytes, pairs: list[str]) -> None:
    ruleset = _check(libc.syscall(_CREATE_RULESET, rights, ctypes.c_size_t(len(rights)), 0), "make a set of rules")
    for access, path in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            continue  # gone since, or out of reach: there is nothing to give
        allowed = int(access) if stat.S_ISDIR(os.fstat(place).st_mode) else int(access) & _OF_FILES
        if allowed:
            rule = struct.pack("=Qi", allowed, place)
            _check(libc.syscall(_ADD_RULE, ruleset, _BENEATH, rule, 0), f"allow {path!r}")
        os.close(place)
    _check(libc.syscall(_RESTRICT_SELF, ruleset, 0), "apply the rules")
    os.close(ruleset)


def _close_sockets(libc: ctypes.CDLL, *, every: bool) -> None:
    """With a filter on system calls: Landlock knows nothing of datagrams, nor of sockets that are files.

    Pairs of connected sockets can still be made. The other way to make a socket, io_uring, is as if not there.
    """
    code = b"".join(_filter(*_SOCKET[os.uname().machine], every=every))
    memory = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(memory))
    _check(libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0), "filter system calls")


def _filter(machine: int, socket: int, *, every: bool) -> Iterator[bytes]:
    """Instructions: code, steps to skip if true, if false, operand."""

    def step(code: int, yes: int, no: int, operand: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, operand)

    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    yield step(load, 0, 0, 4)
    yield step(equal, 1, 0, machine)
    yield step(answer, 0, 0, _KILL)  # another kind of processor's calls have other numbers
    yield step(load, 0, 0, 0)
    yield step(at_least, 5, 0, 0x40000000)  # and so have those of the half-wide kind
    yield step(equal, 5, 0, _IO_URING_SETUP)
    yield step(equal, 0, 2, socket)
    yield step(load, 0, 0, 16)
    yield step(at_least, 1, 0, 0) if every else step(equal, 1, 0, _UNIX)
    yield step(answer, 0, 0, _ALLOW)
    yield step(answer, 0, 0, _PERMISSION_DENIED)
    yield step(answer, 0, 0, _NO_SUCH_CALL)


def _restore_signals() -> None:
    """Python ignores some, and a program would inherit that."""
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {what}: {os.strerror(number)}")
    return result


def _give_up(code: int, message: str) -> NoReturn:
    sys.stderr.write(f"sandbox: {message}\n")
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
