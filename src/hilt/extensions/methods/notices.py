"""What an extension tells the host by method, without waiting for an answer; done at once."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Raw, UnsetType

from hilt.errors import FrameError
from hilt.model.actions import (
    Abort,
    Action,
    CloseOverlay,
    ClosePanel,
    Display,
    Notify,
    OpenPanel,
    RenderPanel,
    SendMessage,
    SetInput,
    SetStatus,
    SetWidget,
    ShowOverlay,
    Steer,
)
from hilt.model.extensions import Overlay, Panel, Placement
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_actions import note_level
from hilt.wire.jsonrpc_reading import read

_PLACEMENTS: Mapping[str, Placement] = MappingProxyType({"above-input": "above-input", "below-status": "below-status"})
_INTERRUPTED = "an extension asked for it"


def action(method: str, raw: Raw | UnsetType) -> Action:
    """What the notice asks for. Raises `FrameError` that names what is wrong with it."""
    shape, make = _ACTIONS[method]
    try:
        return make(read(raw, shape))
    except FrameError as error:
        raise FrameError(f"{method}: {error.message}") from None


def _notify(params: wire.Notify) -> Action:
    return Notify(note_level(params.level), _said(params.message, "message"))


def _widget(params: wire.SetWidget) -> Action:
    placement = _PLACEMENTS.get(params.placement)
    if placement is None:
        raise FrameError(f"`placement` is {params.placement[:64]!r}; there are {', '.join(_PLACEMENTS)}")
    return SetWidget(_said(params.key, "key"), placement, params.content)


def _overlay(params: wire.ShowOverlay) -> Action:
    key = _said(params.key, "key")
    return ShowOverlay(Overlay(key, params.title, params.content, params.anchor, params.width))


def _panel(params: wire.PanelContent) -> Panel:
    return Panel(_said(params.panel_id, "panel_id"), params.title, params.lines, params.footer)


def _said(text: str, member: str) -> str:
    if not text:
        raise FrameError(f"`{member}` is missing")
    return text


_ACTIONS: Mapping[str, tuple[type, Callable[[Any], Action]]] = MappingProxyType(
    {
        "notify": (wire.Notify, _notify),
        "showMessage": (wire.ShowMessage, lambda params: Display(_said(params.text, "text"))),
        "sendMessage": (wire.SendMessage, lambda params: SendMessage(_said(params.content, "content"))),
        "steer": (wire.Steer, lambda params: Steer(_said(params.content, "content"))),
        "abort": (wire.Empty, lambda _: Abort()),
        "abortWithMarker": (wire.AbortWithMarker, lambda params: Abort(params.reason or _INTERRUPTED)),
        "setInputText": (wire.SetInputText, lambda params: SetInput(params.text)),
        "setWidget": (wire.SetWidget, _widget),
        "showOverlay": (wire.ShowOverlay, _overlay),
        "closeOverlay": (wire.CloseOverlay, lambda params: CloseOverlay(_said(params.key, "key"))),
        "setStatus": (wire.SetStatus, lambda params: SetStatus(_said(params.key, "key"), params.text)),
        "panel/open": (wire.PanelContent, lambda params: OpenPanel(_panel(params))),
        "panel/render": (wire.PanelContent, lambda params: RenderPanel(_panel(params))),
        "panel/close": (wire.PanelClose, lambda params: ClosePanel(_said(params.panel_id, "panel_id"))),
    }
)

ACTIONS = frozenset(_ACTIONS)
"""The methods of which `action` knows what they ask for."""
