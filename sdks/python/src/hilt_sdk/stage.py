"""The other side of the wire, played in memory: what `testing` builds on.

Owns the pipes, the opening, everything the extension says and answering what it asks for. What a test does with an
extension is in `testing`.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread

from hilt_sdk.transport import Pipes, decoded, encoded, log, log_listeners
from hilt_sdk.values import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from hilt_sdk.extension import Extension

    Message = dict[str, Any]
    Self = TypeVar("Self", bound="Stage")

PATIENCE = 5.0
"""Seconds after which a wait fails."""
CAPABILITIES = {
    "frames": (
        "call_tool",
        "host_request",
        "host_notify",
        "ext_request",
        "register",
        "tool_progress",
        "tool_cancel",
    ),
    "jsonrpc": (
        "panel/open",
        "panel/render",
        "panel/close",
        "tool/progress",
        "interceptor/event",
        "interceptor/content",
        "register/late",
        "register/models",
        "host/unsubscribe",
        "setStatus",
    ),
}
_VERSION = "0.1.0"


class HostTimeout(AssertionError):
    """The extension did not do what was waited for."""


class Called(Result):
    """What a tool answered, and what it reported on the way."""

    __slots__ = ("progress",)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.progress: list[str] = []


class Action:
    """What a command or a shortcut had done."""

    def __init__(self) -> None:
        self.shown = ""
        self.inserted = ""
        self.prompt = ""
        self.tool = ""
        """That of a prompt with a tool's result, with its `args`."""
        self.args: Message = {}
        self.panel: ShownPanel | None = None
        self.error = ""
        """Why it failed."""


class Verdict:
    """What interceptors decided."""

    def __init__(self) -> None:
        self.blocked = False
        self.reason = ""
        self.args: Message | None = None
        """What the tool is called with."""
        self.text: str | None = None
        """What is shown, or the text of the result."""
        self.system_prompt: str | None = None
        self.result: Result | None = None


class Answer:
    """What a provider answered."""

    def __init__(self, message: Message) -> None:
        self.message = message
        """The whole, as the host gets it."""
        parts = [part for part in message.get("content") or () if isinstance(part, dict)]
        self.text = "".join(part["text"] for part in parts if "text" in part)
        self.thinking = "".join(part["thinking"] for part in parts if "thinking" in part)
        self.calls = [(part["name"], part["arguments"]) for part in parts if "arguments" in part]
        """Each tool that it calls, with the arguments."""


class Note:
    def __init__(self, text: str, level: str) -> None:
        self.text = text
        self.level = level

    def __repr__(self) -> str:
        return f"Note({self.text!r}, {self.level!r})"


class ShownPanel:
    """A panel as the user sees it."""

    def __init__(self, panel_id: str) -> None:
        self.id = panel_id
        self.title = ""
        self.lines: list[str] = []
        self.footer = ""
        self.open = True

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Stage:
    """The host's side of the wire: greets, hears, serves, for as long as the block."""

    def __init__(
        self,
        ext: Extension,
        *,
        dialect: str = "",
        host: str = "hilt",
        capabilities: Sequence[str] | None = None,
        cwd: str = "",
        data_dir: str = "",
        patience: float = PATIENCE,
    ) -> None:
        self.ext = ext
        self.name = host
        self.dialect = dialect or ("jsonrpc" if host == "piglet" else "frames")
        self.capabilities = (
            tuple(CAPABILITIES[self.dialect] if host == "hilt" else ()) if capabilities is None else capabilities
        )
        self.cwd = cwd or os.getcwd()
        self.data_dir = data_dir
        self.answers: dict[str, Any] = {}
        """What the host replies by method: a value, an exception, or a function of the params."""
        self.notes: list[Note] = []
        self.panels: dict[str, ShownPanel] = {}
        self.said: list[Message] = []
        """Every message of the extension, in order."""
        self.log: list[str] = []
        """What it wrote to its log."""
        self.submitted: list[str] = []
        self.shown: list[str] = []
        self.told: list[tuple[str, Message]] = []
        """Other notifications by method, such as `setWidget`."""
        self.registered: dict[str, list[Message]] = {}
        """What was registered, by kind."""
        self._patience = patience
        self._count = 0
        self._lock = allocate_lock()
        self._news: list[Any] = []
        self._answered: dict[Any, Message] = {}
        self._progress: dict[Any, list[str]] = {}
        self._ended = False
        self._ready = False
        self.exit_code: int | None = None
        """0, or 1 when it refused to start; None while it runs."""

    # The life of it

    def __enter__(self: Self) -> Self:
        log_listeners.append(self.log.append)
        to_ext, from_host = os.pipe()
        to_host, from_ext = os.pipe()
        self._pipes = Pipes(to_host, from_host)
        self._link = self.ext._connect(self.dialect, Pipes(to_ext, from_ext))
        self._link.on_end = lambda: start_new_thread(self._end_extension, ())
        start_new_thread(self._link.run, ())
        start_new_thread(self._listen, ())
        try:
            self._greet()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as a host does, and wait until it has ended."""
        if self._ended and self.exit_code is not None:
            self._close()
            return
        self._send({"type": "shutdown"} if self.dialect == "frames" else {"jsonrpc": "2.0", "method": "shutdown"})
        try:
            self._until(lambda: self.exit_code is not None, "it did not end")
        finally:
            self._close()

    def _end_extension(self) -> None:
        """As `run` does at the end of a process."""
        link = self._link
        if not link.finish(1.0):
            log(f"{self.ext.name}: something was still at work after 1 s")
        link.pipes.close()
        self.exit_code = link.exit_code
        self._wake()

    def _close(self) -> None:
        if self.log.append in log_listeners:
            log_listeners.remove(self.log.append)
        if self.ext._link is self._link:
            self.ext._link = None

    def _greet(self) -> None:
        if self.dialect == "frames":
            self._greet_in_frames()
        else:
            self._greet_in_jsonrpc()
        if self._link.exit_code:
            self._until(lambda: self.exit_code is not None and self._ended, "it refused, but did not end")
        else:
            self._until_heard()

    def _greet_in_frames(self) -> None:
        self._until(lambda: any(one.get("type") == "hello" for one in self.said), "it did not say hello")
        ack: Message = {"type": "hello_ack", "protocol_version": 1, "zot_version": "0.1.62"}
        ack |= {"provider": "demo", "model": "demo", "cwd": self.cwd, "extension_dir": os.getcwd()}
        ack["data_dir"] = self.data_dir
        if self.capabilities:
            ack["capabilities"] = list(self.capabilities)
        if self.name == "hilt":
            ack |= {"host": "hilt", "host_version": _VERSION}
        self._send(ack)
        self._until(lambda: self._link.host is not None, "it did not hear of the host")
        self._until(lambda: self._ready or self._link.exit_code, "it was not ready")

    def _greet_in_jsonrpc(self) -> None:
        params: Message = {"protocolVersion": "5", "cwd": self.cwd, "configDir": self.data_dir}
        if self.capabilities:
            params["capabilities"] = list(self.capabilities)
        if self.name == "hilt":
            params |= {"host": "hilt", "hostVersion": _VERSION}
        key = self._key()
        self._request(key, "initialize", params)
        self._answer(key, "initialize was not answered")

    # Asking

    def _key(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def _send(self, message: Message) -> None:
        self._pipes.write(encoded(message))

    def _request(self, key: int, method: str, params: Message) -> None:
        self._send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})

    def _notify(self, method: str, params: Message) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _ask(self, method: str, params: Message) -> Message:
        """A request of the jsonrpc dialect. Raises `AssertionError` with the error it was answered with."""
        key = self._key()
        self._request(key, method, params)
        told = self._answer(key, f"{method} was not answered")
        if "error" in told:
            raise AssertionError(told["error"].get("message"))
        result = told.get("result")
        return result if isinstance(result, dict) else {}

    def _method(self, method: str, params: Message) -> Message:
        """The same in either dialect."""
        if self.dialect == "jsonrpc":
            return self._ask(method, params)
        key = str(self._key())
        self._send({"type": "ext_request", "id": key, "method": method, "params": params})
        told = self._answer(key, f"{method} was not answered")
        if told.get("error"):
            raise AssertionError(told["error"].get("message"))
        result = told.get("result")
        return result if isinstance(result, dict) else {}

    def _until_heard(self) -> None:
        """A question that nobody has an answer to is answered at once, in the order of lines."""
        key = self._key()
        if self.dialect == "frames":
            self._send({"type": "event_intercept", "id": str(key), "event": "flush"})
            self._answer(str(key), "it does not read")
        else:
            self._request(key, "flush", {})
            self._answer(key, "it does not read")

    # Hearing

    def _answer(self, key: Any, what: str) -> Message:
        self._until(lambda: key in self._answered, what)
        return self._answered.pop(key)

    def _until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + self._patience
        while not condition():
            lock = allocate_lock()
            lock.acquire()
            self._news.append(lock)
            if condition():
                return
            left = deadline - time.monotonic()
            if left <= 0 or (self._ended and self.exit_code is not None and not condition()):
                why = "it has ended" if self._ended else f"within {self._patience:g} s"
                raise HostTimeout(f"{self.ext.name}: {what} ({why})")
            lock.acquire(timeout=min(left, 0.05))

    def _wake(self) -> None:
        while self._news:
            self._news.pop().release()

    def _listen(self) -> None:
        while True:
            line = self._pipes.read()
            if line is None:
                break
            message = decoded(line)
            self._hear(message)
            self.said.append(message)
            self._wake()
        self._ended = True
        self._pipes.close()
        self._wake()

    def _hear(self, message: Message) -> None:
        if self.dialect == "frames":
            self._hear_frame(message)
        elif "method" not in message:
            self._answered[message.get("id")] = message
        else:
            self._hear_method(message["method"], message.get("params") or {}, message.get("id"))

    def _hear_frame(self, frame: Message) -> None:
        kind = frame.get("type")
        if kind in ("tool_result", "command_response", "event_intercept_response", "ext_response"):
            self._answered[frame.get("id")] = frame
        elif kind == "tool_progress":
            self._progress.setdefault(frame.get("id"), []).append(frame.get("text") or "")
        elif kind == "ready":
            self._ready = True
        elif kind in ("register_tool", "register_command"):
            self.registered.setdefault(str(kind)[9:], []).append(frame)
        elif kind == "register":
            self.registered.setdefault(frame["kind"], []).append(frame)
        elif kind == "notify":
            self.notes.append(Note(frame.get("message") or "", frame.get("level") or "info"))
        elif kind == "clear_notes":
            self.notes.clear()
        elif kind in ("submit", "submit_slash"):
            self.submitted.append(frame.get("text") or "")
        elif kind == "open_panel":
            self._open(frame["panel"], frame["panel"]["id"])
        elif kind == "panel_render":
            self._render(frame)
        elif kind == "panel_close":
            self._shut(frame)
        elif kind == "host_notify":
            self._hear_method(frame["method"], frame.get("params") or {}, None)
        elif kind == "host_request":
            self._serve(frame["method"], frame.get("params") or {}, frame.get("id"))
        elif kind == "call_tool":
            params = {"name": frame.get("name"), "args": frame.get("args") or {}}
            self._serve("host/executeTool", params, frame.get("id"))

    def _hear_method(self, method: str, params: Message, key: Any) -> None:
        if key is not None:
            self._serve(method, params, key)
        elif method.startswith("register/"):
            self.registered.setdefault(_KINDS.get(method, method[9:]), []).append(params)
        elif method == "notify":
            self.notes.append(Note(params.get("message") or "", params.get("level") or "info"))
        elif method == "tool/progress":
            self._progress.setdefault(params.get("callId"), []).append(params.get("text") or "")
        elif method == "panel/open":
            self._open(params, params["panel_id"])
        elif method == "panel/render":
            self._render(params)
        elif method == "panel/close":
            self._shut(params)
        elif method == "sendMessage":
            self.submitted.append(params.get("content") or "")
        elif method == "showMessage":
            self.shown.append(params.get("text") or "")
        elif method == "log":
            level, line = params.get("level") or "info", params.get("message") or ""
            self.log.append(line if level == "info" else f"{level}: {line}")
        else:
            self.told.append((method, params))

    def _open(self, content: Message, panel_id: str) -> ShownPanel:
        panel = self.panels.setdefault(panel_id, ShownPanel(panel_id))
        panel.open = True
        panel.title = content.get("title") or panel.title
        panel.lines, panel.footer = content.get("lines") or [], content.get("footer") or ""
        return panel

    def _render(self, content: Message) -> None:
        if content.get("panel_id") in self.panels:
            self._open(content, content["panel_id"])

    def _shut(self, content: Message) -> None:
        panel = self.panels.pop(content.get("panel_id") or "", None)
        if panel is not None:
            panel.open = False

    def _subscribed(self, member: str) -> list[str]:
        return [name for one in self.said if one.get("type") == "subscribe" for name in one.get(member) or ()]

    def _subscriptions(self) -> list[str]:
        """Topics, in the order of their numbers."""
        return [
            (one.get("params") or {}).get("topic") or "" for one in self.said if one.get("method") == "host/subscribe"
        ]

    # Serving

    def _serve(self, method: str, params: Message, key: Any) -> None:
        """Answer what the extension asks for, as the test has said; in a thread, as its function may take its time."""
        start_new_thread(self._reply, (method, params, key, len(self._subscriptions()) + 1))

    def _reply(self, method: str, params: Message, key: Any, subscription: int) -> None:
        value: Any = self.answers.get(method, _NOTHING)
        if value is _NOTHING and method == "host/subscribe":
            value = {"subscriptionId": subscription}
        elif value is _NOTHING and method == "host/publish":
            value = {}
        elif callable(value) and not isinstance(value, type):
            try:
                value = value(params)
            except Exception as error:  # noqa: BLE001  # the test's own: the extension is told
                value = error
        if value is _NOTHING:
            problem: Message | None = {"code": -32601, "message": f"method not found: {method} (set host.answers)"}
        elif isinstance(value, Exception):
            problem = {"code": getattr(value, "code", -32603), "message": str(value)}
        else:
            problem = None
        self._send(self._response(method, key, {} if value is None else value, problem))

    def _response(self, method: str, key: Any, value: Any, problem: Message | None) -> Message:
        if self.dialect == "jsonrpc":
            outcome = {"result": value} if problem is None else {"error": problem}
            return {"jsonrpc": "2.0", "id": key, **outcome}
        if method == "host/executeTool" and not self._is_request(key):
            if problem is not None:
                value = {"content": [{"type": "text", "text": problem["message"]}], "is_error": True}
            elif isinstance(value, str):
                value = {"content": [{"type": "text", "text": value}]}
            return {"type": "tool_result", "id": key, **value}
        outcome = {"result": value} if problem is None else {"error": problem}
        return {"type": "host_response", "id": key, **outcome}

    def _is_request(self, key: Any) -> bool:
        return any(one.get("type") == "host_request" and one.get("id") == key for one in self.said[-50:])


_NOTHING: Any = object()
_KINDS = {
    "register/promptSection": "prompt_section",
    "register/eventHandler": "event_handler",
    "register/messageHook": "message_hook",
    "register/inputTransformer": "input_transformer",
}
