"""Make `hilt_sdk.py`, the whole SDK in one file that can lie beside an extension, from the package.

python bundle.py           write it
python bundle.py --check   say whether it is up to date
"""

import ast
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE / "src" / "hilt_sdk"
TARGET = HERE / "hilt_sdk.py"
COPIES = HERE.parents[1] / "examples" / "extensions"
MODULES = (
    "values",
    "transport",
    "docstring",
    "forms",
    "schema",
    "protocol",
    "runner",
    "coroutines",
    "calls",
    "registrations",
    "lanes",
    "link",
    "interception",
    "provider",
    "panels",
    "methods",
    "frames",
    "jsonrpc",
    "host",
    "speaker",
    "extension",
    "stage",
    "testing",
)
HEAD = '''\
"""Extensions for hilt, zot and piglet, the whole SDK in one file: put it beside your extension.

Made by bundle.py from the package hilt_sdk; change that instead. MIT licence.
"""

'''
TAIL = """
# `from hilt_sdk.testing import Host` works with this file too.
sys.modules[__name__ + ".testing"] = sys.modules[__name__]
"""


def bundled() -> str:
    """The text of the file."""
    imports: dict[str, None] = {}
    types: dict[str, None] = {}
    bodies = []
    names: dict[str, str] = {}
    for module in MODULES:
        body = _body(module, imports, types)
        bodies.append(f"# {module}\n\n\n{body}\n")
        for name in _defined(body):
            if name in names:
                raise SystemExit(f"{name} is in {names[name]} and in {module}: one of them needs another name")
            names[name] = module
    parts = [HEAD, "from __future__ import annotations\n\n", "".join(f"{line}\n" for line in sorted(imports))]
    parts += ["\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n", "".join(f"    {line}\n" for line in types)]
    parts += ["\n", "\n\n".join(bodies), "\n", _public(), TAIL]
    return "".join(parts)


def _body(module: str, imports: dict[str, None], types: dict[str, None]) -> str:
    """A module without its docstring and what it imports, which are collected."""
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    dropped: set[int] = set()
    for node in tree.body:
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not _own(node) and getattr(node, "module", "") != "__future__":
                imports[text] = None
        elif text == "TYPE_CHECKING = False" or (isinstance(node, ast.Expr) and node is tree.body[0]):
            pass
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for inner in node.body:
                if not _own(inner):
                    types["\n".join(lines[inner.lineno - 1 : inner.end_lineno]).strip()] = None
        else:
            continue
        dropped.update(range(node.lineno, (node.end_lineno or 0) + 1))
    for found in ast.walk(tree):
        if _own(found) and isinstance(found, ast.ImportFrom):
            dropped.update(range(found.lineno, (found.end_lineno or 0) + 1))
    return _tidy([line for number, line in enumerate(lines, 1) if number not in dropped])


def _own(node: ast.AST) -> bool:
    """An import of another part of the SDK."""
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hilt_sdk")


def _tidy(lines: list[str]) -> str:
    """No empty line at the beginning of a block, and two at most elsewhere."""
    kept: list[str] = []
    for line in lines:
        before = kept[-1].strip() if kept else ""
        if not line.strip() and (not kept or (before.endswith((":", '"""')) and not _at_top(kept[-1]))):
            continue
        if not line.strip() and kept[-2:] == ["", ""]:
            continue
        kept.append(line)
    return "\n".join(kept).strip("\n")


def _at_top(line: str) -> bool:
    return not line.startswith(" ")


def _defined(body: str) -> list[str]:
    found = []
    for node in ast.parse(body).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return found


def _public() -> str:
    """The version and the public names, as in the package."""
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    lines = source.splitlines()
    kept = []
    for node in ast.parse(source).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id in ("__version__", "__all__"):
            kept.append("\n".join(lines[node.lineno - 1 : node.end_lineno]))
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    text = bundled()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text else "hilt_sdk.py is out of date")
    for target in (TARGET, *COPIES.glob("*/hilt_sdk.py")):
        target.write_text(text, encoding="utf-8")
