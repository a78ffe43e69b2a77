"""What extensions of either dialect make of the results of tools, in one chain: real processes."""

import base64
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent.deadlines import Deadlines
from hilt.model.content import Image, Text
from hilt.model.contributions import Invocation, ToolOutput
from hilt.model.events import ToolResultAdded
from support.agent import calls, says, tool
from support.extending import JSONRPC_ONLY, Made, extended
from support.offerer import Ask, Refused
from support.offering import heard, offering

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TURNS = [calls(("look", {})), says("done")]


async def look(_: Invocation) -> ToolOutput:
    return ToolOutput((Text("seen"), Image("image/png", PIXEL)), details={"lines": 1})


async def fail(_: Invocation) -> ToolOutput:
    return ToolOutput.of("broken", is_error=True)


def after(name: str, answer: Any, priority: int = 0, **more: Any) -> Made:
    offers = [("interceptor", {"name": f"i-{name}", "priority": priority})]
    return offering(name, *offers, answers={"interceptor/after": answer}, given=name, **more)


def sign(ask: Ask) -> Any:
    """As the reference has it: what it was given in `details`, changed there."""
    details = ask.params["details"]
    details["content"][0]["text"] += f" {ask.given}"
    details["signed"] = [*details.get("signed", []), ask.given]
    return {"details": details}


def replace(ask: Ask) -> Any:
    return {"content": ask.params["content"][0]["text"].upper()}


async def test_results_go_through_interceptors_of_both_dialects_in_order_and_images_survive(tmp_path: Path) -> None:
    made = (
        after("low", sign, 1, dialect="frames"),
        after("high", sign, 9, dialect="jsonrpc"),
        after("middle", replace, 5, dialect="frames"),
    )
    async with extended(tmp_path, *made, turns=TURNS, offered=(tool("look", look),)) as it:
        await it.ready()
        await it.say()
        [told] = it.of(ToolResultAdded)
        assert told.content == (Text("SEEN HIGH low"), Image("image/png", PIXEL))
        assert told.details == {"lines": 1, "signed": ["high", "low"]} and not told.is_error
        assert told.changed_by == ("high", "middle", "low")
        [result] = it.provider.requests[1].messages[2].results  # type: ignore[union-attr]  # it is a tool's
        assert result.content == told.content
        [note] = it.notes("result_changed")
        assert note["by"] == ["high", "middle", "low"] and note["original"]["content"][0]["text"] == "seen"
        [asked] = heard(tmp_path / "extensions/middle", "interceptor/after")
        params = asked["params"]
        assert (params["name"], params["toolName"]) == ("i-middle", "look") and params["details"]["lines"] == 1
        assert params["content"] == params["details"]["content"]
        assert params["content"][1] == {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mime": "image/png"}


def forgive(ask: Ask) -> Any:
    return {"content": [{"type": "text", "text": "mended"}], "isError": not ask.params.get("isError", False)}


@pytest.mark.usefixtures("dialect")
async def test_an_interceptor_decides_whether_a_result_is_an_error(tmp_path: Path) -> None:
    turns = [calls(("good", {}), ("bad", {})), says("done")]
    offered = (tool("good", look), tool("bad", fail))
    async with extended(tmp_path, after("f", forgive), turns=turns, offered=offered) as it:
        await it.ready()
        await it.say()
        told = {one.name: (one.content, one.is_error) for one in it.of(ToolResultAdded)}
        assert told == {"good": ((Text("mended"),), True), "bad": ((Text("mended"),), False)}


def leave(ask: Ask) -> Any:
    return {}


@pytest.mark.usefixtures("dialect")
async def test_a_result_nobody_wants_changed_stays_as_it_is(tmp_path: Path) -> None:
    async with extended(tmp_path, after("f", leave), turns=TURNS, offered=(tool("look", look),)) as it:
        await it.ready()
        await it.say()
        [told] = it.of(ToolResultAdded)
        assert (told.content, told.details) == ((Text("seen"), Image("image/png", PIXEL)), {"lines": 1})
        assert told.changed_by == () and it.notes("result_changed") == []


def refuse(ask: Ask) -> Any:
    raise Refused("cannot look at it")


def babble(ask: Ask) -> Any:
    return {"content": 7}


def dawdle(ask: Ask) -> Any:
    ask.wait_for_cancel()
    return {"content": "too late"}


def die(ask: Ask) -> Any:
    ask.die()


@pytest.mark.usefixtures("dialect")
async def test_an_interceptor_that_fails_hangs_or_dies_leaves_the_result_to_the_others(tmp_path: Path) -> None:
    bad = {"refusing": refuse, "babbling": babble, "slow": dawdle, "dying": die}
    made = [after(name, answer, 5) for name, answer in bad.items()]
    async with extended(tmp_path, *made, after("good", sign), turns=TURNS, offered=(tool("look", look),)) as it:
        it.session.bench = structs.replace(it.session.bench, deadlines=Deadlines(result=0.3))
        await it.ready()
        await it.say()
        [told] = it.of(ToolResultAdded)
        assert told.content == (Text("seen good"), Image("image/png", PIXEL)) and told.changed_by == ("good",)
        for name in bad:
            await it.warned("result interceptor of", name, "used without it")
        assert {note["extension"] for note in it.notes("result_unchecked")} == set(bad)
        await it.until((tmp_path / "extensions/slow/cancelled").exists, "word that nobody waits any more")


@JSONRPC_ONLY
@pytest.mark.usefixtures("dialect")
async def test_one_that_dies_over_its_own_tool_is_said_not_to_have_been_asked_about_the_result(tmp_path: Path) -> None:
    offers = [("tool", {"name": "look", "description": "x"}), ("interceptor", {"name": "i"})]
    made = offering("t", *offers, answers={"tool/execute": die})
    async with extended(tmp_path, made, turns=TURNS) as it:
        await it.ready()
        await it.say()
        await it.warned("result interceptor of t", "and it could not be asked about what look returned")


def block(ask: Ask) -> Any:
    return {"allow": False, "preview": "no"}


@pytest.mark.usefixtures("dialect")
async def test_nobody_is_shown_the_result_of_a_call_that_was_refused(tmp_path: Path) -> None:
    gate = offering("gate", ("interceptor", {"name": "g", "priority": 9}), answers={"interceptor/before": block})
    async with extended(tmp_path, gate, after("f", sign), turns=TURNS, offered=(tool("look", look),)) as it:
        await it.ready()
        await it.say()
        assert it.result().startswith("no ") and "gate" in it.result()
        assert [heard(tmp_path / f"extensions/{name}", "interceptor/after") for name in ("gate", "f")] == [[], []]
