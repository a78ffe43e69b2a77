"""Every event and message has a JSON form, and the fields existing clients know."""

from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest

from hilt.frontends.encode import event_json, json_line, message_json, public
from hilt.model import events
from hilt.model.content import Image, Text, Thinking, ToolCall
from hilt.model.contributions import Effect, Preview
from hilt.model.conversation import AssistantMessage, ToolMessage, ToolResult, Usage, UserMessage
from hilt.model.extensions import PickerItem
from hilt.model.ports import PermissionRequest
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart

TIME = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
COST = {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "cost_usd": 0.5}
USAGE = Usage(1, 2, 3, 4, 0.5)
BLOCKS = (Text("hi"), Thinking("hm"), ToolCall("c1", "bash", {"command": "ls"}))
REQUEST = PermissionRequest("c1", "bash", Effect.EXECUTE, {"command": "ls"}, Preview("command", "ls"))
UNSURE = PermissionRequest(
    "c2",
    "todo_scan",
    Effect.EXECUTE,
    {},
    Preview("json", "{}"),
    rewritten_by=("one",),
    unchecked_by=("two: it is gone",),
)
UNTOLD: list[events.Event] = [
    events.PromptSubmitted((Text("hi"),), queued=False),
    events.PermissionDecided("c1", "bash", True, "yolo"),
    events.PermissionDecided("c1", "bash", True, "policy"),
    events.RunStarted("hi", "be brief", 3, 0),
    events.StepLimitReached(50, 50),
]
"""What extensions may observe and clients are not told."""

CASES: list[tuple[events.Event, dict[str, Any]]] = [
    (
        events.UserMessageAdded((Text("hi"), Image("image/png", b"12345")), TIME),
        {
            "type": "user_message",
            "content": [{"type": "text", "text": "hi"}, {"type": "image", "mime_type": "image/png", "bytes": 5}],
            "time": "2026-01-02T03:04:05.000678Z",
        },
    ),
    (events.TurnStarted(3), {"type": "turn_start", "step": 3}),
    (events.AssistantStarted(), {"type": "assistant_start"}),
    (TextDelta("x"), {"type": "text_delta", "delta": "x"}),
    (ThinkingDelta("x"), {"type": "thinking_delta", "delta": "x"}),
    (ToolUseStart("c1", "bash"), {"type": "tool_use_start", "id": "c1", "name": "bash"}),
    (ToolUseArgs("c1", "{"), {"type": "tool_use_args", "id": "c1", "delta": "{"}),
    (ToolUseEnd("c1"), {"type": "tool_use_end", "id": "c1"}),
    (events.UsageReported(USAGE, USAGE), {"type": "usage", **COST, "cumulative": COST}),
    (
        events.AssistantMessageAdded(BLOCKS, TIME),
        {
            "type": "assistant_message",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "tool_call", "id": "c1", "name": "bash", "args": {"command": "ls"}},
            ],
            "time": "2026-01-02T03:04:05.000678Z",
        },
    ),
    (
        events.AssistantReplaced("better", suppressed=False, extension="me"),
        {"type": "assistant_replace", "text": "better", "suppressed": False, "extension": "me"},
    ),
    (
        events.AssistantReplaced("", suppressed=True, extension="me", reason="no"),
        {"type": "assistant_replace", "text": "", "suppressed": True, "extension": "me", "reason": "no"},
    ),
    (events.ToolCalled("c1", "bash", {"a": 1}), {"type": "tool_call", "id": "c1", "name": "bash", "args": {"a": 1}}),
    (
        events.ToolCalled("c1", "bash", {}, "me", "[1"),
        {"type": "tool_call", "id": "c1", "name": "bash", "args": {}, "extension": "me", "invalid": "[1"},
    ),
    (events.TurnEnded("end"), {"type": "turn_end", "stop": "end"}),
    (events.TurnEnded("error", "oh"), {"type": "turn_end", "stop": "error", "error": "oh"}),
    (events.ToolProgressed("c1", "x"), {"type": "tool_progress", "id": "c1", "text": "x"}),
    (
        events.ToolResultAdded("c1", "bash", True, (Text("no"),)),
        {
            "type": "tool_result",
            "id": "c1",
            "name": "bash",
            "is_error": True,
            "content": [{"type": "text", "text": "no"}],
        },
    ),
    (
        events.ToolResultAdded("c1", "bash", False, (Text("yes"),), "me", "completed", True, {"command": "ls"}),
        {
            "type": "tool_result",
            "id": "c1",
            "name": "bash",
            "is_error": False,
            "content": [{"type": "text", "text": "yes"}],
            "extension": "me",
        },
    ),
    (
        events.ToolResultAdded("c1", "bash", False, (Text("yes"),), details={"a": 1}, changed_by=("one", "two")),
        {
            "type": "tool_result",
            "id": "c1",
            "name": "bash",
            "is_error": False,
            "content": [{"type": "text", "text": "yes"}],
            "changed_by": ["one", "two"],
        },
    ),
    (events.Done("aborted"), {"type": "done", "stop": "aborted"}),
    (events.Failed("oh"), {"type": "error", "message": "oh"}),
    (events.Failed("oh", "do", "auth"), {"type": "error", "message": "oh", "hint": "do", "code": "auth"}),
    (
        events.Retrying(2, 6, 500, "busy"),
        {"type": "retry", "attempt": 2, "attempts": 6, "delay_ms": 500, "reason": "busy"},
    ),
    (
        events.CompactionStarted(True, 9, 3, "c"),
        {"type": "compact_start", "automatic": True, "tokens": 9, "messages": 3, "id": "c"},
    ),
    (
        events.CompactionDone("short", 2, 1, "c"),
        {"type": "compact_done", "summary": "short", "tokens": 2, "messages": 1, "id": "c"},
    ),
    (
        events.CompactionFailed("oh", 2, 1, "c"),
        {"type": "compact_failed", "error": "oh", "tokens": 2, "messages": 1, "id": "c"},
    ),
    (events.Noticed("warn", "oh"), {"type": "notice", "level": "warn", "message": "oh"}),
    (
        events.PermissionDecided("c1", "bash", True, "user"),
        {"type": "permission_decision", "id": "c1", "name": "bash", "approved": True, "source": "user"},
    ),
    (
        events.PermissionAsked("ui-1", REQUEST),
        {
            "type": "ui_request",
            "id": "ui-1",
            "kind": "confirm",
            "title": "Allow bash?",
            "tool": "bash",
            "call_id": "c1",
            "effect": "execute",
            "args": {"command": "ls"},
            "preview": {"kind": "command", "text": "ls"},
            "scopes": ["once", "tool", "prefix", "session"],
            "prefix": "ls",
        },
    ),
    (
        events.PermissionAsked("ui-2", UNSURE),
        {
            "type": "ui_request",
            "id": "ui-2",
            "kind": "confirm",
            "title": "Allow todo_scan?",
            "tool": "todo_scan",
            "call_id": "c2",
            "effect": "execute",
            "args": {},
            "preview": {"kind": "json", "text": "{}"},
            "scopes": ["once", "tool", "session"],
            "rewritten_by": ["one"],
            "unchecked_by": ["two: it is gone"],
        },
    ),
    (
        events.TrustAsked("ui-3", "/there", (("project:me", ("sh", "run.sh")),), "project:me\n  runs sh run.sh"),
        {
            "type": "ui_request",
            "id": "ui-3",
            "kind": "confirm",
            "title": "Trust the extensions of /there?",
            "folder": "/there",
            "extensions": [{"name": "project:me", "command": ["sh", "run.sh"]}],
            "preview": {"kind": "trust", "text": "project:me\n  runs sh run.sh"},
        },
    ),
    (
        events.PickerAsked("ui-4", "me", "Fruit?", (PickerItem("a", "Apples"), PickerItem("b", "B", "yellow"))),
        {
            "type": "ui_request",
            "id": "ui-4",
            "kind": "picker",
            "extension": "me",
            "title": "Fruit?",
            "items": [{"id": "a", "label": "Apples"}, {"id": "b", "label": "B", "description": "yellow"}],
        },
    ),
    (
        events.QuestionAsked("ui-5", "me", "Really?", ("Yes", "No")),
        {
            "type": "ui_request",
            "id": "ui-5",
            "kind": "ask",
            "extension": "me",
            "prompt": "Really?",
            "choices": ["Yes", "No"],
        },
    ),
    (events.RequestWithdrawn("ui-5"), {"type": "ui_withdrawn", "id": "ui-5"}),
    (
        events.WidgetShown("me", "w", "above-input", "x"),
        {"type": "ext_widget", "extension": "me", "key": "w", "placement": "above-input", "content": "x"},
    ),
    (
        events.OverlayShown("me", "o", "", "x"),
        {"type": "ext_overlay", "extension": "me", "key": "o", "title": "", "content": "x"},
    ),
    (
        events.OverlayShown("me", "o", "T", "x", "top-left", "50%"),
        {
            "type": "ext_overlay",
            "extension": "me",
            "key": "o",
            "title": "T",
            "content": "x",
            "anchor": "top-left",
            "width": "50%",
        },
    ),
    (events.OverlayClosed("me", "o"), {"type": "ext_overlay_close", "extension": "me", "key": "o"}),
    (events.StatusShown("me", "s", ""), {"type": "ext_status_text", "extension": "me", "key": "s", "text": ""}),
    (
        events.ImageAttached("me", "image/png", 5),
        {"type": "ext_image", "extension": "me", "mime_type": "image/png", "bytes": 5},
    ),
    (events.ImageAttached("me"), {"type": "ext_image", "extension": "me"}),
    (events.QuitAsked("me"), {"type": "ext_quit", "extension": "me"}),
    (
        events.BackgroundChanged("tidy", "started", "me"),
        {"type": "background", "name": "tidy", "state": "started", "extension": "me"},
    ),
    (
        events.BackgroundChanged("tidy", "done", "me", "all tidy"),
        {"type": "background", "name": "tidy", "state": "done", "extension": "me", "text": "all tidy"},
    ),
    (events.Displayed("me", "x"), {"type": "ext_display", "extension": "me", "text": "x"}),
    (events.Inserted("me", "x"), {"type": "ext_insert", "extension": "me", "text": "x"}),
    (
        events.Inserted("me", "x", replace=True),
        {"type": "ext_insert", "extension": "me", "text": "x", "replace": True},
    ),
    (
        events.Notified("me", "warn", "oh"),
        {"type": "ext_notify", "extension": "me", "level": "warn", "message": "oh"},
    ),
    (
        events.Notified("me", "info", "again", 7),
        {"type": "ext_notify", "extension": "me", "level": "info", "message": "again", "skipped": 7},
    ),
    (events.NotesCleared("me"), {"type": "ext_clear_notes", "extension": "me"}),
    (
        events.PanelShown("me", "p", "T", ("one",), "f"),
        {"type": "ext_panel", "extension": "me", "panel_id": "p", "title": "T", "lines": ["one"], "footer": "f"},
    ),
    (
        events.PanelShown("me", "p", "", (), "", focused=False),
        {
            "type": "ext_panel",
            "extension": "me",
            "panel_id": "p",
            "title": "",
            "lines": [],
            "footer": "",
            "focused": False,
        },
    ),
    (events.PanelClosed("me", "p"), {"type": "ext_panel_close", "extension": "me", "panel_id": "p"}),
    (
        events.PanelClosed("me", "p", "it is gone"),
        {"type": "ext_panel_close", "extension": "me", "panel_id": "p", "reason": "it is gone"},
    ),
    (events.ExtensionChanged("me", "ready"), {"type": "ext_status", "extension": "me", "state": "ready"}),
    (
        events.ExtensionChanged("me", "failed", "oh"),
        {"type": "ext_status", "extension": "me", "state": "failed", "reason": "oh"},
    ),
    (
        events.Intercepted(
            "tool_call",
            "changed",
            (
                events.Decided("one", "rewrite", 1.5, changed={"command": "ls -l"}),
                events.Decided("two", "fail", 5000.0, "it is gone", "allow"),
            ),
            "c1",
            "bash",
        ),
        {
            "type": "interception",
            "event": "tool_call",
            "outcome": "changed",
            "decisions": [
                {"extension": "one", "decision": "rewrite", "ms": 1.5, "changed": {"command": "ls -l"}},
                {"extension": "two", "decision": "fail", "ms": 5000.0, "reason": "it is gone", "applied": "allow"},
            ],
            "id": "c1",
            "name": "bash",
        },
    ),
    (
        events.Intercepted("turn_start", "allowed", (events.Decided("one", "allow", 0.0),)),
        {
            "type": "interception",
            "event": "turn_start",
            "outcome": "allowed",
            "decisions": [{"extension": "one", "decision": "allow", "ms": 0.0}],
        },
    ),
    (events.ConversationMoved("s1", 3), {"type": "conversation", "session": "s1", "messages": 3}),
    (events.QueueChanged(("a", "b")), {"type": "queue", "waiting": ["a", "b"]}),
    (
        events.StateChanged("p", "m", "ask", True, "s1", step=True),
        {
            "type": "state",
            "provider": "p",
            "model": "m",
            "permissions": "ask",
            "jail": True,
            "session": "s1",
            "step": True,
        },
    ),
]


@pytest.mark.parametrize(("event", "expected"), CASES, ids=[type(event).__name__ for event, _ in CASES])
def test_an_event_is_encoded_with_exactly_these_fields(event: events.Event, expected: dict[str, Any]) -> None:
    assert msgspec.json.decode(json_line(event_json(event))) == expected


def test_no_kind_of_event_was_forgotten_here() -> None:
    assert {type(event) for event in (*(event for event, _ in CASES), *UNTOLD)} == set(get_args(events.Event))


def test_clients_are_told_everything_but_what_they_know_already() -> None:
    assert [event for event, _ in CASES if not public(event)] == []
    assert [event for event in UNTOLD if public(event)] == []
    assert public(events.PermissionDecided("c1", "bash", False, "policy", "nobody to ask"))


def test_messages_are_encoded_by_role_and_reasoning_is_left_out() -> None:
    result = ToolResult("c1", "bash", (Text("out"),), details={"exit_code": 0})
    found = [
        msgspec.json.decode(json_line(message_json(message)))
        for message in (UserMessage((Text("hi"),), TIME), AssistantMessage(BLOCKS, TIME), ToolMessage((result,), TIME))
    ]
    time = "2026-01-02T03:04:05.000678Z"
    assert found == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "time": time},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "tool_call", "id": "c1", "name": "bash", "args": {"command": "ls"}},
            ],
            "time": time,
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool_result",
                    "call_id": "c1",
                    "is_error": False,
                    "content": [{"type": "text", "text": "out"}],
                }
            ],
            "time": time,
        },
    ]


def test_a_message_that_was_replaced_keeps_the_models_words_and_names_what_was_shown() -> None:
    replaced = AssistantMessage((Text("mine"),), TIME, shown="better")
    suppressed = AssistantMessage((Text("mine"),), TIME, shown="")
    found = [msgspec.json.decode(json_line(message_json(message))) for message in (replaced, suppressed)]
    assert [message["content"] for message in found] == [[{"type": "text", "text": "mine"}]] * 2
    assert [message["shown"] for message in found] == ["better", ""]


def test_text_that_no_json_can_carry_is_escaped_rather_than_lost() -> None:
    odd = {"path\udcff": ["a\ud800", ("b\udcfe", 1)], "time": TIME}
    assert msgspec.json.decode(json_line(odd)) == {
        "path\\udcff": ["a\\ud800", ["b\\udcfe", 1]],
        "time": "2026-01-02T03:04:05.000678Z",
    }
