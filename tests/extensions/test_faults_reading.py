"""Lines that are too long, too many, broken, or not meant for us: each costs its own call at most."""

import asyncio
import gc
import json
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hilt.extensions import life, supervisor
from hilt.model.content import text_of
from hilt.model.conversation import ToolMessage
from hilt.model.extensions import Dialect
from hilt.sessions.log import SessionLog
from hilt.sessions.records import TitleRecord, new_meta
from support.agent import MODEL, calls, says
from support.clocks import pass_time
from support.extending import FRAMES_ONLY, JSONRPC_ONLY, Extended, Made, chaos, extended, tool
from support.leftovers import nothing_left
from transport.children import runs, state

pytestmark = pytest.mark.usefixtures("dialect")
MIB = 1024 * 1024
FLAT = 12 * MIB
"""Bytes that may be in use beyond what was, whatever comes: a line of 4 MiB, joined from its pieces, and some more."""
AT_ONCE = 5.0
"""Seconds within which a call fails that need not wait for its deadline, on a busy machine."""


ANSWER = {"frames": "tool_result", "jsonrpc": "a line"}
"""As an answer is called of which no more can be read."""


def now() -> float:
    return asyncio.get_running_loop().time()


def answering(*do: str, name: str = "t", **manifest: Any) -> Made:
    """Its tool answers the first call so, and the others well."""
    return tool(name, {"on": "tool_call", "times": 1, "do": [*do]}, **manifest)


@asynccontextmanager
async def beside(folder: Path, *made: Made, **options: Any) -> AsyncIterator[Extended]:
    """These and a healthy one, which must still be well when all is over, as must be whatever was started."""
    async with nothing_left(), extended(folder, *made, tool("well"), **options) as it:
        await it.ready()
        yield it
        assert await it.call("well") == ("ok", False)


@contextmanager
def flat_memory() -> Iterator[None]:
    """What is allocated within the block must never be much."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        assert tracemalloc.get_traced_memory()[1] - before < FLAT
    finally:
        tracemalloc.stop()


@asynccontextmanager
async def lively(it: Extended, longest: float = 1.0) -> AsyncIterator[None]:
    """The loop must not be held for longer within the block, and the healthy extension answers all the time."""
    pauses: list[float] = []
    answers: list[float] = []

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            pauses.append(time.perf_counter() - before)

    async def call() -> None:
        while True:
            before = time.perf_counter()
            assert await it.call("well") == ("ok", False)
            answers.append(time.perf_counter() - before)

    async with asyncio.TaskGroup() as group:
        tasks = group.create_task(tick()), group.create_task(call())
        yield
        await it.until(lambda: answers, "the healthy one has answered")
        for task in tasks:
            task.cancel()
    assert max(pauses) < longest
    assert max(answers) < 4 * longest


# R1


async def test_a_line_too_long_fails_its_call_at_once_is_not_kept_and_the_next_is_whole(
    tmp_path: Path, dialect: Dialect
) -> None:
    async with beside(tmp_path, answering(f"big_line:{5 * MIB}", "answer")) as it:
        pid = it.status("t").pid
        with flat_memory():
            began = now()
            text, is_error = await it.call("t")
        assert is_error and now() - began < AT_ONCE, "its deadline is a minute"
        assert "extension t gave an unusable answer to t: a line of 5,242,879 bytes is too long" in text
        await it.warned(f"extension t: {ANSWER[dialect]} could not be used", "5,242,879 bytes is too long")
        assert await it.call("t") == ("ok", False)
        assert (it.status("t").pid, it.status("t").mistakes) == (pid, 1)


async def test_a_line_just_short_enough_is_taken(tmp_path: Path) -> None:
    async with beside(tmp_path, answering(f"big_line:{4 * MIB}", "answer")) as it:
        assert await it.call("t") == ("ok", False)
        assert it.status("t").mistakes == 0


async def test_a_long_line_whose_id_is_out_of_sight_costs_its_call_no_more_than_the_deadline(
    tmp_path: Path, dialect: Dialect
) -> None:
    content = {"content": [{"type": "text", "text": "x" * 5000}]}
    hidden = {"type": "tool_result", **content, "id": "$ID"} if dialect == "frames" else {"result": content, "id": 0}
    line = json.dumps(hidden).replace('"id": 0', '"id": $ID')
    made = answering(f"big_line:{5 * MIB}", f"raw:{line}", tool_timeout_ms=600)
    async with beside(tmp_path, made) as it:
        began = now()
        text, is_error = await it.call("t")
        assert is_error and "timeout waiting for t/t" in text
        assert 0.5 < now() - began < 0.6 + AT_ONCE
        assert await it.call("t") == ("ok", False)


async def test_the_third_line_too_long_within_a_minute_starts_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.05)
    wrong = {"on": "tool_call", "match": {"args": {"long": True}}, "do": [f"big_line:{4 * MIB + 2}", "answer"]}
    async with beside(tmp_path, tool("t", wrong)) as it:
        pid = it.status("t").pid
        assert pid
        for number in range(3):
            assert it.status("t").state == "ready", f"after {number}"
            assert "too long" in (await it.call("t", long=True))[0]
        assert (await it.state("t", "restarting")).reason == (
            "was ended: it sent 3 lines too long to read within a minute"
        )
        await it.ready("t")
        assert it.status("t").pid != pid and not state(pid)
        assert await it.call("t") == ("ok", False)


# R2


async def test_bytes_without_an_end_cost_no_memory_and_hold_nobody_up(tmp_path: Path) -> None:
    made = answering("endless:100000000", "raw:", "answer")
    async with beside(tmp_path, made) as it, lively(it):
        with flat_memory():
            assert await it.call("t") == ("ok", False)
        await it.warned("extension t", "a line of 100,000,000 bytes is too long")
        assert it.status("t").mistakes == 1


async def test_one_that_never_ends_its_line_is_given_up_on_and_can_be_stopped(tmp_path: Path) -> None:
    async with beside(tmp_path, answering("endless", tool_timeout_ms=500, stop_grace_ms=100)) as it, lively(it):
        began = now()
        assert "timeout" in (await it.call("t"))[0]
        assert now() - began < 0.5 + AT_ONCE
        began = now()
    assert now() - began < 0.1 + 1 + AT_ONCE


# R3


async def test_ten_million_empty_lines_are_skipped_without_a_word(tmp_path: Path) -> None:
    made = answering("flood:160", "raw:" + "\n" * 65535, "answer")
    async with beside(tmp_path, made) as it, lively(it):
        with flat_memory():
            assert await it.call("t") == ("ok", False)
        assert not it.warnings() and it.status("t").mistakes == 0
        assert (tmp_path / "logs" / "ext-t.log").stat().st_size < 1000


async def test_a_flood_of_nonsense_is_told_once_logged_a_little_and_holds_nobody_up(tmp_path: Path) -> None:
    counts: list[int] = []

    async def count() -> None:
        while True:
            counts.append(it.status("t").mistakes)
            await asyncio.sleep(0)

    made = answering("flood:40000", "raw:x", "answer")
    async with beside(tmp_path, made) as it, lively(it), asyncio.TaskGroup() as group:
        counting = group.create_task(count())
        assert await it.call("t") == ("ok", False)
        counting.cancel()
        assert it.status("t").mistakes == 40_000
        assert max(after - before for before, after in pairwise(counts)) <= 256, "in one turn of the loop"
        assert len(it.warnings()) == 1
        assert (tmp_path / "logs" / "ext-t.log").stat().st_size < 64 * 1024


# R4, R5, R6, R10: characters


@pytest.mark.parametrize(
    ("do", "text"),
    [
        (["bad_utf8", "answer"], "ok\ufffd\ufffd"),
        (["slowly:0.001", "answer:naïve 漢字 🎉"], "naïve 漢字 🎉"),
        (["separators", "answer"], "ok\u2028\u0085\u000b"),
        (["surrogate", "answer"], "ok\ufffd"),
        ([], "windows"),
    ],
    ids=["broken UTF-8", "UTF-8 in pieces", "separators", "half a pair", "CRLF"],
)
async def test_odd_characters_arrive_and_can_be_kept_and_shown(
    tmp_path: Path, dialect: Dialect, do: list[str], text: str
) -> None:
    content = '"content":[{"type":"text","text":"windows"}]'
    windows = {
        "frames": f'raw:{{"type":"tool_result","id":"$ID",{content}}}\r',
        "jsonrpc": f'raw:{{"jsonrpc":"2.0","id":$ID,"result":{{{content}}}}}\r',
    }
    do = do or [windows[dialect]]
    path = tmp_path / "session.jsonl"
    turns = [calls(("t", {})), says("x")]
    with SessionLog.create(path, new_meta(str(tmp_path), MODEL.provider, MODEL.id)) as log:
        log.append(TitleRecord("odd characters"))  # the file is there from the first record on
        async with beside(tmp_path, answering(*do), turns=turns, log=log) as it:
            assert (await it.say()).text == "x"
            assert it.result() == text
            assert it.status("t").mistakes == 0
            shown = json.loads(msgspec.json.encode(it.told()))
            assert [event["content"][0]["text"] for event in shown if event["type"] == "tool_result"] == [text]
    with SessionLog.open(path) as log:
        kept = [message for message in log.messages() if isinstance(message, ToolMessage)]
        assert [text_of(result.content) for message in kept for result in message.results] == [text]


# R7, R8, R9: JSON that is not quite


@pytest.mark.parametrize("depth", [900, 9000, 100_000])
async def test_deep_nesting_never_costs_more_than_the_frame_it_is_in(tmp_path: Path, depth: int) -> None:
    made = chaos(
        "t",
        "hello",
        f"deep:{depth}",
        "notify:deep",
        f"deep:{depth}",
        "register_tool:deep",
        "register_tool:t",
        "ready",
        {"on": "tool_call", "times": 1, "do": [f"deep:{depth}", "answer"]},
    )
    async with beside(tmp_path, made) as it:
        began = now()
        text, _ = await it.call("t")
        assert now() - began < AT_ONCE
        assert text.startswith("ok") or "nested too deeply" in text
        assert await it.call("t") == ("ok", False)
        assert it.status("t").restarts == 0


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_numbers_that_json_does_not_have_fail_their_call_at_once(tmp_path: Path, literal: str) -> None:
    async with beside(tmp_path, answering(f"nan:{literal}", "answer")) as it:
        began = now()
        text, is_error = await it.call("t")
        assert now() - began < AT_ONCE
        assert is_error or "structured content from extension t is unusable" in text
        assert await it.call("t") == ("ok", False)


async def test_of_a_key_given_twice_the_last_counts_but_a_guard_that_does_so_has_not_answered(tmp_path: Path) -> None:
    twice = answering("duplicate_keys", "failed")  # true first, false second
    guard = chaos(
        "guard",
        "hello",
        "intercept:tool_call",
        "ready",
        {"on": "event_intercept", "match": {"tool_name": "well"}, "times": 1, "do": ["duplicate_keys", "block:no"]},
        guard={"on_failure": "block"},
    )
    async with beside(tmp_path, twice, guard) as it:
        assert await it.call("t") == ("ok", False)
        text, is_error = await it.call("well")
        assert is_error and "guard guard gave no verdict" in text and "given twice" in text
        await it.warned("guard guard gave no verdict", "given twice")


# R11, R12: what cannot be read at all


async def test_a_mark_of_byte_order_is_forgiven_in_the_first_line_only(tmp_path: Path) -> None:
    marked = chaos("marked", "bom", "hello", "bom", "register_tool:lost", "register_tool:marked", "ready")
    async with beside(tmp_path, marked) as it:
        assert it.status("marked").tools == ("marked",)
        assert it.status("marked").mistakes == 1
        await it.warned("extension marked", "could not be used")


@pytest.mark.parametrize(
    "do",
    [
        ["nul", "answer"],
        ["wrong_type:content", "answer"],
        ["wrong_type:IS_ERROR", "failed"],
        ["raw:CUT_OFF"],
        ['frame:{"type":"tool_result","id":"$ID","content":{"type":"text","text":"ok"}}'],
        ['frame:{"type":"tool_result","id":"$ID","content":[{"type":"text","text":1}]}'],
    ],
    ids=["NUL", "content", "is_error", "cut off", "an object for a list", "a number for a text"],
)
async def test_an_answer_that_cannot_be_used_fails_its_call_at_once_with_the_reason(
    tmp_path: Path, dialect: Dialect, do: list[str]
) -> None:
    spelt = {
        "frames": ("is_error", '{"type":"tool_result","id":"$ID","content":'),
        "jsonrpc": ("isError", '{"jsonrpc":"2.0","id":$ID,"result":{"content":'),
    }[dialect]
    do = [verb.replace("IS_ERROR", spelt[0]).replace("CUT_OFF", spelt[1]) for verb in do]
    async with beside(tmp_path, answering(*do)) as it:
        began = now()
        text, is_error = await it.call("t")
        assert is_error and now() - began < AT_ONCE
        assert "extension t gave an unusable answer to t: " in text
        await it.warned("extension t: ", "could not be used")
        assert dialect == "jsonrpc" or await it.warned("extension t: tool_result could not be used")
        assert it.status("t").mistakes == 1
        assert await it.call("t") == ("ok", False)


@pytest.mark.parametrize(
    "do",
    [
        ["utf16", "answer"],
        ["wrong_type", "answer"],
        ["wrong_type:id", "answer"],
        ['frame:{"type":"tool_result","id":1.5,"content":[]}'],
        ['frame:{"type":"tool_result","content":[]}'],
        ["raw:null"],
        ['raw:{"type":"tool_result","jsonrpc":"2.0","id":OTHER,"content":[],"result":{"content":[]}}'],
    ],
    ids=["UTF-16", "a list", "id true", "id 1.5", "no id", "null", "an id of another type"],
)
async def test_an_answer_to_nobody_is_counted_and_told_and_the_call_ends_by_its_deadline(
    tmp_path: Path, dialect: Dialect, do: list[str]
) -> None:
    other = {"frames": "1", "jsonrpc": '"$ID"'}[dialect]
    do = [verb.replace("OTHER", other) for verb in do]
    async with beside(tmp_path, answering(*do, tool_timeout_ms=10_000)) as it, asyncio.TaskGroup() as group:
        calling = group.create_task(it.call("t"))
        await it.until(lambda: it.status("t").mistakes, "its answer came")
        assert not calling.done()
        await pass_time(10)
        text, is_error = await calling
        assert is_error and "timeout waiting for t/t" in text
        assert it.status("t").mistakes == 1
        await it.warned("extension t", "could not be used")
        assert await it.call("t") == ("ok", False)


@JSONRPC_ONLY
@pytest.mark.parametrize("id_", ["$ID.0", "1e3", "[$ID]", "-$ID", "9$ID", str(2**64), "1"])
async def test_only_the_very_number_it_was_asked_with_makes_an_answer(tmp_path: Path, id_: str) -> None:
    """Not the same number in other words, nor one that was answered before."""
    line = f'raw:{{"jsonrpc":"2.0","id":{id_},"result":{{"content":[{{"type":"text","text":"wrong"}}]}}}}'
    async with beside(tmp_path, answering(line, "answer")) as it:
        assert await it.call("t") == ("ok", False)
        assert it.status("t").mistakes == 1


# R13, R14


@JSONRPC_ONLY
async def test_unknown_notifications_are_ignored_and_told_once_and_unknown_requests_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    many = ("flood:100", "host_notify:x$N", "host_notify:register/x", "host_notify:host/config.get")
    asked = 'host_request:{"id":"q","method":"host/dance"}'
    long = f"host_notify:{'x' * 3 * MIB}"
    made = answering("flood:500", "host_notify:hologram", *many, asked, "await:host_response", long, "answer")
    made.files["chaos.json"] = made.files["chaos.json"].replace('"ready"', '"record:../../got", "ready"')
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        assert it.status("t").mistakes == 0, "others may know what to do with them"
        await it.warned("extension t: an unknown notification 'hologram' is ignored")
        assert len(it.warnings()) <= 20 and all(len(warning) < 300 for warning in it.warnings())
        log = (tmp_path / "logs" / "ext-t.log").read_text()
        assert log.count("'hologram'") == 1 and log.count("unknown notification") == 32
        (refused,) = [frame for frame in it.frames("got") if frame["type"] == "host_response"]
        assert refused["error"] == {"code": -32601, "message": "method not found: host/dance"}
    assert not caplog.records


async def test_who_asks_what_is_only_told_or_tells_what_is_asked_learns_which_it_is(tmp_path: Path) -> None:
    asked = 'host_request:{"id":"q","method":"setWidget"}'
    made = answering(asked, "await:host_response", "host_notify:host/abort", "answer")
    made.files["chaos.json"] = made.files["chaos.json"].replace('"ready"', '"record:../../got", "ready"')
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        (refused,) = [frame for frame in it.frames("got") if frame["type"] == "host_response"]
        assert refused["error"]["code"] == -32601 and "setWidget (it is a notification" in refused["error"]["message"]
        await it.warned("extension t: 'host/abort' is ignored: it is a request, and came as a notification")


@FRAMES_ONLY
async def test_frames_of_unknown_types_are_ignored_and_told_once_for_each_type(tmp_path: Path) -> None:
    many = ("flood:100", "unknown_type:x$N")
    made = answering("flood:500", "unknown_type:hologram", "unknown_type:odour", *many, "answer")
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        assert it.status("t").mistakes == 601
        await it.warned("extension t: a frame of unknown type 'hologram' is ignored")
        await it.warned("extension t: a frame of unknown type 'odour' is ignored")
        assert len(it.warnings()) <= 20
        log = (tmp_path / "logs" / "ext-t.log").read_text()
        assert log.count("'hologram'") == 1 and log.count("unknown type") == 32


@FRAMES_ONLY
async def test_a_type_as_long_as_a_line_is_shown_in_short(tmp_path: Path) -> None:
    long = "x" * 3 * MIB
    made = answering(f"unknown_type:{long}", f'frame:{{"type":"{long}","id":1}}', "answer")
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        assert it.status("t").mistakes == 2
        assert [len(warning) < 300 for warning in it.warnings()] == [True, True]


async def test_keys_in_other_case_count_where_the_exact_ones_are_absent(tmp_path: Path, dialect: Dialect) -> None:
    loud = ["other_case", "hello:t", "other_case", "register_tool:t", "other_case", "ready"]
    content = '[{"type":"text","Text":"a","text":"b"}]'
    exact = {
        "frames": f'raw:{{"TYPE":"shout","type":"tool_result","id":"$ID","content":{content}}}',
        "jsonrpc": f'raw:{{"jsonrpc":"2.0","ID":7,"id":$ID,"Result":7,"result":{{"Content":7,"content":{content}}}}}',
    }[dialect]
    made = chaos(
        "t", *loud, {"on": "tool_call", "times": 1, "do": ["other_case", "answer"]}, {"on": "tool_call", "do": exact}
    )
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        assert await it.call("t") == ("b", False)
        assert it.status("t").mistakes == 0


# R15


async def test_a_last_line_without_its_end_counts_although_its_writer_is_gone(tmp_path: Path) -> None:
    async with beside(tmp_path, answering("no_newline", "answer:my last", "exit:0")) as it:
        assert await it.call("t") == ("my last", False)
        assert (await it.state("t", "restarting")).reason == "exited with code 0"


@pytest.mark.parametrize(
    "much",
    [["flood:20", "raw:" + "\n" * 65535], ["flood:1000", "notify:so long"]],
    ids=["more than is read at once", "more wishes than are granted before it is read on"],
)
async def test_what_the_pipe_still_holds_when_its_writer_is_gone_counts(tmp_path: Path, much: list[str]) -> None:
    async with beside(tmp_path, answering(*much, "answer:my last", "exit:0")) as it:
        assert await it.call("t") == ("my last", False)


# R16


async def test_prints_between_frames_are_tolerated_counted_and_told_once(tmp_path: Path) -> None:
    made = answering("stray:3", "notify:first", "stray:40", "answer")
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        await it.until(lambda: any(note.message == "first" for note in it.session.notes.shown), "the note came through")
        assert it.status("t").mistakes == 43
        assert len(it.warnings()) == 1 and "extension t: a line could not be used" in it.warnings()[0]


# R17


async def test_one_that_closes_its_output_and_stays_is_ended_with_its_children_and_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert life._EOF_GRACE == 2.0
    monkeypatch.setattr(life, "_EOF_GRACE", 0.4)
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.05)
    born = tmp_path / "child"
    silent = {"on": "tool_call", "once": str(tmp_path / "once"), "do": ["close_stdout", f"grandchild:{born}", "hang"]}
    async with beside(tmp_path, tool("t", silent, stop_grace_ms=100)) as it:
        pid = it.status("t").pid
        assert pid
        began = now()
        text, is_error = await it.call("t")
        assert is_error and 0.35 < now() - began < 0.4 + AT_ONCE
        assert "it closed its output but kept running" in text and "outcome is unknown" in text
        assert "closed its output but kept running" in (await it.state("t", "restarting")).reason
        await it.ready("t")
        assert not state(pid) and not runs(int(born.read_text())), "there is never a second beside it"
        assert await it.call("t") == ("ok", False)


async def test_one_that_closes_its_output_on_its_way_out_may_still_exit_by_itself(tmp_path: Path) -> None:
    leaving = {"on": "tool_call", "do": ["answer", "close_stdout", "sleep:0.3", "exit:7"]}
    async with beside(tmp_path, tool("t", leaving)) as it:
        assert await it.call("t") == ("ok", False)
        assert (await it.state("t", "restarting")).reason == "exited with code 7"


# And after the end


async def test_what_it_asks_for_on_its_way_out_is_not_done_and_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asking = ["call_tool:well", "host_request:x", "submit_slash:/help", "register_tool:late", "flood:2000", "raw:bye"]
    async with beside(tmp_path, tool("t", {"on": "shutdown", "do": [*asking, "exit"]}, {"on": "eof", "do": []})):
        pass
    gc.collect()  # what was begun and never done would be found now
    assert not caplog.records
