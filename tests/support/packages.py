"""Extensions to install, good ones and hostile ones; and operations on a shelf that are killed at every step."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hilt.packages.install.installing import link, remove, staged
from hilt.packages.install.lock import Lock
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import Directory
from hilt.packages.install.verifying import verify

GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def extension(directory: Path, name: str = "demo", files: Mapping[str, str] | None = None, **fields: Any) -> Path:
    """A small one: a manifest, a program, a module, and whatever else."""
    manifest = {"name": name, "version": "1.0", "exec": "./run"} | fields
    (directory / "lib").mkdir(parents=True, exist_ok=True)
    (directory / "extension.json").write_text(json.dumps(manifest))
    (directory / "run").write_text("#!/bin/sh\nexit 0\n")
    (directory / "run").chmod(0o755)
    (directory / "lib" / "helper.py").write_text("help = 1\n")
    for path, text in (files or {}).items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return directory


class Repository:
    """A real one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *args: str, stdin: bytes | None = None) -> str:
        environment = {**os.environ, **GIT_ENVIRONMENT}
        command = ["git", "-C", str(self.path), *args]
        return subprocess.run(command, env=environment, input=stdin, check=True, capture_output=True).stdout.decode()

    def commit(self, message: str = "a change") -> str:
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()


def repository(path: Path, **fields: Any) -> Repository:
    """One that holds an extension, committed on `main`."""
    made = Repository(path)
    extension(path, **fields)
    made.commit("the extension")
    return made


def zip_of(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return path


def tar_of(path: Path, *members: tuple[str | tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # the mode is one of its words
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if isinstance(member, str):
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def outside(root: Path, inside: Path) -> set[str]:
    """Everything under `root` that is not in `inside`: what an attack must not add to."""
    return {str(path) for path in root.rglob("*") if not path.is_relative_to(inside)}


@contextmanager
def nested(directory: Path, depth: int, name: str) -> Iterator[None]:
    """So many folders in each other. None are left afterwards, for the tests' own cleaning up cannot cope with them."""
    fd = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    try:
        yield
    finally:
        subprocess.run(["rm", "-rf", str(directory)], check=True)


# Operations that are killed

_STEPS = ("rename", "replace", "mkdir", "rmdir", "unlink", "symlink", "link", "write", "fsync")
"""All that change something on a disk, but for opening: whether an empty file is there makes no difference."""


class Scene:
    """A shelf with whatever an operation starts from."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True)
        self.shelf = Shelf(root / "home" / "extensions", root / "home" / "extensions.lock")
        self.old = extension(root / "old", version="1.0", files={"only-old.py": "x = 1\n"})
        self.new = extension(root / "new", version="2.0", files={"only-new.py": "x = 2\n"})
        self.place = self.shelf.extensions / "demo"
        other = extension(self.shelf.extensions / "mine", name="mine")
        assert other.is_dir()

    def install(self, source: Path) -> None:
        with staged(Directory(source), self.shelf, given=str(source), path="/bin") as one:
            one.keep()

    def update(self) -> None:
        with staged(Directory(self.new), self.shelf, given="new", path="/bin") as one:
            one.replace()

    def remove(self) -> None:
        remove(self.shelf, "demo")

    def link(self) -> None:
        link(self.shelf, self.old, given="old", path="/bin")

    def with_state(self) -> None:
        self.install(self.old)
        (self.place / "state").mkdir()
        (self.place / "state" / "notes.txt").write_text("precious")


def _check(scene: Scene, scenario: str) -> str:
    """Whatever happened, what is there is whole, and known as what it is."""
    shelf = scene.shelf
    shelf.repair()
    with shelf.changing():
        pass
    lock = Lock.load(shelf.lock)
    assert lock.pending is None
    left = {name for name in os.listdir(shelf.extensions) if name != "mine"}
    assert (shelf.extensions / "mine" / "run").exists(), "what is the user's own is gone"
    assert left == set(lock.entries), (left, set(lock.entries))
    if "demo" not in left:
        assert scenario != "update", "an update has lost the extension"
        return "absent"
    entry = lock.entries["demo"]
    if entry.kind == "link":
        assert scene.place.readlink() == scene.old
        return "linked"
    assert not verify(entry, scene.place), verify(entry, scene.place)
    if scenario in ("update", "remove"):
        assert (scene.place / "state" / "notes.txt").read_text() == "precious"
    version = json.loads((scene.place / "extension.json").read_text())["version"]
    return f"{version} {entry.version}"


def _again(scene: Scene, scenario: str, outcome: str) -> None:
    """Nothing is in the way of going on."""
    match scenario, outcome:
        case "install", "absent":
            scene.install(scene.old)
        case "link", "absent":
            scene.link()
        case "remove", "1.0 1.0":
            scene.remove()
        case "update", _:
            scene.update()


def kill_everywhere(scenario: str, root: Path) -> None:
    """Perform it in a child that is killed before its first step, then before its second, and so on."""
    outcomes: dict[str, int] = {}
    os.fsync = lambda fd: None  # a process that is killed takes nothing with it that the system has
    for step in range(10_000):
        scene = Scene(root / str(step))
        actions: dict[str, Callable[[], None]] = {
            "install": lambda scene=scene: scene.install(scene.old),  # type: ignore[misc]  # bound to this scene
            "update": scene.update,
            "remove": scene.remove,
            "link": scene.link,
        }
        if scenario in ("update", "remove"):
            scene.with_state()
        child = os.fork()
        if not child:
            _arm(step)
            actions[scenario]()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        outcome = _check(scene, scenario)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if os.WIFEXITED(status):
            print(json.dumps({"steps": step, "outcomes": outcomes}))
            return
        _again(scene, scenario, outcome)


def _arm(step: int) -> None:
    """Die before the call of that number."""
    left = step

    def armed(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return call(*args, **kwargs)

        return wrapped

    for name in _STEPS:
        setattr(os, name, armed(getattr(os, name)))


def killed_everywhere(scenario: str, root: Path) -> dict[str, Any]:
    """The same in a process of its own, for a fork of this one would copy its threads' locks."""
    program = "import sys; from support.packages import *; kill_everywhere(sys.argv[1], Path(sys.argv[2]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", program, scenario, str(root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
