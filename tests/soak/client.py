"""One `hilt rpc` as its client sees it. Any thread may ask; one drives turns. Every wait has a deadline."""

import itertools
import json
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEADLINE = 30.0
"""No single wait is longer: what takes more is a hang."""


class Failure(Exception):
    """What must not happen has happened."""


@dataclass
class Turn:
    events: list[dict[str, Any]]
    seconds: float
    cancelled_in: float | None
    """Seconds from Esc to the end, if it was cancelled."""

    @property
    def result(self) -> str:
        for event in self.events:
            if event["type"] == "tool_result":
                return str(event["content"][0]["text"])
        return ""


class Client:
    """One process of `hilt rpc`. Any thread may ask; one drives turns."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env
        )
        self.states: dict[str, str] = {}
        self.ends: Counter[str] = Counter()
        """How often each extension has come to an end."""
        self.notes = 0
        self.acknowledged: list[bytes] = []
        self.errors = b""
        self._news = threading.Condition()
        self._sending = threading.Lock()
        self._ids = itertools.count(1)
        self._answers: dict[str, dict[str, Any]] = {}
        self._turn: list[dict[str, Any]] = []
        self._over = False
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._complain)]
        for thread in self._threads:
            thread.start()

    def send(self, **command: Any) -> None:
        assert self.process.stdin
        with self._sending:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        number = str(next(self._ids))
        self.send(type=kind, id=number, **fields)
        answer: dict[str, Any] = self.until(lambda: self._answers.pop(number, None), f"an answer to {kind}")
        return answer

    def extensions(self) -> list[dict[str, Any]]:
        return list(self.ask("extensions")["data"]["extensions"])

    def turn(self, text: str, *, cancel: bool = False) -> Turn:
        began = time.monotonic()
        with self._news:
            self._turn = []
        self.send(type="prompt", message=text)
        cancelled = None
        if cancel:
            self.until(lambda: self._seen("tool_call") or self._seen("done"), f"a call: {text}")
            cancelled = time.monotonic()
            self.send(type="abort")
        self.until(lambda: self._seen("done"), f"the end of the turn: {text}")
        ended = time.monotonic()
        return Turn(self._turn, ended - began, ended - cancelled if cancelled else None)

    def _seen(self, kind: str) -> bool:
        return any(event["type"] == kind for event in self._turn)

    def until(self, happened: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + DEADLINE
        with self._news:
            while not (value := happened()):
                if self._over or not self._news.wait(deadline - time.monotonic()):
                    raise Failure(f"{what} never came; stderr: {self.errors.decode()[-2000:]!r}")
            return value

    def end(self, how: str) -> int:
        """Its exit code."""
        if how == "eof":
            assert self.process.stdin
            self.process.stdin.close()
        else:
            self.process.send_signal(signal.Signals[how])
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            raise Failure(f"it did not end within {DEADLINE:.0f} s of {how}") from None
        for thread in self._threads:
            thread.join(DEADLINE)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            with self._news:
                self._take(event, line)
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def _take(self, event: dict[str, Any], line: bytes) -> None:
        match event["type"]:
            case "response":
                self._answers[event.get("id", "")] = event
            case "ext_status":
                self.states[event["extension"]] = event["state"]
                self.ends[event["extension"]] += event["state"] in ("restarting", "failed")
            case "ext_notify":
                self.notes += 1
            case "user_message" | "assistant_message" | "tool_result":
                self.acknowledged.append(line)
                self._turn.append(event)
            case "tool_call" | "done" | "error":
                self._turn.append(event)

    def _complain(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.errors = (self.errors + line)[-100_000:]
