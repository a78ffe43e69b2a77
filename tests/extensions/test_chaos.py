"""The chaos extension does what its table says: a real process, driven over pipes as a host would."""

import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema_rs
import pytest

ROOT = Path(__file__).parents[2]
CHAOS = ROOT / "tests" / "support" / "chaos.py"
DEADLINE = 45.0

Frame: TypeAlias = dict[str, Any]

CALL: Frame = {"type": "tool_call", "id": "7", "name": "t", "args": {"a": 1}}
COMMAND: Frame = {"type": "command_invoked", "id": "7", "name": "c"}
QUESTION: Frame = {"type": "event_intercept", "id": "7", "event": "tool_call", "tool_args": {"a": 1}}
OK: Frame = {"type": "tool_result", "id": "7", "content": [{"type": "text", "text": "ok"}]}


class Extension:
    """A running chaos extension. Every wait has a deadline."""

    def __init__(self, arguments: list[str], cwd: Path, program: Path, *, far: bool = False) -> None:
        """`far`: it reads from 3 and writes to 4, and what it prints goes to a file."""
        self.cwd = cwd
        moved = ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >stdout', "sh"] if far else []
        with (cwd / "stderr").open("wb") as errors:
            self.process = subprocess.Popen(
                [*moved, sys.executable, "-I", "-S", str(program), *arguments],
                cwd=cwd,
                env={"PATH": os.environ["PATH"], "COLOUR": "blue", **({"PIGLET_FD": "1"} if far else {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
            )
        assert self.process.stdin and self.process.stdout
        self.pid = self.process.pid
        self.input, self.output = self.process.stdin, self.process.stdout
        self._rest = b""

    def send(self, *frames: Frame) -> None:
        self.input.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def quiet(self, seconds: float = 0.1) -> bool:
        return not select.select([self.output], [], [], seconds)[0]

    def chunk(self) -> bytes:
        """What comes next, and nothing when nothing more will come."""
        assert not self.quiet(DEADLINE), f"nothing came; stderr: {self.errors()}"
        return os.read(self.output.fileno(), 1 << 20)

    def line(self) -> bytes:
        while b"\n" not in self._rest:
            more = self.chunk()
            assert more, f"it closed stdout after {self._rest!r}; stderr: {self.errors()}"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def frame(self) -> Any:
        return json.loads(self.line())

    def ask(self, frame: Frame) -> Any:
        self.send(frame)
        return self.frame()

    def rest(self) -> bytes:
        """Everything up to the end of its output."""
        data = self._rest
        while more := self.chunk():
            data += more
        return data

    def code(self) -> int:
        return self.process.wait(DEADLINE)

    def errors(self) -> str:
        return (self.cwd / "stderr").read_text()

    def touch(self, name: str) -> None:
        (self.cwd / name).touch()

    def wrote(self, name: str) -> str:
        """What it has written to a file, as soon as that is there."""
        until(lambda: (self.cwd / name).exists() and (self.cwd / name).stat().st_size)
        return (self.cwd / name).read_text()

    def touched(self, name: str) -> float:
        return float(self.wrote(name).split()[1])


Start: TypeAlias = Callable[..., Extension]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Extension] = []

    def run(*script: Any, arguments: list[str] | None = None, program: Path = CHAOS, far: bool = False) -> Extension:
        given = [json.dumps(script)] if arguments is None else arguments
        running.append(Extension(given, tmp_path, program, far=far))
        return running[-1]

    yield run
    for extension in running:
        try:
            os.killpg(extension.pid, signal.SIGKILL)  # and the children it left
        except ProcessLookupError:
            pass
        extension.code()
        extension.input.close()
        extension.output.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        select.select([], [], [], 0.005)


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, group, session, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["gone"]


# The table and the script


def documented() -> dict[str, set[str]]:
    """Each verb of the table, and the faults it is for."""
    table = CHAOS.read_text().split('"""')[1].partition("Frames that an extension may send:")[2]
    rows = {}
    for line in table.split("\n"):
        if row := re.fullmatch(r"  (\S.*?)  +(.*?)((?: +[SRWCGL]\d+)*)", line):
            for verb in row[1].split(", "):
                rows[verb.partition(":")[0]] = set(row[3].split())
    return rows


def test_the_table_has_every_verb_there_is_and_no_other(start: Start) -> None:
    extension = start("nonsense")

    assert extension.code() == 64
    assert extension.errors().partition("there are ")[2].split() == sorted(documented())


def test_every_fault_that_an_extension_can_cause_has_a_verb() -> None:
    faults = set().union(*documented().values())

    assert faults >= {f"S{n}" for n in (1, 2, 3, 4, 6, 7, 8, 10, 11, 12)}
    assert faults >= {f"R{n}" for n in range(1, 18)}
    assert faults >= {f"W{n}" for n in (1, 2, 3, 4, 5, 7)}
    assert faults >= {f"C{n}" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15)}
    assert faults >= {f"G{n}" for n in (1, 2, 3, 6, 7, 8, 9, 10)}
    assert faults >= {f"L{n}" for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 17)}


@pytest.mark.parametrize("arguments", [['["ready"]'], ["@other.json"], []])
def test_the_script_is_the_argument_the_file_it_names_or_chaos_json(
    start: Start, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "chaos.json").write_text('["ready"]')
    (tmp_path / "other.json").write_text('["ready"]')

    assert start(arguments=arguments).frame() == {"type": "ready"}


@pytest.mark.parametrize("arguments", [["{}"], ["["], ["@missing.json"], []])
def test_a_script_that_cannot_be_read_ends_with_64(start: Start, arguments: list[str]) -> None:
    extension = start(arguments=arguments)

    assert extension.code() == 64
    assert extension.errors().startswith("chaos: the script ")


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("sleep", '"sleep": needs an argument'),
        ("sleep:soon", '"sleep:soon": could not convert'),
        ("flood:1.5", '"flood:1.5": invalid literal'),
        ("mute:all", '"mute:all": takes no argument'),
        ("frame:{", '"frame:{": Expecting'),
        ("signal:NONE", "\"signal:NONE\": 'SIGNONE'"),
        (5, "5: no such verb"),
        ({"on": "eof"}, '{"on":"eof"}: an entry has \'do\''),
        ({"on": "eof", "after": 1, "do": "ready"}, '{"on":"eof","after":1,"do":"ready"}: an entry has'),
        ({"on": "eof", "do": ["nonsense"]}, '"nonsense": no such verb'),
        ({"do": "ready", "whenever": 1}, '{"do":"ready","whenever":1}: \'whenever\' is no field'),
        ({"do": "ready", "times": 1}, '{"do":"ready","times":1}: \'times\''),
        ({"on": "eof", "do": 3}, '{"on":"eof","do":3}: \'do\' is no field of an entry, or its value is'),
        ({"do": "ready", "once": "no/where"}, '"once": [Errno 2]'),
        ("answer", '"answer": the start cannot be answered'),
        ("tool_progress", '"tool_progress": the start has no id'),
        ({"do": ["big_line:20", "hello"]}, '"hello": the line is longer'),
    ],
)
def test_an_item_that_cannot_be_followed_is_reported_with_its_problem(start: Start, item: Any, said: str) -> None:
    extension = start("mute", item)

    assert extension.code() == 64
    assert said in extension.errors()


# Entries


def test_frames_nobody_reacts_to_are_answered_and_the_end_is_taken_well(start: Start) -> None:
    extension, deserted = start(), start()
    deserted.input.close()

    assert deserted.code() == 0
    assert extension.ask(CALL) == OK
    assert extension.ask(COMMAND) == {"type": "command_response", "id": "7", "action": "noop"}
    assert extension.ask(QUESTION) == {"type": "event_intercept_response", "id": "7"}
    assert extension.ask({"type": "shutdown"}) == {"type": "shutdown_ack"}
    assert extension.code() == 0


def test_muted_it_does_nothing_of_its_own_accord(start: Start) -> None:
    extension = start("mute", "ready", {"on": "eof", "do": "touch:eof"})
    extension.frame()
    extension.send(CALL, COMMAND, QUESTION, {"type": "shutdown"})
    extension.input.close()
    extension.wrote("eof")

    assert extension.process.poll() is None
    extension.process.kill()
    assert extension.rest() == b""


def test_the_first_entry_that_fits_and_has_uses_left_takes_the_frame(start: Start) -> None:
    extension = start(
        {"on": "tool_call", "match": {"args": {"a": 2}}, "do": "answer:two"},
        {"on": "tool_call", "times": 1, "do": "answer:first"},
        {"on": "tool_call", "match": {"args": {"a": True}}, "do": "answer:never, for 1 is not true"},
        {"on": "tool_call", "do": "answer:$ARGS"},
    )

    def text(**args: int) -> Any:
        return extension.ask({**CALL, "args": args})["content"][0]["text"]

    assert [text(a=1), text(a=2, b=1), text(a=1), text(a=2)] == ["first", "two", '{"a":1}', "two"]


def test_events_and_interceptions_are_told_apart_by_name(start: Start) -> None:
    extension = start(
        {"on": "event:turn_start", "do": "notify:turn"},
        {"on": "event", "do": "notify:other"},
        {"on": "event_intercept:tool_call", "do": "block:no"},
    )

    assert extension.ask({"type": "event", "event": "turn_end"})["message"] == "other"
    assert extension.ask({"type": "event", "event": "turn_start"})["message"] == "turn"
    assert extension.ask(QUESTION)["block"] is True
    assert "block" not in extension.ask({**QUESTION, "event": "turn_start"})


def test_a_slow_reaction_lets_others_pass_unless_it_is_inline(start: Start) -> None:
    patient = start({"on": "command_invoked", "do": ["wait_for:go", "answer"]})
    patient.send(COMMAND)
    assert patient.ask(CALL) == OK
    patient.touch("go")
    assert patient.frame()["type"] == "command_response"

    blocked = start({"on": "command_invoked", "inline": True, "do": ["notify:waiting", "wait_for:on", "answer"]})
    blocked.send(COMMAND, CALL)
    assert blocked.frame()["message"] == "waiting"
    assert blocked.quiet(0.2)
    blocked.touch("on")
    assert [blocked.frame()["type"], blocked.frame()["type"]] == ["command_response", "tool_result"]


def test_an_entry_with_once_is_for_one_start_of_the_program_only(start: Start) -> None:
    script = [{"on": "tool_call", "once": "crashed", "do": "exit:9"}]
    first, second = start(*script), start(*script)
    first.send(CALL)

    assert first.code() == 9
    assert [second.ask(CALL), second.ask(CALL)] == [OK, OK]


def test_an_entry_with_needs_waits_for_its_file(start: Start) -> None:
    extension = start({"on": "tool_call", "needs": "flag", "do": "answer:now"})
    assert extension.ask(CALL) == OK
    extension.touch("flag")

    assert extension.ask(CALL)["content"][0]["text"] == "now"


def test_a_timer_runs_after_its_time(start: Start) -> None:
    began = time.monotonic()
    extension = start({"after": 0.3, "do": "touch:late"}, "ready")

    assert extension.frame() == {"type": "ready"}
    assert extension.touched("late") - began >= 0.3


# Frames


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("hello", {"type": "hello", "name": "chaos", "version": "1.0.0"}),
        ("hello:other", {"name": "other", "version": "1.0.0"}),
        ('hello:{"version":"9","capabilities":[]}', {"name": "chaos", "version": "9", "capabilities": []}),
        ("ready", {"type": "ready"}),
        ("shutdown_ack", {"type": "shutdown_ack"}),
        ("register_tool:u", {"type": "register_tool", "name": "u", "schema": {"type": "object"}}),
        ("register_command:u", {"type": "register_command", "name": "u"}),
        ("register:shortcut", {"type": "register", "kind": "shortcut", "key": "x"}),
        ("subscribe:turn_start,turn_end", {"type": "subscribe", "events": ["turn_start", "turn_end"]}),
        ("intercept:tool_call", {"type": "subscribe", "intercept": ["tool_call"]}),
        ("notify:hi: $PID", {"type": "notify", "level": "info", "message": "hi: PID"}),
        ("clear_notes", {"type": "clear_notes"}),
        ("submit:more", {"type": "submit", "text": "more"}),
        ("submit_slash:/x", {"type": "submit_slash", "text": "/x"}),
        ("open_panel", {"type": "open_panel", "panel": {"id": "p", "title": "chaos", "lines": ["chaos"]}}),
        ("panel_render:q", {"type": "panel_render", "panel_id": "q", "lines": ["chaos"]}),
        ("panel_close:q", {"type": "panel_close", "panel_id": "q"}),
        ("call_tool:u", {"type": "call_tool", "id": "call-1", "name": "u", "args": {}}),
        ("call_tool_cancel:call-1", {"type": "call_tool_cancel", "id": "call-1"}),
        ("host_request:host/x", {"type": "host_request", "id": "request-1", "method": "host/x", "params": {}}),
        ('frame:{"type":"notify","message":"$N"}', {"type": "notify", "message": "1"}),
        ('raw:{"type":"ready"}', {"type": "ready"}),
        ("big_description:9000", {"type": "register_tool", "description": "x" * 9000}),
        ("big_schema:9000", {"type": "register_tool", "schema": {"$": "x" * 8992}}),
    ],
)
def test_a_frame_verb_writes_a_frame_of_the_contract(start: Start, verb: str, expected: Frame) -> None:
    schema = json.loads((ROOT / "spec" / "frames.schema.json").read_text())
    extension = start(verb)
    line = extension.line().replace(str(extension.pid).encode(), b"PID")
    frame = json.loads(line)

    assert {name: frame[name] for name in expected} == expected
    assert line.startswith(b'{"type":"') and b": {" not in line
    jsonschema_rs.validate({**schema, "$ref": "#/$defs/ExtensionFrame"}, frame)


def test_bad_names_are_names_no_tool_may_have(start: Start) -> None:
    lines = start("bad_names", "exit").rest().split(b"\n")[:-1]
    names = {json.loads(line)["name"] for line in lines}

    assert {"", "a/b", "a\nb", "x" * 500, "naïve"} <= names
    assert not any(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in names)


def test_a_flood_repeats_the_next_line_and_counts(start: Start) -> None:
    lines = start("flood:20000", "host_request", "unknown_type:dance", "exit").rest().split(b"\n")[:-1]

    assert [json.loads(line)["id"] for line in lines] == [*(f"request-{n}" for n in range(1, 20_001)), "20001"]
    assert json.loads(lines[-1])["type"] == "dance"


@pytest.mark.parametrize(
    ("verb", "lines"),
    [
        ("stray:2", [b"starting up, step 1", b"starting up, step 2"]),
        ("blank_lines:3", [b"", b"", b""]),
        ("raw:neither", [b"neither"]),
    ],
)
def test_lines_that_are_no_frames(start: Start, verb: str, lines: list[bytes]) -> None:
    assert start(verb, "exit").rest().split(b"\n") == [*lines, b""]


def test_many_tools_have_names_of_their_own(start: Start) -> None:
    lines = start("register_many:300", "exit").rest().split(b"\n")[:-1]

    assert [json.loads(line)["name"] for line in lines] == [f"t{n}" for n in range(1, 301)]


# Answers and twists


@pytest.mark.parametrize(
    ("verb", "trigger", "expected"),
    [
        ("answer", CALL, OK),
        ("answer:$ARGS", CALL, {**OK, "content": [{"type": "text", "text": '{"a":1}'}]}),
        ('answer:{"text":"ok","is_error":true}', CALL, {**OK, "is_error": True}),
        ("answer:hi", COMMAND, {"type": "command_response", "id": "7", "action": "display", "display": "hi"}),
        ('answer:{"action":"insert"}', COMMAND, {"type": "command_response", "id": "7", "action": "insert"}),
        ("answer_wrong_id", CALL, {**OK, "id": "7-wrong"}),
        ("failed", CALL, {**OK, "is_error": True}),
        ("empty_content", CALL, {**OK, "content": []}),
        ("null_content", CALL, {**OK, "content": None}),
        ("unknown_block", CALL, {**OK, "content": [{"type": "hologram"}]}),
        ("bad_base64", CALL, {**OK, "content": [{"type": "image", "mime_type": "image/png", "data": "not base64!"}]}),
        ("big_image:400", CALL, {**OK, "content": [{"type": "image", "mime_type": "image/png", "data": "A" * 400}]}),
        ("big_text:70000", CALL, {**OK, "content": [{"type": "text", "text": "x" * 70_000}]}),
        ('structured:{"b":2}', CALL, {**OK, "structured_content": {"b": 2}}),
        ("activate:u", CALL, {**OK, "activate_tools": ["u"]}),
        ("block:for $N", QUESTION, {"type": "event_intercept_response", "id": "7", "block": True, "reason": "for 1"}),
        ("suppress", QUESTION, {"type": "event_intercept_response", "id": "7", "block": True}),
        ('rewrite:{"a":2}', QUESTION, {"type": "event_intercept_response", "id": "7", "modified_args": {"a": 2}}),
        ("rewrite:null", QUESTION, {"type": "event_intercept_response", "id": "7", "modified_args": None}),
        ("replace:better", QUESTION, {"type": "event_intercept_response", "id": "7", "replace_text": "better"}),
        ("tool_progress:half", CALL, {"type": "tool_progress", "id": "7", "text": "half"}),
        ('raw:{"id":"$ID"}', CALL, {"id": "7"}),
    ],
)
def test_an_answer_carries_the_id_and_what_its_verb_says(
    start: Start, verb: str, trigger: Frame, expected: Frame
) -> None:
    assert start({"on": trigger["type"], "do": verb}).ask(trigger) == expected


def test_an_answer_can_come_twice_or_for_another_request(start: Start) -> None:
    extension = start(
        {"on": "tool_call", "times": 1, "do": "answer_twice"},
        {"on": "tool_call", "match": {"id": "9"}, "do": "answer_other"},
    )

    assert [extension.ask(CALL), extension.frame()] == [OK, OK]
    assert extension.ask({**CALL, "id": "8"}) == {**OK, "id": "8"}
    assert extension.ask({**CALL, "id": "9"}) == {**OK, "id": "8"}


def nested(value: Any) -> int:
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    return depth


@pytest.mark.parametrize(
    ("twist", "proof"),
    [
        ("bad_utf8", lambda line: line.endswith(b'"ok\xff\xc3"}]}')),
        ("surrogate", lambda line: json.loads(line)["content"][0]["text"] == "ok\ud800" and line.isascii()),
        ("separators", lambda line: json.loads(line)["content"][0]["text"] == "ok\u2028\x85\x0b"),
        ("separators", lambda line: "\u2028\x85".encode() in line and b",\r" in line),
        ("nul", lambda line: line.endswith(b'"ok\x00"}]}')),
        ("utf16", lambda line: json.loads(line.decode("utf-16")) == OK),
        ("bom", lambda line: line[:3] == b"\xef\xbb\xbf" and json.loads(line[3:]) == OK),
        ("nan", lambda line: b'"structured_content":NaN}' in line),
        ("nan:1e999", lambda line: b'"structured_content":1e999}' in line),
        ("other_case", lambda line: json.loads(line) == {name.upper(): value for name, value in OK.items()}),
        ("wrong_type", lambda line: json.loads(line) == []),
        ("wrong_type:id", lambda line: json.loads(line) == {**OK, "id": True}),
        ("wrong_type:content", lambda line: json.loads(line) == {**OK, "content": "x"}),
        ("big_line:5242880", lambda line: len(line) == 5242879 and json.loads(line)["content"] == OK["content"]),
        ("deep:900", lambda line: nested(json.loads(line)["structured_content"]) == 899),
        ("deep:100000", lambda line: line.endswith(b"[" * 100_000 + b"]" * 100_000 + b"}")),
    ],
)
def test_a_twist_changes_the_next_line_and_no_other(start: Start, twist: str, proof: Callable[[bytes], bool]) -> None:
    extension = start({"on": "tool_call", "do": [twist, "answer", "answer"]})
    extension.send(CALL)

    assert proof(extension.line())
    assert extension.frame() == OK


def test_duplicate_keys_say_the_opposite_of_a_block(start: Start) -> None:
    extension = start({"on": "event_intercept", "do": ["duplicate_keys", "block:no"]})
    extension.send(QUESTION)
    pairs = json.loads(extension.line(), object_pairs_hook=list)

    assert [value for name, value in pairs if name == "block"] == [True, False]


def test_a_slow_line_comes_byte_by_byte_and_nothing_gets_between(start: Start) -> None:
    extension = start("hello_slowly:0.003", "slowly:0.003", "notify:é")
    extension.send(CALL)
    chunks: list[bytes] = []
    while b"".join(chunks).count(b"\n") < 3:
        chunks.append(extension.chunk())
    frames = [json.loads(line) for line in b"".join(chunks).split(b"\n")[:3]]

    assert len(chunks) > 20
    assert sorted(frame["type"] for frame in frames) == ["hello", "notify", "tool_result"]
    assert [frame["message"] for frame in frames if frame["type"] == "notify"] == ["é"]


def test_without_its_end_a_line_is_the_last_thing_written(start: Start) -> None:
    extension = start({"on": "tool_call", "do": ["no_newline", "answer", "exit:0"]})
    extension.send(CALL)
    last = extension.rest()

    assert json.loads(last) == OK and not last.endswith(b"\n")


# Input and output


@pytest.mark.parametrize("verb", ["endless:200000", "endless"])
def test_endless_output_has_no_end_of_line(start: Start, verb: str) -> None:
    extension = start(verb, "exit:4")
    seen = b""
    while len(seen) < 200_000:
        seen += extension.chunk()

    assert b"\n" not in seen
    if verb == "endless":
        assert len(extension.chunk()) > 0 and extension.process.poll() is None
    else:
        assert (extension.rest(), extension.code()) == (b"", 4)


def test_a_step_that_fails_is_told_and_the_list_goes_on(start: Start) -> None:
    extension = start("wait_for:closed", "endless", "touch:after")
    extension.output.close()
    extension.touch("closed")
    extension.wrote("after")

    assert '"endless": BrokenPipeError' in extension.errors()


def test_stderr_gets_lines_and_bytes(start: Start) -> None:
    extension = start("log:first, this", "stderr:300000", "exit")
    extension.code()
    first, rest = extension.errors().split("\n", 1)

    assert (first, len(rest)) == ("first, this", 300_000)
    assert max(map(len, rest.split("\n"))) < 100


def test_a_closed_stdout_is_an_end_for_the_host_while_the_program_goes_on(start: Start) -> None:
    extension = start("close_stdout", {"on": "tool_call", "do": ["answer", "touch:answered"]})

    assert extension.rest() == b""
    extension.send(CALL)
    extension.wrote("answered")
    assert extension.process.poll() is None


def test_a_closed_stdin_breaks_the_pipe_while_the_program_goes_on(start: Start) -> None:
    reaction = {"on": "tool_call", "inline": True, "do": ["touch:reading", "wait_for:go"]}
    extension = start("wait_for:reading", "close_stdin", "ready", "wait_for:on", "notify", reaction)
    extension.send(CALL)
    extension.wrote("reading")
    assert extension.quiet()  # it cannot be closed yet
    extension.touch("go")
    assert extension.frame() == {"type": "ready"}

    with pytest.raises(BrokenPipeError):
        extension.send(CALL)
    extension.touch("on")
    assert extension.frame()["type"] == "notify"


def test_it_can_stop_reading_and_read_on(start: Start) -> None:
    extension = start("stop_reading", "ready", "wait_for:go", "read_on")
    extension.frame()
    os.set_blocking(extension.input.fileno(), False)
    while extension.input.write(b"\n" * 4096):  # gives None once the pipe is full
        pass
    assert not select.select([], [extension.input], [], 0.2)[1]

    extension.touch("go")
    assert select.select([], [extension.input], [], DEADLINE)[1]
    assert extension.ask(CALL) == OK


def test_a_slow_reader_takes_its_rate_and_no_more(start: Start) -> None:
    extension = start("read_slowly:1000", "record:heard", "ready")
    extension.frame()
    began = time.monotonic()
    extension.send(*[{"type": "event", "event": "x" * 78}] * 4)
    until(lambda: extension.wrote("heard").count("\n") == 4)

    assert 0.3 < time.monotonic() - began < DEADLINE


def test_a_record_has_what_came_and_when(start: Start) -> None:
    extension = start("record:heard", "ignore_sigterm", "mute", "ready")
    extension.frame()
    began = time.monotonic()
    extension.send(CALL)
    extension.input.write(b"\xff not JSON\n")
    until(lambda: "not JSON" in extension.wrote("heard"))
    extension.process.terminate()
    until(lambda: "signal" in extension.wrote("heard"))
    extension.input.close()
    until(lambda: "eof" in extension.wrote("heard"))
    first, second, third, fourth = map(json.loads, extension.wrote("heard").splitlines())

    assert json.loads(first["line"]) == CALL
    assert (second["line"], third["signal"], fourth["eof"]) == ("\ufffd not JSON", "SIGTERM", True)
    assert began <= first["at"] <= second["at"] <= third["at"] <= fourth["at"] <= time.monotonic()
    assert {entry["pid"] for entry in (first, second, third, fourth)} == {extension.pid}


# Time and order


def test_waiting_for_a_frame_counts_from_the_start_of_the_list(start: Start) -> None:
    reaction = {"on": "tool_call", "do": ["call_tool", "await:tool_result", "await:event:over", "answer"]}
    extension = start("hello", "await:hello_ack", "ready", reaction)
    assert extension.frame()["type"] == "hello"
    assert extension.quiet()
    assert extension.ask({"type": "hello_ack"}) == {"type": "ready"}

    extension.send({"type": "tool_result", "id": "early"}, {"type": "event", "event": "over"})
    assert extension.ask(CALL)["type"] == "call_tool"
    assert extension.quiet()
    extension.send({"type": "event", "event": "over"}, {"type": "tool_result", "id": "call-1"})
    assert extension.quiet()
    assert extension.ask({"type": "event", "event": "over"}) == OK


def impatient(folder: Path) -> Path:
    """The same program with shorter limits."""
    limits = "PATIENCE, LIFETIME, CHILD_LIFETIME = 30, 1800, 60"
    source = CHAOS.read_text()
    assert limits in source
    program = folder / "impatient.py"
    program.write_text(source.replace(limits, "PATIENCE, LIFETIME, CHILD_LIFETIME = 0.1, 1, 1"))
    return program


@pytest.mark.parametrize("verb", ["wait_for:nothing", "await:nothing"])
def test_a_wait_for_what_never_comes_ends_with_75(start: Start, tmp_path: Path, verb: str) -> None:
    extension = start(verb, program=impatient(tmp_path))

    assert extension.code() == 75
    assert "nothing never came" in extension.errors()


def test_neither_the_program_nor_its_children_live_for_ever(start: Start, tmp_path: Path) -> None:
    extension = start("mute", "grandchild:child", "daemonize:orphan", "hang", program=impatient(tmp_path))
    children = [int(extension.wrote(name)) for name in ("child", "orphan")]

    assert extension.code() == -signal.SIGALRM
    until(lambda: all(stat(child)[0] in ("Z", "gone") for child in children))


def test_a_list_can_start_again(start: Start) -> None:
    extension = start({"on": "tool_call", "do": ["tool_progress:$N", "again:2", "answer"]}, {"do": ["ready", "again"]})
    assert [extension.frame() for _ in range(50)] == [{"type": "ready"}] * 50
    extension.send(CALL)
    others: list[Frame] = []
    while OK not in others:
        if (frame := extension.frame()) != {"type": "ready"}:
            others.append(frame)

    assert [frame.get("text") for frame in others] == ["1", "2", "3", None]


def test_touching_a_file_leaves_a_line_each_time(start: Start) -> None:
    extension = start({"on": "tool_call", "do": ["touch:here", "answer"]})
    assert [extension.ask(CALL), extension.ask(CALL)] == [OK, OK]
    (pid, first), (_, second) = (line.split() for line in extension.wrote("here").splitlines())

    assert int(pid) == extension.pid
    assert float(first) <= float(second) <= time.monotonic()


def test_sleeping_takes_time_and_hanging_never_ends(start: Start) -> None:
    extension = start("touch:a", "sleep:0.2", "touch:b", "hang", "touch:c")

    assert extension.touched("b") - extension.touched("a") >= 0.2
    assert extension.ask(CALL) == OK
    assert not (extension.cwd / "c").exists()


def test_busy_means_a_processor_is_used_up_and_input_is_read_all_the_same(start: Start) -> None:
    extension = start("busy:0.5", "touch:done", {"on": "tool_call", "do": "touch:heard"})
    extension.send(CALL)
    assert extension.touched("heard") < extension.touched("done")

    user, system = stat(extension.pid)[11:13]
    assert (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") > 0.15


# The process


@pytest.mark.parametrize(
    ("verb", "code"), [("exit", 0), ("exit:3", 3), ("signal:KILL", -9), ("signal:SEGV", -11), ("signal:TERM", -15)]
)
def test_it_ends_as_it_was_told(start: Start, verb: str, code: int) -> None:
    extension = start({"on": "tool_call", "do": verb})
    extension.send(CALL)

    assert extension.code() == code


def test_it_can_stop_itself(start: Start) -> None:
    extension = start("signal:STOP", "ready")
    until(lambda: stat(extension.pid)[0] == "T")
    extension.process.send_signal(signal.SIGCONT)

    assert extension.frame() == {"type": "ready"}


def test_sigterm_ends_it_even_in_the_middle_of_something(start: Start) -> None:
    extension = start({"on": "tool_call", "inline": True, "do": ["touch:here", "hang"]})
    extension.send(CALL)
    extension.wrote("here")
    extension.process.terminate()

    assert extension.code() == -signal.SIGTERM


def test_it_can_ignore_sigterm(start: Start) -> None:
    extension = start("record:heard", "ignore_sigterm", "ready")
    extension.frame()
    extension.process.terminate()
    until(lambda: "SIGTERM" in extension.wrote("heard"))

    assert extension.ask(CALL) == OK


@pytest.mark.parametrize("verb", ["grandchild", "daemonize"])
def test_what_it_starts_outlives_it_and_holds_its_pipes(start: Start, verb: str) -> None:
    extension = start(f"{verb}:pid", "exit")
    assert extension.code() == 0
    child = int(extension.wrote("pid"))
    try:
        _, parent, _, session, *_ = stat(child)
        held = [os.readlink(f"/proc/{child}/fd/{n}") for n in (0, 1)]
        assert held == [os.readlink(f"/proc/self/fd/{pipe.fileno()}") for pipe in (extension.input, extension.output)]
        assert int(parent) != extension.pid
        assert (int(session) == extension.pid) is (verb == "grandchild")
        assert extension.quiet()  # and no end of output while it lives
    finally:
        os.kill(child, signal.SIGKILL)
    assert extension.rest() == b""


def test_a_fork_bomb_has_as_many_children_as_asked_for(start: Start) -> None:
    extension = start("fork_bomb:7", "ready")
    extension.frame()
    group = [stat(int(entry.name))[2:3] for entry in Path("/proc").glob("[0-9]*")].count([str(extension.pid)])

    assert group == 8


def test_memory_descriptors_and_disk_are_taken_and_kept(start: Start) -> None:
    extension = start("malloc:60", "open_files:90", "fill_file:3", "ready")
    extension.frame()
    proc = Path(f"/proc/{extension.pid}")

    assert int(proc.joinpath("statm").read_text().split()[1]) * resource.getpagesize() > 60 << 20
    assert len(list(proc.joinpath("fd").iterdir())) >= 93
    assert (extension.cwd / "chaos.fill").stat().st_size == 3 << 20


def test_a_limit_that_is_met_is_told_and_survived(start: Start) -> None:
    extension = start("wait_for:limited", "open_files:500", "malloc:4000", "ready")
    resource.prlimit(extension.pid, resource.RLIMIT_NOFILE, (64, 64))
    resource.prlimit(extension.pid, resource.RLIMIT_AS, (600 << 20, 600 << 20))
    extension.touch("limited")

    assert extension.frame() == {"type": "ready"}
    assert "Too many open files" in extension.errors()
    assert '"malloc:4000": MemoryError' in extension.errors()


def test_it_can_write_down_what_it_was_given(start: Start) -> None:
    extension = start("record:heard", "write_env:facts", "ready")
    extension.frame()
    facts = json.loads(extension.wrote("facts"))

    assert (facts["pid"], facts["pgid"], facts["sid"]) == (extension.pid,) * 3
    assert (facts["ppid"], facts["env"]["COLOUR"], facts["cwd"]) == (os.getpid(), "blue", str(extension.cwd))
    assert sorted(facts["fds"]) == ["0", "1", "2"]
    assert facts["fds"]["2"] == str(extension.cwd / "stderr")
    assert facts["tty"] == "ENXIO"


# The other dialect


def asked(method: str, id_: int | None = 7, **params: Any) -> Frame:
    number = {} if id_ is None else {"id": id_}
    return {"jsonrpc": "2.0", **number, "method": method, "params": params}


def reply(result: Any, id_: int = 7) -> Frame:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def told(method: str, params: Any) -> Frame:
    return {"jsonrpc": "2.0", "method": method, "params": params}


EXECUTE = asked("tool/execute", callId="c7", name="t", args={"a": 1})
BEFORE = asked("interceptor/before", name="guard", toolName="t", args={"a": 1})
RUN = asked("command/execute", name="c", args="")
DONE = reply({"content": [{"type": "text", "text": "ok"}]})


@pytest.mark.parametrize("far", [False, True])
def test_in_the_other_dialect_it_speaks_on_3_and_4_where_it_is_told_to(start: Start, far: bool) -> None:
    extension = start("jsonrpc", "print:chatter", "hello:x", "register_tool:t", "ready", far=far)
    if not far:
        assert extension.line() == b"chatter"
    assert extension.quiet()
    extension.send(asked("initialize", 1, protocolVersion="5"))
    assert extension.frame()["params"] == {"name": "t", "description": "Does as it was told.", "parameters": OBJECT}
    assert extension.frame() == reply({"name": "x", "version": "1.0.0"}, 1)
    assert extension.ask(EXECUTE) == DONE
    if far:
        assert extension.wrote("stdout") == "chatter\n"
    extension.send({"jsonrpc": "2.0", "method": "shutdown"})
    assert extension.code() == 0 and extension.rest() == b""


OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("register_command:u", told("register/command", {"name": "u", "description": "Does as it was told."})),
        ('frame:{"type":"register","kind":"message_hook","name":"h"}', told("register/messageHook", {"name": "h"})),
        (
            "subscribe:turn_start,EventRetry",
            told("register/eventHandler", {"name": "watch", "events": ["EventTurnStart", "EventRetry"]}),
        ),
        ("intercept:tool_call", told("register/interceptor", {"name": "guard"})),
        ("intercept:turn_start", told("register/interceptor", {"name": "guard", "events": ["turn_start"]})),
        ("notify:hi", told("notify", {"level": "info", "message": "hi"})),
        ("submit:more", told("sendMessage", {"content": "more"})),
        ("panel_close:q", told("panel/close", {"panel_id": "q"})),
        ("open_panel", told("panel/open", {"title": "chaos", "lines": ["chaos"], "panel_id": "p"})),
        (
            'call_tool:{"id":"5","name":"u"}',
            {"jsonrpc": "2.0", "id": 5, "method": "host/executeTool", "params": {"name": "u", "args": {}}},
        ),
        ("call_tool_cancel:5", told("$/cancelRequest", {"id": 5})),
        ("host_request:host/x", asked("host/x", 1_000_000)),
        ("host_notify:abort", told("abort", {"text": "chaos"})),
        ("unknown_type:dance", told("dance", {"id": "1"})),
        ('frame:{"jsonrpc":"2.0","id":"x"}', {"jsonrpc": "2.0", "id": "x"}),
        ('raw:{"id":1.0}', {"id": 1.0}),
    ],
)
def test_in_the_other_dialect_a_frame_is_what_it_amounts_to(start: Start, verb: str, expected: Frame) -> None:
    assert start("jsonrpc", verb).frame() == expected


@pytest.mark.parametrize(
    ("verb", "trigger", "expected"),
    [
        ("answer:$ARGS", EXECUTE, reply({"content": [{"type": "text", "text": '{"a":1}'}]})),
        ("answer_wrong_id", EXECUTE, {**DONE, "id": 1_000_000}),
        ("failed", EXECUTE, reply({"content": [{"type": "text", "text": "ok"}], "isError": True})),
        ("refuse:boom", EXECUTE, {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "boom"}}),
        ("refuse:boom", BEFORE, {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "boom"}}),
        ("bad_base64", EXECUTE, reply({"content": [{"type": "image", "mime": "image/png", "data": "not base64!"}]})),
        ("tool_progress:half", EXECUTE, told("tool/progress", {"callId": "c7", "text": "half"})),
        ("answer", BEFORE, reply({"allow": True})),
        ("block:no", BEFORE, reply({"allow": False, "preview": "no"})),
        ('rewrite:{"a":2}', BEFORE, reply({"allow": True, "args": {"a": 2}})),
        ("block:no", asked("interceptor/event", name="g", event="turn_start"), reply({"allow": False, "reason": "no"})),
        ("answer", RUN, reply({})),
        ("answer:hi", RUN, told("showMessage", {"text": "hi"})),
        ("answer:more", asked("messageHook/onMessage", message="hi"), reply({"injection": "more"})),
        (
            "delta:half",
            asked("provider/stream", requestId=3),
            told("provider/delta", {"requestId": 3, "type": "text_delta", "delta": "half"}),
        ),
    ],
)
def test_in_the_other_dialect_an_answer_carries_the_number_and_what_its_verb_says(
    start: Start, verb: str, trigger: Frame, expected: Frame
) -> None:
    types = {"tool/execute": "tool_call", "command/execute": "command_invoked"}
    intercepts = trigger["method"] in ("interceptor/before", "interceptor/event")
    kind = types.get(trigger["method"], "event_intercept" if intercepts else "ext_request")

    assert start("jsonrpc", {"on": kind, "do": verb}).ask(trigger) == expected


@pytest.mark.parametrize(
    ("twist", "proof"),
    [
        ("nan", lambda line: b'"extra":NaN}}' in line),
        ("other_case", lambda line: set(json.loads(line)) == {"JSONRPC", "ID", "RESULT"} and b'"CONTENT"' in line),
        ("wrong_type:id", lambda line: json.loads(line)["id"] == "x"),
        ("wrong_type:content", lambda line: json.loads(line)["result"]["content"] == "x"),
        ("big_line:5242880", lambda line: len(line) == 5242879 and json.loads(line)["result"] == DONE["result"]),
        ("deep:900", lambda line: nested(json.loads(line)["result"]["extra"]) == 899),
    ],
)
def test_in_the_other_dialect_a_twist_changes_what_the_line_is_about(
    start: Start, twist: str, proof: Callable[[bytes], bool]
) -> None:
    extension = start("jsonrpc", {"on": "tool_call", "do": [twist, "answer", "answer"]})
    extension.send(EXECUTE)

    assert proof(extension.line())
    assert extension.frame() == DONE


def test_in_the_other_dialect_duplicate_keys_say_the_opposite_of_a_block(start: Start) -> None:
    extension = start("jsonrpc", {"on": "event_intercept", "do": ["duplicate_keys", "block:no"]})
    extension.send(BEFORE)
    pairs = dict(json.loads(extension.line(), object_pairs_hook=list))["result"]

    assert [value for name, value in pairs if name == "allow"] == [False, True]


def test_in_the_other_dialect_events_are_answered_before_anything_is_done_about_them(start: Start) -> None:
    script = ({"on": "event:turn_start", "do": "notify:turn"}, {"on": "event/dispatch", "do": []})
    extension = start("jsonrpc", *script)

    assert extension.ask(asked("event/dispatch", type="EventTurnStart", data={})) == reply({"action": None})
    assert extension.frame()["params"]["message"] == "turn"
    extension.send(asked("event/dispatch", 8, type="EventTurnEnd", data={}))
    assert extension.ask(EXECUTE) == DONE, "the other has no answer"


def test_in_the_other_dialect_a_record_has_both_and_answers_find_their_question(start: Start) -> None:
    script = ("record:heard", "host_request:host/x", 'call_tool:{"id":"g"}', "await:tool_result", "notify")
    extension = start("jsonrpc", *script)
    first, second = extension.frame()["id"], extension.frame()["id"]
    extension.send(reply({"a": 1}, first), {"jsonrpc": "2.0", "id": second, "error": {"code": -1, "message": "no"}})
    assert extension.frame()["method"] == "notify"
    rows = [json.loads(line) for line in extension.wrote("heard").splitlines()]

    assert [json.loads(row["line"])["id"] for row in rows] == [first, second]
    assert rows[0]["frame"] == {"type": "host_response", "id": "request-1", "result": {"a": 1}}
    failure = [{"type": "text", "text": "no"}]
    assert rows[1]["frame"] == {"type": "tool_result", "id": "g", "content": failure, "is_error": True}


def test_in_the_other_dialect_what_it_starts_holds_its_pipes_too(start: Start) -> None:
    extension = start("jsonrpc", "grandchild:pid", "exit", far=True)
    assert extension.code() == 0
    child = int(extension.wrote("pid"))
    try:
        held = [os.readlink(f"/proc/{child}/fd/{n}") for n in (3, 4)]
        assert held == [os.readlink(f"/proc/self/fd/{pipe.fileno()}") for pipe in (extension.input, extension.output)]
    finally:
        os.kill(child, signal.SIGKILL)
    assert extension.rest() == b""


@pytest.mark.parametrize("item", ["ready", "delta"])
def test_in_the_other_dialect_what_nobody_asked_for_cannot_be_answered(start: Start, item: str) -> None:
    extension = start("jsonrpc", item)

    assert extension.code() == 64
    assert f'"{item}": ' in extension.errors()
