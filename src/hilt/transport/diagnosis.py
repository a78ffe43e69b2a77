"""Why a program cannot be started, in one line, and what to do about it.

Looked at before the start for what the system would not report or would report misleadingly, and after it
for what the system refused.
"""

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from hilt.errors import StartError

_HEAD = 256
_ELF = b"\x7fELF"
_TRANSIENT = {
    errno.EMFILE: ("out of file handles", "raise the limit with ulimit -n, or run fewer programs at once"),
    errno.ENFILE: ("the system is out of file handles", "close some programs"),
    errno.ENOMEM: ("not enough memory", "close some programs"),
    errno.EAGAIN: ("too many processes", "close some programs, or raise the limit with ulimit -u"),
    errno.ETXTBSY: ("its file is being written", "try again when that is done"),
}
_LASTING = {
    errno.ENOENT: ("the loader it was linked for does not exist", "build or install it for this system"),
    errno.ENOEXEC: ("it is in no format that this system runs", "build or install it for this system"),
    errno.EACCES: ("permission denied", "check the rights of the file and of the directories above it"),
    errno.E2BIG: ("its command is too long", "give it less in arguments and environment"),
}


def check(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> None:
    """Raise StartError for what is certain to fail."""
    if not argv or not argv[0]:
        raise StartError("there is no program to start", hint="name one in the command")
    name = argv[0]
    if not cwd.is_dir():
        raise StartError(
            f"cannot start {name}: its directory {cwd} does not exist", hint="create it, or start somewhere else"
        )
    path = _locate(name, cwd, env)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return  # may be executable without being readable
    if head.startswith(b"#!"):
        _check_script(path, head, cwd, env)
    elif sys.platform == "linux" and not _foreign_programs_run():
        _check_binary(path, head)


def explain(error: OSError | ValueError, name: str) -> StartError:
    """What the system refused."""
    if not isinstance(error, OSError):  # a NUL, or text that cannot be encoded
        return StartError(f"cannot start {name}: {error}", hint="correct its arguments or its environment")
    if known := _TRANSIENT.get(error.errno or 0):
        return StartError(f"cannot start {name}: {known[0]}", hint=known[1], transient=True)
    cause, fix = _LASTING.get(error.errno or 0, (error.strerror or str(error), "try to run it in a shell"))
    return StartError(f"cannot start {name}: {cause}", hint=fix)


def _locate(name: str, cwd: Path, env: Mapping[str, str]) -> Path:
    if "/" in name:
        path = cwd / name
    elif (found := _on_path(name, cwd, env)) is None:
        raise StartError(f"cannot start {name}: there is no such program on PATH", hint=f"install {name}")
    else:
        path = found
    if path.is_dir():
        raise StartError(f"cannot start {path}: it is a directory", hint="name the program in it")
    if not path.exists():
        raise StartError(f"cannot start {path}: there is no such file", hint="correct the path, or build the program")
    if not os.access(path, os.X_OK):
        raise StartError(f"cannot start {path}: it is not executable", hint=f"chmod +x {path}")
    return path


def _on_path(name: str, cwd: Path, env: Mapping[str, str]) -> Path | None:
    """The executable file of that name, else one that is only not executable, else None."""
    candidates = [cwd / folder / name for folder in os.get_exec_path(env)]
    files = [path for path in candidates if path.is_file()]
    return next((path for path in files if os.access(path, os.X_OK)), files[0] if files else None)


def _check_script(path: Path, head: bytes, cwd: Path, env: Mapping[str, str]) -> None:
    first, newline, _ = head[2:].partition(b"\n")
    if newline and first.endswith(b"\r"):
        raise StartError(
            f"cannot start {path}: its lines end as on Windows, so its #! line names no program",
            hint=f"sed -i 's/\\r$//' {path}",
        )
    words = os.fsdecode(first).split()
    if not words:
        raise StartError(f"cannot start {path}: its #! line is empty", hint="name an interpreter, as in #!/bin/sh")
    if not (cwd / words[0]).exists():
        raise StartError(
            f"cannot start {path}: its interpreter {words[0]} does not exist",
            hint=f"install it, or change the first line of {path}",
        )
    wanted = words[1] if len(words) == 2 and Path(words[0]).name == "env" else ""
    if wanted and "=" not in wanted and not wanted.startswith("-") and _on_path(wanted, cwd, env) is None:
        raise StartError(f"cannot start {path}: its interpreter {wanted} is not on PATH", hint=f"install {wanted}")


def _check_binary(path: Path, head: bytes) -> None:
    if not head.startswith(_ELF):
        what, fix = "it is neither a program nor begins with #!", "add a first line such as #!/usr/bin/env python3"
        raise StartError(f"cannot start {path}: {what}", hint=fix)
    with Path("/proc/self/exe").open("rb") as file:
        ours = file.read(20)
    # Bytes 18 and 19 name the processor. One of half the width often runs as well, so only the kernel can judge it.
    if head[4] == ours[4] and head[18:20] != ours[18:20]:
        raise StartError(
            f"cannot start {path}: it was built for another kind of processor", hint="build or install it for this one"
        )


def _foreign_programs_run() -> bool:
    """Whether the kernel was told of other formats than its own."""
    try:
        return any(entry.name not in ("register", "status") for entry in Path("/proc/sys/fs/binfmt_misc").iterdir())
    except OSError:
        return False
