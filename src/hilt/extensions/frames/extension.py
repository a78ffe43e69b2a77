"""One process that speaks the frames dialect: how it is asked, and told."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from hilt.errors import (
    ExtensionError,
    ExtensionFailure,
    ExtensionProtocolError,
    ExtensionStartError,
    ExtensionTimeout,
    FrameError,
)
from hilt.extensions.agent import House, Program
from hilt.extensions.extension import Extension, Keeper
from hilt.extensions.frames.handshake import Handshake, hello_ack
from hilt.extensions.frames.inbound import Inbound
from hilt.extensions.frames.tongue import FramesTongue
from hilt.extensions.methods.methods import Methods
from hilt.extensions.peer import Id, Pending
from hilt.extensions.results import bounded
from hilt.model.actions import Action
from hilt.model.contributions import Invocation, ToolOutput
from hilt.model.verdicts import Question, Verdict
from hilt.packages.discovery import Found
from hilt.transport.lines import TooLong
from hilt.wire.frames import encode, tool_call_line
from hilt.wire.frames_answers import CommandFailed, command_answer, verdict
from hilt.wire.frames_questions import intercept_line
from hilt.wire.frames_results import short_text, tool_output
from hilt.wire.frames_types import (
    CommandInvoked,
    CommandResponse,
    EventInterceptResponse,
    ExtensionFrame,
    ExtNotify,
    ExtRequest,
    ExtResponse,
    Hello,
    HostFault,
    HostResponse,
    PanelClose,
    PanelKey,
    PanelResize,
    Ready,
    ShortcutInvoked,
    Shutdown,
    ToolCancel,
    ToolResult,
)
from hilt.wire.freeform import pack
from hilt.wire.line import Malformed

COMMAND_PATIENCE = 30.0
INTERACTIVE = "interactive extension tools require an interactive host"


class FramesExtension(Extension):
    greeting = "hello"
    opening = "the first thing an extension writes to standard output is its hello"
    silence = "did not say hello"

    def __init__(self, found: Found, house: House, program: Program, keeper: Keeper, group: asyncio.TaskGroup) -> None:
        super().__init__(found, house, program, keeper, group, FramesTongue())
        self.methods = Methods(self)
        self._inbound = Inbound(self, self.methods)
        self._handshake = Handshake(self.name)
        self._cancels = False
        """It wants to be told when a call's answer is no longer wanted."""

    def begin(self) -> None:
        """It speaks first."""

    # Asking it

    async def call_tool(
        self, tool: str, invocation: Invocation, *, interactive: bool, detached: bool = False
    ) -> ToolOutput:
        if interactive and not self.house.attended:
            return ToolOutput.of(INTERACTIVE, is_error=True)
        patience, limit = self.patience(interactive=interactive)
        self.before_asking()
        pending = self.peer.ask("call", partial(tool_call_line, tool, invocation.args), tool, patience, limit)
        pending.chain = invocation.chain
        pending.show = invocation.progress
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            self._cancel(pending, quietly=detached)
            raise
        except ExtensionTimeout as error:
            self._cancel(pending)
            self.check_stuck()
            return self.failed(tool, error, timed_out=True)
        except ExtensionError as error:
            return self.failed(tool, error)
        finally:
            if self._inbound.children:
                self._inbound.give_up_children(pending.id)
            if self.stuck:
                self.look_again()
        if pending.progress:
            await pending.progress.flush()
        assert type(answer) is ToolResult
        if output := short_text(answer):
            return output  # nearly always
        return await bounded(tool_output(answer, self.name, tool), tool, self.house.places.outputs)

    def _cancel(self, pending: Pending, *, quietly: bool = False) -> None:
        self.peer.give_up(pending)
        if self._cancels and not quietly:
            self.peer.tell(encode(ToolCancel(str(pending.id))))

    async def run_command(self, command: str, args: str) -> tuple[Action, ...]:
        return await self._act(f"/{command}", command, lambda id_: encode(CommandInvoked(id_, command, args)))

    async def press(self, key: str) -> tuple[Action, ...]:
        return await self._act(f"shortcut {key}", key, lambda id_: encode(ShortcutInvoked(id_, key)))

    async def _act(self, shown: str, what: str, line: Callable[[str], bytes]) -> tuple[Action, ...]:
        self.before_asking()
        pending = self.peer.ask("command", line, what, COMMAND_PATIENCE)
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            self.peer.give_up(pending)
            raise
        except ExtensionError as error:
            self.check_stuck()
            error.message = f"extension {shown}: {error.message}"
            raise
        finally:
            if self.stuck:
                self.look_again()
        assert isinstance(answer, CommandResponse)
        action = command_answer(answer)
        if isinstance(action, CommandFailed):
            raise ExtensionFailure(self.name, f"extension {shown}: {action.message}")
        return (self.allowed_action(action, shown),)

    def question(self, question: Question, name: str, patience: float) -> Pending:
        if name:
            return self.methods.callbacks.question(question, name, patience)
        what = f"{question.event} of {question.tool_name}" if question.tool_name else question.event
        return self.peer.ask("verdict", lambda id_: intercept_line(id_, question), what, patience)

    def verdict(self, answer: Any, question: Question, name: str) -> Verdict:
        if name:
            return self.methods.callbacks.verdict(answer, question, name)
        assert isinstance(answer, EventInterceptResponse)
        decided = verdict(answer, question.event)
        if isinstance(decided, Malformed):
            raise ExtensionProtocolError(self.name, f"{self.name} gave an unusable verdict: {decided.reason}")
        return decided

    # Telling it

    def panel_key(self, panel_id: str, key: str, text: str) -> None:
        self.peer.tell(encode(PanelKey(panel_id, key, text)))

    def panel_resize(self, panel_id: str, width: int, height: int) -> None:
        self.peer.tell(encode(PanelResize(panel_id, width, height)))

    def panel_closed(self, panel_id: str) -> None:
        self.peer.tell(encode(PanelClose(panel_id)))

    def shut_down(self) -> None:
        self.peer.tell(encode(Shutdown()))

    # What it says

    def introduce(self, line: bytes) -> None:
        if self.fault:
            return  # a hello comes too late now
        try:
            hello = self._handshake.take(line)
        except ExtensionStartError as error:
            self.fail(f"{error.message} ({error.hint})")
            return
        if hello is None:
            return
        self.introduced = True
        self.version = hello.version
        self._cancels = "tool_cancel" in hello.capabilities
        self.line = self.peer.line
        self.peer.tell(encode(hello_ack(self.house.surroundings, str(self.found.directory), self.data_dir())))
        if stray := self._handshake.stray:
            for one in stray:
                self.program.remark(f"before its hello: {one}")
            told = f"{len(stray)} line{'s' * (len(stray) > 1)} before its hello ignored"
            self.report(f"{told}, the first was {stray[0]!r}")
        if hello.name != self.found.manifest.name:
            self.report(f"it calls itself {hello.name[:64]!r}; the manifest's name counts")
        self.keeper.trouble()

    def overlong(self, line: TooLong) -> None:
        if self.introduced:
            super().overlong(line)
        else:
            self.fail(f"its first line has {line.size:,} bytes and is no hello")

    def said(self, frame: ExtensionFrame) -> None:
        self.lines += 1
        match frame:
            case Hello():
                self.peer.mistakes += 1
                self.report("a second hello is ignored")
            case Ready():
                self.ready = True
                self.keeper.changed()
                self.keeper.trouble()
            case _:
                self._inbound.take(frame)

    # Methods, carried in frames

    def request_line(self, id_: str, method: str, params: Any) -> bytes:
        return encode(ExtRequest(id_, method, pack(params)), packed=True)

    def notice_line(self, method: str, params: Any) -> bytes:
        return encode(ExtNotify(method, pack(params)), packed=True)

    def outcome(self, answer: Any) -> Raw | UnsetType:
        assert isinstance(answer, ExtResponse)
        if answer.error is not UNSET:
            raise self.failure(answer.error.message, answer.error.code)
        return answer.result

    def reply(self, id_: Id, result: Any) -> None:
        self.peer.tell(encode(HostResponse(str(id_), result=pack(result)), packed=True))

    def refuse(self, id_: Id, code: int, message: str) -> None:
        try:
            self.peer.tell(encode(HostResponse(str(id_), error=HostFault(code, message))))
        except FrameError as error:
            self.report(error.message)  # the id it gave is nearly as long as a line
