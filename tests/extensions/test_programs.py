"""Programs in four languages, as authors write them, under the real hilt: commands, tools, guards, events, panels."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt, until, wait_gone

PROGRAMS = Path(__file__).with_name("programs")

Flags: TypeAlias = Callable[[str], tuple[str, ...]]


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


@pytest.fixture
def program(tmp_path: Path) -> Flags:
    """Flags to run one of the programs, from a copy of it. The test is skipped where its language is missing."""

    def flags(name: str) -> tuple[str, ...]:
        needed = {"shell": "sh", "node": "node", "c": "cc", "python-no-ready": "python3"}[name]
        if not shutil.which(needed):
            pytest.skip(f"{needed} is not installed, so the program in {name} cannot be run")
        copy = tmp_path / "programs" / name
        shutil.copytree(PROGRAMS / name, copy)
        if name == "c":
            subprocess.run(["cc", "-std=c99", "-o", "checker", "checker.c"], cwd=copy, check=True, timeout=30)
        return ("--ext", str(copy))

    return flags


def results(events: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Of each tool result its text, and whether it is an error."""
    return [
        ("".join(block["text"] for block in event["content"]).rstrip("\n"), event["is_error"])
        for event in events
        if event["type"] == "tool_result"
    ]


# Shell


@pytest.mark.parametrize(
    ("typed", "shown"), [('/hail "Ada"  and\tBob', 'hail, "Ada"  and\tBob\n'), ("/HAIL", "hail, whoever you are\n")]
)
def test_a_command_of_a_shell_program_shows_its_answer_on_stdout(
    hilt: Hilt, program: Flags, typed: str, shown: str
) -> None:
    done = hilt.run("-p", typed, *hilt.script(), *program("shell"))

    assert (done.code, done.out, done.err) == (0, shown, "")


def test_a_shell_program_serves_a_tool_and_guards_the_others(hilt: Hilt, program: Flags) -> None:
    (hilt.project / "kept").write_text("still here")
    steps = calls(
        ("greet", {"name": 'Ada "the first"'}),
        ("bash", {"command": "rm -rf kept"}),
        ("bash", {"command": "ls -la"}),
        ("bash", {"command": "cat kept"}),
    )
    done = hilt.run("--json", "go", *hilt.script(steps, says("done")), *program("shell"))

    assert done.code == 0
    greeted, refused, rewritten, untouched = results(done.events)
    assert greeted == ('hello, Ada "the first"', False)
    assert refused[1] and "shell" in refused[0] and "shell says no" in refused[0]
    assert not rewritten[1] and "\nGUARDED\n" in rewritten[0] and "kept" not in rewritten[0]
    assert not untouched[1] and "still here" in untouched[0]
    verdicts = [(event["name"], event["outcome"]) for event in done.events if event["type"] == "interception"]
    assert verdicts == [("greet", "allowed"), ("bash", "blocked"), ("bash", "changed"), ("bash", "allowed")]
    # The conversation keeps what the model wanted.
    (said,) = [event for event in done.events if event["type"] == "assistant_message"][:1]
    assert said["content"][2]["args"] == {"command": "ls -la"}


def test_with_p_a_person_reads_what_a_shell_program_refused_and_what_it_changed(hilt: Hilt, program: Flags) -> None:
    steps = calls(("bash", {"command": "rm -rf x"}), ("bash", {"command": "ls -la"}))
    last = says("done", expect={"role": "tool", "contains": "GUARDED"})
    done = hilt.run("-p", "go", *hilt.script(steps, last), *program("shell"))

    assert (done.code, done.out) == (0, "done\n")
    assert "shell refused bash: shell says no" in done.err
    assert "shell changed the arguments of bash: echo GUARDED" in done.err


# Node


def test_a_node_program_has_a_panel_that_hears_keys_and_its_size(hilt: Hilt, program: Flags) -> None:
    with hilt.rpc(*hilt.script(), *program("node")) as rpc:
        opened = rpc.ask("command", name="counter")
        assert opened["data"]["action"] == "open_panel"
        assert rpc.ask("get_state")["data"]["panel"]["lines"] == ["count: 0"]
        rpc.send(type="panel_key", panel_id="counter", key="up")
        assert rpc.event("ext_panel", lines=["count: 1"])["title"] == "Counter"
        rpc.send(type="panel_key", panel_id="counter", key="rune", text="+")
        rpc.event("ext_panel", extension="node", panel_id="counter", lines=["count: 2"])
        rpc.send(type="panel_key", panel_id="counter", key="down")
        rpc.event("ext_panel", lines=["count: 1"])
        rpc.send(type="panel_resize", panel_id="counter", width=72, height=18)
        assert rpc.event("ext_panel")["footer"].endswith("72×18")
        rpc.send(type="panel_key", panel_id="counter", key="rune", text="q")
        rpc.event("ext_panel_close", extension="node", panel_id="counter")
        assert rpc.ask("get_state")["data"]["panel"] is None
        assert rpc.close() == 0
    assert rpc.errors == ""


def test_a_node_program_serves_a_tool_and_notes_every_end_of_a_turn(hilt: Hilt, program: Flags) -> None:
    node = program("node")
    steps = calls(("repeat", {"text": "há\u2028", "times": 3}), ("repeat", {"text": "no", "times": 101}))
    with hilt.rpc(*hilt.script(steps, says("done")), *node) as rpc:
        rpc.event("ext_status", extension="node", state="ready")
        rpc.settled()
        told = rpc.prompt("go")
        assert results(told) == [("há\u2028 há\u2028 há\u2028", False), ("times must be between 0 and 100", True)]
        ends = ["turn ended: tool_use", "turn ended: end"]
        until(lambda: [line["message"] for line in rpc.lines if line["type"] == "ext_notify"] == ends, "a note each")
        assert rpc.close() == 0

    done = hilt.run("-p", "go", *hilt.script(calls(("repeat", {"text": "a", "times": 2})), says("done")), *node)
    assert (done.code, done.out) == (0, "done\n")
    assert "[node] info: turn ended: tool_use\n" in done.err
    assert "  a a\n" in done.err


# C


def test_a_c_program_serves_a_tool_and_refuses_sudo_to_all_tools(hilt: Hilt, program: Flags) -> None:
    steps = calls(
        ("add", {"a": 40, "b": -82}),
        ("bash", {"command": "true; sudo true"}),
        ("write", {"path": "note", "content": "use sudo"}),
        ("bash", {"command": "echo pseudo"}),
    )
    checker = program("c")
    done = hilt.run("--json", "go", *hilt.script(steps, says("done")), *checker)

    assert done.code == 0
    added, *refused, allowed = results(done.events)
    assert added == ("-42", False)
    for text, is_error in refused:
        assert is_error and "checker does not allow sudo" in text
    assert not allowed[1] and "\npseudo\n" in allowed[0]
    assert not (hilt.project / "note").exists()

    person = hilt.run("-p", "go", *hilt.script(calls(("bash", {"command": "sudo id"})), says("done")), *checker)
    assert (person.code, person.out) == (0, "done\n")
    assert "checker refused bash: checker does not allow sudo" in person.err


# Python


def test_a_python_program_that_never_says_ready_serves_its_command_and_its_tool(hilt: Hilt, program: Flags) -> None:
    python = program("python-no-ready")
    steps = calls(("reverse", {"text": "stressed"}), ("reverse", {"test": "?"}))
    with hilt.rpc(*hilt.script(steps, says("done")), *python) as rpc:
        rpc.event("ext_status", extension="python-no-ready", state="ready")
        rpc.send(type="command", name="reverse", args="live")
        rpc.event("ext_display", extension="python-no-ready", text="evil")
        assert rpc.response("command")["data"] == {"action": "display", "display": "evil"}
        failed = rpc.ask("command", name="reverse")
        assert not failed["success"] and "nothing to reverse" in failed["error"]
        right, wrong = results(rpc.prompt("go"))
        assert right == ("desserts", False)
        assert wrong[1] and '"text" is a required property' in wrong[0]
        assert rpc.close() == 0
    assert rpc.errors == ""

    done = hilt.run("-p", "/reverse live", *hilt.script(), *python)
    assert (done.code, done.out, done.err) == (0, "evil\n", "")
    failed_run = hilt.run("-p", "/reverse", *hilt.script(), *python)
    assert (failed_run.code, failed_run.out) == (1, "")
    assert "/reverse: nothing to reverse" in failed_run.err


# All of them


def test_all_four_live_side_by_side_and_leave_when_they_are_told_to(hilt: Hilt, program: Flags) -> None:
    names = ("shell", "node", "c", "python-no-ready")
    flags = [word for name in names for word in program(name)]
    for name in names:
        manifest = hilt.folder / "programs" / name / "extension.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "stop_grace_ms": 10_000}))
    steps = calls(
        ("add", {"a": 1, "b": 2}),
        ("greet", {"name": "Bob"}),
        ("repeat", {"text": "x", "times": 2}),
        ("reverse", {"text": "ab"}),
    )
    with hilt.rpc(*hilt.script(steps, says("done")), *flags) as rpc:
        rpc.settled()
        assert [text for text, _ in results(rpc.prompt("go"))] == ["3", "hello, Bob", "x x", "ba"]
        told = {one["name"]: one for one in rpc.ask("extensions")["data"]["extensions"]}
        assert list(told) == ["shell", "node", "checker", "python-no-ready"]
        assert {one["state"] for one in told.values()} == {"ready"}
        assert (told["node"]["tools"], told["node"]["commands"]) == (["repeat"], ["counter"])
        pids = [one["pid"] for one in told.values()]
        began = time.monotonic()
        assert rpc.close() == 0
        took = time.monotonic() - began
    assert rpc.errors == ""
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    wait_gone(str(hilt.folder / "programs"))
    assert took < 8, "one had to be killed"
