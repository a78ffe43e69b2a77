"""What real programs of the jsonrpc dialect do on the wire, and what must not trouble the host."""

import json
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from hilt.model.events import Notified, ToolResultAdded
from hilt.wire.line import LINE_LIMIT
from support.agent import calls, says
from support.extending import Extended, extended
from support.hilt_process import wait_gone
from support.replay import Piglet

PRELUDE = """
import json, os, subprocess, sys

incoming, outgoing = os.fdopen(3, "rb"), os.fdopen(4, "wb")

def write(line):
    outgoing.write(line + b"\\n")
    outgoing.flush()

def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode())

def heard():
    line = incoming.readline()
    return json.loads(line) if line else sys.exit(0)

def until(method):
    while True:
        if (message := heard()).get("method") == method:
            return message

def register(kind, **params):
    send(method="register/" + kind, params=params)

def open_with(name="t"):
    message = until("initialize")
    register("tool", name=name, description="a tool", parameters={"type": "object"})
    send(id=message["id"], result={"name": "p", "version": "1"})

def answer(message, text="ok"):
    send(id=message["id"], result={"content": [{"type": "text", "text": text}]})

def note(text):
    send(method="notify", params={"message": text})
"""


def piglet(name: str, body: str, **manifest: Any) -> Piglet:
    """An extension on descriptors 3 and 4 that does this."""
    started = {"runtime": sys.executable, "entry": "main.py", "pipes": "fd", **manifest}
    return Piglet(name, started, {"main.py": PRELUDE + body})


async def noted(it: Extended, text: str) -> None:
    await it.seen(Notified, message=text)


# Spelling


async def test_keys_in_capitals_are_keys_in_the_envelope_and_in_all_that_it_carries(tmp_path: Path) -> None:
    body = """
message = until("initialize")
write(json.dumps({"JSONRPC": "2.0", "Method": "register/tool", "Params": {
    "Name": "t", "Description": "a tool", "Parameters": {"type": "object"}, "PromptHint": "use it"}}).encode())
write(json.dumps({"Method": "register/interceptor", "Params": {"Name": "gate", "Priority": 3}}).encode())
write(json.dumps({"ID": message["id"], "Result": {"Name": "p", "Version": "9"}}).encode())
message = until("interceptor/before")
write(json.dumps({"Id": message["id"], "Result": {"Allow": True, "Args": {"n": 2}}}).encode())
message = until("tool/execute")
text = json.dumps(message["params"]["args"])
write(json.dumps({"Id": message["id"], "Result": {
    "Content": [{"Type": "text", "Text": text, "Data": "", "Mime": ""}], "IsError": True, "ErrorCode": "X"}}).encode())
message = until("interceptor/after")
write(json.dumps({"Id": message["id"], "Error": {"Code": -32603, "Message": "never mind"}}).encode())
until("nothing")
"""
    turns = [calls(("t", {"n": 1})), says("done")]
    async with extended(tmp_path, piglet("p", body), turns=turns) as it:
        await it.ready("p")
        await it.say()
        assert it.result() == '[error:X] {"n": 2}'
        assert it.of(ToolResultAdded)[0].is_error


async def test_a_request_whose_id_is_no_integer_is_reported_and_nothing_else_suffers(tmp_path: Path) -> None:
    body = """
open_with()
for odd in ('"7"', "7.5", "true", "[7]", "123456789012345678901"):
    write(b'{"jsonrpc":"2.0","id":' + odd.encode() + b',"method":"host/listTools","params":{}}')
note("asked")
while True:
    answer(until("tool/execute"))
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await noted(it, "asked")
        assert "`id` must be an integer" in await it.warned("p", "host/listTools")
        assert await it.call("t") == ("ok", False)
        assert it.status("p").state == "ready"


async def test_registrations_nobody_knows_or_without_a_name_are_reported_and_ignored(tmp_path: Path) -> None:
    body = """
message = until("initialize")
for kind in ("tool", "command", "interceptor", "messageHook", "inputTransformer", "compactor"):
    register(kind, name="", description="")
register("shortcut", key="")
register("promptSection", title="")
register("provider", api="")
register("telepathy", name="x")
send(method="register/", params=None)
register("tool", name="t", description="a tool", parameters=None)
send(id=message["id"], result={})
while True:
    answer(until("tool/execute"))
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await it.ready("p")
        assert await it.call("t") == ("ok", False)
        assert it.status("p").tools == ("t",)
        await it.warned("p", "telepathy")


async def test_lines_that_are_no_messages_are_passed_over(tmp_path: Path) -> None:
    body = r"""
message = until("initialize")
write(b"")
write(b"   ")
write(b"not json")
write(b"[1,2]")
write(b'{"jsonrpc":"2.0"}')
write(b'{"jsonrpc":"2.0","id":99,"result":{}}')
write(b'{"jsonrpc":"2.0","id":null,"method":"notify","params":{"message":"heard"}}')
register("tool", name="t", description="a tool", parameters={"type": "object"})
send(id=message["id"], result=None)
while True:
    answer(until("tool/execute"))
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await it.ready("p")
        await noted(it, "heard")
        assert await it.call("t") == ("ok", False)


# Long lines


async def test_a_line_as_long_as_the_limit_is_read_and_one_longer_costs_only_its_own_call(tmp_path: Path) -> None:
    body = f"""
open_with()
for size in ({LINE_LIMIT}, {LINE_LIMIT} + 2, 9_000_000):
    message = until("tool/execute")
    result = {{"content": [{{"type": "text", "text": "@"}}]}}
    line = json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}})
    write(line.replace("@", "x" * (size - len(line))).encode())  # and its end
while True:
    answer(until("tool/execute"))
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await it.ready("p")
        text, is_error = await it.call("t")
        assert "xxx" in text and not is_error
        for _ in range(2):
            text, is_error = await it.call("t")
            assert is_error and "too long" in text
        assert await it.call("t") == ("ok", False)
        assert it.status("p").state == "ready"


async def test_what_an_extension_could_not_read_is_not_sent_to_it(tmp_path: Path) -> None:
    body = """
open_with()
while True:
    message = until("tool/execute")
    answer(message, str(len(message["params"]["args"].get("text", ""))))
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await it.ready("p")
        assert await it.call("t", text="x" * 4_190_000) == ("4190000", False)
        text, is_error = await it.call("t", text="x" * LINE_LIMIT)
        assert is_error and "tool/execute would be a line of 4,19" in text
        assert await it.call("t") == ("0", False)


async def test_events_of_a_conversation_that_fits_no_line_are_told_all_the_same(tmp_path: Path) -> None:
    body = """
message = until("initialize")
register("eventHandler", name="w", events=["EventMessagePre", "EventTurnEnd", "EventAgentEnd"])
register("messageHook", name="h")
send(id=message["id"], result={})
while True:
    message = until("event/dispatch")
    note(message["params"]["type"])
    send(id=message["id"], result={"action": None})
"""
    async with extended(tmp_path, piglet("p", body), turns=[says("done")]) as it:
        await it.ready("p")
        outcome = await it.say("x" * (LINE_LIMIT + 100))
        assert outcome.stop == "end"
        await noted(it, "EventAgentEnd")
        assert [event.message for event in it.of(Notified)] == ["EventMessagePre", "EventTurnEnd", "EventAgentEnd"]
        await it.warned("message hook of p", "messageHook/onMessage would be a line of 4,19")
        assert it.status("p").state == "ready"


# Life and death

HELD = f"held-by-{uuid4().hex}"
GRANDCHILD = f"""
# Holds every pipe for as long as it lives.
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{HELD}"], close_fds=False)
"""


async def test_an_exit_is_seen_although_a_grandchild_holds_every_pipe(tmp_path: Path) -> None:
    body = f"""
open_with()
until("tool/execute")
{GRANDCHILD}
os._exit(3)
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await it.ready("p")
        began = time.monotonic()
        text, is_error = await it.call("t")
        assert is_error and "3" in text
        await it.until(lambda: it.status("p").state != "ready", "the exit is seen")
        assert time.monotonic() - began < 5


async def test_a_stop_does_not_wait_for_a_grandchild_that_holds_every_pipe(tmp_path: Path) -> None:
    body = f"""
open_with()
{GRANDCHILD}
note("held")
until("nothing")
"""
    async with extended(tmp_path, piglet("p", body, stop_grace_ms=10_000)) as it:
        await noted(it, "held")
        began = time.monotonic()
    assert time.monotonic() - began < 5
    wait_gone(HELD)


async def test_a_program_that_closes_its_output_is_gone_though_it_runs_on(tmp_path: Path) -> None:
    body = """
open_with()
until("tool/execute")
outgoing.close()
while True:
    incoming.readline()
"""
    async with extended(tmp_path, piglet("p", body, stop_grace_ms=100)) as it:
        await it.ready("p")
        pid = it.status("p").pid
        text, is_error = await it.call("t")
        assert is_error and "p" in text
        await it.until(lambda: not Path(f"/proc/{pid}").exists(), "its end")


async def test_what_is_printed_goes_to_the_log_and_counts_for_nothing(tmp_path: Path) -> None:
    body = """
open_with()
print('{"jsonrpc":"2.0","method":"notify","params":{"message":"printed"}}')
print("x" * 100_000, flush=True)
note("heard")
while True:
    answer(until("tool/execute"))
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        await noted(it, "heard")
        assert await it.call("t") == ("ok", False)
        log = tmp_path / "logs" / "ext-p.log"
        await it.until(lambda: '"message":"printed"' in log.read_text(), "the log has it")
        assert [event.message for event in it.of(Notified)] == ["heard"]


# The opening


async def test_who_never_answers_initialize_has_failed_when_its_time_is_over(tmp_path: Path) -> None:
    body = """
message = until("initialize")
register("tool", name="t", description="a tool", parameters=None)
cancelled = until("$/cancelRequest")["params"]
with open("told", "w") as file:
    file.write(json.dumps(cancelled))
until("nothing")
"""
    async with extended(tmp_path, piglet("p", body, start_timeout_ms=300)) as it:
        status = await it.state("p", "failed")
        assert "initialize" in status.reason and "0.3 s" in status.reason
        assert "start_timeout_ms" in status.reason
        told = tmp_path / "extensions" / "p" / "told"
        await it.until(lambda: told.exists() and told.read_text() == '{"id": 1}', "it is told")
        text, is_error = await it.call("t")
        assert is_error and "t" in text


async def test_who_refuses_to_initialize_has_failed_with_its_own_words(tmp_path: Path) -> None:
    body = """
message = until("initialize")
send(id=message["id"], error={"code": -32603, "message": "no licence found"})
until("nothing")
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        status = await it.state("p", "failed")
        assert "no licence found" in status.reason


async def test_a_program_runs_in_its_own_directory_with_nothing_to_read_and_knows_the_session(tmp_path: Path) -> None:
    body = """
open_with()
nothing = os.path.samefile("/dev/fd/0", "/dev/null")
note(json.dumps([os.environ["PIGLET_FD"], os.environ["PIGLET_SESSION_ID"], os.getcwd(), nothing]))
until("nothing")
"""
    async with extended(tmp_path, piglet("p", body)) as it:
        told = json.loads((await it.until(lambda: it.of(Notified)))[0].message)
        assert told == ["1", it.session.parts.log.meta.id, str(tmp_path / "extensions" / "p"), True]
