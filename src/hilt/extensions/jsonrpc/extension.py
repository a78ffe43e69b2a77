"""One process that speaks the jsonrpc dialect: how it is asked, and told."""

import asyncio
from functools import partial
from typing import Any

from msgspec import Raw, UnsetType

from hilt import __version__
from hilt.errors import ExtensionError, ExtensionFailure, ExtensionProtocolError, ExtensionTimeout, FrameError
from hilt.extensions.agent import House, Program
from hilt.extensions.extension import FOREVER, Extension, Keeper
from hilt.extensions.jsonrpc.tongue import JsonRpcTongue
from hilt.extensions.methods.methods import Methods
from hilt.extensions.peer import Id, Pending
from hilt.extensions.results import bounded, is_short
from hilt.model.actions import Action, Noop
from hilt.model.contributions import Invocation, ToolOutput
from hilt.model.verdicts import Question, Verdict
from hilt.packages.discovery import Found
from hilt.wire import jsonrpc_types as wire
from hilt.wire.faults import INVALID_REQUEST
from hilt.wire.jsonrpc import Malformed as BadRequest
from hilt.wire.jsonrpc import Notice, Reply, Request, fault, notice, reply, request, tool_execute_line
from hilt.wire.jsonrpc_actions import action
from hilt.wire.jsonrpc_reading import read
from hilt.wire.jsonrpc_results import tool_output
from hilt.wire.line import strip_bom


class JsonRpcExtension(Extension):
    greeting = "answer to initialize"
    opening = "on descriptor 3, or on standard input, it is sent initialize; it registers, answers, and flushes"
    silence = "did not answer initialize"

    def __init__(self, found: Found, house: House, program: Program, keeper: Keeper, group: asyncio.TaskGroup) -> None:
        super().__init__(found, house, program, keeper, group, JsonRpcTongue())
        self.methods = Methods(self)
        self._first = True

    # The opening

    def begin(self) -> None:
        where = self.house.surroundings
        params = wire.Initialize(
            wire.PROTOCOL_VERSION,
            where.cwd,
            self.data_dir(),
            capabilities=wire.HOST_CAPABILITIES,
            host="hilt",
            host_version=__version__,
        )
        patience = self.found.manifest.start_timeout_ms / 1000
        pending = self.ask_method("initialize", params, "initialize", patience, purpose="start")
        pending.future.add_done_callback(self._initialized)

    def introduce(self, line: bytes) -> None:
        """What it registers and asks before it has answered counts as well."""
        self.peer.line(strip_bom(line) if self._first else line)
        self._first = False

    def _initialized(self, future: "asyncio.Future[Any]") -> None:
        if future.cancelled() or self.fault:
            return
        try:
            result = read(self.outcome(future.result()), wire.InitializeResult)
        except ExtensionFailure as error:
            self.fail(f"it answered initialize with an error: {error.message}")
            return
        except ExtensionTimeout:
            self.tell_method("$/cancelRequest", {"id": 1})
            return  # whoever started it has a clock of his own
        except ExtensionProtocolError as error:
            self.fail(error.message)
            return
        except ExtensionError:
            return
        except FrameError as error:
            self.report(f"its answer to initialize is unusable, but it is there: {error.message}")
            result = wire.InitializeResult()
        self.version = result.version
        if result.name and result.name != self.found.manifest.name:
            self.note(f"it calls itself {result.name[:64]!r}; the manifest's name counts")
        self.introduced = self.ready = True
        self.line = self.peer.line
        self.keeper.trouble()

    # Asking it

    async def call_tool(
        self, tool: str, invocation: Invocation, *, interactive: bool, detached: bool = False
    ) -> ToolOutput:
        patience, limit = self.patience(interactive=interactive)
        self.before_asking()
        line = partial(tool_execute_line, invocation.call_id, tool, invocation.args)
        pending = self.peer.ask("call", line, tool, patience, limit)
        pending.call_id = invocation.call_id
        pending.chain = invocation.chain
        pending.show = invocation.progress
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            self._leave(pending, detached=detached)
            raise
        except ExtensionTimeout as error:
            self.tell_method("$/cancelRequest", {"id": pending.id})
            self.check_stuck()
            return self.failed(tool, error, timed_out=True)
        except ExtensionError as error:
            return self.failed(tool, error)
        finally:
            if self.stuck:
                self.look_again()
        if pending.progress:
            await pending.progress.flush()
        try:
            output = tool_output(read(self.outcome(answer), wire.ToolExecuteResult), self.name, tool)
        except ExtensionFailure as error:
            return ToolOutput.of(f"ext {self.name} tool {tool}: {error.message}", is_error=True)
        except FrameError as error:
            self.peer.mistakes += 1
            self.report(f"its answer to {tool} could not be used: {error.message}")
            reason = f"extension {self.name} gave an unusable answer to {tool}: {error.message}"
            return self.failed(tool, ExtensionProtocolError(self.name, reason))
        return output if is_short(output) else await bounded(output, tool, self.house.places.outputs)

    def _leave(self, pending: Pending, *, detached: bool) -> None:
        """Nobody waits for the result any more. One that is detached goes on with its work all the same."""
        if detached:
            self.peer.give_up(pending)
        else:
            self.forsake(pending)

    async def run_command(self, command: str, args: str) -> tuple[Action, ...]:
        params = wire.CommandExecute(command, " ".join(args.split()))
        await self._act("command/execute", params, f"/{command}", f"command {command}")
        return (Noop(),)

    async def press(self, key: str) -> tuple[Action, ...]:
        answer = await self._act("shortcut/handle", wire.ShortcutHandle(key), f"shortcut {key}", f"shortcut {key}")
        try:
            result = read(answer, wire.ActionResult)
            wanted = action(result.action)
        except FrameError as error:
            raise ExtensionFailure(self.name, f"extension shortcut {key}: unusable answer: {error.message}") from None
        if wanted is None:
            return (Noop(),)
        return (self.allowed_action(wanted, f"shortcut {key}"),)

    async def _act(self, method: str, params: Any, shown: str, what: str) -> Raw | UnsetType:
        self.before_asking()
        # The dialect has no limit here: many ask the user meanwhile.
        pending = self.ask_method(method, params, what, FOREVER, purpose="command")
        try:
            return self.outcome(await pending.future)
        except asyncio.CancelledError:
            self.forsake(pending)
            raise
        except ExtensionError as error:
            self.check_stuck()
            error.message = f"extension {shown}: {error.message}"
            raise
        finally:
            if self.stuck:
                self.look_again()

    def question(self, question: Question, name: str, patience: float) -> Pending:
        return self.methods.callbacks.question(question, name, patience)

    def verdict(self, answer: Any, question: Question, name: str) -> Verdict:
        return self.methods.callbacks.verdict(answer, question, name)

    def spare(self, pending: Pending, *, late: bool = False) -> None:
        if self.peer.give_up(pending) or late:
            self.tell_method("$/cancelRequest", {"id": pending.id})

    # Telling it

    def panel_key(self, panel_id: str, key: str, text: str) -> None:
        self.tell_method("panel/key", wire.PanelKey(panel_id, key, text))

    def panel_resize(self, panel_id: str, width: int, height: int) -> None:
        self.tell_method("panel/resize", wire.PanelResize(panel_id, width, height))

    def panel_closed(self, panel_id: str) -> None:
        self.tell_method("panel/closed", wire.PanelClosed(panel_id))

    def shut_down(self) -> None:
        self.peer.tell(notice("shutdown"))

    # What it says

    def said(self, frame: Request | Notice | BadRequest) -> None:
        self.lines += 1
        match frame:
            case Request():
                self.methods.request(frame.id, frame.method, frame.params)
            case Notice():
                self.methods.notice(frame.method, frame.params)
            case BadRequest():
                self.peer.mistakes += 1
                self.report(f"{frame.method[:64]!r} could not be used: {frame.reason}")
                if frame.id is not None:
                    self.refuse(frame.id, INVALID_REQUEST, frame.reason)

    # Methods

    def request_line(self, id_: int, method: str, params: Any) -> bytes:
        return request(id_, method, params)

    def notice_line(self, method: str, params: Any) -> bytes:
        return notice(method, params)

    def outcome(self, answer: Any) -> Raw | UnsetType:
        assert isinstance(answer, Reply)
        if answer.error:
            raise self.failure(answer.error.message, answer.error.code)
        return answer.result

    def reply(self, id_: Id, result: Any) -> None:
        assert isinstance(id_, int)
        self.peer.tell(reply(id_, result))

    def refuse(self, id_: Id, code: int, message: str) -> None:
        assert isinstance(id_, int)
        self.peer.tell(fault(id_, code, message))
