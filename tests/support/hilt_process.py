"""The real `hilt` as a subprocess, with a home of its own and a clean environment; every wait has a deadline.

hilt = Hilt(tmp_path)
done = hilt.run("-p", "hi", *hilt.script(says("hello")))
assert done.out == "hello\\n"

with hilt.rpc(*hilt.script(says("hello"))) as rpc:
    rpc.send(type="prompt", id="1", message="hi")
    rpc.event("done")
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from unittest import mock

DEADLINE = 45.0
"""No wait of a test is longer; a healthy run needs a fraction of a second."""
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.split("\n") if line]


class Hilt:
    """A user of hilt: a home, a project directory, an environment."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.folder = folder
        self.project.mkdir()
        self.environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.environment |= {"HILT_HOME": str(self.home), "HOME": str(folder), **environment}

    def script(self, *turns: dict[str, Any], name: str = "script.jsonl") -> tuple[str, ...]:
        """Flags for a model that says this."""
        path = self.folder / name
        path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        return ("--provider", "script", "--script", str(path))

    def command(self, *arguments: str | bytes) -> list[str | bytes]:
        return [sys.executable, "-m", "hilt", *arguments]

    def run(
        self, *arguments: str | bytes, stdin: str | bytes = b"", env: Mapping[str, str] | None = None, cwd: str = ""
    ) -> Ended:
        done = subprocess.run(
            self.command(*arguments),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=cwd or self.project,
            env={**self.environment, **(env or {})},
            timeout=DEADLINE,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(self, line: str, *, env: Mapping[str, str] | None = None) -> Ended:
        """Run a line of shell in which `"$@"` is hilt."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line, "bash", *map(str, self.command())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.project,
            env={**self.environment, **(env or {})},
            timeout=DEADLINE,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def started(self, *arguments: str | bytes, **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
        """A running hilt, killed at the end of the block if it is still there."""
        process = subprocess.Popen(
            self.command(*arguments),
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "cwd": self.project,
                **options,
                "env": {**self.environment, **options.get("env", {})},
            },
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(DEADLINE)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()

    def rpc(self, *arguments: str, env: Mapping[str, str] | None = None) -> "Rpc":
        return Rpc(self, arguments, env or {})

    def sessions(self) -> list[Path]:
        return sorted(self.home.glob("sessions/**/*.jsonl"))

    def files(self) -> list[Path]:
        return sorted(path for path in self.home.rglob("*") if path.is_file())


@contextmanager
def living_in(hilt: Hilt) -> Iterator[None]:
    """What belongs to this process as a whole is as hilt would find it, and afterwards as it was."""
    handlers, level = logging.root.handlers[:], logging.root.level
    with chdir(hilt.project), mock.patch.dict(os.environ, hilt.environment, clear=True):
        try:
            yield
        finally:
            logging.root.handlers[:] = handlers
            logging.root.setLevel(level)


class Rpc:
    """Drives `hilt rpc`: sends lines, keeps every line that comes, waits for the ones that matter."""

    def __init__(self, hilt: Hilt, arguments: tuple[str, ...], env: Mapping[str, str]) -> None:
        self.lines: list[dict[str, Any]] = []
        self.errors = ""
        self._changed = threading.Condition()
        self._over = False
        self._looked = 0
        self.process = subprocess.Popen(
            hilt.command("rpc", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=hilt.project,
            env={**hilt.environment, **env},
        )
        self._threads = [
            threading.Thread(target=self._collect, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._complain, args=(self.process.stderr,), daemon=True),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # and not SIGKILL, after which nobody would end the commands it runs
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for thread in self._threads:
            thread.join(DEADLINE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def send(self, **command: Any) -> None:
        self.write(json.dumps(command).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Send a command and give its response."""
        self.send(type=type_, **fields)
        return self.response(type_)

    def response(self, command: str, **fields: Any) -> dict[str, Any]:
        return self.event("response", command=command, **fields)

    def event(self, type_: str, **fields: Any) -> dict[str, Any]:
        """The next line of this type with these fields; what came before it is passed over."""
        return self.wait(
            lambda line: line["type"] == type_ and all(line.get(name) == value for name, value in fields.items()),
            f"{type_} {fields or ''}",
        )

    def wait(self, matches: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE
        with self._changed:
            while True:
                while self._looked < len(self.lines):
                    self._looked += 1
                    if matches(line := self.lines[self._looked - 1]):
                        return line
                if self._over or not self._changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{what} never came; stderr: {self.errors!r}; lines: {self.lines[-20:]}")

    def prompt(self, message: str, **fields: Any) -> list[dict[str, Any]]:
        """Send a prompt and give every line up to its `done`."""
        first = self._looked
        self.send(type="prompt", message=message, **fields)
        self.event("done")
        return self.lines[first : self._looked]

    def settled(self) -> None:
        """Wait until no extension is being started any more: a prompt does not wait for them for long."""
        until(lambda: not any(one["state"] == "starting" for one in self._extensions()), "an end of all starts")

    def _extensions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("extensions")["data"]["extensions"]
        return found

    def rest(self) -> None:
        """Wait until nothing runs: `done` is told a moment before that."""
        until(lambda: not self.ask("get_state")["data"]["busy"], "rest")

    def close(self) -> int:
        """End the input and wait for the process; its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        code = self.process.wait(DEADLINE)
        for thread in self._threads:
            thread.join(DEADLINE)
        return code

    def types(self) -> list[str]:
        return [line["type"] for line in self.lines]

    def _collect(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            with self._changed:
                self.lines.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _complain(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self.errors += line.decode()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something in the world outside, looking often."""
    deadline = time.monotonic() + DEADLINE
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        pause.wait(0.01)


def running_with(mark: str) -> list[int]:
    """Processes whose command line holds this."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.append(int(entry.name))
    return found


def wait_gone(mark: str) -> None:
    until(lambda: not running_with(mark), f"the end of every process with {mark} in its command line")
