"""Plays the host of a transcript against an extension that is built from it through the SDK's public functions.

The extension lives in this process, so the player can have it do what an `ext` step says: its handlers wait until they
are told what to return, and everything else is a call of the public API. The lines go over real pipes.
"""

import base64
import json
import os
import queue
import select
import threading
import time
from pathlib import Path
from typing import Any

from hilt_sdk import (
    Block,
    Call,
    Extension,
    Handled,
    Image,
    Insert,
    Model,
    Panel,
    Prompt,
    Replace,
    Result,
    Rewrite,
    ToolError,
    ToolPrompt,
)
from hilt_sdk.provider import Reply, Request
from hilt_sdk.stage import CAPABILITIES
from hilt_sdk.transport import Pipes
from hilt_sdk.values import SdkError
from transcript_patterns import contains, sendable

Message = dict[str, Any]
PATIENCE = 5.0
_QUESTIONS = frozenset(
    (
        "tool_call",
        "command_invoked",
        "shortcut_invoked",
        "event_intercept",
        "ext_request",
        "tool/execute",
        "command/execute",
        "shortcut/handle",
        "interceptor/before",
        "interceptor/after",
        "interceptor/event",
        "event/dispatch",
        "messageHook/onMessage",
        "inputTransformer/transform",
        "compact/execute",
        "provider/stream",
    )
)


class Pending:
    """A handler that was called and waits to be told what to do."""

    def __init__(self, **known: Any) -> None:
        self.known = known
        self._told: queue.Queue[Any] = queue.Queue()

    def obey(self) -> Any:
        value = self._told.get(timeout=PATIENCE)
        if isinstance(value, Exception):
            raise value
        return value

    def tell(self, value: Any) -> None:
        self._told.put(value)


class DrawnPanel(Panel):
    """A panel that shows what a step says."""

    def __init__(self, content: Message) -> None:
        self.id = content.get("id") or content.get("panel_id") or ""
        self.take(content)

    def take(self, content: Message) -> None:
        self.title = content.get("title", self.title)
        self.lines = content.get("lines", [])
        self.footer = content.get("footer", "")

    def render(self, width: int, height: int) -> list[str]:
        return list(self.lines)


class Player:
    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.about: Message = lines[0]
        self.steps: list[Message] = [_lowered(step) for step in lines[1:]]
        self.frames = self.about.get("dialect") != "jsonrpc"
        self.ext = Extension("demo", version="1.0.0")
        self._called: queue.Queue[Pending] = queue.Queue()
        self._pending: dict[Any, Pending] = {}
        self._methods: dict[Any, str] = {}
        self._variables: dict[str, Any] = {}
        self._own_ids: dict[Any, Any] = {}
        self._cancelled: set[Any] = set()
        self._panels: dict[str, DrawnPanel] = {}
        self._registered: list[Message] = []
        self._threads: list[threading.Thread] = []
        self._ready = False
        self._started = threading.Event()
        self.ext.on_ready(self._started.set)

    # The whole

    def play(self) -> None:
        for step in self._opening():
            self._register(step)
        into, self._to_ext = os.pipe()
        self._from_ext, out = os.pipe()
        self._buffer = b""
        link = self.ext._connect("frames" if self.frames else "jsonrpc", Pipes(into, out))
        codes: list[int] = []

        ended = threading.Event()

        def end() -> None:
            if link.finish(1.0):
                codes.append(link.exit_code)
            ended.set()

        link.on_end = threading.Thread(target=end).start
        threading.Thread(target=link.run, daemon=True).start()
        try:
            self._play()
        finally:
            self._end_input()
            for pending in self._pending.values():
                pending.tell(None)
            ended.wait(PATIENCE)
            link.pipes.close()
            os.close(self._from_ext)
        assert codes == [0], "it did not end with 0"
        for worker in self._threads:
            worker.join(PATIENCE)

    def _opening(self) -> list[Message]:
        """What it registers before it is ready."""
        found: list[Message] = []
        for step in self.steps:
            message = step.get("ext")
            if message is None:
                continue
            if message.get("type") == "ready" or "result" in message:
                return found
            found.append(message)
        return found

    def _play(self) -> None:
        for number, step in enumerate(self.steps):
            try:
                if "host" in step:
                    self._say(sendable(step["host"], self._variables), step["host"])
                elif step.get("host_end"):
                    self._end_input()
                elif "ext" in step:
                    self._hear(step["ext"], number)
            except AssertionError as error:
                raise AssertionError(f"step {number + 1}, {json.dumps(step)}: {error}") from None

    def _end_input(self) -> None:
        if self._to_ext >= 0:
            os.close(self._to_ext)
            self._to_ext = -1

    # The host's part

    def _say(self, message: Message, pattern: Message) -> None:
        kind = message.get("type") or message.get("method") or ""
        if kind == "hello_ack":
            message |= {"host": "hilt", "host_version": "0.1.0", "capabilities": list(CAPABILITIES["frames"])}
        elif kind == "initialize":
            message["params"] |= {"host": "hilt", "capabilities": list(CAPABILITIES["jsonrpc"])}
        elif kind in ("host_response", "tool_result") or ("method" not in message and not self.frames):
            message["id"] = self._own_ids[_hashable(pattern["id"])]
        elif kind in ("tool_cancel", "$/cancelRequest") or message.get("method") == "$/cancelRequest":
            self._cancelled.add(message.get("id", message.get("params", {}).get("id")))
        os.write(self._to_ext, json.dumps(message).encode() + b"\n")
        if kind in _QUESTIONS:
            self._pending[message["id"]] = self._called.get(timeout=PATIENCE)
            self._methods[message["id"]] = str(message.get("method", kind))

    # The extension's part

    def _hear(self, pattern: Message, number: int) -> None:
        if not self._ready:
            self._hear_opening(pattern)
            return
        assert self._started.wait(PATIENCE), "it has not heard of the host"
        method = (
            self._methods.get(_key(sendable(pattern, dict(self._variables))), "") if "method" not in pattern else ""
        )
        action = (
            (pattern.get("result") or {}).get("action") if method in ("event/dispatch", "shortcut/handle") else None
        )
        if action:  # done by a call of the SDK, before the answer
            self._hear(self._notification(action["type"], action["payload"]), number)
            pattern = {**pattern, "result": {"action": None}}
        self._do(pattern, number)
        pattern = _in_own_words(pattern, method)
        if self._is_cancel(pattern):
            pattern = {**pattern, "params": {}} if "params" in pattern else {"type": pattern["type"]}
        message = self._next()
        while _key(message) in self._cancelled and not contains(message, _free(pattern), dict(self._variables)):
            message = self._next()  # a late answer, which the host drops
        if _is_request(pattern):
            self._own_ids[_hashable(pattern["id"])] = message.get("id")
        assert contains(message, _free(pattern), self._variables), f"it said {json.dumps(message)}"

    def _hear_opening(self, pattern: Message) -> None:
        kind = pattern.get("type")
        if kind == "hello":
            message = self._next()
            wanted = pattern.get("capabilities", [])
            assert set(wanted) <= set(message.get("capabilities", ())), message
            bare = {key: value for key, value in pattern.items() if key != "capabilities"}
            assert contains(message, bare, self._variables), message
            return
        if kind != "ready" and "result" not in pattern:
            self._registered.append(pattern)
            return
        said = []
        while not contains(message := self._next(), pattern, dict(self._variables)):
            said.append(message)
        self._ready = True
        self._compare(_singly(self._registered), _singly(said))

    def _compare(self, wanted: list[Message], said: list[Message]) -> None:
        for pattern in wanted:
            match = [one for one in said if contains(one, pattern, dict(self._variables))]
            assert match, f"{json.dumps(pattern)} is not among {json.dumps(said)}"
            said.remove(match[0])
        assert not said, f"it said more: {json.dumps(said)}"

    def _next(self) -> Message:
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self._from_ext], [], [], left)[0], "it said nothing"
            data = os.read(self._from_ext, 65536)
            assert data, "it has ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: Message = json.loads(line)
        return message

    # Registering, by the public API

    def _register(self, message: Message) -> None:
        kind = message.get("type") or message.get("method", "")
        fields = message.get("params") or message
        if kind == "register":
            kind = message["kind"]
        kind = kind.replace("register/", "").replace("register_", "")
        ext, name = self.ext, fields.get("name", "")
        priority = fields.get("priority") or 0
        if kind == "tool":
            schema = fields.get("schema", fields.get("parameters")) or {"type": "object"}
            options: Message = {"deferred": True} if fields.get("deferred") else {}
            options |= {"interruptible": False} if fields.get("interruptBehavior") == "block" else {}
            ext.tool(name=name, description=fields["description"], schema=schema, **options)(self._tool)
        elif kind == "command":
            ext.command(name, fields["description"], immediate=fields.get("immediate", False))(self._asked)
        elif kind == "subscribe":
            for event in fields.get("events", ()):
                ext.on(event)(lambda event: None)
            for event in fields.get("intercept", ()):
                ext.intercept(event)(self._asked)
        elif kind in ("promptSection", "prompt_section"):
            hint = fields.get("tokenHint") or 0
            ext.prompt_section(fields["title"], fields["content"], fields.get("order") or 0, token_hint=hint)
        elif kind == "shortcut":
            ext.shortcut(fields["key"], fields["description"])(self._asked)
        elif kind == "interceptor":
            for event in fields.get("events") or ("tool_call", "tool_result"):
                ext.intercept(event, name=name, priority=fields.get("priority"))(self._asked)
        elif kind in ("eventHandler", "event_handler"):
            ext.on(*(fields.get("events") or ("*",)), name=name, priority=priority)(self._asked)
        elif kind in ("messageHook", "message_hook"):
            # All hooks of an extension are asked by one question: the first one waits to be told.
            first = not ext._registered.message_hooks
            ext.message_hook(priority, name=name)(self._asked if first else lambda text: None)
        elif kind in ("inputTransformer", "input_transformer"):
            ext.input_transformer(priority, name=name)(self._asked)
        elif kind == "compactor":
            ext.compactor(fields.get("threshold") or 0, name=name)(self._asked)
        elif kind == "provider":
            ext.provider(fields["api"], [_model(one) for one in fields.get("models", ())])(self._streaming)
        elif kind != "hello":
            raise AssertionError(f"nobody knows how to register {kind}")

    def _tool(self, call: Call, **args: Any) -> Any:
        pending = Pending(call=call)
        self._called.put(pending)
        return pending.obey()

    def _asked(self, *_: Any) -> Any:
        pending = Pending()
        self._called.put(pending)
        return pending.obey()

    def _streaming(self, request: Request, reply: Reply) -> Any:
        pending = Pending(reply=reply)
        self._called.put(pending)
        return pending.obey()

    # Doing what a step says, by the public API

    def _do(self, message: Message, number: int) -> None:
        key = _key(sendable(message, self._variables))
        if "method" not in message and key in self._pending and message.get("type") != "tool_progress":
            self._pending.pop(key).tell(self._returned(sendable(message, self._variables), self._methods[key], key))
            return
        message = sendable(message, dict(self._variables))
        kind = message.get("type") or ""
        if kind.startswith("register"):
            self._register(message)
        elif kind == "notify":
            self.ext.notify(message["message"], message.get("level", "info"))
        elif kind == "clear_notes":
            self.ext.clear_notes()
        elif kind in ("submit", "submit_slash"):
            self.ext.submit(message["text"])
        elif kind == "open_panel":
            self.ext.open(self._panel(message["panel"]))
        elif kind in ("panel_render", "panel_close"):
            self._draw(kind, message)
        elif kind == "tool_progress":
            self._pending[message["id"]].known["call"].progress(message["text"])
        elif kind == "call_tool":
            parent = self._pending.get(message.get("parent_id"))
            caller: Any = parent.known["call"] if parent else self.ext
            self._beside(lambda: caller.call_tool(message["name"], message.get("args"), timeout=self._limit(number)))
        elif kind == "host_request" or (not kind and "id" in message):
            params = message.get("params") or {}
            self._beside(lambda: self.ext.host.request(message["method"], params, timeout=self._limit(number)))
        elif kind in ("host_notify", "") and not self._is_cancel(message):
            self._tell(message["method"], message.get("params") or {})

    def _tell(self, method: str, params: Message) -> None:
        ext = self.ext
        if method.startswith("register/"):
            self._register({"method": method, "params": params})
        elif method == "notify":
            ext.notify(params["message"], params.get("level", "info"))
        elif method == "showMessage":
            ext.show(params["text"])
        elif method == "log":
            ext.log(params["message"], params["level"])
        elif method == "setWidget":
            ext.widget(params["key"], params["content"], params["placement"])
        elif method == "showOverlay":
            given = {name: params[name] for name in ("title", "anchor", "width") if name in params}
            ext.overlay(params["key"], params["content"], **given)
        elif method == "closeOverlay":
            ext.close_overlay(params["key"])
        elif method == "setStatus":
            ext.status(params["key"], params["text"])
        elif method == "setInputText":
            ext.set_input(params["text"])
        elif method == "sendMessage":
            ext.submit(params["content"])
        elif method == "steer":
            ext.steer(params["content"])
        elif method in ("abort", "abortWithMarker"):
            ext.abort(params.get("reason", ""))
        elif method == "tool/progress":
            call = next(one.known["call"] for one in self._pending.values() if "call" in one.known)
            call.progress(params["text"])
        elif method == "provider/delta":
            self._stream(params)
        elif method == "panel/open":
            ext.open(self._panel(params))
        elif method in ("panel/render", "panel/close"):
            self._draw(method.replace("/", "_"), params)
        else:
            raise AssertionError(f"nobody knows how to say {method}")

    def _stream(self, params: Message) -> None:
        reply: Reply = next(one.known["reply"] for one in self._pending.values() if "reply" in one.known)
        kind = params["type"]
        if kind == "text_delta":
            reply.text(params["delta"])
        elif kind == "thinking_delta":
            reply.thinking(params["delta"])
        elif kind == "toolcall_delta":
            tool = params.get("tool") or {"id": "c1", "name": ""}
            reply.tool_call_delta(tool["id"], tool["name"], params["delta"])
        else:
            tool = params["tool"]
            reply.tool_call(tool["name"], json.loads(tool["arguments"]), id=tool["id"])

    def _panel(self, content: Message) -> DrawnPanel:
        panel = DrawnPanel(content)
        self._panels[panel.id] = panel
        return panel

    def _draw(self, kind: str, content: Message) -> None:
        panel = self._panels[content["panel_id"]]
        if kind == "panel_close":
            panel.close()
        else:
            panel.take(content)
            panel.update()

    def _beside(self, work: Any) -> None:
        """What waits for the host is done in a thread; how it ends is in the frames that follow."""

        def run() -> None:
            try:
                work()
            except (SdkError, TimeoutError):
                pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _limit(self, number: int) -> float | None:
        """A request that is taken back in the next step is given a short time."""
        return (
            0.02 if any(self._is_cancel(step.get("ext", {})) for step in self.steps[number + 1 : number + 3]) else None
        )

    def _is_cancel(self, message: Message) -> bool:
        return message.get("type") == "call_tool_cancel" or message.get("method") == "$/cancelRequest"

    def _notification(self, method: str, params: Message) -> Message:
        if "jsonrpc" in self.about.get("dialect", ""):
            return {"jsonrpc": "2.0", "method": method, "params": params}
        return (
            {"type": "notify", **params}
            if method == "notify"
            else {"type": "host_notify", "method": method, "params": params}
        )

    # What handlers return

    def _returned(self, answer: Message, method: str, key: Any) -> Any:
        if answer.get("error"):
            error = answer["error"]
            return ToolError(error if isinstance(error, str) else error["message"])
        if method in ("tool_call", "tool/execute"):
            return _tool_value(answer.get("result", answer))
        if method in ("command_invoked", "shortcut_invoked"):
            return self._command_value(answer)
        if method == "event_intercept":
            return _verdict(answer)
        result = answer.get("result")
        if not isinstance(result, dict):
            return None
        return self._method_value(method, result)

    def _command_value(self, answer: Message) -> Any:
        action = answer.get("action", "noop")
        if action == "display":
            return answer["display"]
        if action == "insert":
            return Insert(answer["insert"])
        if action == "prompt":
            return Prompt(answer["prompt"])
        if action == "tool_prompt":
            return ToolPrompt(answer["tool_name"], answer["tool_args"], answer["prompt"])
        return self._panel(answer["open_panel"]) if action == "open_panel" else None

    def _method_value(self, method: str, result: Message) -> Any:
        if method == "messageHook/onMessage":
            return result.get("injection")
        if method == "inputTransformer/transform":
            return Handled() if result.get("handled") else result.get("output")
        if method == "compact/execute":
            return result["messages"]
        if method == "provider/stream":
            return result["message"]
        if method == "interceptor/after":
            blocks = result.get("content") or (result.get("details") or {}).get("content")
            return Result(content=blocks) if isinstance(blocks, list) else blocks
        if result.get("allow") is False:
            return Block(result.get("preview") or result.get("reason") or "")
        if method == "interceptor/before":
            return Rewrite(result["args"]) if result.get("args") else None
        return Replace(result["text"]) if "text" in result else result.get("systemPrompt")


def _in_own_words(pattern: Message, method: str) -> Message:
    """What the SDK says where others would say the same otherwise.

    Beside an error there is no action. A tool that fails has a result, and an interceptor that fails refuses.
    """
    error = pattern.get("error")
    if not error:
        return pattern
    if method in ("command_invoked", "shortcut_invoked"):
        return {name: value for name, value in pattern.items() if name not in ("action", "display")}
    if method == "tool/execute":
        content = [{"type": "text", "text": error["message"]}]
        return {"jsonrpc": "2.0", "id": pattern["id"], "result": {"content": content, "isError": True}}
    if method.startswith("interceptor/"):
        reason = "preview" if method == "interceptor/before" else "reason"
        verdict = {"allow": False, reason: {"$contains": error["message"]}}
        bare = {name: value for name, value in pattern.items() if name != "error"}
        return {**bare, "result": verdict}
    return pattern


def _tool_value(result: Message) -> Any:
    content = [_block(block) for block in result.get("content", ())]
    is_error = result.get("is_error", result.get("isError", False))
    if is_error:
        return ToolError(content[0], result.get("errorCode", ""), result.get("errorHint", ""))
    structured, activate = result.get("structured_content"), result.get("activate_tools", ())
    if structured is None and not activate and len(content) == 1:
        return content[0]
    return Result(content=content, structured=structured, activate=activate)


def _block(block: Message) -> Any:
    if block["type"] == "image":
        return Image(base64.b64decode(block["data"]))
    return block["text"]


def _verdict(answer: Message) -> Any:
    if answer.get("block"):
        return Block(answer.get("reason", ""))
    if "modified_args" in answer:
        return Rewrite(answer["modified_args"])
    if "replace_text" in answer:
        return Replace(answer["replace_text"])
    return answer.get("system_prompt")


def _model(fields: Message) -> Model:
    return Model(
        fields["id"],
        fields.get("name", ""),
        fields.get("contextWindow", 0),
        fields.get("maxTokens", 0),
        reasoning=fields.get("reasoning", False),
        cost=fields.get("cost"),
    )


def _key(message: Message) -> Any:
    return message.get("id")


def _hashable(pattern_id: Any) -> Any:
    return pattern_id


def _is_request(pattern: Message) -> bool:
    return pattern.get("type") in ("host_request", "call_tool") or ("method" in pattern and "id" in pattern)


def _free(pattern: Message) -> Message:
    """Ids of the extension's own requests are as it pleases."""
    return {key: value for key, value in pattern.items() if key != "id"} if _is_request(pattern) else pattern


def _singly(messages: list[Message]) -> list[Message]:
    """Subscriptions one by one: it is all the same how they are put together."""
    found = []
    for message in messages:
        if message.get("type") != "subscribe":
            found.append(message)
        else:
            for member in ("events", "intercept"):
                found += [{"type": "subscribe", member: [event]} for event in message.get(member, ())]
    return found


def _lowered(step: Message) -> Message:
    """A raw line that says what an `ext` step could say, as one: keys count in any case."""
    if "ext_raw" not in step:
        return step
    text = step["ext_raw"].replace("${#t}", '"$#t"').replace("${t}", "$t")
    try:
        return {"ext": _keys_lowered(json.loads(text))}
    except ValueError:
        return step


def _keys_lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _keys_lowered(one) for key, one in value.items() if one != ""}
    return [_keys_lowered(one) for one in value] if isinstance(value, list) else value
