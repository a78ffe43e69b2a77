"""The demo program in each SDK, in a directory of its own, as an extension that hosts can start."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import golang

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "sdks" / "programs"
_START = "#!/bin/sh\n{dialect}exec {command}\n"


def _python(place: Path) -> str:
    shutil.copy(PROGRAMS / "demo.py", place)
    shutil.copy(ROOT / "sdks" / "python" / "hilt_sdk.py", place)
    return f"{sys.executable} demo.py"


def _typescript(place: Path) -> str:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    shutil.copy(PROGRAMS / "demo.mjs", place)
    (place / "hilt-sdk").symlink_to(ROOT / "sdks" / "typescript")
    return "node demo.mjs"


def _go(place: Path) -> str:
    golang.warmed()
    module = place / "module"
    module.mkdir()
    shutil.copy(PROGRAMS / "demo.go", module / "main.go")
    (module / "go.mod").write_text("module demo\n\ngo 1.22\n\nrequire hilt-sdk v0.0.0\n", encoding="utf-8")
    golang.use_ours(module)
    environment = {**os.environ, **golang.ENVIRONMENT}
    subprocess.run(["go", "build", "-o", "../demo", "."], cwd=module, env=environment, check=True, timeout=170)
    return "./demo"


_MADE: dict[str, Callable[[Path], str]] = {"python": _python, "typescript": _typescript, "go": _go}


def installed(place: Path, sdk: str, dialect: str) -> Path:
    """The demo program in a directory of its own, started in that dialect."""
    place.mkdir()
    command = _MADE[sdk](place)
    chosen = "HILT_SDK_DIALECT=jsonrpc " if dialect.endswith("stdio") else ""
    start = place / "start.sh"
    start.write_text(_START.format(dialect=chosen, command=command), encoding="utf-8")
    start.chmod(0o755)
    if dialect == "frames":
        manifest = {"name": "demo", "version": "1.0.0", "exec": "./start.sh", "data_dir": "separate"}
        (place / "extension.json").write_text(json.dumps(manifest))
    else:
        pipes = "stdio" if dialect.endswith("stdio") else "fd"
        (place / "manifest.yaml").write_text(f"name: demo\nversion: 1.0.0\nruntime: ./start.sh\npipes: {pipes}\n")
    return place
