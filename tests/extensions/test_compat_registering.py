"""What programs in use register that is not quite as it should be, and works with other hosts all the same."""

from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt, until
from support.offering import heard, offering


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def tool(name: str, parameters: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("tool", {"name": name, "description": "does it", "parameters": parameters, **more})


def results(events: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    return [(event["content"][0]["text"], event["is_error"]) for event in events if event["type"] == "tool_result"]


@pytest.mark.usefixtures("dialect")
def test_nulls_in_a_schema_cost_no_tool_and_reach_no_model(hilt: Hilt) -> None:
    given = {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": None, "default": None}, "b": None},
        "required": None,
        "anyOf": [{"required": ["a"], "title": None}],
    }
    made = offering("p", tool("t", given)).write(hilt.folder)
    steps = calls(("t", {"a": "x", "b": [1]}), ("t", {"b": 1}))
    with hilt.rpc(*hilt.script(steps, says("done")), "--ext", str(made)) as rpc:
        rpc.event("ext_status", state="ready")
        rpc.settled()
        fitting, wrong = results(rpc.prompt("go"))
        assert fitting == ("ok", False)
        assert wrong[1] and "invalid arguments for t" in wrong[0]
        (seen,) = [one for one in rpc.ask("host", method="host/llmSnapshot")["data"]["tools"] if one["name"] == "t"]
    assert seen["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "string", "default": None}, "b": {}},
        "anyOf": [{"required": ["a"]}],
    }


@pytest.mark.usefixtures("dialect")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
    ],
    ids=["unknown type", "required within", "no such reference"],
)
def test_a_tool_whose_schema_is_none_gets_its_arguments_unchecked(hilt: Hilt, schema: dict[str, Any]) -> None:
    made = offering("p", tool("t", schema)).write(hilt.folder)
    with hilt.rpc(*hilt.script(calls(("t", {"a": "x"})), says("done")), "--ext", str(made)) as rpc:
        rpc.event("ext_status", state="ready")
        rpc.settled()
        assert results(rpc.prompt("go")) == [("ok", False)]
    (call,) = heard(made, "tool/execute")
    assert call["params"]["args"] == {"a": "x"}


def test_a_tool_with_an_interrupt_behaviour_that_nobody_knows_is_there_all_the_same(hilt: Hilt) -> None:
    made = offering("p", tool("t", {"type": "object"}, interruptBehavior="wait"), dialect="jsonrpc").write(hilt.folder)
    with hilt.rpc(*hilt.script(calls(("t", {})), says("done")), "--ext", str(made)) as rpc:
        rpc.event("notice", message="extension p: tool t: interruptBehavior must be cancel or block; cancel it is")
        rpc.settled()
        assert results(rpc.prompt("go")) == [("ok", False)]


@pytest.mark.parametrize("name", ["", "watcher"])
def test_handlers_that_share_a_name_are_all_told(hilt: Hilt, name: str) -> None:
    handlers = [("eventHandler", {"name": name, "events": [event]}) for event in ("EventTurnStart", "EventAgentEnd")]
    made = offering("p", *handlers, dialect="jsonrpc").write(hilt.folder)
    with hilt.rpc(*hilt.script(says("done")), "--ext", str(made)) as rpc:
        rpc.event("ext_status", state="ready")
        rpc.settled()
        rpc.prompt("go")
        until(lambda: len(heard(made, "event/dispatch")) == 2, "both")
    assert [one["params"]["type"] for one in heard(made, "event/dispatch")] == ["EventTurnStart", "EventAgentEnd"]


@pytest.mark.usefixtures("dialect")
def test_an_event_that_extensions_in_use_wait_for_in_vain_is_nothing_to_warn_of(hilt: Hilt) -> None:
    handler = ("eventHandler", {"name": "usage", "events": ["EventTurnUsage"]})
    made = offering("p", handler).write(hilt.folder)
    done = hilt.run("-p", "go", *hilt.script(says("done")), "--ext", str(made))
    assert (done.code, done.out, done.err) == (0, "done\n", "")
    assert heard(made, "event/dispatch") == []
