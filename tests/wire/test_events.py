"""Events as extensions see them."""

import pytest

from hilt.model.content import Image, Text
from hilt.wire import frames_events as events
from hilt.wire.frames import encode
from hilt.wire.frames_types import Event
from hilt.wire.line import LINE_LIMIT

ARGS = {"a": 1}
GOLDEN: list[tuple[Event, bytes]] = [
    (events.session_start(), b'"session_start"'),
    (events.turn_start(1), b'"turn_start","step":1'),
    (events.assistant_message("hi"), b'"assistant_message","text":"hi"'),
    (events.assistant_message(""), b'"assistant_message"'),
    (events.tool_call("t1", "add", ARGS), b'"tool_call","tool_id":"t1","tool_name":"add","tool_args":{"a":1}'),
    (events.tool_call("t1", "add", {}), b'"tool_call","tool_id":"t1","tool_name":"add","tool_args":{}'),
    (
        events.tool_call("t1", "add", {}, invalid="{oops"),
        b'"tool_call","tool_id":"t1","tool_name":"add","tool_args_raw":"{oops"',
    ),
    (events.turn_end("end"), b'"turn_end","stop":"end"'),
    (events.turn_end("error", "no"), b'"turn_end","stop":"error","error":"no"'),
    (events.session_end("shutdown"), b'"session_end","reason":"shutdown"'),
    (
        events.user_prompt_submit("hi", queued=True, image_count=2),
        b'"user_prompt_submit","text":"hi","queued":true,"image_count":2',
    ),
    (
        events.tool_result("t1", "add", ARGS, "completed", (Text("x"), Image("image/png", b"123"))),
        b'"tool_result","tool_id":"t1","tool_name":"add","tool_args":{"a":1},"status":"completed","executed":true,'
        b'"result":{"content":[{"type":"text","text":"x"},{"type":"image","mime_type":"image/png","data":"MTIz"}]}',
    ),
    (
        events.tool_result("t1", "add", {}, "blocked", (Text("no"),), is_error=True, executed=False, invalid="{"),
        b'"tool_result","tool_id":"t1","tool_name":"add","tool_args_raw":"{","status":"blocked",'
        b'"result":{"content":[{"type":"text","text":"no"}],"is_error":true}',
    ),
    (
        events.tool_confirmation_requested("t1", "add", ARGS, "add 1"),
        b'"tool_confirmation_requested","tool_id":"t1","tool_name":"add","tool_args":{"a":1},"tool_preview":"add 1"',
    ),
    (
        events.permission_decision("t1", "add", "denied", "user", reason="no"),
        b'"permission_decision","tool_id":"t1","tool_name":"add","decision":"denied","source":"user",'
        b'"stage":"pre_execution","reason":"no"',
    ),
    (events.pre_compact("c", 3, 900), b'"pre_compact","compaction_id":"c","message_count":3,"token_estimate":900'),
    (
        events.post_compact("c", 3, 900, "failed", "no"),
        b'"post_compact","error":"no","status":"failed","compaction_id":"c","message_count":3,"token_estimate":900',
    ),
    (events.subagent_start("a", "r", "n"), b'"subagent_start","agent_id":"a","agent_run_id":"r","name":"n"'),
    (
        events.subagent_stop("a", "r", "n", "completed"),
        b'"subagent_stop","status":"completed","agent_id":"a","agent_run_id":"r","name":"n"',
    ),
]


@pytest.mark.parametrize(("event", "rest"), GOLDEN)
def test_every_event_is_written_as_the_protocol_says(event: Event, rest: bytes) -> None:
    assert encode(event) == b'{"type":"event","event":' + rest + b"}"


def test_what_all_events_share_comes_last_so_that_older_extensions_see_what_they_always_saw() -> None:
    stamped = events.stamp(events.turn_start(1), session_id="s", cwd="/w", sequence=7)
    assert encode(stamped) == (
        b'{"type":"event","event":"turn_start","step":1,"session_id":"s","cwd":"/w","sequence":7}'
    )


@pytest.mark.parametrize("character", ["x", "é", "😀", "\x01"])
def test_a_text_of_any_length_fits_a_line_whatever_it_is_made_of(character: str) -> None:
    text = character * LINE_LIMIT
    for event in (
        events.assistant_message(text),
        events.user_prompt_submit(text),
        events.turn_end("error", text),
        events.tool_call("t", "n", {}, invalid=text),
        events.tool_confirmation_requested("t", "n", {}, text),
        events.permission_decision("t", "n", "denied", "user", reason=text),
        events.post_compact("c", 1, 1, "failed", text),
        events.subagent_stop("a", "r", "n", "failed", text),
        events.tool_result("t", "n", {}, "completed", (Text(text), Text(text))),
    ):
        assert len(encode(event)) < LINE_LIMIT
