"""What is to an extension's account: how often it was asked, how long that took, what it costs, what went wrong."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hilt.commands.ext import about_extensions
from hilt.extensions.account import Account
from hilt.model.conversation import user_text
from hilt.model.extensions import Dialect, ExtensionStatus
from support.agent import says
from support.extending import Made, chaos, extended, tool
from support.offerer import Ask
from support.offering import offering

SLACK = 2000
"""Milliseconds that a busy machine may take for what should take none."""
TIME = r"\d\d:\d\d:\d\d "


def slow(name: str, *seconds: float, **manifest: Any) -> Made:
    """A tool whose calls take so long, one after the other, and no time after that."""
    delays = [{"on": "tool_call", "times": 1, "do": [f"sleep:{time}", "answer"]} for time in seconds]
    return tool(name, *delays, **manifest)


@pytest.mark.usefixtures("dialect")
async def test_answers_are_counted_and_timed_and_a_restart_takes_nothing_away(tmp_path: Path) -> None:
    made = tool(
        "t",
        {"on": "tool_call", "once": "first", "do": ["sleep:0.3", "answer"]},
        {"on": "tool_call", "once": "second", "do": ["answer"]},
        {"on": "tool_call", "once": "third", "do": "exit:3"},
    )
    async with extended(tmp_path, made) as it:
        await it.ready()
        before = it.status("t")
        assert await it.call("t") == ("ok", False)
        assert await it.call("t") == ("ok", False)
        after = it.status("t")
        assert after.calls == before.calls + 2
        assert 300 <= after.worst_ms < 300 + SLACK
        assert after.mean_ms == pytest.approx(after.worst_ms / after.calls, abs=SLACK / after.calls)
        assert 0 < after.mean_ms < after.worst_ms
        assert 300 <= after.busy_ms - before.busy_ms < 300 + SLACK
        assert (await it.call("t"))[1], "it died of it"
        await it.until(lambda: it.status("t").restarts == 1 and it.status("t").state == "ready", "a new process")
        assert await it.call("t") == ("ok", False)
        again = it.status("t")
        assert again.calls >= after.calls + 1 and again.worst_ms == after.worst_ms and again.busy_ms >= after.busy_ms
        assert re.fullmatch(TIME + "exited with code 3", again.last_error)


async def test_time_in_which_several_answers_were_waited_for_counts_once(tmp_path: Path) -> None:
    async with extended(tmp_path, slow("t", 0.9, 0.4, 0.4)) as it, asyncio.TaskGroup() as group:
        await it.ready()
        group.create_task(it.call("t"))
        await it.until(lambda: it.status("t").busy_ms > 300, "the first is under way")
        for _ in range(2):
            group.create_task(it.call("t"))
        await it.until(lambda: it.status("t").calls == 3, "all answers")
        status = it.status("t")
        assert status.worst_ms >= 900 and 3 * status.mean_ms >= 1700
        assert 900 <= status.busy_ms < 3 * status.mean_ms - 300, "the time from the first question to the last answer"


@pytest.mark.usefixtures("dialect")
async def test_one_that_hangs_is_seen_to_and_what_timed_out_is_its_last_error_also_after_a_reload(
    tmp_path: Path,
) -> None:
    made = tool("t", {"on": "tool_call", "do": []}, tool_timeout_ms=500)
    async with extended(tmp_path, made) as it, asyncio.TaskGroup() as group:
        await it.ready()
        before = it.status("t")
        calling = group.create_task(it.call("t"))
        await it.until(lambda: it.status("t").busy_ms > before.busy_ms + 100, "while it is still waited for")
        assert it.status("t").last_error == ""
        assert (await calling)[1]
        hung = it.status("t")
        assert hung.calls == before.calls, "it has not answered"
        assert 500 <= hung.busy_ms - before.busy_ms < 500 + SLACK
        assert re.fullmatch(TIME + r"tool t timed out after 0\.5\d* s", hung.last_error)
        await it.session.extensions.reload("t")
        assert it.status("t").last_error == hung.last_error
        assert it.status("t").busy_ms >= hung.busy_ms


def hang(ask: Ask) -> Any:
    import time

    time.sleep(60)
    return {}


async def test_one_that_the_user_did_not_want_to_wait_for_any_longer_has_that_as_its_last_error(
    tmp_path: Path,
) -> None:
    made = offering("h", ("messageHook", {"name": "m", "priority": 0}), answers={"messageHook/onMessage": hang})
    async with extended(tmp_path, made, turns=[says("so"), says("so")]) as it:
        await it.ready()
        job = await it.session.prompt(user_text("go"))
        await it.until(lambda: it.session.waits.current, "it is asked")
        it.session.abort()
        await job.result()
        assert it.status("h").last_error == "", "nobody has waited for it"
        job = await it.session.prompt(user_text("go"))
        await it.until(lambda: [wait for wait in it.session.waits.current if wait.seconds > 1.1], "a while")
        it.session.abort()
        await job.result()
        assert re.match(TIME + r"its message hook: no answer for 1\.\d+ s", it.status("h").last_error)


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (tool("t", {"on": "tool_call", "do": ["raw:so much for that", "answer"]}), "could not be used"),
        (tool("t", {"on": "tool_call", "do": ["unknown_type:tomfoolery", "answer"]}), "tomfoolery"),
        (tool("t", {"on": "tool_call", "do": ["wrong_type:content", "answer"]}), "could not be used"),
    ],
    ids=["no frame", "an unknown one", "an unusable answer"],
)
async def test_a_line_that_cannot_be_used_is_the_last_error(tmp_path: Path, made: Made, error: str) -> None:
    async with extended(tmp_path, made) as it:
        await it.ready()
        await it.call("t")
        assert re.match(TIME, it.status("t").last_error) and error in it.status("t").last_error


async def test_one_that_does_not_start_or_cannot_be_reloaded_says_so_last(tmp_path: Path) -> None:
    async with extended(tmp_path, chaos("sick", "log:oh no", "exit:3"), tool("t")) as it:
        await it.state("sick", "failed")
        assert "exited with code 3" in it.status("sick").last_error
        await it.ready("t")
        (tmp_path / "extensions/t/extension.json").write_text("[]")
        await it.session.extensions.reload("t")
        assert re.match(TIME + "not reloaded: ", it.status("t").last_error)


def test_no_more_of_a_mistake_is_kept_than_anybody_would_read() -> None:
    account = Account()
    account.erred("x" * 100_000)
    [told] = [account.on(_status()).last_error]
    assert len(told) < 600 and told.endswith("…")


def test_what_was_never_asked_has_no_average() -> None:
    status = Account().on(_status())
    assert (status.calls, status.mean_ms, status.worst_ms, status.busy_ms, status.last_error) == (0, 0, 0, 0, "")


def _status() -> ExtensionStatus:
    return ExtensionStatus("t", "", "frames", "ready", "user", "")


# What it costs


def registering(**fields: Any) -> str:
    return f"frame:{json.dumps({'type': 'register_tool', 'name': 't', 'schema': {'type': 'object'}, **fields})}"


async def cost(folder: Path, *items: str) -> int:
    async with extended(folder, chaos("t", "hello", *items, "ready")) as it:
        await it.ready()
        return it.status("t").prompt_tokens


async def test_what_the_model_reads_of_it_is_estimated_and_follows_what_it_registers(tmp_path: Path) -> None:
    text = "x" * 4000
    section = f"register:{json.dumps({'kind': 'prompt_section', 'title': 'Me', 'content': text})}"
    schema = {"type": "object", "description": text}
    assert await cost(tmp_path / "a") == 0
    assert 1000 <= await cost(tmp_path / "b", registering(description=text)) < 1050
    assert 1000 <= await cost(tmp_path / "c", registering(schema=schema)) < 1050
    assert 1000 <= await cost(tmp_path / "d", section) < 1050
    assert 2000 <= await cost(tmp_path / "e", section, registering(description=text)) < 2100
    assert await cost(tmp_path / "f", registering(description=text, deferred=True)) < 100, "it is known by name only"


async def test_a_tool_that_is_registered_late_is_in_the_estimate_too(tmp_path: Path) -> None:
    late = registering(name="late", description="x" * 4000)
    made = tool("t", {"on": "tool_call", "do": [late, "answer"]})
    async with extended(tmp_path, made) as it:
        await it.ready()
        assert it.status("t").prompt_tokens < 50
        await it.call("t")
        await it.until(lambda: it.status("t").prompt_tokens > 1000, "the tool is there")


# Its log


async def test_its_log_is_where_the_status_says(tmp_path: Path) -> None:
    async with extended(tmp_path, tool("t", {"do": "log:here I am"})) as it:
        await it.ready()
        log = Path(it.status("t").log)
        await it.until(lambda: "here I am" in log.read_text(), "its words are in it")


async def test_whatever_it_is_asked_counts_and_ext_tells_it(tmp_path: Path, dialect: Dialect) -> None:
    made = tool("t", "register_command:go", "intercept:tool_call", {"on": "tool_call", "do": ["sleep:0.2", "answer"]})
    async with extended(tmp_path, made) as it:
        await it.ready()
        assert it.status("t").calls == 0, "its start is no answer"
        await it.session.command("go")
        assert it.status("t").calls == 1
        await it.call("t")
        # Its verdict and the call; in one dialect whoever intercepts calls is also asked about their results.
        asked = 3 if dialect == "frames" else 4
        assert it.status("t").calls == asked
        shown = await about_extensions(it.session.extensions, "")
        worst = round(it.status("t").worst_ms)
        assert worst >= 200, "it is the slow one"
        figures = rf"calls: {asked} \([\d.]+ ms on average, {worst} ms at most, waited for [\d.]+ m?s in all\)"
        assert re.search(figures, shown) and "last error" not in shown
        assert re.search(r"about \d+ tokens in every call of the model", shown)
