"""Which Python there is for a script: the real one, never the one inside hilt's own environment.

Owns the search on PATH. What a script may ask for is `requirements`' business.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages.lookup import on_path
from hilt.packages.members import quoted
from hilt.packages.scripts.requirements import Version, python_problem, satisfied

_OLDEST, _NEWEST = 8, 30
"""Minor versions by whose names programs are looked for."""
_PATIENCE = 20.0
_TELL = "import os, sys; print(*sys.version_info[:3], os.path.realpath(sys._base_executable))"

_ASTRAY = """
    TARGET PREFIX ROOT USER SRC EDITABLE REQUIREMENT PYTHON SYSTEM_PYTHON PYTHON_VERSION PLATFORM NO_BINARY ONLY_BINARY
    NO_BUILD DRY_RUN REPORT NO_DEPS IGNORE_INSTALLED REQUIRE_VIRTUALENV BREAK_SYSTEM_PACKAGES PROJECT LINK_MODE
    PROJECT_ENVIRONMENT WORKING_DIR WORKING_DIRECTORY VENV_SEED VENV_CLEAR VENV_RELOCATABLE
"""
"""Settings of what installs, after `PIP_` or `UV_`: what it installs, and where."""


class Interpreter(Struct, frozen=True):
    program: Path
    """The file itself: a link may lead elsewhere tomorrow, and what was built for this one would break."""
    version: Version


def find_interpreter(requires_python: str, env: Mapping[str, str], patience: float = _PATIENCE) -> Interpreter:
    """The first that will do: `python3`, then those named by their version. Raises `PackageError`."""
    if wrong := python_problem(requires_python):
        raise PackageError(f'requires-python "{quoted(requires_python)}" {wrong}', hint='write it as in ">=3.11"')
    seen: list[str] = []
    for program in _candidates(env.get("PATH", "")):
        interpreter = _interpreter(program, env, patience)
        if interpreter and satisfied(requires_python, interpreter.version):
            return interpreter
        if interpreter:
            seen.append(".".join(str(number) for number in interpreter.version))
    there = f"there is only {', '.join(dict.fromkeys(seen))}" if seen else "there is none"
    raise PackageError(
        f'no Python that is "{quoted(requires_python)}": {there} on PATH', hint="install one, and have it on PATH"
    )


def cleared(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would make a Python, or what installs for it, look or write elsewhere.

    Where packages come from, and how the network is reached, stays as the user has set it.
    """
    return {name: value for name, value in env.items() if not _leads_astray(name)}


def _leads_astray(name: str) -> bool:
    tool, _, setting = name.partition("_")
    if tool in ("PIP", "UV"):
        return setting in _ASTRAY.split()
    return name.startswith("PYTHON") or name in ("VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__")


def _candidates(path: str) -> Iterator[str]:
    names = ("python3", *(f"python3.{minor}" for minor in range(_NEWEST, _OLDEST - 1, -1)))
    yield from (found for name in names if (found := on_path(name, path)))
    yield getattr(sys, "_base_executable", sys.executable)  # of the Python that hilt's environment was made from


def _interpreter(program: str, env: Mapping[str, str], patience: float) -> Interpreter | None:
    """What it says of itself; None if it does not work, as is said of some that only offer to install one."""
    import subprocess  # 10 ms, and few scripts get here

    try:
        told = subprocess.run(
            (program, "-I", "-S", "-c", _TELL),
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=True,
        )
        major, minor, micro, place = told.stdout.decode().removesuffix("\n").split(" ", 3)
        return Interpreter(Path(place), (int(major), int(minor), int(micro)))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
