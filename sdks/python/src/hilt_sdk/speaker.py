"""What an extension can say to its host at any time, from any thread."""

from __future__ import annotations

from hilt_sdk.transport import log
from hilt_sdk.values import NotConnected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from hilt_sdk.link import Link
    from hilt_sdk.panels import Panel
    from hilt_sdk.values import Result

    Level = Literal["info", "success", "warn", "error"]

_LEVELS = ("info", "success", "warn", "error")


class Speaker:
    def __init__(self, name: str) -> None:
        self.name = name
        self._link: Link | None = None

    def notify(self, text: str, level: Level = "info") -> None:
        """A note for the user."""
        if level not in _LEVELS:
            raise ValueError(f"there is no level {level!r}; there are {', '.join(_LEVELS)}")
        self._wire().notify(text, level)

    def clear_notes(self) -> None:
        """Take all notes of the extension away, where the host can."""
        self._wire().clear_notes()

    def show(self, text: str) -> None:
        """Show a text to the user; where there is no other way, as a note."""
        self._wire().show(text)

    def submit(self, text: str) -> None:
        """Say it to the model as if the user had; with a slash at the beginning it runs a command."""
        self._wire().submit(text)

    def steer(self, text: str) -> None:
        """Say it to the model while it is at work; never taken for a command."""
        self._tell("steer", "steer", {"content": text})

    def abort(self, reason: str = "") -> None:
        """Stop the turn. A reason becomes part of the conversation."""
        if reason:
            self._tell("abort", "abortWithMarker", {"reason": reason})
        else:
            self._tell("abort", "abort", {})

    def set_input(self, text: str) -> None:
        """Put a text into the user's input."""
        self._tell("input_text", "setInputText", {"text": text})

    def widget(self, key: str, text: str, placement: str = "above-input") -> None:
        """A few lines that stay; an empty text takes them away. Where there are none, nothing happens."""
        if self._wire().can("widgets"):
            self._wire().tell("setWidget", {"key": key, "placement": placement, "content": text})

    def overlay(self, key: str, text: str, *, title: str = "", anchor: str = "", width: str = "") -> None:
        """A text above everything else."""
        given = {"title": title, "anchor": anchor, "width": width}
        params = {"key": key, "content": text, **{name: value for name, value in given.items() if value}}
        self._tell("overlays", "showOverlay", params)

    def close_overlay(self, key: str) -> None:
        self._tell("overlays", "closeOverlay", {"key": key})

    def status(self, key: str, text: str) -> None:
        """A word in the status line; an empty one takes it away. Where there is none, nothing happens."""
        if self._wire().can("status"):
            self._wire().tell("setStatus", {"key": key, "text": text})

    def log(self, text: str, level: str = "info") -> None:
        """A line of the extension's log: `debug`, `info`, `warn` or `error`."""
        if self._link is not None and self._link.dialect == "jsonrpc":
            self._link.tell("log", {"level": level, "message": text})
        else:
            log(text if level == "info" else f"{level}: {text}")

    def _tell(self, feature: str, method: str, params: dict[str, Any]) -> None:
        link = self._wire()
        link.need(feature)
        link.tell(method, params)

    def open(self, panel: Panel) -> None:
        """Open a panel, without being asked."""
        self._wire().open_panel(panel)

    def call_tool(self, name: str, args: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Result:
        """Run a tool of the host or of another extension. From within a tool use that of its `Call`."""
        return self._wire().call_tool(name, dict(args or {}), "", timeout)

    def _wire(self) -> Link:
        if self._link is None:
            raise NotConnected(f"{self.name} does not run: there is no host to talk to")
        return self._link
