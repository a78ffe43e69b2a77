"""What kind of program a file is, and what would keep the system from running it: seen from its first bytes.

Owns the reading of `#!` lines and of the headers of binaries. Nothing here is started, and nothing is opened that could
block. Who runs which file is up to others.
"""

import errno
import os
import stat
import sys
from pathlib import Path

from msgspec import Struct

from hilt.packages.lookup import on_path
from hilt.packages.members import shown

HEAD = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_ELF = b"\x7fELF"
_MACH_O = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe")
_LONGEST_FIRST_LINE = 255
"""What the kernel reads of it."""


class Defect(Struct, frozen=True):
    check: str
    """In a word, what was looked at."""
    message: str
    """Says the place by itself."""
    hint: str


def read_head(file: Path) -> bytes:
    """As much of it as matters. Raises `OSError`, also for what is no regular file."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file")  # opening a pipe or a device may block or do something
    # Should it have become a pipe meanwhile, reading it so returns at once.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as opened:
        return opened.read(HEAD) or b""


def is_binary(head: bytes) -> bool:
    return head.startswith((_ELF, *_MACH_O))


def interpreter(head: bytes) -> tuple[str, str]:
    """The program its `#!` line names, and the word that `env` would look up: either may be empty."""
    words = _first_line(head).split()
    if not words:
        return "", ""
    return words[0], _looked_up_by_env(words[1:]) if Path(words[0]).name == "env" else ""


def language_of(head: bytes) -> str:
    """The name of what its `#!` line leads to, such as `python3`; empty without one."""
    program, word = interpreter(head)
    return Path(word or program).name


def defects(program: Path, path: str) -> tuple[Defect, ...]:
    """Why the system would not run it, or not as meant."""
    name = shown(program)
    try:
        mode = program.stat().st_mode
    except OSError as error:
        return (Defect("program", f"{name}: {error.strerror or error}", "correct the path, or build the program"),)
    if not stat.S_ISREG(mode):
        return (Defect("program", f"{name} is not a file", "name the program in it"),)
    found: list[Defect] = []
    if not os.access(program, os.X_OK):
        found.append(Defect("executable", f"{name} is not executable", f"chmod +x {name}"))
    try:
        head = read_head(program)
    except OSError:
        return tuple(found)  # may be executable without being readable
    if head.startswith(b"#!"):
        found += _script_defects(name, head, path)
    elif head.startswith(_BOM + b"#!"):
        found.append(
            Defect("shebang", f"{name} has a byte order mark before its #! line, which hides it", "save it without one")
        )
    elif sys.platform == "linux" and not _other_formats():
        found += _binary_defects(name, head)
    return tuple(found)


def _first_line(head: bytes) -> str:
    line = head[: _LONGEST_FIRST_LINE + 1].partition(b"\n")[0]
    return os.fsdecode(line[2:]).strip() if line.startswith(b"#!") else ""


def _looked_up_by_env(words: list[str]) -> str:
    """The system hands `env` all that follows as one word, which only `-S` takes apart again."""
    if not words or not words[0].startswith(("-S", "--split-string")):
        return words[0] if len(words) == 1 and not words[0].startswith("-") and "=" not in words[0] else ""
    first = words[0].removeprefix("--split-string").removeprefix("-S").removeprefix("=")
    rest = [word for word in (first, *words[1:]) if word]
    return next((word for word in rest if not word.startswith("-") and "=" not in word), "")


def _script_defects(name: str, head: bytes, path: str) -> list[Defect]:
    line, newline, _ = head.partition(b"\n")
    if newline and line.endswith(b"\r"):
        message = f"{name}: its lines end as on Windows, so its #! line names no program"
        return [Defect("shebang", message, f"sed -i 's/\\r$//' {name}")]
    program, word = interpreter(head)
    if not program:
        return [Defect("shebang", f"{name}: its #! line is empty", "name an interpreter, as in #!/bin/sh")]
    change = f"change the first line of {name}"
    if not program.startswith("/"):
        message = f"{name}: its interpreter {shown(program)} is found only from some directories"
        return [Defect("shebang", message, f"{change} to begin with #!/")]
    if not Path(program).exists():
        message = f"{name}: its interpreter {shown(program)} does not exist"
        return [Defect("shebang", message, f"install it, or {change}")]
    if word and "/" not in word and not on_path(word, path):
        message = f"{name}: its interpreter {shown(word)} is not on PATH"
        return [Defect("shebang", message, f"install {shown(word)}, or {change}")]
    return []


def _binary_defects(name: str, head: bytes) -> list[Defect]:
    if not head.startswith(_ELF):
        what, fix = "is neither a program nor begins with #!", "add a first line such as #!/usr/bin/env python3"
        return [Defect("format", f"{name} {what}", fix)]
    # Bytes 18 and 19 name the processor. One of half the width often runs as well, so only the kernel can judge it.
    ours = read_head(Path("/proc/self/exe"))
    if head[4:5] == ours[4:5] and head[18:20] != ours[18:20]:
        message = f"{name} was built for another kind of processor"
        return [Defect("format", message, "build or install it for this one")]
    return []


def _other_formats() -> bool:
    """Whether the kernel was told of formats besides its own: then it alone knows what it runs."""
    try:
        return not {entry.name for entry in Path("/proc/sys/fs/binfmt_misc").iterdir()} <= {"register", "status"}
    except OSError:
        return False
