"""The frames dialect: zot's, and hilt's own. What each frame means, and how each thing is said in it."""

from __future__ import annotations

from hilt_sdk.interception import decide
from hilt_sdk.link import Link
from hilt_sdk.protocol import HostInfo, is_raw
from hilt_sdk.runner import Job
from hilt_sdk.transport import encoded
from hilt_sdk.values import Insert, Intercepted, Prompt, Result, ToolPrompt, explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hilt_sdk.extension import Extension
    from hilt_sdk.panels import Panel
    from hilt_sdk.registrations import Command, Interceptor, Shortcut, Tool
    from hilt_sdk.transport import Pipes

    Frame = dict[str, Any]

_TOOL_OPTIONS = (
    "deferred",
    "exposure",
    "interactive",
    "namespace",
    "namespace_description",
    "namespace_instructions",
    "output_schema",
)


class Frames(Link):
    dialect = "frames"

    def __init__(self, ext: Extension, pipes: Pipes) -> None:
        super().__init__(ext, pipes)
        self._said_ready = False
        self._receivers: dict[Any, Callable[[Frame], Job | None]] = {
            "tool_call": self._tool_call,
            "hello_ack": self._hello_ack,
            "tool_cancel": self._tool_cancel,
            "command_invoked": self._command_invoked,
            "shortcut_invoked": self._shortcut_invoked,
            "event_intercept": self._event_intercept,
            "event": self._event,
            "panel_key": self._panel_key,
            "panel_resize": self._panel_resize,
            "panel_close": lambda frame: self.panel_closed(frame.get("panel_id")),
            "tool_result": self._tool_result,
            "host_response": self._host_response,
            "ext_request": self._ext_request,
            "ext_notify": self._ext_notify,
            "shutdown": self._shutdown,
        }

    def receive(self, message: Frame) -> Job | None:
        receiver = self._receivers.get(message.get("type"))
        return receiver(message) if receiver is not None else None

    # The handshake

    def open(self) -> None:
        """Everything that any host understands in one go; the rest waits until the host has said what it can do."""
        registered = self.registered
        frames: list[Frame] = [
            {
                "type": "hello",
                "name": self.ext.name,
                "version": self.ext.version,
                "capabilities": ["commands", "tools", "events", "panels", "tool_cancel", "call_tool"],
            }
        ]
        frames += [tool_frame(tool) for tool in registered.tools.values()]
        frames += [command_frame(command) for command in registered.commands.values()]
        events = [event for event in registered.events if not is_raw(event)]
        plain = list(dict.fromkeys(one.event for one in registered.interceptors if one.plain))
        if events or plain:
            frames.append(subscribe_frame(events, plain))
        if not self._kept() and not registered.required:
            self._said_ready = True
            frames.append({"type": "ready"})
        self.pipes.write(b"".join([encoded(frame) for frame in frames]))

    def _kept(self) -> bool:
        """Whether there is something that only some hosts understand."""
        kept = self.registered
        return bool(
            kept.shortcuts
            or kept.sections
            or kept.message_hooks
            or kept.input_transformers
            or kept.compactors
            or kept.providers
            or any(is_raw(event) for event in kept.events)
            or not all(one.plain for one in kept.interceptors)
        )

    def _hello_ack(self, frame: Frame) -> Job | None:
        if self.host is not None:
            return None
        hilt = frame.get("host") == "hilt"
        version = frame.get("host_version" if hilt else "zot_version") or ""
        capabilities = [one for one in frame.get("capabilities") or () if isinstance(one, str)]
        self.ext._learn(frame)
        model = frame.get("provider") or "", frame.get("model") or ""
        self.meet(HostInfo("hilt" if hilt else "zot", version, "frames", capabilities, *model))
        self.tell_missing()
        if self.exit_code:
            self.close()
            return None
        if self._kept():
            self._register_kept()
        if not self._said_ready:
            self._said_ready = True
            self.send({"type": "ready"})
        return self.started()

    def _register_kept(self) -> None:
        from hilt_sdk.methods import kinds

        if not self.offers("prompt_sections"):  # nor any other `register`
            self._do_without_priorities()
            return
        for kind, fields in kinds(self.registered, self.ext.name, plain_too=False):
            try:
                self.send({"type": "register", "kind": kind, **fields})
            except ValueError as error:
                self.unregistered(kind, error)

    def _do_without_priorities(self) -> None:
        """A guard guards in any order: where there are no priorities it is asked all the same."""
        late = list(
            dict.fromkeys(
                one.event for one in self.registered.interceptors if not one.plain and one.event != "tool_result"
            )
        )
        if late:
            self.send(subscribe_frame([], late))

    def register(self, kind: str, entry: Any) -> None:
        if kind == "tool":
            self.send(tool_frame(entry))
        elif kind == "command":
            self.send(command_frame(entry))
        elif kind == "event" and not is_raw(entry):
            self.send(subscribe_frame([entry], []))
        elif kind == "interceptor" and entry.plain:
            self.send(subscribe_frame([], [entry.event]))
        else:
            from hilt_sdk.methods import kind_of

            name, fields = kind_of(self.registered, self.ext.name, kind, entry)
            self.send({"type": "register", "kind": name, **fields})

    def _shutdown(self, _: Frame) -> None:
        self.send({"type": "shutdown_ack"})
        self.close()

    # Tools

    def _tool_call(self, frame: Frame) -> Job | None:
        key, name = frame.get("id"), frame.get("name")
        tool = self.registered.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            self.send_result(key, Result(f"unknown tool: {name}", is_error=True))
            return None
        args = frame.get("args")
        return self.tool_job(key, str(key), tool, {} if args is None else args)

    def send_result(self, key: Any, result: Result) -> None:
        frame: Frame = {"type": "tool_result", "id": key, "content": result.content}
        if result.failed:
            frame["is_error"] = True
        if result.code or result.hint:
            frame["content"] = _worded_result(result)
        if result.structured is not None:
            frame["structured_content"] = result.structured
        if result.activate:
            frame["activate_tools"] = result.activate
        self.pipes.write(encoded(frame))

    def _tool_cancel(self, frame: Frame) -> Job | None:
        call = self.calls.get(frame.get("id"))
        return None if call is None else self.lane("cancel", call.cancel)

    def progress(self, call_id: str, text: str) -> None:
        if self.offers("progress"):
            self.send({"type": "tool_progress", "id": call_id, "text": text})

    def call_tool(self, name: str, args: dict[str, Any], parent: str, timeout: float | None) -> Result:
        self.need("call_tool")

        def send(number: int) -> None:
            frame: Frame = {"type": "call_tool", "id": str(number), "name": name, "args": args}
            if parent:
                frame["parent_id"] = parent
            self.send(frame)

        told = self.ask(send, lambda number: self.send({"type": "call_tool_cancel", "id": str(number)}), timeout)
        result = Result(content=told.get("content") or (), is_error=bool(told.get("is_error")))
        result.truncated = bool(told.get("truncated"))
        return result

    def _tool_result(self, frame: Frame) -> None:
        self.answered(_own_number(frame.get("id")), frame)

    # Commands and shortcuts

    def _command_invoked(self, frame: Frame) -> Job | None:
        name = frame.get("name")
        command = self.registered.commands.get(name) if isinstance(name, str) else None
        if command is None:
            self._no_such(frame, f"unknown command: {name}")
            return None
        return self._command_job(frame.get("id"), command, (frame.get("args") or "",))

    def _shortcut_invoked(self, frame: Frame) -> Job | None:
        name = frame.get("key")
        shortcut = self.registered.shortcuts.get(name) if isinstance(name, str) else None
        if shortcut is None:
            self._no_such(frame, f"unknown shortcut: {name}")
            return None
        return self._command_job(frame.get("id"), shortcut, ())

    def _no_such(self, frame: Frame, text: str) -> None:
        self.send({"type": "command_response", "id": frame.get("id"), "error": text})

    def _command_job(self, key: Any, handler: Command | Shortcut, args: tuple[Any, ...]) -> Job:
        def answer(value: Any) -> None:
            self.send({"type": "command_response", "id": key, **self._action(value)})

        def failed(error: BaseException) -> None:
            self.send({"type": "command_response", "id": key, "error": explained(error)})

        return Job(lambda: self.invoke(handler.function, args, answer, failed), handler)

    def _action(self, value: Any) -> Frame:
        """What a command or a shortcut returned, as an action."""
        if value is None:
            return {"action": "noop"}
        if isinstance(value, str):
            return {"action": "display", "display": value}
        if isinstance(value, Insert):
            return {"action": "insert", "insert": value.text}
        if isinstance(value, Prompt):
            return {"action": "prompt", "prompt": value.text}
        if isinstance(value, ToolPrompt):
            self.need("tool_prompt")
            return {"action": "tool_prompt", "prompt": value.prompt, "tool_name": value.tool, "tool_args": value.args}
        if hasattr(value, "on_key"):
            return {"action": "open_panel", "open_panel": self.bind_panel(value)}
        raise TypeError(f"a command cannot return {type(value).__name__}: return str, Insert, Prompt, Panel or None")

    # Interception and events

    def _event_intercept(self, frame: Frame) -> Job | None:
        event = frame.get("event") or ""
        key = frame.get("id")
        by_name = self.offers("priorities")  # then those that are not plain are asked by method
        interceptors = [one for one in self.registered.intercepts(event) if one.plain or not by_name]
        if not interceptors:
            self.send({"type": "event_intercept_response", "id": key})
            return None

        def work() -> None:
            self._decide(key, interceptors, _intercepted(event, frame))

        return Job(work, interceptors[0])

    def _decide(self, key: Any, interceptors: list[Interceptor], asked: Intercepted) -> None:
        decision = decide(self, interceptors, asked)
        reply: Frame = {"type": "event_intercept_response", "id": key}
        if decision.block is not None:
            reply["block"] = True
            if decision.block.reason:
                reply["reason"] = decision.block.reason
        elif decision.changed:
            field = _CHANGES[asked.event]
            reply[field[0]] = getattr(asked, field[1])
        try:
            self.send(reply)
        except ValueError as error:  # what was changed cannot be written
            why = f"{self.ext.name}'s guard failed: {error}"
            self.send({"type": "event_intercept_response", "id": key, "block": True, "reason": why})

    def _event(self, frame: Frame) -> Job | None:
        return self.event_job(frame.get("event") or "", frame)

    # Panels

    def bind_panel(self, panel: Panel) -> dict[str, Any]:
        content = panel.bind(self)
        self.panels[panel.id] = panel
        return {"id": panel.id, **content}

    def open_panel(self, panel: Panel) -> None:
        if self.offers("open_panel"):
            self.send({"type": "open_panel", "panel": self.bind_panel(panel)})
        else:
            self.show_panel(panel)

    def render_panel(self, panel: Panel, content: dict[str, Any]) -> None:
        self.send({"type": "panel_render", "panel_id": panel.id, **content})

    def close_panel(self, panel: Panel) -> None:
        self.forget_panel(panel.id)
        self.send({"type": "panel_close", "panel_id": panel.id})

    def _panel_key(self, frame: Frame) -> Job | None:
        key, text = frame.get("key") or "", frame.get("text") or ""
        return self.panel_job(frame.get("panel_id"), lambda panel: panel.pressed(key, text))

    def _panel_resize(self, frame: Frame) -> Job | None:
        width, height = frame.get("width") or 0, frame.get("height") or 0
        return self.panel_job(frame.get("panel_id"), lambda panel: panel.resized(width, height))

    # Telling and asking the host

    def notify(self, text: str, level: str) -> None:
        self.send({"type": "notify", "level": level, "message": text})

    def clear_notes(self) -> None:
        if self.can("clear_notes"):
            self.send({"type": "clear_notes"})

    def show(self, text: str) -> None:
        if self.offers("show"):
            self.tell("showMessage", {"text": text})
        else:
            self.notify(text, "info")

    def submit(self, text: str) -> None:
        self.need("submit")
        kind = "submit_slash" if text.lstrip().startswith("/") else "submit"
        self.send({"type": kind, "text": text})

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.send({"type": "host_notify", "method": method, "params": params})

    def request(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        self.need("bus" if method in ("host/publish", "host/subscribe") else "services")

        def send(number: int) -> None:
            self.send({"type": "host_request", "id": str(number), "method": method, "params": params})

        return self.ask(send, lambda number: self.tell("$/cancelRequest", {"id": str(number)}), timeout, hear)

    def _host_response(self, frame: Frame) -> None:
        self.answered(_own_number(frame.get("id")), frame.get("result"), frame.get("error"))

    # Asked by method

    def _ext_request(self, frame: Frame) -> Job | None:
        from hilt_sdk.methods import Question, asked

        key = frame.get("id")

        def reply(result: Any) -> None:
            self.send({"type": "ext_response", "id": key, "result": result})

        def fail(code: int, message: str) -> None:
            self.send({"type": "ext_response", "id": key, "error": {"code": code, "message": message}})

        return asked(self, Question(key, frame.get("method") or "", frame.get("params") or {}, reply, fail))

    def _ext_notify(self, frame: Frame) -> Job | None:
        from hilt_sdk.methods import told

        return told(self, frame.get("method") or "", frame.get("params") or {})


_CHANGES = {
    "tool_call": ("modified_args", "args"),
    "assistant_message": ("replace_text", "text"),
    "before_agent_start": ("system_prompt", "system_prompt"),
}


def tool_frame(tool: Tool) -> Frame:
    frame: Frame = {"type": "register_tool", "name": tool.name, "description": tool.description}
    frame["schema"] = tool.signature.schema
    for option in _TOOL_OPTIONS:
        if tool.options.get(option):
            frame[option] = tool.options[option]
    return frame


def command_frame(command: Command) -> Frame:
    return {"type": "register_command", "name": command.name, "description": command.description}


def subscribe_frame(events: list[str], intercept: list[str]) -> Frame:
    frame: Frame = {"type": "subscribe"}
    if events:
        frame["events"] = events
    if intercept:
        frame["intercept"] = intercept
    return frame


def _intercepted(event: str, frame: Frame) -> Intercepted:
    asked = Intercepted(event, frame)
    asked.tool = frame.get("tool_name") or ""
    asked.id = frame.get("tool_id") or ""
    asked.args = frame.get("tool_args") or {}
    asked.origin = frame.get("origin_extension") or ""
    asked.step = frame.get("step") or 0
    asked.text = frame.get("text") or ""
    asked.system_prompt = frame.get("system_prompt") or ""
    return asked


def _worded_result(result: Result) -> list[dict[str, Any]]:
    """A code and a hint as the other dialect's host would show them to the model."""
    head = f"[error:{result.code}] " if result.code else ""
    tail = f"\nhint: {result.hint}" if result.hint else ""
    others = [block for block in result.content if block.get("type") != "text"]
    return [{"type": "text", "text": head + result.text + tail}, *others]


def _own_number(key: Any) -> Any:
    """Which of our own questions it is."""
    return int(key) if isinstance(key, str) and key.isdigit() else key
