"""What a program needs to be started at all: the interpreters behind it, and where they keep their files.

A confined program finds only what it is given, and the user's Python or Node may lie anywhere: a version manager's
directory under the home, a virtual environment in a project. Owns finding that out; who may see what is `layout`'s.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_HEAD = 4096
_CHAIN = 5
"""The kernel follows no more interpreters of interpreters either."""
_LINKS = 40
_ASKING = 5.0
"""Seconds for a version manager to say which program it stands for."""
_LOADER = 3
"""The kind of segment that names the dynamic loader."""
_SMALLEST = 64
"""Bytes of a binary's header, and more than one entry of its table."""
_MOST_KNOWN = 64
_known: dict[tuple[str, str], str | None] = {}


class Runtime(Struct, frozen=True):
    argv: tuple[str, ...]
    """The same program, started as the kernel and `env` would in the end: its first word is no script."""
    executed: tuple[Path, ...]
    """The files that this executes, by their real paths."""
    needed: tuple[Path, ...]
    """Files and directories without which it does not start, as they are named; links may lead to them."""


def runtime(argv: tuple[str, ...], directory: Path, path: str, home: Path) -> Runtime:
    """Follow it down to what the processor runs. What is missing on the way is left for the start to complain about."""
    scripts = []
    for _ in range(_CHAIN):
        program = _locate(argv[0], directory, path)
        if real := _behind_shim(program, directory):
            argv = (real, *argv[1:])
            continue
        interpreter = _interpreter(program, path)
        if interpreter is None:
            break
        scripts.append(program)
        argv = (*interpreter, str(program), *argv[1:])
    binary = _locate(argv[0], directory, path)
    loader = _loader(binary)
    executed = [real_path(one) for one in (*scripts, binary, *loader)]
    places = [place for one in (*scripts, binary) for place in _places(one, home)]
    return Runtime((str(binary), *argv[1:]), tuple(dict.fromkeys(executed)), tuple(dict.fromkeys((*places, *loader))))


def real_path(path: Path) -> Path:
    """Without links, also where it leads to nothing or in circles."""
    return Path(os.path.realpath(path))


def hops(path: Path) -> Iterator[tuple[Path, str]]:
    """Every link on the way to a path, where it really lies and what it says."""
    rest = list(reversed(path.parts[1:]))
    at = Path(path.anchor)
    seen = 0
    while rest and seen < _LINKS:
        part = rest.pop()
        if part == "..":
            at = at.parent
            continue
        here = at / part
        try:
            target = os.readlink(here)  # noqa: PTH115  as it is written, not as a path would spell it
        except OSError:
            at = here
            continue
        seen += 1
        yield here, target
        if target.startswith("/"):
            at = Path("/")
        rest += [word for word in reversed(target.split("/")) if word not in ("", ".")]


def _locate(name: str, directory: Path, path: str) -> Path:
    if "/" in name:
        return directory / name
    for folder in path.split(os.pathsep):
        candidate = Path(folder, name)
        if candidate.is_absolute() and os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    return directory / name


def _interpreter(program: Path, path: str) -> tuple[str, ...] | None:
    """Of a script: the words before its own name. None for anything else."""
    head = _head(program)
    if not head.startswith(b"#!"):
        return None
    line = os.fsdecode(head[2:].split(b"\n", 1)[0]).strip()
    name, _, argument = line.partition(" ")
    argument = argument.strip()
    if not name:
        return None
    if Path(name).name != "env":
        return (name, argument) if argument else (name,)
    words = argument.removeprefix("-S").split()
    if not words or words[0].startswith("-") or "=" in words[0]:
        return (name, argument)  # what only env itself understands
    return (str(_locate(words[0], Path("/"), path)), *words[1:])


def _behind_shim(program: Path, directory: Path) -> str | None:
    """Version managers put small scripts before the programs, which need half the system to find the real one."""
    if program.parent.name != "shims":
        return None
    key = (str(program), str(directory))
    if key not in _known and len(_known) < _MOST_KNOWN:
        _known[key] = _ask_manager(program, directory)
    return _known.get(key)


def _ask_manager(shim: Path, directory: Path) -> str | None:
    import subprocess  # only here, and rarely

    root = shim.parent.parent
    name = root.name.lstrip(".")
    for manager in (root / "bin" / name, root / "libexec" / name, real_path(shim)):
        if manager == shim or not os.access(manager, os.X_OK):
            continue
        try:
            answer = subprocess.run(
                [manager, "which", shim.name], cwd=directory, capture_output=True, timeout=_ASKING, check=False
            )
        except (OSError, subprocess.SubprocessError):
            continue
        found = Path(os.fsdecode(answer.stdout.strip()))
        if answer.returncode == 0 and found.is_absolute() and found.is_file() and found.parent != shim.parent:
            return str(found)
    return None


def _places(program: Path, home: Path) -> Iterator[Path]:
    """Where it is and, of a program that was installed with libraries of its own, everything that came with it."""
    named = [program, *(link for link, _ in hops(program) if link.is_file()), real_path(program)]
    for one in dict.fromkeys(named):
        prefix = one.parent.parent
        yield prefix if one.parent.name == "bin" and _is_prefix(prefix, home) else one


def _is_prefix(prefix: Path, home: Path) -> bool:
    """A directory that one runtime has for itself. `/usr` is shared, and so is what `pip --user` fills."""
    if prefix.name in (".local", "local", "usr", "") or home.is_relative_to(prefix):
        return False
    return (prefix / "pyvenv.cfg").is_file() or (prefix / "lib").is_dir()


def _loader(program: Path) -> tuple[Path, ...]:
    """The dynamic loader that a binary names; none for a static one."""
    try:
        with program.open("rb") as file:
            head = file.read(_HEAD)
            if (at := _loader_name(head)) is None:
                return ()
            file.seek(at)
            name = file.read(_HEAD).split(b"\0", 1)[0]
    except OSError:
        return ()
    return (Path(os.fsdecode(name)),) if name.startswith(b"/") else ()


def _loader_name(head: bytes) -> int | None:
    """Where in the file its name is."""
    if head[:4] != b"\x7fELF" or len(head) < _SMALLEST:
        return None
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    word = f"{order}Q" if wide else f"{order}I"
    table = struct.unpack_from(word, head, 32 if wide else 28)[0]
    size, count = struct.unpack_from(f"{order}HH", head, 54 if wide else 42)
    for number in range(count):
        at = table + number * size
        if at + _SMALLEST > len(head):
            return None
        if struct.unpack_from(f"{order}I", head, at)[0] == _LOADER:
            return int(struct.unpack_from(word, head, at + (8 if wide else 4))[0])
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""
