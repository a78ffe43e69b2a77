"""An extension that misbehaves on command: the program under a host's fault tests.

    python3 -I -S chaos.py '["hello","register_tool:t","ready",{"on":"tool_call","do":["sleep:6","answer"]}]'

One file, standard library only, for any host of the frames dialect, and for any of the jsonrpc dialect where the first
item of the script is "jsonrpc". The script is a JSON list: the first argument, the file an argument `@FILE` names, or
`chaos.json` in the working directory. A script that cannot be followed is reported
on stderr with the item at fault, exit code 64; a wait for what never comes ends it with 75. Whatever else fails (a
broken pipe, a limit of the system) is told on stderr, and the list goes on. Items of the script:
  "VERB" or "VERB:ARGUMENT"    done at start-up, in order
  {"do": …}                    likewise; `do` is a verb or a list of verbs
  {"on": TYPE, "do": …}        done for each frame of this type from the host, and also "event:turn_start",
                               "event_intercept:tool_call", "ext_request:provider/stream" and "eof"; the first entry
                               that fits has it
  {"after": SECONDS, "do": …}  done so long after the start
An entry may have more: "times": N, how many frames it takes; "match": {…}, what a frame must contain; "inline": true,
nothing is read until it is done (other lists with slow verbs run in threads of their own); "needs": FILE, only while
that file is there; "once": FILE, only if it is not there yet, and it is made: the next start of the program behaves.
Frames no entry takes: whatever can be answered → answer, shutdown → shutdown_ack and exit, eof → exit; an entry whose
list is empty leaves them without an answer. In what is written, $ID is the id of the frame that
set the list off, $ARGS its arguments, $PID this process, and $N a number that grows. FIELDS is a text for the field in
brackets, or a JSON object whose members are merged in. The last column names the faults a verb is for: S start, R
reading, W writing, C calls, G guards, L life and death.

The jsonrpc dialect, on descriptors 3 and 4 with PIGLET_FD=1 and else on stdin and stdout, has the same verbs and types:
what is written and what comes is translated as far as there is a counterpart, and `record` keeps both. There `hello`
waits for `initialize`, which `ready` answers, as does every further `hello`; `shutdown_ack` and `clear_notes` write
nothing. Events are answered before their entry is done, unless that is for "event/dispatch". Ids are numbers there: a
name that is none stands for one. "frame:" with a "jsonrpc" member, and "raw:", are written as they are.

Frames that an extension may send:
  hello:FIELDS[name]             the first line; also twice, or with {"version":…}        S6 S7
  ready, shutdown_ack            the end of the start; the answer to the end              S8
  register_tool:FIELDS[name]     a tool; also late, or again with another description     S8 S12
  register_command:FIELDS[name]  a command                                                S12 C14
  register:FIELDS[kind]          another kind of contribution                             S12
  subscribe:EVENTS               watches these events, with commas between them           W3 W5
  intercept:EVENTS               decides on these events                                  G1 G6
  notify:FIELDS[message]         a note                                                   R16
  clear_notes                    takes its notes away                                     R16
  submit:FIELDS[text]            asks the model; on event:turn_end it never stops         C15
  submit_slash:FIELDS[text]      runs a slash command                                     C15
  open_panel:FIELDS              a panel nobody asked for                                 R16
  panel_render:FIELDS[panel_id]  other lines for it                                       R16
  panel_close:FIELDS[panel_id]   its end                                                  R16
  tool_progress:FIELDS[text]     output of the call that runs                             C2
  call_tool:FIELDS[name]         runs a tool of the host                                  C12
  call_tool_cancel:FIELDS[id]    no longer wants that                                     C12
  host_request:FIELDS[method]    asks the host                                            C13
  host_notify:FIELDS[method]     tells the host                                           R13
  delta:FIELDS[delta]            a piece of the answer that provider/stream asks for      C16
  frame:JSON, raw:TEXT           any frame; any line                                      S3 R12 R16 G7
  unknown_type:TYPE              a sound frame of a type nobody knows                     R13
  big_description:N              a tool with a description of N bytes                     S10
  big_schema:N                   a tool with a schema of N bytes                          S10
Answers to the frame that set the list off:
  answer:FIELDS[text]            "ok" or the text; shows it for a command; allows         C3 G1
  answer_wrong_id                with an id the host never gave                           C4
  answer_other                   with the id of the request of its type before it         C5
  failed                         says that the tool failed                                C9
  refuse:TEXT                    answers with an error                                    C9 G2
  empty_content, null_content    a result without content                                 C11
  unknown_block, bad_base64      a block of an unknown type; an image that is none        C10
  big_image:N, big_text:N        N characters of an image or a text                       C10
  structured:JSON                structured content beside the text                       C10
  activate:NAME                  a deferred tool becomes active                           C10
  block:REASON, suppress         refuses with or without a reason                         G1 G8
  rewrite:JSON, replace:TEXT     other arguments, of any type; another text               G7 G8
Twists, each of which changes the next line its list writes, as in ["bom","hello"]:
  slowly:SECONDS                 byte by byte with pauses, so that characters are cut     S2 R5
  big_line:N                     padded to exactly N bytes, its end included              R1
  no_newline                     without its end                                          R15
  flood:N                        N times, each with a $N of its own                       S10 R3 W2 C13
  bad_utf8                       bytes that are no UTF-8 in its last string               R4
  separators                     U+2028, U+0085 and U+000B there, and a lone CR           R6
  surrogate, nul                 half a surrogate pair there; a NUL byte there            R10 R11
  utf16, bom                     in UTF-16; with a byte order mark                        R11
  deep:N                         N lists inside each other in one of its fields           R7
  nan:LITERAL                    a number that JSON does not have in one of its fields    R8
  duplicate_keys                 each key a second time, true become false                R9
  other_case                     KEYS IN CAPITALS                                         R14
  wrong_type:FIELD               another type of value there; without FIELD, a list       R12 G7
Input and output:
  mute                           leaves alone the frames no entry takes                   S1 C2 L5
  read_slowly:N                  reads N bytes a second                                   W3
  close_stdin, close_stdout      closes it and goes on                                    R17 W4
  record:FILE                    appends what comes: {"at","pid","line"|"eof"|"signal"}   W5 C7 L8 L9
  endless:N                      N bytes and no end of line; without N, for ever          R2
  log:TEXT, stderr:N             a line, or N bytes, on stderr                            S4 C1 L12
  print:TEXT, stdout:N           the same on stdout, wherever it speaks                   S3 R16
Time and order:
  sleep:SECONDS, hang            waits; waits for ever                                    S1 C2 C3 G1 G10
  busy:SECONDS                   keeps a processor busy; a minute unless told             L11
  await:TYPE                     until such a frame has come since the list began         C12
  wait_for:FILE                  until the file is there                                  C3 G9
  touch:FILE                     appends pid and time to the file: this was reached       C8
  again:N                        starts its list over, N times; without N, for ever       C2
The process (no child it starts outlives a minute, and it does not outlive half an hour itself):
  exit:CODE                      ends                                                     S4 C1 C8 G2 G3 L1 L2 L3
  signal:NAME                    sends itself a signal: KILL, SEGV, STOP                  C1 G2 L13
  ignore_sigterm                 does not end at SIGTERM any more                         L5
  grandchild:FILE                a child that holds all its pipes; pid to the file        L6
  daemonize:FILE                 the same, an orphan in a session of its own              L7
  fork_bomb:N                    N children                                               L11
  malloc:MB, open_files:N        takes memory or descriptors and keeps them               L11
  fill_file:MB                   writes a file of that size, chaos.fill                   L11
  write_env:FILE                 JSON: what it was given, and whether /dev/tty opens      L10 L17
Short for several:
  answer_twice                   answer, answer                                           C4
  hello_slowly:SECONDS           slowly:SECONDS, hello                                    S2
  register_many:N                flood:N, register_tool:t$N                               S10
  bad_names                      register_tool with names that no tool may have           S11
  stray:N                        flood:N, raw:starting up, step $N                        S3 R16
  blank_lines:N                  flood:N, raw                                             R3
  stop_reading, read_on          read_slowly:0; read_slowly at full speed                 W1 W2 W7
"""

import errno
import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import FileIO
from itertools import count, groupby
from typing import Any, NamedTuple, NoReturn, TypeAlias

BAD_SCRIPT, NEVER_CAME = 64, 75
PATIENCE, LIFETIME, CHILD_LIFETIME = 30, 1800, 60
"""Seconds; they bound every wait, and what a failed test leaves behind."""
BLOCK = 64 * 1024
FOR_EVER = float("inf")
NEEDED = object()
HERE = "\0here"
"""Stands for a value until its line is written."""

Frame: TypeAlias = dict[str, Any]
Twist: TypeAlias = Callable[[bytes], bytes]
Act: TypeAlias = Callable[["Run", Any], object]
Parse: TypeAlias = Callable[[str], Any]


class ScriptError(ValueError):
    """The script asks for what cannot be done."""


class Verb(NamedTuple):
    act: Act
    parse: Parse | None = None
    """Makes the argument of the text after the colon; ValueError when it cannot."""
    default: Any = NEEDED
    """The argument where there is no text."""
    slow: bool = False
    """Whether it may take its time, or block on a full pipe."""


class Step(NamedTuple):
    item: str
    verb: Verb
    argument: Any


class Entry:
    """A list of steps, and when it is done."""

    def __init__(self, item: Frame) -> None:
        do = item["do"]
        self.steps = tuple(read_steps([do] if isinstance(do, str) else do))
        self.on: str = item.get("on", "")
        self.after: float = item.get("after", 0)
        self.left: float = item.get("times", FOR_EVER)
        self.match: Frame = item.get("match", {})
        self.inline = item.get("inline", False) or not any(step.verb.slow for step in self.steps)
        self.needs: str = item.get("needs", "")
        self.once: str = item.get("once", "")

    def takes(self, frame: Frame) -> bool:
        if self.on not in kinds(frame) or self.left <= 0 or not contains(frame, self.match) or not self.may_run():
            return False
        self.left -= 1
        return True

    def may_run(self) -> bool:
        if self.needs and not os.path.exists(self.needs):
            return False
        if self.once:
            try:
                os.close(os.open(self.once, os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                return False
            except OSError as error:
                give_up(BAD_SCRIPT, f'"once": {error}')
        return True


def kinds(frame: Frame) -> tuple[str, ...]:
    type_, method = frame["type"], frame.get("method")
    return type_, f"{type_}:{frame.get('event')}", f"{type_}:{method}", method or type_


def contains(value: object, wanted: object) -> bool:
    """Whether the value has everything that is wanted of it, and perhaps more."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(key in value and contains(value[key], wanted[key]) for key in wanted)
    return type(value) is type(wanted) and value == wanted


class Program:
    """The process: what it reads, what it writes, and the entries that wait for something."""

    def __init__(self, entries: list[Entry], tongue: "Frames | JsonRpc") -> None:
        names = os.listdir("/dev/fd")
        self.given = {name: os.readlink(f"/dev/fd/{name}") for name in names if os.path.lexists(f"/dev/fd/{name}")}
        """The descriptors there were before any of our own."""
        self.entries = entries
        self.tongue = tongue
        self.defaults = [Entry({"on": kind, "do": do}) for kind, do in DEFAULTS.items()]
        self.muted = threading.Event()
        self.ignores_sigterm = threading.Event()
        self.kept: list[object] = []
        """Memory and descriptors that stay taken."""
        self.numbers = count(1)
        self.output = threading.Lock()
        self.recording: FileIO | None = None
        self.seen: list[Frame] = []
        self.arrival = threading.Condition()
        self.ended = False
        self.rate = FOR_EVER
        """Bytes a second that are read."""
        self.changes: deque[tuple[Callable[[], None], threading.Event]] = deque()
        self.woken, self.wake = os.pipe()

    def run(self) -> NoReturn:
        signal.alarm(LIFETIME)
        signal.signal(signal.SIGTERM, self.on_sigterm)
        in_thread(self.run_all, [entry for entry in self.entries if not entry.on and not entry.after])
        for entry in self.entries:
            if entry.after:
                in_thread(self.run_all, [entry])
        self.read()

    def run_all(self, entries: list[Entry]) -> None:
        for entry in entries:
            time.sleep(entry.after)
            if entry.may_run():
                Run(self, entry.steps).perform()

    def on_sigterm(self, number: int, _: object) -> None:
        self.record(signal="SIGTERM")
        if not self.ignores_sigterm.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def read(self) -> NoReturn:
        rest = b""
        while True:
            watched = [self.woken] if self.ended or not self.rate else [self.woken, self.tongue.source]
            if self.woken in select.select(watched, [], [])[0]:
                os.read(self.woken, 1)
                change, done = self.changes.popleft()
                change()
                done.set()
            elif data := os.read(self.tongue.source, int(min(BLOCK, max(1, self.rate / 20)))):
                time.sleep(len(data) / self.rate)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self.receive(line)
            else:
                self.ended = True
                self.record(eof=True)
                self.react({"type": "eof"})

    def between_reads(self, change: Callable[[], None]) -> None:
        """Change how input is read. The reader does it itself, for while it waits it keeps its input open."""
        if threading.current_thread() is threading.main_thread():
            change()
        else:
            done = threading.Event()
            self.changes.append((change, done))
            os.write(self.wake, b"!")
            done.wait(PATIENCE)

    def set_rate(self, rate: float) -> None:
        self.rate = rate

    def close_input(self) -> None:
        self.ended = True
        close(self.tongue.source)

    def receive(self, line: bytes) -> None:
        said = line.decode(errors="replace")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            self.record(line=said)
            tell(f"the host sent what is not JSON: {error}")
            return
        frame = self.tongue.heard(message) if isinstance(message, dict) else {}
        translated = {} if frame is message else {"frame": frame}
        self.record(line=said, **translated)
        if isinstance(frame.get("type"), str):
            self.react(frame)

    def react(self, frame: Frame) -> None:
        with self.arrival:
            self.seen.append(frame)
            self.arrival.notify_all()
        entries = self.entries if self.muted.is_set() else [*self.entries, *self.defaults]
        entry = next((entry for entry in entries if entry.takes(frame)), None)
        if frame.get("method") == DISPATCH and frame["type"] == "event" and not (entry and entry.on == DISPATCH):
            # Where an event wants an answer, it has it before anything is done about it.
            Run(self, () if self.muted.is_set() else tuple(read_steps(["answer"])), frame).perform()
        if entry:
            perform = Run(self, entry.steps, frame).perform
            perform() if entry.inline else in_thread(perform)

    def start_recording(self, path: str) -> None:
        self.recording = FileIO(path, "a")

    def record(self, **what: Any) -> None:
        if self.recording:
            line = compact({"at": time.monotonic(), "pid": os.getpid(), **what})
            self.recording.write(line.encode() + b"\n")

    def write(self, data: bytes, pause: float = 0.0) -> None:
        """Write all of it before anybody else writes."""
        with self.output:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self.tongue.sink, rest[:1] if pause else rest) :]
                time.sleep(pause)


class Run:
    """One run through a list of steps, and the frame that set it off."""

    def __init__(self, program: Program, steps: tuple[Step, ...], trigger: Frame | None = None) -> None:
        self.program = program
        self.steps = steps
        self.trigger = trigger or {"type": "the start"}
        self.next = 0
        self.rounds = 0
        self.awaited = len(program.seen) if trigger else 0
        """The first frame that `await` has not looked at."""
        self.twists: list[Twist] = []
        self.manner: dict[str, Any] = {}
        """How the next line is written: `copies`, `pause`, `end`."""

    def perform(self) -> None:
        while self.next < len(self.steps):
            item, verb, argument = self.steps[self.next]
            self.next += 1
            try:
                verb.act(self, argument)
            except (ValueError, OverflowError) as error:
                give_up(BAD_SCRIPT, f"{shown(item)}: {error}")
            except (OSError, MemoryError) as error:
                tell(f"{shown(item)}: {error!r}")

    def twist(self, change: Twist) -> None:
        self.twists.append(change)

    def send(self, frame: object) -> None:
        self.write(compact(frame), self.program.tongue.written)

    def send_text(self, line: str) -> None:
        self.write(line, lambda line: [line])

    def write(self, text: str, written: Callable[[str], list[str]]) -> None:
        twists, manner, self.twists, self.manner = self.twists, self.manner, [], {}
        pause, block = manner.get("pause", 0.0), bytearray()
        for _ in range(manner.get("copies", 1)):
            lines = written(PLACEHOLDER.sub(self.value, text))
            if not lines:
                self.twists, self.manner = twists, manner  # for the next one that is written
                return
            *before, line = lines
            for one in before:
                block += one.encode(errors="surrogatepass") + b"\n"
            data = line.encode(errors="surrogatepass")
            for twist in twists:
                data = twist(data)
            block += data + manner.get("end", b"\n")
            if len(block) >= BLOCK:
                self.program.write(bytes(block), pause)
                block.clear()
        self.program.write(bytes(block), pause)

    def value(self, found: re.Match[str]) -> str:
        """What `$ID` and the like stand for, as the inside of a JSON string."""
        if found[1] == "N":
            return str(next(self.program.numbers))
        arguments = self.trigger.get("args", self.trigger.get("tool_args"))
        value = {"ID": self.trigger.get("id"), "ARGS": compact(arguments), "PID": os.getpid()}[found[1]]
        if value is None:
            raise ScriptError(f"{self.trigger['type']} has no id")
        return compact(str(value))[1:-1]

    def answer(self, given: Frame) -> None:
        """`given` is merged into the plain answer; `text` is what the plain answer says."""
        more = dict(given)
        said = more.pop("text", "")
        plain: Frame
        match self.trigger["type"]:
            case "tool_call":
                plain = {"type": "tool_result", "id": "$ID", "content": [{"type": "text", "text": said or "ok"}]}
            case "command_invoked" | "shortcut_invoked":
                action = {"action": "display", "display": said} if said else {"action": "noop"}
                plain = {"type": "command_response", "id": "$ID", **action}
            case "event_intercept":
                plain = {"type": "event_intercept_response", "id": "$ID"}
            case "ext_request" | "event" if "id" in self.trigger:
                result = usual_result(self.trigger["method"], self.trigger.get("params", {}), said)
                plain = {"type": "ext_response", "id": "$ID", "result": result}
            case other:
                raise ScriptError(f"{other} cannot be answered")
        self.send(plain | more)

    def refuse(self, reason: str) -> None:
        """By method there is an error for that; frames have one for commands, and else a result that failed."""
        error = {"code": -32603, "message": reason} if self.trigger["type"] == "ext_request" else reason
        given: Frame = {"error": error, "result": None}
        if "method" not in self.trigger and self.trigger["type"] == "tool_call":
            given = {"text": reason, "is_error": True}
        self.answer(given)


def usual_result(method: str, params: Frame, said: str) -> Frame:
    """What a healthy extension answers where this method asks."""
    message: Frame = {"content": [{"type": "text", "text": said or "ok"}], "stopReason": "stop"}
    results: dict[str, Frame] = {
        DISPATCH: {"action": None},
        "interceptor/before": {"allow": True},
        "interceptor/after": {"content": said} if said else {"details": params.get("details")},
        "messageHook/onMessage": {"injection": said},
        "inputTransformer/transform": {"output": said or params.get("input"), "handled": False},
        "compact/execute": {"messages": params.get("messages")},
        "provider/stream": {"message": message},
    }
    return results.get(method, {})


# The dialects


class Frames:
    source, sink = 0, 1

    def heard(self, message: Frame) -> Frame:
        return message

    def written(self, line: str) -> list[str]:
        return [line]

    def greet(self, run: "Run", given: Frame) -> None:
        run.send({"type": "hello", "name": "chaos", "version": "1.0.0", "capabilities": OFFERS, **given})


class JsonRpc:
    """Says in JSON-RPC what the script says in frames, and the other way round."""

    def __init__(self) -> None:
        self.source, self.sink = (3, 4) if os.environ.get("PIGLET_FD") == "1" else (0, 1)
        self.opening: int | None = None
        """The id of `initialize`, once that has come."""
        self.opened = threading.Event()
        self.greeting: Frame | None = None
        self.calls: dict[int, str] = {}
        """How the host calls the calls of tools it makes, by their ids."""
        self.wider: set[int] = set()
        """Questions about something else than a call of a tool."""
        self.tools: set[int] = set()
        """Our own requests that call tools of the host."""
        self.numbers: dict[str, int] = {}
        self.names: dict[int, str] = {}

    # What comes

    def heard(self, message: Frame) -> Frame:
        id_, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method is None:
            return self.answered(id_, message)
        if method == "initialize":
            self.opening = id_
            self.opened.set()
        known = HEARD.get(method)
        frame = known(self, id_, params) if known else {"type": "ext_notify", "method": method, "params": params}
        if id_ is None:
            return frame
        return {"id": id_, "method": method, **({"type": "ext_request", "params": params} if not known else frame)}

    def answered(self, id_: Any, message: Frame) -> Frame:
        id_name = self.names.get(id_, str(id_))
        if id_ not in self.tools:
            told = {name: value for name, value in message.items() if name in ("result", "error")}
            return {"type": "host_response", "id": id_name, **told}
        result, error = message.get("result") or {}, message.get("error")
        content = [{"type": "text", "text": error["message"]}] if error else result.get("content", [])
        is_error = bool(error or result.get("isError"))
        return {"type": "tool_result", "id": id_name, "content": content, "is_error": is_error}

    def call(self, id_: int, params: Frame) -> Frame:
        self.calls[id_] = params["callId"]
        return {"type": "tool_call", "name": params["name"], "args": params["args"] or {}}

    def question(self, _: int, params: Frame) -> Frame:
        asked = {"event": "tool_call", "tool_name": params["toolName"], "tool_args": params["args"] or {}}
        return {"type": "event_intercept", **asked, "interceptor": params["name"], "origin": params.get("origin", "")}

    def wider_question(self, id_: int, params: Frame) -> Frame:
        self.wider.add(id_)
        return {"type": "event_intercept", **params}

    def event(self, _: int, params: Frame) -> Frame:
        data = params["data"]
        text = {"text": data["Delta"]} if "Delta" in data else {}
        return {"type": "event", "event": EVENTS.get(params["type"], params["type"]), **data, **text}

    def cancel(self, _: object, params: Frame) -> Frame:
        if params["id"] in self.calls:
            return {"type": "tool_cancel", "id": params["id"]}
        return {"type": "ext_notify", "method": "$/cancelRequest", "params": params}

    # What is written

    def greet(self, run: "Run", given: Frame) -> None:
        if self.greeting is not None:
            run.send({"type": "hello", **given})
            return
        if not self.opened.wait(PATIENCE):
            give_up(NEVER_CAME, "initialize never came")
        self.greeting = {"name": "chaos", "version": "1.0.0", **given}

    def written(self, line: str) -> list[str]:
        frame = json.loads(line)
        if not isinstance(frame, dict) or "type" not in frame:
            return [line]
        type_ = frame.pop("type")
        write = WRITTEN.get(type_)
        messages = write(self, frame) if write else [tells(type_, frame)]
        return [compact({"jsonrpc": "2.0", **message}) for message in messages]

    def number(self, name: Any) -> Any:
        """The id that a name stands for."""
        if not isinstance(name, str):
            return name
        number = int(name) if name.isdecimal() else self.numbers.setdefault(name, FIRST_NUMBER + len(self.numbers))
        self.names[number] = name
        return number

    def introduce(self, frame: Frame) -> list[Frame]:
        if self.opening is None:
            raise ScriptError("initialize has not come")
        return [{"id": self.opening, "result": {**(self.greeting or {}), **frame}}]

    def subscribe(self, frame: Frame) -> list[Frame]:
        spelt = {name: event for event, name in EVENTS.items()}
        messages = []
        if (events := frame.pop("events", None)) is not None:
            given = {"name": "watch", "events": [spelt.get(name, name) for name in events]}
            messages.append(tells("register/eventHandler", given))
        if intercept := frame.pop("intercept", None):
            beyond = {"events": intercept} if intercept != ["tool_call"] else {}
            messages.append(tells("register/interceptor", {"name": "guard", **beyond, **frame}))
        return messages

    def progress(self, frame: Frame) -> list[Frame]:
        id_ = self.number(frame["id"])
        return [tells("tool/progress", {"callId": self.calls.get(id_, str(id_)), "text": frame["text"]})]

    def call_tool(self, frame: Frame) -> list[Frame]:
        id_, parent = self.number(frame.pop("id")), frame.pop("parent_id", "")
        self.tools.add(id_)
        under = {"callId": self.calls.get(self.number(parent), parent)} if parent else {}
        return [{"id": id_, "method": "host/executeTool", "params": {**frame, **under}}]

    def request(self, frame: Frame) -> list[Frame]:
        return [{**frame, "id": self.number(frame.get("id"))}]

    def reply(self, frame: Frame, result: Any) -> list[Frame]:
        id_ = {"id": self.number(frame["id"])} if "id" in frame else {}
        if "error" in frame:
            error = frame["error"]
            return [{**id_, "error": {"code": -32603, "message": error} if isinstance(error, str) else error}]
        return [{**id_, "result": result}]

    def result(self, frame: Frame) -> list[Frame]:
        rest = {RESPELT.get(name, name): value for name, value in frame.items() if name not in ("id", "error")}
        if isinstance(content := rest.get("content"), list):
            rest["content"] = [
                {"mime" if name == "mime_type" else name: value for name, value in block.items()} for block in content
            ]
        return self.reply(frame, rest)

    def command_response(self, frame: Frame) -> list[Frame]:
        rest = {name: value for name, value in frame.items() if name not in ("id", "error", "action")}
        shown = [tells("showMessage", {"text": rest.pop("display")})] if "display" in rest else []
        sent = [tells("sendMessage", {"content": rest.pop("prompt")})] if "prompt" in rest else []
        return [*shown, *sent, *self.reply(frame, rest)]

    def verdict(self, frame: Frame) -> list[Frame]:
        block = frame.get("block", False)
        result: Frame = {"allow": not block if isinstance(block, bool) else block}
        spelt = RESPELT | ({"reason": "reason"} if self.number(frame.get("id")) in self.wider else {})
        names = ("reason", "modified_args", "replace_text")
        result |= {spelt[name]: frame[name] for name in names if name in frame}
        return self.reply(frame, result)


def tells(method: str, params: Any) -> Frame:
    return {"method": method, "params": params}


def camel(kind: str) -> str:
    first, *rest = kind.split("_")
    return first + "".join(word.capitalize() for word in rest)


DISPATCH = "event/dispatch"
PLACEHOLDER = re.compile(r"\$(ID|ARGS|PID|N)\b")
FIRST_NUMBER = 1_000_000
"""Of ids that are not numbers in the script, far from those of the host."""
EVENTS = {
    "EventTurnStart": "turn_start",
    "EventTurnEnd": "turn_end",
    "EventToolStart": "tool_call",
    "EventToolEnd": "tool_result",
    "EventStreamDelta": "assistant_message",
}
RESPELT = {"is_error": "isError", "reason": "preview", "modified_args": "args", "replace_text": "text"}
HEARD: dict[str, Callable[[JsonRpc, Any, Frame], Frame]] = {
    "initialize": lambda _, __, params: {"type": "initialize", **params},
    "shutdown": lambda _, __, ___: {"type": "shutdown"},
    "tool/execute": JsonRpc.call,
    "command/execute": lambda _, __, params: {"type": "command_invoked", **params},
    "shortcut/handle": lambda _, __, params: {"type": "shortcut_invoked", **params},
    "interceptor/before": JsonRpc.question,
    "interceptor/event": JsonRpc.wider_question,
    DISPATCH: JsonRpc.event,
    "$/cancelRequest": JsonRpc.cancel,
    **{
        f"panel/{what}": lambda _, __, params, what=what: {"type": f"panel_{what}", **params}  # type: ignore[misc]
        for what in ("key", "resize", "closed")
    },
}
WRITTEN: dict[str, Callable[[JsonRpc, Frame], list[Frame]]] = {
    "hello": JsonRpc.introduce,
    "ready": JsonRpc.introduce,
    "shutdown_ack": lambda _, __: [],
    "clear_notes": lambda _, __: [],
    "register_tool": lambda _, frame: [tells("register/tool", {"parameters": frame.pop("schema", None), **frame})],
    "register_command": lambda _, frame: [tells("register/command", frame)],
    "register": lambda _, frame: [tells(f"register/{camel(frame.pop('kind'))}", frame)],
    "subscribe": JsonRpc.subscribe,
    "submit": lambda _, frame: [tells("sendMessage", {"content": frame["text"]})],
    "submit_slash": lambda _, frame: [tells("sendMessage", {"content": frame["text"]})],
    "open_panel": lambda _, frame: [tells("panel/open", {"panel_id": frame["panel"].pop("id"), **frame["panel"]})],
    "panel_render": lambda _, frame: [tells("panel/render", frame)],
    "panel_close": lambda _, frame: [tells("panel/close", frame)],
    "tool_progress": JsonRpc.progress,
    "call_tool": JsonRpc.call_tool,
    "call_tool_cancel": lambda self, frame: [tells("$/cancelRequest", {"id": self.number(frame["id"])})],
    "host_request": JsonRpc.request,
    "host_notify": lambda _, frame: [frame],
    "tool_result": JsonRpc.result,
    "command_response": JsonRpc.command_response,
    "event_intercept_response": JsonRpc.verdict,
    "ext_response": lambda self, frame: self.reply(frame, frame.get("result")),
}


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shown(item: object) -> str:
    return compact(item)[:200]


def tell(problem: str) -> None:
    try:
        os.write(2, f"chaos: {problem}\n".encode(errors="replace"))
    except OSError:
        pass  # nobody is left to be told


def give_up(code: int, problem: str) -> NoReturn:
    tell(problem)
    os._exit(code)


def in_thread(target: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def append(path: str, line: object) -> None:
    with FileIO(path, "a") as file:
        file.write(f"{line}\n".encode(errors="replace"))


def close(descriptor: int) -> None:
    """Its number stays taken, or the next file to be opened would get it."""
    with FileIO(os.devnull, "r+") as nothing:
        os.dup2(nothing.fileno(), descriptor)


def pour(write: Callable[[bytes], object], size: float, what: bytes) -> None:
    block = what * (BLOCK // len(what))
    while size > 0:
        write(block[: int(min(size, BLOCK))])
        size -= BLOCK


def spawn() -> int:
    return os.posix_spawnp("sleep", ["sleep", str(CHILD_LIFETIME)], os.environ)


def fields(main: str) -> Parse:
    """Reads a JSON object as it is, and any other text as the value of one field, if there is one for it."""
    return lambda given: json.loads(given) if given.startswith("{") or not main else {main: given}


def sends(type_: str, parse: Parse, **frame: Any) -> Verb:
    return Verb(lambda run, given: run.send({"type": type_, **frame, **given}), parse, {})


# What twists do to a line


def in_last_string(piece: bytes, line: bytes) -> bytes:
    end = line.rfind(b'"')
    return line[:end] + piece + line[end:]


def separated(line: bytes) -> bytes:
    return in_last_string("\u2028\u0085\\u000b".encode(), line).replace(b",", b",\r", 1)


def with_value(value: bytes, line: bytes) -> bytes:
    """Where the frame takes any JSON, or else where nobody looks."""
    frame = json.loads(line)
    if "type" in frame:
        free = {"tool_result": "structured_content", "event_intercept_response": "modified_args"}
        return b'%b,"%b":%b}' % (line[:-1], free.get(frame["type"], "extra").encode(), value)
    inner = carried(frame)
    inner["args" if "allow" in inner else "extra"] = HERE
    return compact(frame).encode().replace(compact(HERE).encode(), value)


def carried(message: Frame) -> Frame:
    """What the envelope is about."""
    inner: Frame = message["result" if "result" in message else "params"]
    return inner


def padded(size: int, line: bytes) -> bytes:
    missing = size - len(line) - len(b',"pad":""\n')
    if missing < 0:
        raise ScriptError("the line is longer than that already")
    return b'%b,"pad":"%b"}' % (line[:-1], b"x" * missing)


def in_capitals(line: bytes) -> bytes:
    def shouted(members: Frame) -> Frame:
        return {name.upper(): value for name, value in members.items()}

    frame = json.loads(line)
    inside = {name: shouted(frame[name]) for name in ("params", "result") if "jsonrpc" in frame and name in frame}
    return compact(shouted({**frame, **inside})).encode()


def mistyped(name: str, line: bytes) -> bytes:
    frame = json.loads(line)
    members = carried(frame) if "jsonrpc" in frame and name not in frame else frame
    members[name] = isinstance(members.get(name), str) or "x"
    return compact(frame if name else []).encode()


def doubled(line: bytes) -> bytes:
    frame = json.loads(line)
    if "jsonrpc" not in frame:
        return line[:-1] + b"," + line[1:].replace(b":true", b":false")
    opposite = {name: not value if isinstance(value, bool) else value for name, value in frame["result"].items()}
    return line[:-2] + b"," + compact(opposite).encode()[1:] + b"}"


# The verbs

OFFERS = ["commands", "tools", "events", "panels", "tool_cancel", "call_tool"]
ANY_KIND = {"kind": "prompt_section", "title": "x", "content": "x", "key": "x", "name": "x", "api": "x"}
TOOL = {"name": "t", "description": "Does as it was told.", "schema": {"type": "object"}}
IMAGE = {"type": "image", "mime_type": "image/png"}

VERBS: dict[str, Verb] = {
    "hello": Verb(lambda run, given: run.program.tongue.greet(run, given), fields("name"), {}, slow=True),
    "ready": sends("ready", json.loads),
    "shutdown_ack": sends("shutdown_ack", json.loads),
    "register_tool": sends("register_tool", fields("name"), **TOOL),
    "register_command": sends("register_command", fields("name"), name="c", description="Does as it was told."),
    "register": sends("register", fields("kind"), **ANY_KIND),
    "subscribe": sends("subscribe", lambda events: {"events": events.split(",")}),
    "intercept": sends("subscribe", lambda events: {"intercept": events.split(",")}),
    "notify": sends("notify", fields("message"), level="info", message="chaos"),
    "clear_notes": sends("clear_notes", json.loads),
    "submit": sends("submit", fields("text"), text="go on"),
    "submit_slash": sends("submit_slash", fields("text"), text="/help"),
    "open_panel": sends("open_panel", json.loads, panel={"id": "p", "title": "chaos", "lines": ["chaos"]}),
    "panel_render": sends("panel_render", fields("panel_id"), panel_id="p", lines=["chaos"]),
    "panel_close": sends("panel_close", fields("panel_id"), panel_id="p"),
    "tool_progress": sends("tool_progress", fields("text"), id="$ID", text="still at it"),
    "call_tool": sends("call_tool", fields("name"), id="call-$N", name="read", args={}),
    "call_tool_cancel": sends("call_tool_cancel", fields("id"), id="call-1"),
    "host_request": sends("host_request", fields("method"), id="request-$N", method="host/sessionInfo", params={}),
    "host_notify": sends("host_notify", fields("method"), method="showMessage", params={"text": "chaos"}),
    "unknown_type": sends("chaos", fields("type"), id="$N"),
    "big_description": sends("register_tool", lambda n: {"description": "x" * int(n)}, **TOOL),
    "big_schema": sends("register_tool", lambda n: {"schema": {"$": "x" * (int(n) - len('{"$":""}'))}}, **TOOL),
    "frame": Verb(Run.send, json.loads),
    "raw": Verb(Run.send_text, str, ""),
    # Answers
    "answer": Verb(Run.answer, fields("text"), {}),
    "answer_wrong_id": Verb(Run.answer, None, {"id": "$ID-wrong"}),
    "failed": Verb(Run.answer, None, {"is_error": True}),
    "refuse": Verb(lambda run, reason: run.refuse(reason), str, "no"),
    "empty_content": Verb(Run.answer, None, {"content": []}),
    "null_content": Verb(Run.answer, None, {"content": None}),
    "unknown_block": Verb(Run.answer, None, {"content": [{"type": "hologram"}]}),
    "bad_base64": Verb(Run.answer, None, {"content": [{**IMAGE, "data": "not base64!"}]}),
    "big_image": Verb(Run.answer, lambda n: {"content": [{**IMAGE, "data": "A" * int(n)}]}, slow=True),
    "big_text": Verb(Run.answer, lambda n: {"content": [{"type": "text", "text": "x" * int(n)}]}, slow=True),
    "structured": Verb(Run.answer, lambda value: {"structured_content": json.loads(value)}, {"structured_content": {}}),
    "activate": Verb(Run.answer, lambda name: {"activate_tools": [name]}),
    "block": Verb(Run.answer, lambda reason: {"block": True, "reason": reason}, {"block": True, "reason": "no"}),
    "suppress": Verb(Run.answer, None, {"block": True}),
    "rewrite": Verb(Run.answer, lambda value: {"modified_args": json.loads(value)}),
    "replace": Verb(Run.answer, lambda said: {"replace_text": said}),
    # Twists
    "slowly": Verb(lambda run, pause: run.manner.update(pause=pause), float, slow=True),
    "flood": Verb(lambda run, copies: run.manner.update(copies=copies), int, slow=True),
    "no_newline": Verb(lambda run, _: run.manner.update(end=b"")),
    "big_line": Verb(Run.twist, lambda size: partial(padded, int(size)), slow=True),
    "bad_utf8": Verb(Run.twist, None, partial(in_last_string, b"\xff\xc3")),
    "separators": Verb(Run.twist, None, separated),
    "surrogate": Verb(Run.twist, None, partial(in_last_string, rb"\ud800")),
    "nul": Verb(Run.twist, None, partial(in_last_string, b"\0")),
    "utf16": Verb(Run.twist, None, lambda line: line.decode().encode("utf-16")),
    "bom": Verb(Run.twist, None, lambda line: b"\xef\xbb\xbf" + line),
    "deep": Verb(Run.twist, lambda depth: partial(with_value, b"[" * int(depth) + b"]" * int(depth)), slow=True),
    "nan": Verb(Run.twist, lambda literal: partial(with_value, literal.encode()), partial(with_value, b"NaN")),
    "duplicate_keys": Verb(Run.twist, None, doubled),
    "other_case": Verb(Run.twist, None, in_capitals),
    "wrong_type": Verb(Run.twist, lambda name: partial(mistyped, name), partial(mistyped, "")),
    # Input and output
    "mute": Verb(lambda run, _: run.program.muted.set()),
    "read_slowly": Verb(lambda run, rate: run.program.between_reads(partial(run.program.set_rate, rate)), float),
    "close_stdin": Verb(lambda run, _: run.program.between_reads(run.program.close_input)),
    "close_stdout": Verb(lambda run, _: close(run.program.tongue.sink)),
    "record": Verb(lambda run, path: run.program.start_recording(path), str),
    "endless": Verb(lambda run, size: pour(run.program.write, size, b"x"), int, FOR_EVER, slow=True),
    "log": Verb(lambda run, line: os.write(2, f"{line}\n".encode(errors="replace")), str),
    "print": Verb(lambda run, line: os.write(1, f"{line}\n".encode(errors="replace")), str),
    "stdout": Verb(lambda run, size: pour(partial(os.write, 1), size, b"x" * 63 + b"\n"), int, slow=True),
    "stderr": Verb(lambda run, size: pour(partial(os.write, 2), size, b"x" * 63 + b"\n"), int, slow=True),
    # Time and order
    "sleep": Verb(lambda run, pause: time.sleep(pause), float, slow=True),
    "hang": Verb(lambda run, _: threading.Event().wait(), slow=True),
    "touch": Verb(lambda run, path: append(path, f"{os.getpid()} {time.monotonic()}"), str),
    # The process
    "exit": Verb(lambda run, code: os._exit(code), int, 0),
    "signal": Verb(lambda run, number: os.kill(os.getpid(), number), lambda name: signal.Signals["SIG" + name]),
    "ignore_sigterm": Verb(lambda run, _: run.program.ignores_sigterm.set()),
    "grandchild": Verb(lambda run, path: append(path, spawn()), str),
    "fork_bomb": Verb(lambda run, n: [spawn() for _ in range(n)], int, slow=True),
    "malloc": Verb(lambda run, n: run.program.kept.extend(b"x" * 2**20 for _ in range(n)), int, slow=True),
    "open_files": Verb(lambda run, n: run.program.kept.extend(os.open("/", os.O_RDONLY) for _ in range(n)), int),
}
BAD_NAMES = ("", " ", "a/b", "a\nb", "a\0b", "../t", "x" * 500, "naïve", "t\u202eloot")
SHORT = {
    "answer_twice": ["answer", "answer"],
    "hello_slowly": ["slowly:…", "hello"],
    "register_many": ["flood:…", "register_tool:t$N"],
    "bad_names": [f"register_tool:{name}" for name in BAD_NAMES],
    "stray": ["flood:…", "raw:starting up, step $N"],
    "blank_lines": ["flood:…", "raw"],
    "stop_reading": ["read_slowly:0"],
    "read_on": ["read_slowly:inf"],
}
DEFAULTS: dict[str, str | list[str]] = {
    "tool_call": "answer",
    "command_invoked": "answer",
    "event_intercept": "answer",
    "shortcut_invoked": "answer",
    "ext_request": "answer",
    "shutdown": ["shutdown_ack", "exit"],
    "eof": "exit",
}


def verb(name: str, parse: Parse | None = None, default: Any = NEEDED) -> Callable[[Act], Act]:
    """Enter a function in the table, as one that may take its time."""

    def enter(act: Act) -> Act:
        VERBS[name] = Verb(act, parse, default, slow=True)
        return act

    return enter


@verb("delta", fields("delta"), {})
def send_delta(run: Run, given: Frame) -> None:
    if run.trigger.get("method") != "provider/stream":
        raise ScriptError("nobody asked for an answer of a model")
    asked = {"requestId": run.trigger["params"]["requestId"], "type": "text_delta", "delta": "ok"}
    run.send({"type": "host_notify", "method": "provider/delta", "params": {**asked, **given}})


@verb("answer_other")
def answer_other(run: Run, _: object) -> None:
    mine = run.trigger
    ids = [frame.get("id") for frame in run.program.seen if frame["type"] == mine["type"]]
    if not (others := [id_ for id_ in ids if id_ != mine.get("id")]):
        raise ScriptError("there was no other request")
    run.answer({"id": others[-1]})


@verb("busy", float, 60.0)
def keep_busy(run: Run, pause: float) -> None:
    deadline = time.monotonic() + pause
    while time.monotonic() < deadline:
        pass


@verb("await", str)
def await_frame(run: Run, kind: str) -> None:
    deadline = time.monotonic() + PATIENCE
    with run.program.arrival:
        found = False
        while not found:
            while run.awaited == len(run.program.seen):
                if not run.program.arrival.wait(deadline - time.monotonic()):
                    give_up(NEVER_CAME, f"{kind} never came")
            found = kind in kinds(run.program.seen[run.awaited])
            run.awaited += 1


@verb("wait_for", str)
def wait_for_file(run: Run, path: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            give_up(NEVER_CAME, f"{path} never came")
        time.sleep(0.005)


@verb("again", int, FOR_EVER)
def start_again(run: Run, limit: float) -> None:
    if run.rounds < limit:
        run.rounds += 1
        run.next = 0


@verb("daemonize", str)
def daemonize(run: Run, path: str) -> None:
    # A shell gives what it puts in the background another stdin, unless told not to.
    script = f'exec 9<&0; sleep {CHILD_LIFETIME} <&9 9<&- & echo $! >>"$0"'
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", script, path], os.environ, setsid=True), 0)


@verb("fill_file", int)
def fill_file(run: Run, size: int) -> None:
    with FileIO("chaos.fill", "w") as file:
        pour(file.write, size * 2**20, b"x")


@verb("write_env", str)
def write_env(run: Run, path: str) -> None:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
        terminal = "opens"
    except OSError as error:
        terminal = errno.errorcode[error.errno or 0]
    facts = {"env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd(), "fds": run.program.given, "tty": terminal}
    ids = {"pid": os.getpid(), "ppid": os.getppid(), "pgid": os.getpgid(0), "sid": os.getsid(0)}
    append(path, json.dumps({**facts, **ids}))


# Reading the script

FIELDS: dict[str, Any] = dict.fromkeys(("on", "needs", "once"), str) | dict.fromkeys(("after", "times"), (int, float))
FIELDS |= {"do": (str, list), "match": dict, "inline": bool}


def read_steps(items: Iterable[object]) -> Iterator[Step]:
    for item in items:
        name, colon, given = item.partition(":") if isinstance(item, str) else ("", "", "")
        if name in SHORT:
            yield from read_steps(part.replace("…", given) for part in SHORT[name])
        elif not isinstance(item, str) or name not in VERBS:
            raise ScriptError(f"{shown(item)}: no such verb; there are {' '.join(sorted([*VERBS, *SHORT]))}")
        else:
            try:
                yield Step(item, VERBS[name], read_argument(VERBS[name], given if colon else None))
            except (ValueError, KeyError, RecursionError) as error:
                raise ScriptError(f"{shown(item)}: {error}") from None


def read_argument(verb: Verb, given: str | None) -> Any:
    if given is None and verb.parse and verb.default is NEEDED:
        raise ScriptError("needs an argument")
    if given is not None and not verb.parse:
        raise ScriptError("takes no argument")
    return verb.parse(given) if given is not None and verb.parse else verb.default


def read_entry(item: Frame) -> Entry:
    for name, value in item.items():
        if not isinstance(value, FIELDS.get(name, ())):
            raise ScriptError(f"{shown(item)}: {name!r} is no field of an entry, or its value is of the wrong type")
    if "do" not in item or {"on", "after"} <= item.keys():
        raise ScriptError(f"{shown(item)}: an entry has 'do', and not more than one of 'on' and 'after'")
    if "on" not in item and item.keys() & {"times", "match", "inline"}:
        raise ScriptError(f"{shown(item)}: 'times', 'match' and 'inline' go with 'on'")
    return Entry(item)


def read_script(arguments: list[str]) -> tuple[list[Entry], Frames | JsonRpc]:
    source = arguments[0] if arguments else "@chaos.json"
    try:
        if source.startswith("@"):
            with open(source[1:], encoding="utf-8") as file:
                source = file.read()
        script = json.loads(source)
    except (OSError, ValueError, RecursionError) as error:
        raise ScriptError(f"the script cannot be read: {error}") from None
    if not isinstance(script, list):
        raise ScriptError("the script must be a JSON list")
    tongue = JsonRpc() if script[:1] == ["jsonrpc"] else Frames()
    entries: list[Entry] = []
    # Plain items in a row are one list, so that a twist reaches the frame after it.
    for structured, group in groupby(script[isinstance(tongue, JsonRpc) :], key=lambda item: isinstance(item, dict)):
        items = list(group)
        entries += map(read_entry, items) if structured else [Entry({"do": items})]
    return entries, tongue


if __name__ == "__main__":
    try:
        script = read_script(sys.argv[1:])
    except ScriptError as error:
        give_up(BAD_SCRIPT, str(error))
    Program(*script).run()
