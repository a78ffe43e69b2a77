"""An extension that is one file: what it says of itself in its own comments, and the command line it runs as.

Owns the blocks. One named `hilt`, behind `#`, `//` or `--`, holds as TOML what would stand in a manifest; one named
`script`, in Python, holds what it needs of Python, as other tools read it, too:

    # /// hilt
    # permissions = ["net"]
    # ///

The rules of the fields are `manifest`'s. A file is read, up to a limit, and never executed.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hilt.errors import ManifestError
from hilt.packages.lookup import look_up
from hilt.packages.manifest import Manifest, as_name, manifest_of
from hilt.packages.members import kind, quoted, shown
from hilt.packages.scripts.programs import HEAD, is_binary, language_of, read_head
from hilt.packages.scripts.requirements import problem, python_problem

_BOM = b"\xef\xbb\xbf"
_OPENING = re.compile(rb"(#|//|--) /// (hilt|script)")
_DEEPEST = 20
_MOST_BITS = 64
_MOST_DEPENDENCIES = 200

LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".sh": "shell",
    ".bash": "bash",
    ".rb": "ruby",
    ".pl": "perl",
    ".lua": "lua",
    ".php": "php",
    ".go": "go",
}
_RUNNERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "python": (("python3",),),
    "javascript": (("node",), ("bun",), ("deno", "run", "--allow-all")),
    # Older versions of node take no types, so it comes last.
    "typescript": (("bun",), ("deno", "run", "--allow-all"), ("node",)),
    "shell": (("sh",),),
    "bash": (("bash",),),
    "ruby": (("ruby",),),
    "perl": (("perl",),),
    "lua": (("lua",),),
    "php": (("php",),),
    "go": (("go", "run"),),
}
"""What runs a file that is not executable itself: the first that there is."""


class Script(Struct, frozen=True):
    manifest: Manifest
    """`exec` is the file."""
    dependencies: tuple[str, ...] = ()
    """Packages of Python, each as `requirements` allows it."""
    requires_python: str = ""
    language: str = ""
    """Empty when nothing tells."""
    runs_itself: bool = False
    """It is executable, and not by a Python that would have to know its dependencies."""

    @property
    def needs_environment(self) -> bool:
        return bool(self.dependencies) and not self.runs_itself


class _Block(Struct, frozen=True):
    kind: str
    line: int
    """Where it begins, counted from 1."""
    lines: tuple[bytes, ...]
    """Without what makes them comments."""


def read_script(file: Path) -> Script:
    """What it says of itself. Raises `ManifestError` that names the file and the line."""
    head = _head(file)
    blocks = {} if is_binary(head) else _blocks(file, head)
    manifest = _manifest(file, blocks.get("hilt"))
    interpreter = language_of(head)
    python = interpreter.startswith("python") if interpreter else file.suffix == ".py"
    language = "python" if python else LANGUAGES.get(file.suffix, interpreter)
    asked = blocks.get("script")
    # In another language it would be a comment like any other.
    needs = _needs(file, asked) if asked and (python or file.suffix == ".py") else ((), "")
    managed = python and bool(needs[0])
    return Script(
        manifest=manifest,
        dependencies=needs[0],
        requires_python=needs[1],
        language=manifest.language or language,
        runs_itself=bool(interpreter or is_binary(head)) and os.access(file, os.X_OK) and not managed,
    )


def hilt_block(file: Path) -> Mapping[str, object]:
    """What stands in the block of a script, before anybody judged it. Raises `ManifestError`."""
    head = _head(file)
    block = None if is_binary(head) else _blocks(file, head).get("hilt")
    return _values(file, block) if block else {}


def script_command(script: Script, path: str, python: Path | None = None) -> tuple[str, ...]:
    """The command line. `python` is the interpreter that knows its dependencies. Raises `ManifestError`."""
    file, args = script.manifest.exec, script.manifest.args
    if script.needs_environment and not python:
        raise ManifestError(
            f"{shown(file)}: the packages it depends on are not installed: {', '.join(script.dependencies)}",
            hint=f"hilt ext install {shown(file)}",
            extension=script.manifest.name,
        )
    if script.runs_itself:
        return (file, *args)
    if python:
        return (str(python), file, *args)
    if runner := _runner(file, path):
        return (*runner, file, *args)
    if os.access(file, os.X_OK):
        return (file, *args)  # in a format of which only the system knows
    raise ManifestError(
        f"{shown(file)} is not executable", hint=f"chmod +x {shown(file)}", extension=script.manifest.name
    )


def _runner(file: str, path: str) -> tuple[str, ...]:
    language = LANGUAGES.get(Path(file).suffix, "")
    runners = _RUNNERS.get(language, ())
    but = ""
    for word, *rest in runners:
        lookup = look_up(word, path)
        if lookup.found:
            return (lookup.found, *rest)
        but += lookup.but
    if language == "python":
        return (sys.executable,)
    if not runners or os.access(file, os.X_OK):
        return ()
    raise ManifestError(
        f"{shown(file)} cannot be run: there is no {' and no '.join(runner[0] for runner in runners)} on PATH{but}",
        hint=f"install {runners[0][0]}",
    )


def _head(file: Path) -> bytes:
    try:
        return read_head(file).removeprefix(_BOM)
    except PermissionError:
        if os.access(file, os.X_OK):
            return b""  # a program may be executable without being readable
        raise _refusal(file, 0, "cannot be read", f"chmod +r {shown(file)}") from None
    except OSError as error:
        raise _refusal(file, 0, error.strerror or str(error), "name a file that can be read") from error


def _blocks(file: Path, head: bytes) -> dict[str, _Block]:
    lines = [line.removesuffix(b"\r") for line in head.split(b"\n")]
    blocks: dict[str, _Block] = {}
    at = 0
    while at < len(lines):
        opening = _OPENING.fullmatch(lines[at].rstrip())
        if not opening:
            at += 1
            continue
        block = _block(file, lines, at, opening[1], opening[2].decode(), cut=len(head) == HEAD)
        if first := blocks.get(block.kind):
            message = f"a second block of the kind {block.kind}, after that in line {first.line}"
            raise _refusal(file, block.line, message, "keep one of them")
        blocks[block.kind] = block
        at += len(block.lines) + 2
    return blocks


def _block(file: Path, lines: list[bytes], at: int, leader: bytes, name: str, *, cut: bool) -> _Block:
    closing = leader + b" ///"
    inside: list[bytes] = []
    for number, line in enumerate(lines[at + 1 :], at + 2):
        if line.rstrip() == closing:
            # Other tools go on to the last such line of a comment, so that they would read something else here.
            if number < len(lines) and _content(lines[number], leader) is not None:
                message = f"the block {name} ends here, and the comment goes on"
                raise _refusal(file, number, message, "put an empty line after it")
            return _Block(name, at + 1, tuple(inside))
        content = _content(line, leader)
        if content is None:
            break
        inside.append(content)
    else:
        if cut:
            raise _refusal(file, at + 1, f"the block {name} does not end in the first {HEAD} bytes", "make it shorter")
    message = f"the block {name} does not end"
    raise _refusal(file, at + 1, message, f'close it with a line "{closing.decode()}"')


def _content(line: bytes, leader: bytes) -> bytes | None:
    if line.rstrip() == leader:
        return b""
    return line.removeprefix(leader + b" ") if line.startswith(leader + b" ") else None


def _values(file: Path, block: _Block) -> dict[str, Any]:
    import tomllib  # 5 ms, and few scripts have a block

    texts = []
    for number, line in enumerate(block.lines, block.line + 1):
        try:
            texts.append(line.decode())
        except UnicodeDecodeError as error:
            raise _refusal(file, number, f"is not UTF-8: {error.reason}", "save the file as UTF-8") from error
    try:
        values = tomllib.loads("\n".join(texts))
        _measure(values, _DEEPEST)
    except RecursionError:
        message = f"the block {block.kind} is nested too deeply"
        raise _refusal(file, block.line, message, "it needs no more than two levels") from None
    except ValueError as error:  # of TOML, or of a number with too many digits
        reason, _, place = str(error).partition(" (at ")
        told = re.match(r"line ([0-9]+)", place)
        line_number = block.line + (int(told[1]) if told else len(block.lines))
        message = f"the block {block.kind} is not TOML: {quoted(reason)}"
        raise _refusal(file, line_number, message, 'it looks like version = "1.0"') from error
    return values


def _measure(value: object, depth: int) -> None:
    """Raise for what nobody means: `RecursionError` if nested too deeply, `ValueError` if too large to be shown."""
    if depth == 0:
        raise RecursionError
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"a number of more than {_MOST_BITS} bits")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _measure(one, depth - 1)


def _manifest(file: Path, block: _Block | None) -> Manifest:
    name = as_name(file.stem)
    values = _values(file, block) if block else {}
    if block and "exec" in values:
        raise _refusal(file, block.line, '"exec" has no place here: the file is the program', 'remove "exec"')
    if not name and "name" not in values:
        message = "there is no letter or digit in its name to name an extension by"
        raise _refusal(file, 0, message, "rename the file")
    try:
        return manifest_of(values, file, name)
    except ManifestError as error:
        reason = error.message.removeprefix(f"{shown(file)}: ")
        raise _refusal(file, block.line if block else 0, reason, error.hint, error.extension) from error


def _needs(file: Path, block: _Block) -> tuple[tuple[str, ...], str]:
    """What it depends on, and which Python it takes."""
    values = _values(file, block)
    dependencies, requires = values.get("dependencies", []), values.get("requires-python", "")
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        message = f'"dependencies" must be a list of strings, not {kind(dependencies)}'
        raise _refusal(file, block.line, message, 'write dependencies = ["…", "…"]')
    if len(dependencies) > _MOST_DEPENDENCIES:
        message = f'"dependencies" has more than {_MOST_DEPENDENCIES} entries'
        raise _refusal(file, block.line, message, "name those it imports, and leave the rest to them")
    for one in dependencies:
        if wrong := problem(one.strip()):
            raise _refusal(file, block.line, f'"dependencies" holds "{quoted(one)}", which {wrong}', "correct it")
    if not isinstance(requires, str):
        message = f'"requires-python" must be a string, not {kind(requires)}'
        raise _refusal(file, block.line, message, 'write requires-python = ">=3.11"')
    if wrong := python_problem(requires):
        message = f'"requires-python" is "{quoted(requires)}", which {wrong}'
        raise _refusal(file, block.line, message, 'write requires-python = ">=3.11"')
    return tuple(one.strip() for one in dependencies), requires.strip()


def _refusal(file: Path, line: int, message: str, hint: str, name: str = "") -> ManifestError:
    where = f"{shown(file)}, line {line}" if line else shown(file)
    return ManifestError(f"{where}: {message}", hint=hint, extension=name or as_name(file.stem))
