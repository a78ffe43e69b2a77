"""The whole program as a process that can be killed, and what it said and kept compared with each other."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hilt.frontends.encode import message_json
from hilt.model.conversation import Message, pair_calls
from hilt.model.stream import ModelRequest
from hilt.sessions.log import SessionLog
from hilt.sessions.store import summarize
from support.agent import MODEL, check_pairs

DEADLINE = 45.0
"""No process is waited for longer."""

Said: TypeAlias = tuple[str, ...]
"""A whole message in a form in which an event and a record of it are equal."""


@dataclass(frozen=True)
class Place:
    """A home and a working directory of their own."""

    home: Path
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, root: Path) -> "Place":
        place = cls(root / "home", root / "work")
        place.cwd.mkdir(parents=True)
        return place

    def script(self, name: str, *turns: dict[str, Any]) -> str:
        path = self.cwd.parent / f"{name}.jsonl"
        path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        return str(path)

    def start(self, *args: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "hilt", *args],
            cwd=self.cwd,
            env={**_clean(), "HILT_HOME": str(self.home), "HOME": str(self.home.parent), **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *args: str, lines: Iterable[dict[str, Any]] = ()) -> "Ended":
        """To its end, with these lines on its input."""
        return self.killed_after(DEADLINE, *args, lines=lines)

    def killed_after(self, seconds: float, *args: str, lines: Iterable[dict[str, Any]] = ()) -> "Ended":
        """Killed after so many seconds, unless it has ended by itself."""
        given = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        began = time.monotonic()
        with self.start(*args) as process:
            try:
                out, err = process.communicate(given, timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate(timeout=DEADLINE)
        return Ended(process.returncode, out, err.decode(), time.monotonic() - began)

    def killed_when(
        self, reached: Callable[[dict[str, Any]], bool], *args: str, lines: Iterable[dict[str, Any]] = ()
    ) -> "Ended":
        """Killed by the first event of which `reached` is true; an error when there is none."""
        began = time.monotonic()
        seen = False
        out = b""
        with self.conversing(*args) as (process, send):
            assert process.stdout and process.stderr
            send(*lines)
            for line in process.stdout:
                out += line
                if reached(json.loads(line)):
                    seen = True
                    process.kill()
                    break
            out += process.stdout.read()  # what it had written before
            err = process.stderr.read().decode()
        assert seen, f"it never came so far: {out.decode()[-2000:]}\n{err}"
        return Ended(process.returncode, out, err, time.monotonic() - began)

    @contextmanager
    def conversing(self, *args: str) -> Iterator[tuple["subprocess.Popen[bytes]", Callable[..., None]]]:
        """A process and a way to send it lines; killed at the end of the block, or when that takes too long."""
        with self.start(*args) as process:
            stdin = process.stdin
            assert stdin

            def send(*lines: dict[str, Any]) -> None:
                stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
                stdin.flush()

            watchdog = threading.Timer(DEADLINE, process.kill)
            watchdog.start()
            try:
                yield process, send
            finally:
                watchdog.cancel()
                process.kill()

    def session(self) -> Path | None:
        """The one session of this place, or None before there is any."""
        files = (self.home / "sessions").glob("*/*.jsonl")
        found = [path for path in files if summarize(path)]  # killed before its first record, it is none yet
        assert len(found) <= 1, found
        return found[0] if found else None

    def messages(self) -> list[Message]:
        """The conversation as the product itself reads it, with the file repaired."""
        path = self.session()
        if path is None:
            return []
        with SessionLog.open(path) as log:
            return log.messages()

    def plain(self, said: Iterable[Said]) -> list[Said]:
        """Without what differs from run to run: the directory, and how long a command took."""
        where = str(self.cwd)
        return [tuple(re.sub(r"Took [\d.]+s", "Took", part.replace(where, ".")) for part in one) for one in said]


@dataclass(frozen=True)
class Ended:
    code: int
    out: bytes
    err: str
    seconds: float

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every whole line; one that was cut short acknowledges nothing."""
        return [json.loads(line) for line in self.out.split(b"\n")[:-1]]

    @property
    def acknowledged(self) -> list[Said]:
        """What the events claim to be on disk."""
        return list(_acknowledged(self.events))


def recorded(messages: Iterable[Message]) -> list[Said]:
    """What a session file says, one by one: the results of a message are told apart."""
    said: list[Said] = []
    for message in messages:
        shown = message_json(message)
        if shown["role"] == "tool":
            said += [_result(block["call_id"], block) for block in shown["content"]]
        else:
            said.append((shown["role"], _text(shown["content"])))
    return said


def accepted(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The conversation as it is sent; raises if an API would refuse it for its calls and results."""
    paired = tuple(pair_calls(messages))
    check_pairs(ModelRequest(MODEL, "", paired))
    return paired


def _acknowledged(events: Iterable[dict[str, Any]]) -> Iterator[Said]:
    for event in events:
        match event["type"]:
            case "user_message":
                yield "user", _text(event["content"])
            case "assistant_message":
                yield "assistant", _text(event["content"])
            case "tool_result":
                yield _result(event["id"], event)


def _result(call_id: str, block: dict[str, Any]) -> Said:
    return "tool", call_id, str(block["is_error"]), _text(block["content"])


def _text(content: Any) -> str:
    return msgspec.json.encode(content, order="sorted").decode()


def _clean() -> dict[str, str]:
    """Nothing of the developer's own setup: no keys, no other home, no size of a terminal."""
    return {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LC_ALL", "TMPDIR")}
