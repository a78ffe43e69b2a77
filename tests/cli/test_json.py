"""`hilt --json`: every event as one line, in the promised order, to however slow a reader."""

import json
import os
import threading
from pathlib import Path
from typing import Any

from support.agent import calls, says
from support.hilt_process import DEADLINE, Hilt

ZERO = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost_usd": 0.0}


def without_times(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if name != "time"} for event in events]


def test_a_turn_with_a_tool_has_exactly_these_events_in_this_order(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    call = {"content": [{"type": "tool_call", "id": "c1", "name": "write", "args": {"path": "a", "content": "b"}}]}
    usage = {"input": 10, "output": 5}
    done = hilt.run("--json", "go", *hilt.script({**call, "usage": usage}, says("done")))
    assert done.code == 0
    seen = without_times(done.events)
    args = "".join(event["delta"] for event in seen if event["type"] == "tool_use_args")
    assert json.loads(args) == {"path": "a", "content": "b"}
    text = "".join(event["delta"] for event in seen if event["type"] == "text_delta")
    assert text == "done"
    spent = {**ZERO, **usage}
    (result,) = [event for event in seen if event["type"] == "tool_result"]
    assert [event for event in seen if event["type"] not in ("tool_use_args", "text_delta", "tool_progress")] == [
        {"type": "user_message", "content": [{"type": "text", "text": "go"}]},
        {"type": "turn_start", "step": 1},
        {"type": "assistant_start"},
        {"type": "tool_use_start", "id": "c1", "name": "write"},
        {"type": "tool_use_end", "id": "c1"},
        {"type": "usage", **spent, "cumulative": spent},
        {
            "type": "assistant_message",
            "content": [{"type": "tool_call", "id": "c1", "name": "write", "args": json.loads(args)}],
        },
        {"type": "tool_call", "id": "c1", "name": "write", "args": json.loads(args)},
        {"type": "turn_end", "stop": "tool_use"},
        {"type": "tool_result", "id": "c1", "name": "write", "is_error": False, "content": result["content"]},
        {"type": "turn_start", "step": 2},
        {"type": "assistant_start"},
        {"type": "usage", **ZERO, "cumulative": spent},
        {"type": "assistant_message", "content": [{"type": "text", "text": "done"}]},
        {"type": "turn_end", "stop": "end"},
        {"type": "done", "stop": "end"},
    ]
    kinds = [event["type"] for event in seen]
    assert kinds.index("tool_use_start") < kinds.index("tool_use_args") < kinds.index("tool_use_end")
    assert kinds.index("turn_end") < kinds.index("tool_result")
    assert all(event["time"].endswith("Z") for event in done.events if "time" in event)


def test_a_failing_request_ends_its_turn_says_why_and_is_done(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.run("--json", "go", *hilt.script({"error": "no"}))
    assert done.code == 1
    assert [event["type"] for event in done.events] == ["user_message", "turn_start", "turn_end", "error", "done"]
    assert done.events[2] == {"type": "turn_end", "stop": "error", "error": "no"}
    assert done.events[3]["message"] == "no"


def test_a_shown_message_is_already_on_disk(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = hilt.script(calls(("bash", {"command": "echo printed"})), says("never", delay_ms=60_000))
    with hilt.started("--json", "remember me", *script) as process:
        assert process.stdout
        for line in process.stdout:
            event = json.loads(line)
            kept = "".join(path.read_text() for path in hilt.sessions())
            match event["type"]:
                case "user_message":
                    assert "remember me" in kept
                case "assistant_message":
                    assert "echo printed" in kept
                case "tool_result":
                    assert "printed\\n" in kept
                    break


def test_a_slow_reader_loses_nothing(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    flood = calls(("bash", {"command": "seq 200000"}))
    words = "word " * 400_000
    with hilt.started("--json", "go", *hilt.script(flood, says(words))) as process:
        assert process.stdout
        received = b""
        pause = threading.Event()
        for _ in range(20):  # far slower than the writer, which has to wait
            received += os.read(process.stdout.fileno(), 4096)
            pause.wait(0.02)
        rest, err = process.communicate(timeout=DEADLINE)
    events = [json.loads(line) for line in (received + rest).split(b"\n") if line]
    assert process.returncode == 0 and err == b""
    assert "".join(event["delta"] for event in events if event["type"] == "text_delta") == words
    assert events[-1] == {"type": "done", "stop": "end"}
