"""What an extension says of its own accord, and what is done about it. Nothing here may block the reader."""

import asyncio
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from hilt.errors import FrameError, HiltError
from hilt.extensions.capabilities import CALL, SUBMIT
from hilt.extensions.extension import Extension
from hilt.extensions.methods.methods import Methods
from hilt.extensions.offered import OfferedCommand, OfferedSection, OfferedShortcut, OfferedTool
from hilt.extensions.peer import Id, Pending
from hilt.model.actions import Action, ClearNotes, ClosePanel, Notify, OpenPanel, RenderPanel, Submit
from hilt.model.contributions import ToolOutput
from hilt.model.extensions import NoteLevel, Panel
from hilt.wire import frames_types as frames
from hilt.wire.frames import encode
from hilt.wire.frames_answers import panel
from hilt.wire.frames_kinds import register_problem
from hilt.wire.frames_results import call_result
from hilt.wire.frames_types import (
    CallResult,
    CallTool,
    CallToolCancel,
    ExtensionFrame,
    HostNotify,
    HostRequest,
    PanelClose,
    PanelRender,
    Register,
    RegisterCommand,
    RegisterTool,
    SubmitSlash,
    Subscribe,
    ToolProgress,
)
from hilt.wire.frames_types import (
    Notify as NotifyFrame,
)
from hilt.wire.frames_types import (
    OpenPanel as OpenPanelFrame,
)
from hilt.wire.frames_types import (
    Submit as SubmitFrame,
)
from hilt.wire.freeform import pack, unpack_object

_CALL_LIMIT = 60.0
_LEVELS: dict[str, NoteLevel] = {"info": "info", "success": "success", "warn": "warn", "error": "error"}


class Inbound:
    def __init__(self, extension: Extension, methods: Methods) -> None:
        self._extension = extension
        self._name = extension.name
        self._agent = extension.house.agent
        self._peer = extension.peer
        self._registrations = extension.registrations
        self._errands = extension.errands
        self._capabilities = extension.capabilities
        self._report = extension.report
        self._methods = methods
        self._calls: dict[str, CallTool] = {}
        """Calls of the host's tools under way, by the id the extension gave them."""
        self.children: dict[Id, set[str]] = {}
        """Which calls of tools were made on behalf of which call."""
        self._slashes = 0

    def take(self, frame: ExtensionFrame) -> None:
        match frame:
            case RegisterTool():
                self._registered(self._registrations.tool(_tool(frame)))
            case RegisterCommand():
                self._registered(self._registrations.command(OfferedCommand(frame.name, frame.description)))
            case Subscribe():
                self._registered(self._registrations.subscribe(frame.events, frame.intercept))
            case Register():
                self._register(frame)
            case ToolProgress():
                self._extension.progressed(self._peer.call(frame.id), frame.text)
            case CallTool():
                self._call_tool(frame)
            case CallToolCancel(id=id_):
                self._cancel(id_)
            case HostRequest():
                self._methods.request(frame.id, frame.method, frame.params)
            case HostNotify():
                self._methods.notice(frame.method, frame.params)
            case SubmitSlash(text=text):
                self._slash(text.strip())
            case _:
                if action := _action(frame):
                    self._extension.do(action)

    def give_up_children(self, call_id: Id) -> None:
        """The call is over: what was begun for it has no purpose any more."""
        for id_ in self.children.pop(call_id, ()):
            self._cancel(id_)

    def _registered(self, problem: str | None) -> None:
        if problem:
            self._report(problem)
        self._extension.keeper.changed()

    def _register(self, frame: Register) -> None:
        """Of a kind that both dialects have natively, or that one has by method."""
        if problem := register_problem(frame):
            self._report(problem)
        elif frame.kind == "prompt_section":
            section = OfferedSection(frame.title, frame.content, frame.order, frame.token_hint)
            self._registered(self._registrations.section(section))
        elif frame.kind == "shortcut":
            self._registered(self._registrations.shortcut(OfferedShortcut(frame.key, frame.description)))
        else:
            self._methods.register(kind_method(frame.kind), pack(_members(frame)))

    def _refused(self, *permissions: str) -> str:
        """Why it may not do what needs these. Nobody is told so twice, but its log has it each time."""
        refusal = self._capabilities.refusal(*permissions)
        if refusal:
            self._report(refusal)
        return refusal

    def _slash(self, text: str) -> None:
        if self._refused(SUBMIT):
            return
        if not text.startswith("/"):
            self._report(f"submit_slash refused (not a slash command): {text[:64]!r}")
            return

        async def run() -> None:
            try:
                await self._agent.slash(text, self._name)
            except HiltError as error:
                self._report(f"submit_slash {text[:64]!r}: {error.message}")

        self._slashes += 1
        if not self._errands.run(f"slash {self._slashes}", run()):
            self._report(f"submit_slash refused: too much is under way for it: {text[:64]!r}")

    # Calling the host's tools

    def _call_tool(self, frame: CallTool) -> None:
        parent = self._peer.call(frame.parent_id) if frame.parent_id else None
        if problem := self._refused(CALL) or self._call_problem(frame, parent):
            self._refuse(frame, problem)
            return
        chain = (*parent.chain, parent.what) if parent else ()
        if not self._errands.run(f"call {frame.id}", self._run_tool(frame, chain)):
            self._refuse(frame, "refused: too many calls of tools are under way")
            return
        self._calls[frame.id] = frame
        if parent:
            self.children.setdefault(parent.id, set()).add(frame.id)

    def _call_problem(self, frame: CallTool, parent: Pending | None) -> str:
        if frame.parent_id and parent is None:
            return f"parent_id {frame.parent_id[:64]!r} is no call of a tool of this extension that is under way"
        if not frame.parent_id and self._peer.calls:
            return "while one of its tools is being called, parent_id must name the call it is part of"
        if frame.id in self._calls:
            return f"id {frame.id[:64]!r} is taken by a call that is under way"
        return ""

    async def _run_tool(self, frame: CallTool, chain: tuple[str, ...]) -> None:
        try:
            async with asyncio.timeout(_CALL_LIMIT):
                output = await self._agent.call_tool(frame.name, unpack_object(frame.args), self._name, chain)
        except FrameError as error:
            output = ToolOutput.of(f"args: {error.message}", is_error=True)
        except TimeoutError:
            output = ToolOutput.of(f"{frame.name} did not end within {_CALL_LIMIT:.0f} s", is_error=True)
        except HiltError as error:
            output = ToolOutput.of(error.message, is_error=True)
        self._answer(frame, output)

    def _cancel(self, id_: str) -> None:
        # Answered here: one that is cancelled before its first step never gets to do it itself.
        if frame := self._calls.get(id_):
            self._errands.cancel(f"call {id_}")
            self._answer(frame, ToolOutput.of(f"{frame.name}: cancelled", is_error=True))

    def _answer(self, frame: CallTool, output: ToolOutput) -> None:
        if self._calls.pop(frame.id, None) is not None:
            self._reply(call_result(frame.id, frame.name, output))

    def _refuse(self, frame: CallTool, reason: str) -> None:
        self._reply(call_result(frame.id, frame.name, ToolOutput.of(reason, is_error=True)))

    def _reply(self, answer: CallResult) -> None:
        try:
            self._peer.tell(encode(answer))
        except FrameError as error:
            self._report(error.message)  # the id or the name it gave is nearly as long as a line


def _tool(frame: RegisterTool) -> OfferedTool:
    return OfferedTool(
        frame.name,
        frame.description,
        frame.schema,
        frame.output_schema,
        frame.namespace,
        frame.namespace_description,
        frame.namespace_instructions,
        frame.exposure,
        frame.deferred,
        frame.interactive,
    )


def kind_method(kind: str) -> str:
    """How the other dialect calls what is registered by kind here: `message_hook` is `register/messageHook`."""
    first, *rest = kind.split("_")
    return "register/" + first + "".join(word.capitalize() for word in rest)


def _members(frame: Register) -> dict[str, Any]:
    """As the other dialect would send them."""
    members: dict[str, Any] = msgspec.to_builtins(frame, builtin_types=(Raw,))
    return {name: value for name, value in members.items() if name not in ("type", "kind")}


def _action(frame: ExtensionFrame) -> Action | None:
    """What a frame asks for, when that is all there is to it."""
    match frame:
        case NotifyFrame(level=level, message=message):
            return Notify(_LEVELS.get(level, "info"), message) if message else None
        case frames.ClearNotes():
            return ClearNotes()
        case SubmitFrame(text=text):
            return Submit(text.strip()) if text.strip() else None
        case OpenPanelFrame(panel=spec):
            return None if spec is UNSET else OpenPanel(panel(spec))
        case PanelRender():
            return RenderPanel(Panel(frame.panel_id, frame.title, frame.lines, frame.footer))
        case PanelClose(panel_id=panel_id):
            return ClosePanel(panel_id)
        case _:
            return None
