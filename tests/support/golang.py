"""Go programs that use the SDK, built for a test: what is common to them is compiled once, and waited for."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

SDK = Path(__file__).parents[2] / "sdks" / "go"
ENVIRONMENT = {"HOME": os.environ.get("HOME", "/"), "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"}
"""For whoever runs the compiler: it keeps what it has compiled in the home."""
_COLD = 170
"""Seconds; the first time, all of the standard library that is used is compiled, beside whatever else runs."""


@cache
def warmed() -> None:
    """Have the SDK compiled, or skip the test where there is no compiler."""
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    environment = {**os.environ, **ENVIRONMENT}
    subprocess.run(["go", "build", "./..."], cwd=SDK, env=environment, check=True, timeout=_COLD)
    subprocess.run(["go", "vet", "./hilttest"], cwd=SDK, env=environment, check=True, timeout=_COLD)


def use_ours(module: Path) -> None:
    """Have a module use the SDK as it is in this repository, which is compiled already, in place of its copy."""
    subprocess.run(["go", "mod", "edit", f"-replace=hilt-sdk={SDK}"], cwd=module, check=True, timeout=30)
