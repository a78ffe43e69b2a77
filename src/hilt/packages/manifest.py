"""A manifest as a value: what an extension says of itself, and the command line that follows from it.

Owns the rules of `extension.json` and of `manifest.yaml`, which one dialect each goes by. They are read as their
reference hosts read them (keys in any case, `null` for "not said", keys nobody knows passed over), and what is wrong
is said field by field. Which files are read is `discovery`'s.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from hilt.errors import ManifestError
from hilt.model.extensions import Dialect
from hilt.model.verdicts import OnFailure
from hilt.packages import permissions
from hilt.packages.lookup import look_up
from hilt.packages.members import Members, json_members, quoted, read_file, shown, yaml_members

MANIFEST = "extension.json"
YAML_MANIFEST = "manifest.yaml"
MANIFESTS = (MANIFEST, YAML_MANIFEST)
"""In a directory that has both, the first counts."""

DataDir: TypeAlias = Literal["shared", "separate"]
"""`shared`: its state lies beside its code, as existing extensions expect."""
SandboxLevel: TypeAlias = Literal["off", "standard", "strict"]
SaidPipes: TypeAlias = Literal["fd", "stdio"]
"""Where it speaks: on descriptors 3 and 4, or on stdin and stdout."""

_LARGEST = 1024 * 1024
_LARGEST_YAML = 64 * 1024
"""Reading it takes a second a megabyte, and twice the memory of that."""
_LONGEST_NAME = 64
_MOST_PERMISSIONS = 64
_FARTHEST_PRIORITY = 1_000_000
_MOST = 1_000_000
_GRAMMAR = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}, not ending in "."'
_OWN = "hilt"
_EXAMPLE = '{"name": "demo", "exec": "./run.py"}'
_YAML_EXAMPLE = "name: demo, then runtime: python and entry: main.py on lines of their own"
RUNTIMES = {"bun": ("bun", "run"), "node": ("node",), "deno": ("deno", "run", "--allow-all"), "python": ("python3",)}
"""By the word in `manifest.yaml`, the program and what comes before the entry."""

_ON_FAILURE: Mapping[str, OnFailure] = {"block": "block", "ask": "ask", "allow": "allow"}
_DATA_DIR: Mapping[str, DataDir] = {"shared": "shared", "separate": "separate"}
_SANDBOX: Mapping[str, SandboxLevel] = {"standard": "standard", "strict": "strict"}
"""An author can ask to be confined, never not to be."""
_PIPES: Mapping[str, SaidPipes] = {"fd": "fd", "stdio": "stdio"}
_MOST_DEFAULTS = 256


class Guard(Struct, frozen=True):
    """What its author asks for when it gives no verdict. The user's settings may be stricter."""

    on_failure: OnFailure | None = None
    """None leaves it to the user's settings."""
    timeout_ms: int = 5000
    required: bool = False
    """Nothing it guards may happen without it."""


class Limits(Struct, frozen=True):
    """What each of its processes may use; None is as much as the user may. No number suits all languages."""

    memory_mb: int | None = None
    """Of memory it can write to, threads' stacks included; address space that is only reserved does not count."""
    processes: int | None = None
    """Of the user's, all programs together: that is how the kernel counts. Has no effect on root."""
    open_files: int | None = None
    file_size_mb: int | None = None
    cpu_seconds: int | None = None


class Default(Struct, frozen=True):
    """A file to begin with, as written: whether it can be had is `seeding`'s business, and only where it is copied."""

    src: str
    dest: str


class Manifest(Struct, frozen=True):
    name: str
    version: str = ""
    exec: str = ""
    """As written; `resolve_exec` makes a command line of it. Empty when there is nothing to start: themes, skills."""
    args: tuple[str, ...] = ()
    language: str = ""
    description: str = ""
    enabled: bool = True
    guard: Guard | None = None
    """None when it does not declare itself a guard; it may intercept all the same."""
    priority: int = 0
    """Among interceptors, higher is asked first."""
    start_timeout_ms: int = 10_000
    """How long it may take to greet the host."""
    tool_timeout_ms: int = 60_000
    stop_grace_ms: int = 2000
    """How long it may take to end by itself, once told to."""
    data_dir: DataDir = "shared"
    skills: tuple[str, ...] = ()
    limits: Limits = Limits()
    permissions: tuple[str, ...] | None = None
    """What it asks for; None when it does not say, and then it may do what the user may."""
    sandbox: SandboxLevel | None = None
    """How strictly it asks to be confined at least."""
    dialect: Dialect = "frames"
    entry: str = ""
    """The script that `exec` runs, in the jsonrpc dialect."""
    pipes: SaidPipes | None = None
    """None when it does not say, and then it is found out."""
    capabilities: tuple[str, ...] = ()
    """What it says it offers; nothing follows from it."""
    defaults: tuple[Default, ...] = ()


_LONGEST_CALL = 3_600_000
_TOOL_TIMES: Mapping[Dialect, int] = {"frames": Manifest("").tool_timeout_ms, "jsonrpc": _LONGEST_CALL}
"""Tools of the jsonrpc dialect have no limit elsewhere: many ask the user, or another agent, before they answer."""
_UNSAID, _UNSAID_GUARD = Manifest(""), Guard()
"""What holds without a word about it."""


def manifest_file(directory: Path) -> Path | None:
    """The one that counts, whatever it is: not even a link that leads nowhere is passed over. Raises `OSError`."""
    for name in MANIFESTS:
        try:
            (directory / name).lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        return directory / name
    return None


def read_manifest(directory: Path) -> Manifest:
    """Read and check it, without ever blocking on it. Raises `ManifestError` that says everything that is wrong."""
    path = directory / MANIFEST
    try:
        path = manifest_file(directory) or path
    except OSError:
        pass  # reading it will say so
    return parse_manifest(path, manifest_bytes(path))


def manifest_bytes(path: Path) -> bytes:
    """What stands in it, unread. Raises `ManifestError`."""
    if path.name == YAML_MANIFEST:
        return read_file(path, _LARGEST_YAML, _YAML_EXAMPLE)
    return read_file(path, _LARGEST, _EXAMPLE)


def parse_manifest(path: Path, data: bytes) -> Manifest:
    """The same of what was read from it. Raises `ManifestError`."""
    if path.name == YAML_MANIFEST:
        return _manifest(Members(yaml_members(path, data, _YAML_EXAMPLE), loose=True), path, path.parent, "jsonrpc")
    return _manifest(Members(json_members(path, data, _EXAMPLE)), path, path.parent, "frames")


def manifest_of(values: Mapping[str, object], file: Path, name: str) -> Manifest:
    """The manifest of a program that says itself what would stand in a file. Raises `ManifestError`."""
    return _manifest(Members({"name": name, **values, "exec": str(file)}), file, file.parent, "frames")


def _manifest(members: Members, path: Path, directory: Path, dialect: Dialect) -> Manifest:
    manifest = Manifest(
        name=_name(members, directory),
        version=members.text("version"),
        exec=members.text("exec" if dialect == "frames" else "runtime"),
        args=members.texts("args"),
        language=members.text("language"),
        description=members.text("description"),
        enabled=members.flag("enabled", default=_UNSAID.enabled),
        guard=_guard(members),
        priority=members.number("priority", _UNSAID.priority, -_FARTHEST_PRIORITY, _FARTHEST_PRIORITY),
        start_timeout_ms=members.number("start_timeout_ms", _UNSAID.start_timeout_ms, 100, 120_000),
        tool_timeout_ms=members.number("tool_timeout_ms", _TOOL_TIMES[dialect], 100, _LONGEST_CALL),
        stop_grace_ms=members.number("stop_grace_ms", _UNSAID.stop_grace_ms, 0, 10_000),
        data_dir=members.choice("data_dir", _DATA_DIR) or _UNSAID.data_dir,
        skills=members.texts("skills"),
        limits=_limits(members),
        permissions=_permissions(members),
        sandbox=members.choice("sandbox", _SANDBOX),
        dialect=dialect,
    )
    if dialect == "jsonrpc":
        manifest = msgspec.structs.replace(
            manifest,
            entry=members.text("entry"),
            pipes=members.choice("pipes", _PIPES),
            capabilities=members.texts("capabilities"),
            defaults=_defaults(members),
        )
    if dialect == "jsonrpc" and not manifest.exec:
        members.complain("runtime", "is missing", "write runtime: python, bun, node, deno, or the path of a program")
    elif not (manifest.exec or manifest.skills or _has_theme(directory)):
        members.complain("exec", "is missing", 'name the program to run, as in "exec": "./run.py"')
    if members.wrong:
        messages, hints = zip(*members.wrong.values(), strict=True)
        raise ManifestError(f"{shown(path)}: {'; '.join(messages)}", hint=hints[0], extension=manifest.name)
    return manifest


def resolve_exec(manifest: Manifest, directory: Path, path: str) -> tuple[str, ...]:
    """The command line. Raises `ManifestError` when a bare word is not on `path`; other programs are not looked at."""
    if manifest.dialect == "jsonrpc":
        entry = (str(directory / manifest.entry),) if manifest.entry else ()
        if manifest.exec not in RUNTIMES:
            _check_bare(manifest.exec, manifest.name, directory)
            return (str(directory / manifest.exec), *entry)  # an absolute one stays as it is
        word, *before = RUNTIMES[manifest.exec]
        return (_looked_up(word, manifest, directory, path), *before, *(entry or (str(directory),)))
    program = manifest.exec
    if "/" in program or program in (".", ".."):
        return (str(directory / program), *manifest.args)
    return (_looked_up(program, manifest, directory, path), *manifest.args)


def _check_bare(runtime: str, name: str, directory: Path) -> None:
    """A word such as `ruby` is easily taken for something on PATH. Whatever else there may be is looked at later."""
    if "/" in runtime or os.path.lexists(directory / runtime):
        return
    known = ", ".join(RUNTIMES)
    raise ManifestError(
        f"{shown(directory)}/{YAML_MANIFEST}: runtime {quoted(runtime)} is neither one of {known} nor a file beside it",
        hint=f"build it, or name a program by its path: /usr/bin/{quoted(runtime)}, or a script with a #! line",
        extension=name,
    )


def _looked_up(word: str, manifest: Manifest, directory: Path, path: str) -> str:
    lookup = look_up(word, path)
    if lookup.found:
        return lookup.found
    if manifest.dialect == "jsonrpc":
        field, hint = f"{YAML_MANIFEST}: runtime {quoted(manifest.exec)}", f"install {quoted(word)}"
    else:
        field = f'{MANIFEST}: "exec": {quoted(word)}'
        hint = f'install {quoted(word)}, or give its path, as in "exec": "./{quoted(word)}"'
    raise ManifestError(f"{shown(directory)}/{field} is not on PATH{lookup.but}", hint=hint, extension=manifest.name)


def is_name(text: str) -> bool:
    """Whether it fits the grammar of names. A name becomes part of file names."""
    letters = text.replace(".", "").replace("_", "").replace("-", "")
    fits = 0 < len(text) <= _LONGEST_NAME and text.isascii() and letters.isalnum() and text[0].isalnum()
    return fits and not text.endswith(".")


def as_name(text: str) -> str:
    """The text with as little changed as makes it a name, or nothing."""
    fitted = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text)
    return fitted.lstrip("._-")[:_LONGEST_NAME].rstrip(".")


def _name(members: Members, directory: Path) -> str:
    """Empty when there is none that could be used."""
    name = members.text("name")
    if name.lower() == _OWN:
        members.complain(
            "name", f'must not be "{name}": that is who built-ins belong to', f'write "name": "{name}-kit"'
        )
        return ""
    if is_name(name):
        return name
    wrong = f'must match {_GRAMMAR}: "{quoted(name)}" does not' if name else "is missing"
    members.complain("name", wrong, f'write "name": "{as_name(name) or as_name(directory.name) or "demo"}"')
    return ""


def _guard(members: Members) -> Guard | None:
    guard = members.inner("guard")
    if guard is None:
        return None
    return Guard(
        on_failure=guard.choice("on_failure", _ON_FAILURE),
        timeout_ms=guard.number("timeout_ms", _UNSAID_GUARD.timeout_ms, 100, 60_000),
        required=guard.flag("required", default=_UNSAID_GUARD.required),
    )


def _limits(members: Members) -> Limits:
    limits = members.inner("limits")
    if limits is None:
        return _UNSAID.limits
    return Limits(
        memory_mb=limits.number("memory_mb", None, 16, _MOST),
        processes=limits.number("processes", None, 1, _MOST),
        open_files=limits.number("open_files", None, 16, _MOST),
        file_size_mb=limits.number("file_size_mb", None, 1, _MOST),
        cpu_seconds=limits.number("cpu_seconds", None, 1, _MOST),
    )


def _defaults(members: Members) -> tuple[Default, ...]:
    """With empty names where there are none: such an extension runs, and only cannot be given its files."""
    listed = members.records("defaults")
    if len(listed) > _MOST_DEFAULTS:
        members.complain("defaults", f"has more than {_MOST_DEFAULTS} entries", "name the ones it needs to begin with")
    texts = ({key: value if isinstance(value, str) else "" for key, value in one.items()} for one in listed)
    return tuple(Default(one.get("src", ""), one.get("dest", "")) for one in texts)


def _permissions(members: Members) -> tuple[str, ...] | None:
    if not members.has("permissions"):
        return None
    asked = members.texts("permissions")
    if len(asked) > _MOST_PERMISSIONS:
        members.complain(
            "permissions", f"has more than {_MOST_PERMISSIONS} entries", "ask for whole kinds, as in fs.read"
        )
    for one in asked:
        if problem := permissions.problem(one):
            hint = f"correct or remove it; the permissions are {permissions.KNOWN}"
            members.complain("permissions", f'holds "{quoted(one)}", which {problem}', hint)
    return tuple(dict.fromkeys(asked))


def _has_theme(directory: Path) -> bool:
    return any(os.access(directory / theme, os.F_OK) for theme in ("theme.json", "themes/theme.json"))
