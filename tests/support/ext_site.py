"""Somebody who uses `hilt ext`: runs its verbs, in a terminal if need be, and sees what they leave behind."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pexpect

from support.extending import Made, chaos
from support.hilt_process import DEADLINE, Ended, Hilt
from support.packages import Repository

HELLO = '{"type":"hello","name":"greeter","version":"7"}'
READY = '{"type":"ready"}'
SAYS_HELLO = f"#!/bin/sh\necho '{HELLO}'\necho '{READY}'\ncat >/dev/null\n"
"""The smallest extension there is."""


class ExtSite(Hilt):
    def ext(self, *arguments: str, **options: Any) -> Ended:
        return self.run("ext", *arguments, **options)

    def json(self, *arguments: str, code: int = 0, **options: Any) -> Any:
        done = self.ext(*arguments, "--json", **options)
        assert done.code == code, done
        return json.loads(done.out)

    def row(self, name: str) -> dict[str, Any]:
        """What the list says of it."""
        (row,) = [row for row in self.json("list") if row["name"] == name]
        return dict(row)

    def make(self, made: Made) -> Path:
        """Its directory, ready to be installed from."""
        return made.write(self.folder / "sources")

    def install(self, *made: Made) -> None:
        for one in made:
            done = self.ext("install", str(self.make(one)), "--yes")
            assert done.code == 0, done

    def file(self, name: str, text: str = SAYS_HELLO, mode: int = 0o755) -> Path:
        path = self.folder / "files" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def repository(self, made: Made) -> Repository:
        """One that holds it, committed and tagged v1."""
        repository = Repository(self.folder / "repositories" / made.name)
        made.write(repository.path.parent)
        repository.commit()
        repository.git("tag", "v1")
        return repository

    def log(self, name: str, data: bytes) -> Path:
        path = self.home / "logs" / f"ext-{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def configure(self, text: str) -> Path:
        self.home.mkdir(exist_ok=True)
        path = self.home / "config.toml"
        path.write_bytes(text.encode())
        return path

    def terminal(self, *arguments: str) -> "pexpect.spawn[str]":
        """The same in a terminal."""
        command = ["-m", "hilt", "ext", *arguments]
        environment = self.environment | {"TERM": "xterm"}
        spawned: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            command,
            cwd=str(self.project),
            env=environment,
            encoding="utf-8",
            timeout=DEADLINE,
            dimensions=(50, 200),
        )
        return spawned

    def left(self) -> dict[str, str]:
        """Every file of the home but those that only keep two processes apart, with all that can differ."""
        return {
            str(path.relative_to(self.home)): _facts(path)
            for path in sorted(self.home.rglob("*"))
            if not path.name.endswith(".busy") and (path.is_symlink() or not path.is_dir())
        }


def _facts(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return f"{stat.S_IMODE(path.stat().st_mode):o} {path.read_bytes()!r}"


def canary(name: str, **manifest: Any) -> Made:
    """One that leaves a file beside itself as soon as it runs."""
    return chaos(name, "touch:was-here", "hello", f"register_tool:{name}", "ready", **manifest)


def failing(name: str = "broken") -> Made:
    return chaos(name, "log:no module named leftpad", "exit:3")
