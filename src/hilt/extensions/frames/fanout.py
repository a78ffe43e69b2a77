"""What happens in the agent, told to every extension that wants to know: in order, and without holding anyone up.

Telling costs whoever tells next to nothing: an event is only noted, and written out in the next turn of the loop, or
before the next question, whichever comes first. Each is encoded once however many listen.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Literal

from hilt.errors import FrameError
from hilt.extensions.extension import Extension
from hilt.model.content import Image, Text, text_of
from hilt.model.events import (
    AssistantMessageAdded,
    BackgroundChanged,
    CompactionDone,
    CompactionFailed,
    CompactionStarted,
    Event,
    PermissionAsked,
    PermissionDecided,
    PromptSubmitted,
    StateChanged,
    ToolCalled,
    ToolResultAdded,
    TurnEnded,
    TurnStarted,
)
from hilt.wire import frames_events as frames
from hilt.wire.frames import encode
from hilt.wire.frames_types import Event as Frame

_AT_ONCE = 64
"""More than this are not left waiting within one turn of the loop."""


class Fanout:
    def __init__(self, session_id: str, cwd: str) -> None:
        self._session_id = session_id
        self._cwd = cwd
        self._sequence = 0
        self._listeners: dict[str, list[Extension]] = {}
        self._noted: list[Event | Frame] = []
        self._loop = asyncio.get_running_loop()

    def listen(self, extensions: Iterable[Extension]) -> None:
        """These are listening now, each to what it has subscribed to. What happened before is told as before."""
        self.flush()
        self._listeners = {}
        for extension in extensions:
            for name in extension.registrations.events:
                self._listeners.setdefault(name, []).append(extension)

    async def __call__(self, event: Event) -> None:
        """A sink of the bus."""
        if type(event) is StateChanged and event.session != self._session_id:
            self._change_over(event.session)
        elif self._listeners and type(event) in _FRAMES:
            self.note(event)

    def _change_over(self, session_id: str) -> None:
        """Another session is open now: the one before has ended for all who listen."""
        self.note(frames.session_end("session_switch"))
        self.flush()
        self._session_id = session_id
        self.note(frames.session_start())

    def note(self, event: Event | Frame) -> None:
        if not self._noted:
            self._loop.call_soon(self.flush)
        self._noted.append(event)
        if len(self._noted) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write out what has been noted."""
        if not self._noted:
            return
        noted, self._noted = self._noted, []
        for event in noted:
            frame = event if isinstance(event, Frame) else _FRAMES[type(event)](event)
            self._sequence += 1
            if listeners := self._listeners.get(frame.event):
                self._post(frame, listeners)

    def greet(self, extension: Extension) -> None:
        """The session begins, for this one."""
        self.flush()
        if "session_start" in extension.registrations.events:
            self._sequence += 1
            self._post(frames.session_start(), [extension])

    def end(self) -> None:
        """The session has ended, for all who listen."""
        self.note(frames.session_end("shutdown"))
        self.flush()

    def _post(self, frame: Frame, listeners: list[Extension]) -> None:
        stamped = frames.stamp(frame, session_id=self._session_id, cwd=self._cwd, sequence=self._sequence)
        try:
            line = encode(stamped, packed=True)
        except FrameError as error:
            for extension in listeners:
                extension.unsendable += 1
                extension.tell("warn", f"extension {extension.name} was not told of {frame.event}: {error.message}")
            return
        for extension in listeners:
            extension.post(line)


def _prompt_submitted(event: PromptSubmitted) -> Frame:
    images = sum(isinstance(block, Image) for block in event.content)
    return frames.user_prompt_submit(text_of(event.content), queued=event.queued, image_count=images)


def _assistant_message(event: AssistantMessageAdded) -> Frame:
    return frames.assistant_message("".join(block.text for block in event.content if isinstance(block, Text)))


def _tool_call(event: ToolCalled) -> Frame:
    return frames.tool_call(event.id, event.name, event.args, invalid=event.invalid)


def _tool_result(event: ToolResultAdded) -> Frame:
    return frames.tool_result(
        event.id,
        event.name,
        event.args,
        event.status,
        event.content,
        is_error=event.is_error,
        executed=event.executed,
        invalid=event.invalid,
    )


def _background(event: BackgroundChanged) -> Frame:
    if event.state == "started":
        return frames.subagent_start(event.name, event.name, event.name)
    status = _ENDS[event.state]
    return frames.subagent_stop(event.name, event.name, event.name, status, "" if event.state == "done" else event.text)


def _confirmation(event: PermissionAsked) -> Frame:
    request = event.request
    return frames.tool_confirmation_requested(request.call_id, request.tool, request.args, request.preview.text)


def _decision(event: PermissionDecided) -> Frame:
    decision: frames.Decision = "approved" if event.approved else "denied"
    return frames.permission_decision(event.id, event.name, decision, event.source, reason=event.reason)


_ENDS: dict[str, Literal["completed", "failed", "cancelled"]] = {
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}

_FRAMES: dict[type, Callable[[Any], Frame]] = {
    PromptSubmitted: _prompt_submitted,
    TurnStarted: lambda event: frames.turn_start(event.step),
    TurnEnded: lambda event: frames.turn_end(event.stop, event.error),
    AssistantMessageAdded: _assistant_message,
    ToolCalled: _tool_call,
    ToolResultAdded: _tool_result,
    PermissionAsked: _confirmation,
    PermissionDecided: _decision,
    BackgroundChanged: _background,
    CompactionStarted: lambda event: frames.pre_compact(event.id, event.messages, event.tokens),
    CompactionDone: lambda event: frames.post_compact(event.id, event.messages, event.tokens, "completed"),
    CompactionFailed: lambda event: frames.post_compact(event.id, event.messages, event.tokens, "failed", event.error),
}
