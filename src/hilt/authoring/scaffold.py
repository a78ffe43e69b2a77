"""A new extension to start from: a program that works, its manifest, tests and a README.

Owns what is written and how it is named. The texts lie in `templates`, one for each language and kind, and the SDK is
copied beside the program, so that nothing needs to be fetched.
"""

import json
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hilt.authoring.shipped import shipped
from hilt.errors import PackageError, UsageError

Language: TypeAlias = Literal["python", "typescript", "go", "sh"]
Kind: TypeAlias = Literal["tool", "command", "guard", "panel", "provider"]

LANGUAGES: tuple[Language, ...] = ("python", "typescript", "go", "sh")
KINDS: tuple[Kind, ...] = ("tool", "command", "guard", "panel", "provider")

_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST_NAME = 40
_ABOUT: Mapping[Kind, str] = MappingProxyType(
    {
        "tool": "A tool that says a text several times",
        "command": "A slash command that says hello",
        "guard": "A guard that refuses shell commands which cannot be undone",
        "panel": "A panel with a counter",
        "provider": "A model that says back what it hears",
    }
)
_ASKS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {"provider": ("conversation:read", "conversation:write", "tools:call")}
)
"""Permissions beyond none at all, which is where an extension should start."""
_NOT_COPIED = ("tests", "test", "node_modules", "__pycache__", "*_test.go", "*.test.js", "testdata", "tsconfig.json")


class Recipe(Struct, frozen=True):
    """What differs from language to language."""

    program: str
    """The file's name; `{module}` is a name that the language takes."""
    exec: tuple[str, ...]
    test: str = ""
    """Where a test in the language itself lies."""
    sdk: str = ""
    """What is copied, in `sdks`, and where to."""
    beside: str = ""
    asks: tuple[str, ...] | None = ()
    """Permissions that the language needs in any case; None for all there are, as for a compiler."""


_RECIPES: Mapping[Language, Recipe] = MappingProxyType(
    {
        "python": Recipe(
            "{module}.py", ("python3", "{module}.py"), "tests/test_{module}.py", "python/hilt_sdk.py", "hilt_sdk.py"
        ),
        "typescript": Recipe("{name}.mjs", ("node", "{name}.mjs"), "tests/{name}.test.mjs", "typescript", "hilt-sdk"),
        "go": Recipe("main.go", ("./run.sh",), "main_test.go", "go", "hilt-sdk", asks=None),
        "sh": Recipe("{name}.sh", ("./{name}.sh",), asks=("exec",)),
    }
)


class Made(Struct, frozen=True):
    directory: Path
    files: tuple[str, ...]
    """What was written, but for the SDK."""
    try_it: str
    """The arguments of `hilt` that show it at work, seen from the directory."""


def scaffold(name: str, language: Language, kind: Kind, parent: Path) -> Made:
    """Write a new extension into `parent / name`, or nothing. Raises `UsageError` and `PackageError`."""
    _check(name)
    directory = parent / name
    words = {
        "name": name,
        "snake": name.replace("-", "_"),
        "module": _module(name),
        "Name": "".join(part.capitalize() for part in re.split("[-_]", name)),
        "about": _ABOUT[kind],
    }
    texts = dict(_texts(_RECIPES[language], language, kind, words))
    tried = _try_it(kind, words)
    texts["README.md"] = _readme(words, language, tried)
    try:
        directory.mkdir()
    except FileExistsError:
        raise UsageError(f"{directory} exists already", hint="choose another name, or remove it first") from None
    except OSError as error:
        raise PackageError(f"{directory} cannot be made: {error.strerror}") from error
    try:
        _write(directory, texts, _RECIPES[language])
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise PackageError(f"{directory} cannot be written: {error.strerror}") from error
    return Made(directory, tuple(sorted(texts)), tried)


def _check(name: str) -> None:
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise UsageError(
            f'"{name[:80]}" cannot be the name of an extension',
            hint=f"use small letters and digits, with - or _ between words, {_LONGEST_NAME} at most: word-count",
        )


def _module(name: str) -> str:
    """As a file that can be imported, and hides nothing of the language's own."""
    import keyword
    import sys

    snake = name.replace("-", "_")
    taken = keyword.iskeyword(snake) or snake in sys.stdlib_module_names or snake in ("hilt_sdk", "tests")
    return f"{snake}_extension" if taken else snake


def _texts(recipe: Recipe, language: Language, kind: Kind, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    folder = _TEMPLATES / language
    program = recipe.program.format_map(words)
    suffix = Path(program).suffix
    yield program, _filled(folder / f"{kind}{suffix}.in", words)
    if recipe.test:
        yield recipe.test.format_map(words), _filled(folder / f"{kind}.test{suffix}.in", words)
    yield f"tests/{words['name']}.jsonl", _filled(_TEMPLATES / "fixtures" / f"{kind}.jsonl.in", words)
    for common in sorted((folder / "common").glob("*.in")):
        yield common.stem, _filled(common, words)
    yield "extension.json", json.dumps(_manifest(recipe, language, kind, words), indent=2, ensure_ascii=False) + "\n"
    yield ".gitignore", "__pycache__/\nnode_modules/\nbin/\n"


def _filled(template: Path, words: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], template.read_text(encoding="utf-8"))


def _manifest(recipe: Recipe, language: Language, kind: Kind, words: Mapping[str, str]) -> dict[str, Any]:
    program, *args = (word.format_map(words) for word in recipe.exec)
    manifest: dict[str, Any] = {
        "name": words["name"],
        "version": "0.1.0",
        "description": words["about"],
        "exec": program,
        "args": args,
        "language": language,
    }
    if kind == "guard":
        manifest["guard"] = {"on_failure": "block", "timeout_ms": 5000, "required": True}
    if kind == "panel":
        manifest["data_dir"] = "separate"
    if recipe.asks is None:
        manifest["start_timeout_ms"] = 120_000  # the first start compiles
    else:
        manifest["permissions"] = [*recipe.asks, *_ASKS.get(kind, ())]
    return manifest


def _try_it(kind: Kind, words: Mapping[str, str]) -> str:
    name, snake = words["name"], words["snake"]
    return {
        "tool": f"""ext call . {snake} '{{"text": "hey", "times": 3}}'""",
        "command": f"ext run . /{name} Ada",
        "guard": "--provider demo --ext . -p 'run `rm -rf build`'",
        "panel": f"ext run . /{name}",
        "provider": f"--ext . --provider {name} -p 'good morning'",
    }[kind]


def _readme(words: Mapping[str, str], language: Language, tried: str) -> str:
    note = _TEMPLATES / language / "README.note"
    return _filled(_TEMPLATES / "README.md.in", {**words, "try": tried}) + note.read_text(encoding="utf-8")


def _write(directory: Path, texts: Mapping[str, str], recipe: Recipe) -> None:
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    if recipe.sdk:
        source = shipped("sdks") / recipe.sdk
        if source.is_dir():
            shutil.copytree(source, directory / recipe.beside, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        else:
            shutil.copyfile(source, directory / recipe.beside)
