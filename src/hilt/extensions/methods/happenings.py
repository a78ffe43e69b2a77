"""What happens in the agent, as the jsonrpc dialect tells it: seventeen events, each once, when it happens.

The agent's own events are cut differently, so this follows along: a turn ends here only when its tools have run, and
an assistant's message is told with what it cost. Each is written once, however many listen.
"""

from collections.abc import Callable, Iterable

from hilt.errors import FrameError
from hilt.extensions.extension import Extension
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, now, tool_calls
from hilt.model.events import (
    AssistantMessageAdded,
    AssistantReplaced,
    CompactionDone,
    CompactionStarted,
    Done,
    Event,
    PermissionAsked,
    Retrying,
    RunStarted,
    StepLimitReached,
    ToolCalled,
    ToolProgressed,
    ToolResultAdded,
    TurnEnded,
    TurnStarted,
)
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseStart
from hilt.wire import jsonrpc_events as wire
from hilt.wire.freeform import pack
from hilt.wire.jsonrpc_types import EventDispatch

Messages = Callable[[], tuple[Message, ...]]


class Happenings:
    def __init__(self, messages: Messages) -> None:
        """`messages` is the conversation as it is now."""
        self._listeners: tuple[Extension, ...] = ()
        self._story = _Story(messages)

    def listen(self, extensions: Iterable[Extension]) -> None:
        self._listeners = tuple(one for one in extensions if one.registrations.happenings)

    def note(self, event: Event) -> None:
        """Costs next to nothing while nobody listens."""
        if not self._listeners:
            return
        for told in self._story.follow(event):
            self._tell(told)

    def _tell(self, told: EventDispatch) -> None:
        listeners = [one for one in self._listeners if told.type in one.registrations.happenings]
        if not listeners:
            return
        try:
            data = pack(told.data)
        except FrameError as error:
            for extension in listeners:
                extension.unsendable += 1
                extension.report(f"it was not told of {told.type}: {error.message}")
            return
        for extension in listeners:
            extension.methods.dispatch.tell(told.type, data)


class _Story:
    """Where in a run things are."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._running = False
        self._said: AssistantMessage | None = None
        self._results: list[ToolResult] = []
        self._due = 0
        """Results of this turn's calls that are still to come."""
        self._open = False
        """A turn has begun whose end was not told yet."""
        self._names: dict[str, str] = {}
        """Tools under way, by call."""
        self._index = -1
        self._kind = ""
        self._compacting = (0, 0)

    def follow(self, event: Event) -> Iterable[EventDispatch]:
        match event:
            case RunStarted():
                self._running = True
                yield wire.agent_start()
                if event.history:
                    yield wire.session_load(event.history)
                yield wire.agent_init(event.tools)
                yield wire.prompt_build(event.system)
                yield wire.message_pre(event.text)
            case TurnStarted():
                yield from self._close_turn()
                self._open, self._said, self._due = True, None, 0
                self._index, self._kind = -1, ""
                yield wire.turn_start()
            case TextDelta() | ThinkingDelta() | ToolUseStart() | ToolUseArgs():
                yield from self._delta(event)
            case AssistantMessageAdded() | AssistantReplaced():
                yield from self._message(event)
            case ToolCalled() | ToolProgressed() | ToolResultAdded() | PermissionAsked():
                yield from self._tool(event)
            case TurnEnded():
                if not self._due:
                    yield from self._close_turn()
            case Retrying():
                yield wire.retry(event.attempt - 1, event.attempts, event.delay_ms, event.reason)
            case StepLimitReached():
                yield wire.max_turns(event.count, event.limit)
            case CompactionStarted():
                self._compacting = (event.messages, event.tokens)
            case CompactionDone():
                before, tokens = self._compacting
                yield wire.compact(before, event.messages, tokens)
            case Done():
                yield from self._close_turn()
                if self._running:  # one that was refused before it began has no end either
                    self._running = False
                    yield wire.agent_end(self._messages())

    def _delta(self, event: TextDelta | ThinkingDelta | ToolUseStart | ToolUseArgs) -> Iterable[EventDispatch]:
        match event:
            case TextDelta():
                yield wire.stream_delta("text", self._place("text"), event.delta)
            case ThinkingDelta():
                yield wire.stream_delta("thinking", self._place("thinking"), event.delta)
            case ToolUseStart():
                self._place(event.id)
            case ToolUseArgs():
                yield wire.stream_delta("toolcall", self._place(event.id), event.delta)

    def _place(self, kind: str) -> int:
        """Which block of the message it belongs to: another kind begins another block."""
        if kind != self._kind:
            self._kind = kind
            self._index += 1
        return self._index

    def _message(self, event: AssistantMessageAdded | AssistantReplaced) -> Iterable[EventDispatch]:
        if not self._open:
            return  # somebody put it there who is not the model
        if isinstance(event, AssistantReplaced) and not event.suppressed:
            return  # the message itself follows
        newest = next((one for one in reversed(self._messages()) if isinstance(one, AssistantMessage)), None)
        if newest is None:
            return
        self._said = newest
        self._due = len(tool_calls(newest))
        self._results.clear()
        yield wire.stream_done(newest)

    def _tool(self, event: ToolCalled | ToolProgressed | ToolResultAdded | PermissionAsked) -> Iterable[EventDispatch]:
        match event:
            case ToolCalled() if event.known and not event.extension:
                self._names[event.id] = event.name
                yield wire.tool_start(event.id, event.name, event.args)
            case ToolProgressed() if event.id in self._names:
                yield wire.tool_update(event.id, self._names[event.id], event.text)
            case PermissionAsked(request=request) if request.step:
                yield wire.step_wait(request.call_id, request.tool, request.args)
            case ToolResultAdded() if not event.extension:
                self._names.pop(event.id, None)
                yield wire.tool_end(event.id, event.name, event.content, event.details, is_error=event.is_error)
                self._results.append(ToolResult(event.id, event.name, event.content, event.is_error))
                self._due -= 1
                if self._due <= 0:
                    yield from self._close_turn()

    def _close_turn(self) -> Iterable[EventDispatch]:
        if not self._open:
            return
        self._open, self._due = False, 0
        results = ToolMessage(tuple(self._results), now()) if self._results else None
        yield wire.turn_end(self._said, results)
        self._results.clear()
