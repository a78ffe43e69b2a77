"""Programs of the jsonrpc dialect in three languages, without an SDK, under the real hilt, on either pair of pipes."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt, until, wait_gone

PROGRAMS = Path(__file__).with_name("programs")
NEEDED = {"python-fd": "python3", "python-stdio": "python3", "node": "node", "go": "go", "go-stdio": "go"}

Flags: TypeAlias = Callable[[str], tuple[str, ...]]


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


@pytest.fixture
def program(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Flags:
    """Flags to run one of the programs, from a copy of it. The test is skipped where its language is missing."""

    def flags(name: str) -> tuple[str, ...]:
        if not shutil.which(NEEDED[name]):
            pytest.skip(f"{NEEDED[name]} is not installed, so the program in jsonrpc-{name} cannot be run")
        copy = tmp_path / "programs" / name
        source = PROGRAMS / f"jsonrpc-{name.removesuffix('-stdio') if name == 'go-stdio' else name}"
        shutil.copytree(source, copy)
        if name.startswith("go"):
            built = compiled(name, copy, tmp_path_factory.getbasetemp().parent)
            shutil.copy(built, copy / "tally")
        return ("--ext", str(copy))

    return flags


def compiled(name: str, source: Path, shared: Path) -> Path:
    """Built once, however many processes the tests run in. Needs no network, for it needs no module."""
    built = shared / f"tally-{name}"
    with (shared / f"{built.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
            tags = ["-tags", "stdio"] if name == "go-stdio" else []
            done = subprocess.run(
                ["go", "build", *tags, "-o", built, "."],
                cwd=source,
                env={**os.environ, **settings},
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    return built


def results(events: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Of each tool result its text, and whether it is an error."""
    return [
        ("".join(block["text"] for block in event["content"]).rstrip("\n"), event["is_error"])
        for event in events
        if event["type"] == "tool_result"
    ]


def logged(hilt: Hilt, name: str) -> str:
    return (hilt.home / "logs" / f"ext-{name}.log").read_text()


# Python on descriptors 3 and 4


def test_a_python_program_on_its_own_descriptors_serves_tools_and_asks_the_host(hilt: Hilt, program: Flags) -> None:
    steps = calls(("backwards", {"text": "stressed"}), ("recite", {}), ("backwards", {"test": "?"}))
    with hilt.rpc(*hilt.script(steps, says("done")), *program("python-fd")) as rpc:
        rpc.event("ext_status", extension="scribe", state="ready")
        rpc.settled()
        told, recited, wrong = results(rpc.prompt("go"))
        assert told == ("desserts", False)
        assert json.loads(recited[0])[:2] == ["user", "assistant"]
        assert wrong[1] and '"text" is a required property' in wrong[0]
        until(lambda: "ext_notify" in rpc.types(), "the ledger")  # before the end of the prompt, or after it
        (ledger,) = [line["message"].split() for line in rpc.lines if line["type"] == "ext_notify"]
        assert ledger[:5] == [
            "EventAgentStart",
            "EventAgentInit",
            "EventPromptBuild",
            "EventMessagePre",
            "EventTurnStart",
        ]
        assert ledger[-4:] == ["EventStreamDelta", "EventStreamDone", "EventTurnEnd", "EventAgentEnd"]
        rpc.send(type="command", name="title", args="All  that")
        rpc.event("ext_notify", message="called All that")
        assert rpc.response("command")["success"]
        assert rpc.ask("get_state")["data"]["session"]["title"] == "All that"
        assert rpc.close() == 0
    assert rpc.errors == ""
    log = logged(hilt, "scribe")
    assert "scribe prints what nobody should take for a message" in log
    assert f"scribe works for {hilt.project} in {hilt.folder / 'programs' / 'python-fd'}" in log


def test_a_tool_registered_after_the_opening_is_there_for_the_next_turn(hilt: Hilt, program: Flags) -> None:
    steps = [calls(("shout", {"text": "hey"})), says("?"), calls(("shout", {"text": "hey"})), says("done")]
    with hilt.rpc(*hilt.script(*steps), *program("python-fd")) as rpc:
        rpc.event("ext_status", extension="scribe", state="ready")
        rpc.settled()
        ((unknown, is_error),) = results(rpc.prompt("go"))
        assert is_error and "shout" in unknown
        rpc.rest()
        assert rpc.ask("command", name="learn")["success"]
        snapshot = rpc.ask("host", method="host/llmSnapshot")["data"]
        assert "shout" in [tool["name"] for tool in snapshot["tools"]]
        assert "# Scribe\n\nEverything is written down." in snapshot["system"]
        assert results(rpc.prompt("again")) == [("HEY", False)]
        assert rpc.close() == 0


def test_too_many_turns_are_told_before_the_end_of_the_run(hilt: Hilt, program: Flags) -> None:
    steps = [calls(("backwards", {"text": "ab"})), says("never")]
    with hilt.rpc("--max-steps", "1", *hilt.script(*steps), *program("python-fd")) as rpc:
        rpc.event("ext_status", extension="scribe", state="ready")
        rpc.settled()
        rpc.prompt("go")
        until(lambda: "ext_notify" in rpc.types(), "the ledger")
        (ledger,) = [line["message"].split() for line in rpc.lines if line["type"] == "ext_notify"]
        assert ledger[-3:] == ["EventTurnEnd", "EventMaxTurns", "EventAgentEnd"]
        assert rpc.close() == 0


def test_with_p_a_python_program_serves_as_well(hilt: Hilt, program: Flags) -> None:
    steps = calls(("backwards", {"text": "live"}))
    done = hilt.run("-p", "go", *hilt.script(steps, says("done")), *program("python-fd"))

    assert (done.code, done.out) == (0, "done\n")
    assert "  evil\n" in done.err
    assert "nobody should take for a message" not in done.err


LATE = """# PIGLET_FD
import json, os
heard, says = os.fdopen(3, "rb"), os.fdopen(4, "wb", buffering=0)
def send(**message): says.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
for line in heard:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        send(method="register/eventHandler", params={"name": "end", "events": ["EventAgentEnd"]})
        send(id=asked["id"], result={"name": "late"})
    elif asked.get("method") == "event/dispatch":
        send(id=asked["id"], result={"action": {"type": "notify", "payload": {"message": "it is over"}}})
"""


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_what_an_extension_makes_of_the_end_of_a_single_prompt_is_shown(hilt: Hilt, face: str) -> None:
    home = hilt.folder / "late"
    home.mkdir()
    (home / "manifest.yaml").write_text("name: late\nruntime: python\nentry: main.py\n")
    (home / "main.py").write_text(LATE)
    done = hilt.run(face, "go", *hilt.script(says("done")), "--ext", str(home))

    assert done.code == 0 and "it is over" in (done.err if face == "-p" else done.out)


# Programs on standard input and output, of which nobody said so


def test_a_python_program_on_standard_input_and_output_is_found_out(hilt: Hilt, program: Flags) -> None:
    steps = calls(("sort", {"words": ["b", "c", "a"]}))
    with hilt.rpc(*hilt.script(steps, says("done")), *program("python-stdio")) as rpc:
        rpc.event("ext_status", extension="plain", state="ready")
        rpc.send(type="input", text="sort them")
        assert rpc.event("user_message")["content"] == [{"type": "text", "text": "sort them, please"}]
        rpc.event("done")
        assert results(rpc.lines) == [("a b c", False)]
        assert rpc.close() == 0
    assert rpc.errors == ""
    assert "sorting" in logged(hilt, "plain")

    done = hilt.run(
        "-p", "sort them", *hilt.script(steps, says("done")), "--ext", str(hilt.folder / "programs/python-stdio")
    )
    assert (done.code, done.out) == (0, "done\n")


def test_a_node_program_asks_the_user_from_within_a_tool(hilt: Hilt, program: Flags) -> None:
    steps = calls(("forecast", {"city": "Rome"}), ("forecast", {}))
    with hilt.rpc(*hilt.script(steps, says("done")), *program("node")) as rpc:
        rpc.event("ext_status", extension="weather", state="ready")
        rpc.send(type="shortcut", key="ctrl+w")
        rpc.event("ext_display", extension="weather", text="It is fine.")
        assert rpc.response("shortcut")["success"]
        rpc.send(type="prompt", message="go")
        question = rpc.event("ui_request", kind="ask", extension="weather")
        assert question["choices"] == ["C", "F"]
        rpc.send(type="ui_response", id=question["id"], selected="F")
        rpc.event("done")
        warm, failed = results(rpc.lines)
        assert warm == ("Rome: 68 °F", False)
        assert failed[1] and "which city?" in failed[0]
        sections = rpc.ask("host", method="host/promptSections")["data"]["sections"]
        assert [section["title"] for section in sections] == ["Weather"]
        assert rpc.close() == 0
    assert rpc.errors == ""

    node = ("--ext", str(hilt.folder / "programs" / "node"))
    done = hilt.run("-p", "go", *hilt.script(calls(("forecast", {"city": "Rome"})), says("done")), *node)
    assert (done.code, done.out) == (0, "done\n")
    assert "  Rome: 20 degrees\n" in done.err, "where nobody can be asked, that is the answer"


# Go


@pytest.mark.parametrize("name", ["go", "go-stdio"])
def test_a_compiled_go_program_does_all_it_registers(hilt: Hilt, program: Flags, name: str) -> None:
    steps = calls(("words", {"text": "A & B <C>"}), ("bash", {"command": "sudo id"}))
    script = hilt.script(steps, says("done"), calls(("stop", {"text": ""})), says("never"))
    with hilt.rpc(*script, *program(name)) as rpc:
        rpc.event("ext_status", extension="tally", state="ready")
        rpc.settled()
        counted, refused = results(rpc.prompt("go"))
        # The interceptor saw the arguments first, and capital keys are keys.
        assert counted == ("4 words in <a & b <c>>", False)
        assert "tally counts no sudo" in refused[0]
        until(lambda: "ext_status_text" in rpc.types(), "its status")  # before the end of the prompt, or after it
        (status,) = [line for line in rpc.lines if line["type"] == "ext_status_text"]
        assert (status["key"], status["text"]) == ("tally", "words")
        rpc.send(type="command", name="tally")
        assert rpc.event("ext_notify", extension="tally")["message"] == "2 calls"
        assert rpc.response("command")["success"]
        rpc.rest()
        assert rpc.prompt("stop")[-1]["stop"] == "aborted"
        (told,) = [one for one in rpc.ask("extensions")["data"]["extensions"] if one["name"] == "tally"]
        assert (told["tools"], told["commands"], told["state"]) == (["words", "stop"], ["tally"], "ready")
        assert rpc.close() == 0
    assert rpc.errors == ""
    assert ("stray words on standard output" in logged(hilt, "tally")) == (name == "go")


def test_with_p_a_compiled_go_program_guards_and_serves(hilt: Hilt, program: Flags) -> None:
    steps = calls(("words", {"text": "ONE two"}), ("bash", {"command": "sudo id"}))
    done = hilt.run("-p", "go", *hilt.script(steps, says("done")), *program("go"))

    assert (done.code, done.out) == (0, "done\n")
    assert "  2 words in <one two>\n" in done.err
    assert "tally refused bash: tally counts no sudo" in done.err


def test_what_a_hook_of_a_go_program_adds_reaches_the_model_once(hilt: Hilt, program: Flags) -> None:
    with hilt.rpc(*hilt.script(says("hello"), says("again")), *program("go")) as rpc:
        rpc.event("ext_status", extension="tally", state="ready")
        rpc.settled()
        rpc.prompt("good morning")
        rpc.rest()
        assert "good morning" not in rpc.ask("host", method="host/llmSnapshot")["data"]["system"]
        assert rpc.close() == 0


# All of them


def test_all_of_them_live_side_by_side_and_leave_when_their_input_ends(hilt: Hilt, program: Flags) -> None:
    names = ("python-fd", "python-stdio", "node", "go")
    flags = [word for name in names for word in program(name)]
    steps = calls(("backwards", {"text": "ab"}), ("sort", {"words": ["b", "a"]}), ("words", {"text": "x"}))
    with hilt.rpc(*hilt.script(steps, says("done")), *flags) as rpc:
        rpc.settled()
        assert [text for text, _ in results(rpc.prompt("go"))] == ["ba", "a b", "1 words in <x>"]
        told = {one["name"]: one for one in rpc.ask("extensions")["data"]["extensions"]}
        assert list(told) == ["scribe", "plain", "weather", "tally"]
        assert {one["state"] for one in told.values()} == {"ready"}
        pids = [one["pid"] for one in told.values()]
        assert rpc.close() == 0
    assert rpc.errors == ""
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "their end")
    wait_gone(str(hilt.folder / "programs"))
