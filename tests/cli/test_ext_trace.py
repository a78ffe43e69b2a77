"""`--trace FILE` on every face, and `hilt ext trace`, which shows what one extension and hilt say to each other."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.ext_site import ExtSite
from support.extending import Made, chaos, tool
from support.hilt_process import until

KEY = "sk-test-0123456789abcdefghij"


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path, OPENAI_API_KEY=KEY, DEPLOY_TOKEN="hunter2hunter2")


def trace_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def flags_for(site: ExtSite, *made: Made) -> list[str]:
    return [flag for one in made for flag in ("--ext", str(site.make(one)))]


def types(lines: list[dict[str, Any]], direction: str) -> list[str]:
    frames = [line["frame"] for line in lines if line["direction"] == direction]
    return [frame.get("type") or frame.get("method") or "result" for frame in frames]


def test_all_that_is_said_to_and_by_extensions_of_both_dialects_is_in_the_trace_with_keys_hidden(site: ExtSite) -> None:
    echo = [{"on": "tool_call", "do": [f"answer:it is {KEY} and hunter2hunter2"]}]
    made = [tool("frames1", *echo, dialect="frames"), tool("rpc1", *echo, dialect="jsonrpc")]
    script = site.script(calls(("frames1", {"key": KEY}), ("rpc1", {})), says("done"))
    done = site.run("-p", "go", "--trace", "t.jsonl", *script, *flags_for(site, *made))
    path = site.project / "t.jsonl"
    lines = trace_of(path)

    assert done.code == 0 and path.stat().st_mode & 0o777 == 0o600
    assert KEY not in path.read_text() and "hunter2" not in path.read_text()
    for name, dialect in (("frames1", "frames"), ("rpc1", "jsonrpc")):
        mine = [line for line in lines if line["extension"] == name]
        assert {line["dialect"] for line in mine} == {dialect}
        assert len({line["pid"] for line in mine}) == 1 and mine[0]["pid"] > 0
        assert types(mine, "lifecycle") == ["started", "exit"]
        assert [line["at"] for line in mine] == sorted(line["at"] for line in mine)
        assert all(line["time"].endswith("Z") and len(line["time"]) == 27 for line in mine)
    frames = [line for line in lines if line["extension"] == "frames1"]
    assert types(frames, "to_extension") == ["hello_ack", "tool_call", "shutdown"]
    assert types(frames, "from_extension") == ["hello", "register_tool", "ready", "tool_result", "shutdown_ack"]
    messages = [line for line in lines if line["extension"] == "rpc1"]
    assert {"initialize", "tool/execute", "shutdown"} <= set(types(messages, "to_extension"))
    assert types(messages, "from_extension")[:2] == ["register/tool", "result"]
    [exit_] = [line["frame"] for line in frames if line["frame"]["type"] == "exit"]
    assert exit_ == {"type": "exit", "how": "exited with code 0", "code": 0, "signal": None, "events_lost": 0}


def test_a_killed_hilt_leaves_what_was_said_and_the_next_one_goes_on_in_the_same_file(site: ExtSite) -> None:
    script = site.script(calls(("t", {})), says("done"))
    path = site.project / "t.jsonl"
    made = tool("t", {"on": "tool_call", "do": "hang"})
    with site.rpc(*script, *flags_for(site, made), env={"HILT_TRACE": "t.jsonl"}) as rpc:
        rpc.send(type="prompt", message="go")
        until(lambda: path.exists() and '"tool_call"' in path.read_text(), "the call in the trace")
        os.kill(rpc.process.pid, signal.SIGKILL)
    before = path.read_text()
    done = site.run("--json", "hi", "--trace", str(path), *script, *flags_for(site, tool("t")))

    assert types(trace_of(path), "to_extension").count("hello_ack") == 2 and path.read_text().startswith(before)
    assert done.code == 0 and [event["type"] for event in done.events][-1] == "done"


def test_a_trace_that_cannot_be_written_is_said_before_anything_happens(site: ExtSite) -> None:
    for path in (".", "no/such/file"):
        done = site.run("-p", "hi", "--trace", path, *site.script(says("hello")))
        assert done.code == 2 and f"--trace {site.project / path}" in done.err and "hint: name a file" in done.err
    assert site.sessions() == [] and site.run("-p", "hi", "--trace", "").code == 2


def test_a_disk_that_is_full_costs_the_trace_and_one_warning(site: ExtSite) -> None:
    script = site.script(calls(("t", {})), says("done"))
    done = site.run("-p", "go", "--trace", "/dev/full", *script, *flags_for(site, tool("t")))
    assert done.code == 0 and done.out == "done\n"
    assert done.err.count("No space left on device") == 1 and "the trace /dev/full ends here" in done.err


def test_what_one_extension_and_hilt_say_to_each_other_is_shown_with_one_command(site: ExtSite) -> None:
    site.install(tool("greet", "notify:\x1b[31mred"), tool("other"))
    shown = site.ext("trace", "greet", "use the tool greet")
    path = str(site.make(chaos("unhappy", "log:oh no", "exit:3")))
    failing = site.ext("trace", path)
    script = site.script(says("x"))[3]
    asked = site.ext("trace", str(site.make(tool("third"))), "--script", script, "--json", "--", "-x")
    value = json.loads(asked.out)

    assert shown.code == 0 and shown.err == "" and "\x1b" not in shown.out
    parts = ("●  greet started, process", "←  hello  ", "→  hello_ack  ", "→  tool_call  ", "ms)  {", "greet exited")
    for part in parts:
        assert part in shown.out, part
    assert "other" not in shown.out and site.sessions() == []
    assert failing.code == 1 and "exited with code 3" in failing.out and "unhappy" in failing.out
    assert [line["frame"]["type"] for line in value][:3] == ["started", "hello", "hello_ack"]
    assert site.ext("trace", "nothing").code == site.ext("trace", "greet", "-f").code == 2


def test_a_trace_is_shown_for_one_extension_and_followed_as_it_grows(site: ExtSite) -> None:
    script = site.script(calls(("one", {})), says("done"))
    site.run("-p", "go", "--trace", "t.jsonl", *script, *flags_for(site, tool("one"), tool("two")))
    path = site.project / "t.jsonl"
    with site.started("ext", "trace", "one", "--file", "t.jsonl", "-f") as process:
        assert process.stdout
        seen = process.stdout.readline().decode()
        with path.open("a") as file:
            last = {**trace_of(path)[0], "extension": "one", "direction": "from_extension", "frame": {"type": "late"}}
            file.write(json.dumps(last) + "\n")
        while "late" not in seen:
            seen += process.stdout.readline().decode()
    shown = site.ext("trace", "one", "--file", "t.jsonl")
    path.write_text(path.read_text() + '{"time":"tor')  # hilt was killed while it wrote

    assert seen.splitlines() == shown.out.splitlines() and "two" not in seen and "tool_call" in seen
    assert len(site.json("trace", "one", "--file", "t.jsonl")) == len(shown.out.splitlines())
    for arguments, why in ((("three", "--file", "t.jsonl"), "it has one, two"), (("one", "--file", "none"), "No such")):
        done = site.ext("trace", *arguments)
        assert done.code == 2 and why in done.err
    path.write_text(path.read_text() + "\nwhat?\n")
    assert "t.jsonl:" in (done := site.ext("trace", "one", "--file", "t.jsonl")).err and done.code == 2
