"""The private Python environments of extensions that depend on packages.

Owns how one is built, found again and removed: under `root`, in a folder of the extension's name, one for each list of
dependencies. An environment cannot be moved once it is built, so it is built where it stays, and counts only from the
moment a mark is set in it. Building is done by `uv` if there is one, else by `venv` and `pip`, with the user's package
index; only ready-made wheels are installed, so that nothing of theirs runs while hilt installs them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages.lookup import on_path
from hilt.packages.manifest import is_name
from hilt.packages.members import quoted, shown
from hilt.packages.scripts.interpreters import Interpreter, cleared, find_interpreter
from hilt.packages.scripts.requirements import problem

Progress = Callable[[str], None]

_MARK = ".complete"
_PATIENCE = 900.0
"""Seconds for each step: some packages are large, and some networks slow."""
_LAST_LINES = 4
_LONGEST_LINE = 200
_MOST_UNREAD = 8192
_ENDING = 5.0


class _Step(Struct, frozen=True):
    argv: tuple[str, ...]
    what: str
    hint: str


def consent(dependencies: Sequence[str]) -> str:
    """What the user agrees to, in a sentence."""
    return (
        f"installs {', '.join(quoted(one) for one in dependencies)}, and what that depends on, from your package index "
        "into an environment of its own. Only ready-made wheels: nothing of them runs during the installation"
    )


def find_environment(dependencies: Sequence[str], requires_python: str, root: Path, name: str) -> Path | None:
    """The interpreter of one that was built before and still works. Starts nothing."""
    places = _home(root, name).glob(f"{_digest(dependencies, requires_python)}-*")
    return next((_python(place) for place in sorted(places, reverse=True) if _works(place)), None)


def environment_for(
    dependencies: Sequence[str],
    requires_python: str,
    root: Path,
    name: str,
    progress: Progress,
    *,
    env: Mapping[str, str],
    patience: float = _PATIENCE,
) -> Path:
    """Its interpreter, after building it if need be. Blocks. Raises `PackageError`."""
    for one in dependencies:
        if wrong := problem(one):
            raise PackageError(f'{name} depends on "{quoted(one)}", which {wrong}', hint="correct its dependencies")
    if found := find_environment(dependencies, requires_python, root, name):
        return found
    interpreter = find_interpreter(requires_python, env)
    home = _home(root, name)
    try:
        with _locked(home, name) as lock:
            # Whoever held the lock before may have built it.
            if found := find_environment(dependencies, requires_python, root, name):
                return found
            _sweep(home)
            progress(f"making an environment for {name}…")
            version = ".".join(str(number) for number in interpreter.version)
            place = home / f"{_digest(dependencies, requires_python)}-{version}"
            _build(place, _steps(place, interpreter, dependencies, env), env, progress, patience, lock)
    except OSError as error:
        raise PackageError(
            f"the environment of {name} cannot be built in {shown(home)}: {error.strerror or error}",
            hint="make room for it, and check the rights of the directory",
        ) from error
    return _python(place)


def remove_environment(root: Path, name: str) -> None:
    """All that were built for it; it need have none. Raises `PackageError`."""
    import shutil  # 10 ms, and rarely needed

    home = _home(root, name)
    if not os.path.lexists(home):
        return
    try:
        if home.is_symlink():
            home.unlink()  # what it leads to is not ours
            return
        with _locked(home, name):
            shutil.rmtree(home)
    except OSError as error:
        raise PackageError(
            f"{shown(home)} cannot be removed: {error.strerror or error}", hint=f"rm -r {shown(home)}"
        ) from error


def _home(root: Path, name: str) -> Path:
    if not is_name(name):
        raise PackageError(f'"{quoted(name)}" is not the name of an extension', hint="see hilt ext list")
    return root / name


def _digest(dependencies: Sequence[str], requires_python: str) -> str:
    import hashlib
    import json

    wanted = json.dumps([sorted(set(dependencies)), requires_python])
    return hashlib.sha256(wanted.encode()).hexdigest()[:16]


def _python(place: Path) -> Path:
    return place / "bin" / "python"


def _works(place: Path) -> bool:
    return (place / _MARK).exists() and os.access(_python(place), os.X_OK)


@contextmanager
def _locked(home: Path, name: str) -> Iterator[int]:
    """Hold off everybody else who would build or remove. What we start holds it, too, should we be killed."""
    import fcntl

    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
    except BlockingIOError:
        raise PackageError(
            f"the environment of {name} is being built or removed by another hilt", hint="try again when that is done"
        ) from None
    finally:
        os.close(lock)


def _sweep(home: Path) -> None:
    """Remove what somebody began and was killed over, and what was built for an interpreter that is gone."""
    import shutil

    for place in home.iterdir():
        if not _works(place):
            shutil.rmtree(place, ignore_errors=True)


def _steps(place: Path, interpreter: Interpreter, dependencies: Sequence[str], env: Mapping[str, str]) -> list[_Step]:
    base, python = str(interpreter.program), str(_python(place))
    uv = on_path("uv", env.get("PATH", ""))
    venv: tuple[str, ...]
    install: tuple[str, ...]
    hint = "check the names, the versions and your package index; what has no ready-made wheel is not installed"
    if uv:
        venv = (uv, "venv", "--python", base, "--no-project", "--no-python-downloads", "--quiet", ".")
        # Copies, for links would let it change the cache that everything else is installed from.
        install = (uv, "pip", "install", "--python", python, "--link-mode", "copy", "--no-progress", "--color", "never")
        hint += "; uv is told of an index by UV_DEFAULT_INDEX or in uv.toml, and reads nothing of pip's"
    else:
        quiet = ("--no-input", "--progress-bar", "off", "--no-color", "--disable-pip-version-check")
        venv = (base, "-I", "-m", "venv", ".")
        install = (python, "-I", "-m", "pip", "install", *quiet)
    return [
        _Step(venv, "an environment cannot be made", "install uv, or what your system calls python3-venv"),
        _Step((*install, "--only-binary", ":all:", *sorted(set(dependencies))), "packages cannot be installed", hint),
    ]


def _build(
    place: Path, steps: Sequence[_Step], env: Mapping[str, str], progress: Progress, patience: float, lock: int
) -> None:
    import shutil

    with ExitStack() as undo:
        place.mkdir(mode=0o700)
        undo.callback(shutil.rmtree, place, ignore_errors=True)
        for step in steps:
            _run(step, place, env, progress, patience, lock)
        (place / _MARK).touch()
        undo.pop_all()


def _run(step: _Step, place: Path, env: Mapping[str, str], progress: Progress, patience: float, lock: int) -> None:
    import signal
    import subprocess
    import time

    deadline = time.monotonic() + patience
    last: deque[str] = deque(maxlen=_LAST_LINES)
    # Run in there, because a file that lies about elsewhere may be taken for a package, or for settings.
    with subprocess.Popen(
        step.argv,
        cwd=place,
        env=cleared(env) | {"PIP_USER": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=(lock,),
    ) as process:
        try:
            assert process.stdout
            for line in _lines(process.stdout.fileno(), deadline):
                last.append(line)
                progress(line)
            code = process.wait(max(deadline - time.monotonic(), _ENDING))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise PackageError(
                f"{step.what}: {step.argv[0]} took longer than {patience:g} s", hint="check the network, and try again"
            ) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if code != 0:
        errors = [line for line in last if line.startswith("ERROR")] or last
        told = " / ".join(errors) or f"{step.argv[0]} exited with code {code}"
        raise PackageError(f"{step.what}: {told}", hint=step.hint)


def _lines(fd: int, deadline: float) -> Iterator[str]:
    """What is written, line by line, made fit to be shown. Raises `TimeoutError`."""
    import select
    import time

    unread, data = b"", b"..."
    while data:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:  # it may as well talk for ever
            raise TimeoutError
        data = os.read(fd, _MOST_UNREAD)
        *lines, unread = (unread + data).replace(b"\r", b"\n").split(b"\n")
        if not data or len(unread) > _MOST_UNREAD:
            lines, unread = [*lines, unread], b""
        for line in lines:
            if text := line.decode(errors="replace").strip():
                yield shown(text[:_LONGEST_LINE])
