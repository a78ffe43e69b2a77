"""The extension as a process: its pipes, its output, its end."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
PROGRAM = """\
import os, subprocess, sys, time
from hilt_sdk import Call, Extension
ext = Extension("demo")

@ext.tool
def chatter() -> str:
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"])
    return repr(sys.stdin.read())

@ext.tool
def hang() -> None:
    while True:
        time.sleep(0.01)

@ext.tool
def pause(call: Call) -> str:
    return "cancelled" if call.wait(5) else "waited"

@ext.on_stop
def stop() -> None:
    print("stopped", file=sys.stderr)

ext.run()
print("after", file=sys.stderr)
"""
AS_PIGLET = """\
import fcntl, os, sys
into, out = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 20) for number in sys.argv[1:])
os.dup2(into, 3)
os.dup2(out, 4)
os.closerange(5, 100)
os.execv(sys.executable, [sys.executable, "demo.py"])
"""


class Running:
    """The extension, and the host's side of its pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]", into: int, out: int) -> None:
        self.process = process
        self._into = into
        self._out = out
        self._buffer = b""

    def say(self, *messages: dict[str, Any] | bytes) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self._into, line + b"\n")

    def hear(self) -> dict[str, Any]:
        deadline = time.monotonic() + 10
        while b"\n" not in self._buffer:
            assert select.select([self._out], [], [], max(deadline - time.monotonic(), 0))[0], "it said nothing"
            data = os.read(self._out, 65536)
            assert data, "it has ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        heard: dict[str, Any] = json.loads(line)
        return heard

    def hear_until(self, kind: str) -> dict[str, Any]:
        while (frame := self.hear()).get("type") != kind:
            pass
        return frame

    def ended(self) -> tuple[int, str]:
        """Its exit code, and its log."""
        _, log = self.process.communicate(timeout=10)
        return self.process.returncode, log.decode()


@contextmanager
def running(folder: Path, *, program: str = PROGRAM, **environment: str) -> Iterator[Running]:
    (folder / "demo.py").write_text(program)
    process = subprocess.Popen(
        [sys.executable, "demo.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    try:
        yield Running(process, process.stdin.fileno(), process.stdout.fileno())
    finally:
        process.kill()
        process.communicate()


def _ready(extension: Running) -> None:
    extension.hear_until("ready")
    extension.say({"type": "hello_ack", "protocol_version": 1, "zot_version": "0.1.62"})


def test_nothing_that_is_printed_reaches_the_wire(tmp_path: Path) -> None:
    with running(tmp_path) as extension:
        _ready(extension)
        extension.say(b"no JSON", b"no JSON", b"[1]", b"", {"type": "unheard of"}, b"\xff{}")
        extension.say({"type": "tool_call", "id": "1", "name": "chatter"})
        assert extension.hear() == {"type": "tool_result", "id": "1", "content": [{"type": "text", "text": "''"}]}
        extension.say({"type": "shutdown"})
        assert extension.hear() == {"type": "shutdown_ack"}
        code, log = extension.ended()
    assert code == 0
    assert all(word in log for word in ("printed\n", "written\n", "echoed\n", "stopped\nafter\n"))
    assert log.count("is no JSON") == 1, "it is said once"


def test_a_line_that_is_too_long_costs_itself_only(tmp_path: Path) -> None:
    with running(tmp_path) as extension:
        _ready(extension)
        call = {"type": "tool_call", "id": "1", "name": "nobody"}
        extension.say({**call, "args": "x" * (5 * 1024 * 1024)}, {**call, "id": "2"})
        assert extension.hear()["id"] == "2"


@pytest.mark.parametrize("way", ["shutdown", "end of input", "SIGTERM"])
def test_it_ends_with_0_within_a_moment_even_when_a_handler_hangs(tmp_path: Path, way: str) -> None:
    with running(tmp_path) as extension:
        _ready(extension)
        extension.say(*({"type": "tool_call", "id": name, "name": name} for name in ("hang", "pause")))
        extension.say({"type": "tool_call", "id": "1", "name": "chatter"})
        assert extension.hear()["id"] == "1", "both are at work"
        extension.process.send_signal(signal.SIGINT)
        extension.say({"type": "tool_call", "id": "2", "name": "chatter"})
        assert extension.hear()["id"] == "2", "the host's Ctrl-C is not for extensions"
        began = time.monotonic()
        if way == "shutdown":
            extension.say({"type": "shutdown"})
        elif way == "SIGTERM":
            extension.process.terminate()
        else:
            assert extension.process.stdin
            extension.process.stdin.close()
            extension.process.stdin = None
        assert extension.hear_until("tool_result") == {
            "type": "tool_result",
            "id": "pause",
            "content": [{"type": "text", "text": "cancelled"}],
        }
        code, log = extension.ended()
    assert code == 0
    assert time.monotonic() - began < 5
    assert "stopped\n" in log and "still at work after 1 s" in log


def test_jsonrpc_is_spoken_on_3_and_4_or_on_stdio_when_asked(tmp_path: Path) -> None:
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "5", "cwd": "/"}}
    with running(tmp_path, HILT_SDK_DIALECT="jsonrpc") as extension:
        extension.say(initialize)
        assert [extension.hear().get("method") for _ in range(4)] == ["register/tool"] * 3 + [None]
        extension.say({"jsonrpc": "2.0", "method": "shutdown"})
        assert extension.ended()[0] == 0
    (tmp_path / "demo.py").write_text(PROGRAM)
    to_ext, from_host = os.pipe()
    to_host, from_ext = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", AS_PIGLET, str(to_ext), str(from_ext)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PIGLET_FD": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(to_ext, from_ext),
    )
    os.close(to_ext)
    os.close(from_ext)
    extension = Running(process, from_host, to_host)
    try:
        extension.say(initialize)
        assert [extension.hear().get("id") for _ in range(4)] == [None, None, None, 1]
        extension.say({"jsonrpc": "2.0", "id": 2, "method": "tool/execute", "params": {"name": "chatter", "args": {}}})
        assert extension.hear()["id"] == 2
        os.close(from_host)
        out, _ = process.communicate(timeout=10)
        assert process.returncode == 0
        assert out == b"printed\nwritten\nechoed\n"
    finally:
        process.kill()
        process.communicate()
        os.close(to_host)


def test_what_is_required_and_missing_ends_it_with_1(tmp_path: Path) -> None:
    program = 'from hilt_sdk import Extension\next = Extension("demo")\next.require("shortcuts")\next.run()\n'
    with running(tmp_path, program=program) as extension:
        assert extension.hear()["type"] == "hello"
        extension.say({"type": "hello_ack", "zot_version": "0.1.62"})
        note = extension.hear()
        assert (note["level"], note["message"]) == (
            "error",
            "demo: zot 0.1.62 does not offer what it needs: shortcuts",
        )
        code, log = extension.ended()
    assert code == 1
    assert log == "demo: zot 0.1.62 does not offer shortcuts\n"


def test_started_by_hand_it_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "demo.py").write_text(PROGRAM)
    master, slave = pty.openpty()
    ran = subprocess.run(
        [sys.executable, "demo.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=slave,
        capture_output=True,
        text=True,
        timeout=10,
    )
    os.close(master)
    os.close(slave)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "demo 0.1.0 is an extension" in ran.stderr and "hilt --ext demo.py" in ran.stderr
