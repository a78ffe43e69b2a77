"""The jsonrpc dialect: piglet's. What each method means, and how each thing is said in it."""

from __future__ import annotations

import os

from hilt_sdk.link import Link
from hilt_sdk.methods import FAILED, INVALID, Question, asked, kind_of, kinds, told
from hilt_sdk.protocol import HostInfo, own_block, wire_block
from hilt_sdk.runner import Job
from hilt_sdk.values import HostError, Insert, Prompt, Result, ToolPrompt, explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hilt_sdk.panels import Panel
    from hilt_sdk.registrations import Command, Tool

    Message = dict[str, Any]

_REGISTER = {
    "prompt_section": "register/promptSection",
    "interceptor": "register/interceptor",
    "event_handler": "register/eventHandler",
    "shortcut": "register/shortcut",
    "message_hook": "register/messageHook",
    "input_transformer": "register/inputTransformer",
    "compactor": "register/compactor",
    "provider": "register/provider",
}


class JsonRpc(Link):
    dialect = "jsonrpc"

    def open(self) -> None:
        """The host speaks first."""

    def receive(self, message: Message) -> Job | None:
        method, key = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if key is not None:
                self.answered(key, message.get("result"), message.get("error"))
            return None
        params = message.get("params")
        if key is None:
            return self._told(method, params if isinstance(params, dict) else {})
        return self._asked(key, method, {} if params is None else params)

    def _told(self, method: str, params: Message) -> Job | None:
        if method == "shutdown":
            self.close()
            return None
        panel_id = params.get("panel_id")
        if method == "panel/key":
            key, text = params.get("key") or "", params.get("text") or ""
            return self.panel_job(panel_id, lambda panel: panel.pressed(key, text))
        if method == "panel/resize":
            width, height = params.get("width") or 0, params.get("height") or 0
            return self.panel_job(panel_id, lambda panel: panel.resized(width, height))
        if method == "panel/closed":
            return self.panel_closed(panel_id)
        return told(self, method, params)

    def _asked(self, key: Any, method: str, params: Any) -> Job | None:
        def reply(result: Any) -> None:
            self.send({"jsonrpc": "2.0", "id": key, "result": result})

        def fail(code: int, message: str) -> None:
            self.send({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}})

        question = Question(key, method, params, reply, fail)
        own = _OWN.get(method)
        if own is not None and not isinstance(params, dict):
            fail(INVALID, f"{method}: params must be an object")
            return None
        try:
            return asked(self, question) if own is None else own(self, question)
        except (TypeError, AttributeError, ValueError) as error:
            fail(INVALID, f"{method}: the params cannot be used: {error}")
            return None

    # The handshake

    def _initialize(self, question: Question) -> Job | None:
        params = question.params
        hilt = params.get("host") == "hilt"
        capabilities = [one for one in params.get("capabilities") or () if isinstance(one, str)]
        self.ext._learn({"cwd": params.get("cwd"), "data_dir": params.get("configDir"), "extension_dir": os.getcwd()})
        version = params.get("hostVersion") or ""
        host = HostInfo("hilt" if hilt else "piglet", version, "jsonrpc", capabilities)
        self.meet(host)
        if self.exit_code:
            question.fail(FAILED, self.complaint)
            self.tell_missing()
            self.close()
            return None
        for tool in self.registered.tools.values():
            self.tell("register/tool", tool_params(tool))
        for command in self.registered.commands.values():
            self.tell("register/command", command_params(command))
        for kind, fields in kinds(self.registered, self.ext.name, plain_too=True):
            try:
                self.tell(_REGISTER[kind], self._offered(kind, fields))
            except ValueError as error:
                self.unregistered(kind, error)
        question.reply({"name": self.ext.name, "version": self.ext.version})
        self.tell_missing()
        return self.started()

    def _offered(self, kind: str, fields: Message) -> Message:
        """Without what the host would not understand."""
        if kind == "interceptor" and not self.offers("intercept.turn_start"):
            return {name: value for name, value in fields.items() if name != "events"}
        if kind == "provider" and not self.offers("provider_models"):
            return {"api": fields["api"]}
        return fields

    def register(self, kind: str, entry: Any) -> None:
        if kind == "tool":
            self.tell("register/tool", tool_params(entry))
        elif kind == "command":
            self.tell("register/command", command_params(entry))
        else:
            name, fields = kind_of(self.registered, self.ext.name, kind, entry)
            self.tell(_REGISTER[name], self._offered(name, fields))

    # Tools

    def _execute(self, question: Question) -> Job | None:
        params = question.params
        tool = self.registered.tools.get(params.get("name") or "")
        if tool is None:
            question.fail(INVALID, f"unknown tool: {params.get('name')}")
            return None
        args = params.get("args")
        return self.tool_job(question.key, str(params.get("callId") or ""), tool, {} if args is None else args)

    def send_result(self, key: Any, result: Result) -> None:
        told: Message = {"content": [wire_block(block) for block in result.content]}
        if result.failed:
            told["isError"] = True
        if result.code:
            told["errorCode"] = result.code
        if result.hint:
            told["errorHint"] = result.hint
        for name in result.activate:  # before the model reads of them
            self._request_unheard("host/activateTool", {"name": name})
        self.send({"jsonrpc": "2.0", "id": key, "result": told})

    def _request_unheard(self, method: str, params: Message) -> None:
        """A request whose answer nobody waits for."""
        with self._counting:
            self._count += 1
            number = self._count
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def progress(self, call_id: str, text: str) -> None:
        if self.offers("progress"):
            self.tell("tool/progress", {"callId": call_id, "text": text})

    def call_tool(self, name: str, args: dict[str, Any], parent: str, timeout: float | None) -> Result:
        params: Message = {"name": name, "args": args}
        if parent:
            params["callId"] = parent
        try:
            told = self.request("host/executeTool", params, timeout) or {}
        except HostError as error:
            return Result(error.message, is_error=True)
        return Result(
            content=[own_block(block) for block in told.get("content") or ()],
            is_error=bool(told.get("isError")),
            code=told.get("errorCode") or "",
            hint=told.get("errorHint") or "",
        )

    # Commands and shortcuts

    def _command(self, question: Question) -> Job | None:
        params = question.params
        command = self.registered.commands.get(params.get("name") or "")
        if command is None:
            question.fail(INVALID, f"unknown command: {params.get('name')}")
            return None

        def answer(value: Any) -> None:
            self._do(value)
            question.reply({})

        def failed(error: BaseException) -> None:
            question.fail(FAILED, explained(error))

        return Job(lambda: self.invoke(command.function, (params.get("args") or "",), answer, failed), command)

    def _shortcut(self, question: Question) -> Job | None:
        params = question.params
        shortcut = self.registered.shortcuts.get(params.get("key") or "")
        if shortcut is None:
            question.fail(INVALID, f"unknown shortcut: {params.get('key')}")
            return None

        def answer(value: Any) -> None:
            self._do(value)
            question.reply({"action": None})

        def failed(error: BaseException) -> None:
            question.fail(FAILED, explained(error))

        return Job(lambda: self.invoke(shortcut.function, (), answer, failed), shortcut)

    def _do(self, value: Any) -> None:
        """What a command returned: said by notifications, as its answer has no room for it."""
        if value is None or value == "":
            return
        if isinstance(value, str):
            self.show(value)
        elif isinstance(value, Insert):
            self.tell("setInputText", {"text": value.text})
        elif isinstance(value, Prompt):
            self.submit(value.text)
        elif isinstance(value, ToolPrompt):
            result = self.call_tool(value.tool, value.args, "", None)
            head = f"{value.tool} {'failed' if result.is_error else 'returned'}:\n"
            self.submit("\n\n".join(filter(None, (value.prompt.strip(), head + result.text))))
        elif hasattr(value, "on_key"):
            self.open_panel(value)
        else:
            raise TypeError(
                f"a command cannot return {type(value).__name__}: return str, Insert, Prompt, Panel or None"
            )

    # Panels

    def open_panel(self, panel: Panel) -> None:
        if self.offers("open_panel"):
            content = panel.bind(self)
            self.panels[panel.id] = panel
            self.tell("panel/open", {"panel_id": panel.id, **content})
        else:
            self.show_panel(panel)

    def render_panel(self, panel: Panel, content: dict[str, Any]) -> None:
        self.tell("panel/render", {"panel_id": panel.id, **content})

    def close_panel(self, panel: Panel) -> None:
        self.forget_panel(panel.id)
        self.tell("panel/close", {"panel_id": panel.id})

    # Telling and asking the host

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        def send(number: int) -> None:
            self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

        return self.ask(send, lambda number: self.tell("$/cancelRequest", {"id": number}), timeout, hear)

    def notify(self, text: str, level: str) -> None:
        self.tell("notify", {"message": text, "level": level})

    def clear_notes(self) -> None:
        self.can("clear_notes")

    def show(self, text: str) -> None:
        self.tell("showMessage", {"text": text})

    def submit(self, text: str) -> None:
        self.tell("sendMessage", {"content": text})


_OWN = {
    "initialize": JsonRpc._initialize,
    "tool/execute": JsonRpc._execute,
    "command/execute": JsonRpc._command,
    "shortcut/handle": JsonRpc._shortcut,
}


def tool_params(tool: Tool) -> Message:
    params: Message = {"name": tool.name, "description": tool.description, "parameters": tool.signature.schema}
    if tool.options.get("prompt_hint"):
        params["promptHint"] = tool.options["prompt_hint"]
    if tool.options.get("deferred") or tool.options.get("exposure") == "deferred":
        params["deferred"] = True
    if not tool.options.get("interruptible", True):
        params["interruptBehavior"] = "block"
    return params


def command_params(command: Command) -> Message:
    params: Message = {"name": command.name, "description": command.description}
    return {**params, "immediate": True} if command.immediate else params
