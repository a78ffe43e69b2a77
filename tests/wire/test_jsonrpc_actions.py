"""What the answer to an event or a shortcut asks for."""

import base64
from typing import Any

import pytest

from hilt.errors import FrameError
from hilt.model.actions import Action, AttachImage, DetachImage, Display, Notify, Quit, Rename, SendMessage, SetStatus
from hilt.wire.jsonrpc_actions import action, note_level
from hilt.wire.jsonrpc_reading import shaped
from hilt.wire.jsonrpc_types import ActionResult

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def asked(type_: str, payload: Any = None) -> Action | None:
    return action(shaped({"Action": {"type": type_, "payload": payload}}, ActionResult).action)


@pytest.mark.parametrize(
    ("type_", "payload", "wanted"),
    [
        ("notify", {"message": "m", "level": "warn"}, Notify("warn", "m")),
        ("notify", {"Message": "m"}, Notify("info", "m")),
        ("showMessage", {"text": "t"}, Display("t")),
        ("setSessionTitle", {"title": "t"}, Rename("t")),
        ("setSessionTitle", {}, None),
        ("setStatus", {"KEY": "k", "text": "t"}, SetStatus("k", "t")),
        ("sendMessage", {"content": "c"}, SendMessage("c")),
        ("sendMessage", None, None),
        (
            "attachImage",
            {"data": base64.b64encode(PNG).decode(), "MimeType": "image/png"},
            AttachImage(PNG, "image/png"),
        ),
        ("detachImage", None, DetachImage()),
        ("quit", None, Quit()),
        ("dance", {"a": 1}, None),
        ("", None, None),
    ],
)
def test_each_kind_of_action_is_one_of_the_agents(type_: str, payload: Any, wanted: Action | None) -> None:
    assert asked(type_, payload) == wanted


def test_no_action_is_none() -> None:
    assert action(None) is None


@pytest.mark.parametrize(
    ("type_", "payload"),
    [("notify", {"message": 7}), ("setStatus", [1]), ("attachImage", {"data": "!", "mimeType": "image/png"})],
)
def test_a_payload_that_cannot_be_used_is_refused_and_named(type_: str, payload: Any) -> None:
    with pytest.raises(FrameError, match=f"action {type_}"):
        asked(type_, payload)


def test_a_level_nobody_knows_is_information() -> None:
    assert [note_level(said) for said in ("", "WARN", "error", "fatal")] == ["info", "warn", "error", "info"]
