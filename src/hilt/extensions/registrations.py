"""What one process of an extension has registered, and what of that is acceptable."""

from functools import partial
from typing import Protocol

from msgspec import UNSET

from hilt.model.actions import Action
from hilt.model.contributions import (
    Command,
    Contribution,
    Effect,
    Exposure,
    Invocation,
    PromptSection,
    Shortcut,
    Tool,
    ToolOutput,
)
from hilt.model.verdicts import Interceptable
from hilt.wire.frames import unpack_object
from hilt.wire.frames_limits import EXPOSURES, command_problem, register_problem, tool_problem
from hilt.wire.frames_types import Register, RegisterCommand, RegisterTool, Subscribe

INTERCEPTABLE: tuple[Interceptable, ...] = ("tool_call", "turn_start", "assistant_message", "before_agent_start")
_SECTIONS = 32
_SECTION = 32 * 1024
_SHORTCUTS = 64
_EVENTS = 64


class Callee(Protocol):
    """The process, as what it registers needs it."""

    async def call_tool(self, tool: str, invocation: Invocation, *, interactive: bool) -> ToolOutput: ...

    async def run_command(self, command: str, args: str) -> tuple[Action, ...]: ...

    async def press(self, key: str) -> tuple[Action, ...]: ...


class Registrations:
    """Each method answers why it refuses, or None. What is registered again replaces what was there."""

    def __init__(self, callee: Callee) -> None:
        self._callee = callee
        self._tools: dict[str, Tool] = {}
        self._commands: dict[str, Command] = {}
        self._shortcuts: dict[str, Shortcut] = {}
        self._sections: dict[str, PromptSection] = {}
        self.events: set[str] = set()
        self.intercepts: tuple[Interceptable, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(command.name for command in self._commands.values())

    def contributions(self) -> tuple[Contribution, ...]:
        return (
            *self._tools.values(),
            *self._commands.values(),
            *self._shortcuts.values(),
            *self._sections.values(),
        )

    def tool(self, frame: RegisterTool) -> str | None:
        if problem := tool_problem(frame, len(self._tools.keys() - {frame.name})):
            return problem
        self._tools[frame.name] = Tool(
            frame.name,
            frame.description,
            _schema(frame),
            partial(self._callee.call_tool, frame.name, interactive=frame.interactive),
            Effect.EXECUTE,
            exposure=_exposure(frame),
            interactive=frame.interactive,
            instructions=_instructions(frame),
        )
        return None

    def command(self, frame: RegisterCommand) -> str | None:
        key = frame.name.lower()
        if problem := command_problem(frame, len(self._commands.keys() - {key})):
            return problem

        async def run(args: str) -> tuple[Action, ...]:
            return await self._callee.run_command(frame.name, args)

        self._commands[key] = Command(frame.name, frame.description, run)
        return None

    def subscribe(self, frame: Subscribe) -> str | None:
        self.events.update(frame.events[: _EVENTS - len(self.events)])
        wanted = {*self.intercepts, *frame.intercept}
        self.intercepts = tuple(event for event in INTERCEPTABLE if event in wanted)
        unknown = sorted(set(frame.intercept) - set(INTERCEPTABLE))
        if unknown:
            return f"cannot intercept {', '.join(unknown)[:200]}; there are {', '.join(INTERCEPTABLE)}"
        return None

    def kind(self, frame: Register) -> str | None:
        if problem := register_problem(frame):
            return problem
        match frame.kind:
            case "prompt_section":
                return self._section(frame)
            case "shortcut":
                return self._shortcut(frame)
            case kind:
                return f"register {kind}: this version of hilt does not offer it to this dialect yet"

    def _section(self, frame: Register) -> str | None:
        shown = repr(frame.title[:64])
        if len((frame.title + frame.content).encode()) > _SECTION:
            return f"prompt section {shown}: {_SECTION:,} bytes is the limit"
        if len(self._sections.keys() - {frame.title}) >= _SECTIONS:
            return f"prompt section {shown}: an extension can have {_SECTIONS}"
        self._sections[frame.title] = PromptSection(frame.title, frame.content, frame.order)
        return None

    def _shortcut(self, frame: Register) -> str | None:
        key = frame.key.lower()
        if len(self._shortcuts.keys() - {key}) >= _SHORTCUTS:
            return f"shortcut {frame.key[:64]!r}: an extension can have {_SHORTCUTS}"

        async def run() -> tuple[Action, ...]:
            return await self._callee.press(frame.key)

        self._shortcuts[key] = Shortcut(frame.key, frame.description, run)
        return None


def _schema(frame: RegisterTool) -> dict[str, object]:
    # A tool without a schema takes anything; models' APIs want an object all the same.
    if frame.schema is UNSET:
        return {"type": "object"}
    return {"type": "object", **unpack_object(frame.schema)}


def _exposure(frame: RegisterTool) -> Exposure:
    if frame.deferred:
        return "deferred"
    for exposure in EXPOSURES:
        if exposure == frame.exposure:
            return exposure
    return "direct"


def _instructions(frame: RegisterTool) -> str:
    told = "\n".join(filter(None, (frame.namespace_description.strip(), frame.namespace_instructions.strip())))
    return f"{frame.namespace}: {told}" if told and frame.namespace else told
