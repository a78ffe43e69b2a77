"""An extension on the stage: started as hilt starts it, talked to line by line, and gone at the end."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from authoring.actors import frames, jsonrpc
from hilt.authoring.greeting import Played, greet
from hilt.authoring.stage import started
from hilt.errors import ExtensionStartError, ManifestError
from support.hilt_process import running_with

CHATTY = """
import json, os, sys
print(json.dumps({"type": "hello", "name": "chatty"}), flush=True)
sys.stdin.readline()
for number in range(20_000):
    print(json.dumps({"type": "notify", "message": str(number)}))
sys.stdout.write("x" * 5_000_000 + "\\n[1]\\n" + "\\xff\\n")
print(json.dumps({"type": "notify", "message": os.environ.get("SECRET_TOKEN", "withheld")}), flush=True)
sys.stdin.readline()
sys.exit(3)
"""


async def test_what_both_dialects_offer_has_one_form(tmp_path: Path) -> None:
    offers = []
    for make in (frames, jsonrpc):
        folder = tmp_path / make.__name__
        folder.mkdir()
        async with started(make(folder)) as actor:
            offered = await greet(actor)
            pid, data = actor.pid, actor.data
            assert data.is_dir() and actor.cwd.is_dir()
        assert not os.path.exists(f"/proc/{pid}") and not data.exists()
        assert (offered.name, offered.version, offered.ready) == ("actor", "1", True)
        offers.append({(one.kind, one.name) for one in offered.registered})
        assert offered.of_kind("tool")["add"].schema["required"] == ["a", "b"]

    assert {("tool", "add"), ("tool", "slow"), ("tool", "think"), ("command", "hi"), ("command", "board")} == offers[0]
    assert offers[0] < offers[1] and ("interceptor", "early") in offers[1]


async def test_lines_wait_within_a_cap_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2hunter2")
    script = tmp_path / "chatty.py"
    script.write_text(CHATTY)
    (tmp_path / "extension.json").write_text(
        json.dumps({"name": "chatty", "exec": sys.executable, "args": ["-I", "-S", str(script)]})
    )
    async with started(tmp_path) as actor:
        line = await actor.receive(10.0)
        assert line and line.value == {"type": "hello", "name": "chatty"}
        actor.send({"go": "on"})
        async with asyncio.timeout(10.0):
            while actor.waiting < 4096:
                await asyncio.sleep(0.005)
        for _ in range(20):
            await asyncio.sleep(0.001)  # were more to be read, it would be by now
        assert actor.waiting == 4096
        numbers: list[int] = []
        while len(numbers) < 20_000:
            line = await actor.receive(10.0)
            assert line and line.value
            numbers.append(int(line.value["message"]))
        odd = [await actor.receive(10.0) for _ in range(3)]
        last = await actor.receive(10.0)
        assert numbers == list(range(20_000))
        assert [one.problem for one in odd if one] == ["a line of 5,000,000 bytes", "JSON, but no object", ANY_UTF8]
        assert last and last.value == {"type": "notify", "message": "withheld"}
        with pytest.raises(TimeoutError):
            await actor.receive(0.01)
        await actor.close_input()
        assert (await actor.exited(10.0)).code == 3
        assert await actor.receive(10.0) is None


ANY_UTF8 = "JSON is malformed: invalid character (byte 0)"


async def test_one_that_waits_for_nothing_is_ended_with_the_block(tmp_path: Path) -> None:
    mark = f"stage-{os.getpid()}-{tmp_path.name}"
    program = f"import signal, time; {mark!r}; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    manifest = {"name": "deaf", "exec": sys.executable, "args": ["-I", "-S", "-c", program], "start_timeout_ms": 200}
    (tmp_path / "extension.json").write_text(json.dumps({**manifest, "stop_grace_ms": 0}))
    async with started(tmp_path) as actor:
        pid = actor.pid
        with pytest.raises(ExtensionStartError, match=r"did not say hello within 0\.2 s"):
            async with asyncio.timeout(10.0):
                await greet(actor, Played("zot"))
    assert not running_with(mark) and not os.path.exists(f"/proc/{pid}")


async def test_what_is_no_extension_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ManifestError):
        async with started(tmp_path):
            pass
    (tmp_path / "extension.json").write_text('{"name": "bare"}')
    with pytest.raises(ManifestError):
        async with started(tmp_path):
            pass
