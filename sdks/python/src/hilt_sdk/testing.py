"""A host in memory: try an extension in a test, without a process and without an agent.

    from hilt_sdk.testing import Host
    from weather import ext

    def test_it_knows_rome():
        with Host(ext) as host:
            assert host.call("weather", city="Rome").text == "Rome: sunny"

It speaks the real lines of either dialect over real pipes, and plays hilt, zot or piglet. Every wait ends after 5 s.
"""

from __future__ import annotations

from hilt_sdk.protocol import COUNTERPARTS, own_block
from hilt_sdk.stage import Action, Answer, Called, HostTimeout, Note, ShownPanel, Stage, Verdict
from hilt_sdk.values import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Message = dict[str, Any]

__all__ = ["Action", "Answer", "Called", "Host", "HostTimeout", "Note", "ShownPanel", "Verdict"]


class Host(Stage):
    """Plays the host for as long as the block.

    `answers` says what the host replies: `host.answers["host/chat"] = {"text": "4"}`, or a function of the params.
    `notes`, `panels`, `shown`, `submitted`, `told` and `registered` have what the extension said, `said` all of it.
    """

    @property
    def missing(self) -> list[str]:
        return self.ext.missing

    def call(self, tool: str, /, _args: Mapping[str, Any] | None = None, **args: Any) -> Called:
        """Call a tool, as the model would, and wait for its answer."""
        return self.finish(self.start(tool, _args, **args))

    def start(self, tool: str, /, _args: Mapping[str, Any] | None = None, **args: Any) -> str:
        """Call a tool and go on; `finish` waits for it, `cancel` gives it up."""
        given = {**(_args or {}), **args}
        key = self._key()
        if self.dialect == "frames":
            self._send({"type": "tool_call", "id": str(key), "name": tool, "args": given})
            return str(key)
        self._request(key, "tool/execute", {"callId": f"call_{key}", "name": tool, "args": given})
        return str(key)

    def finish(self, call: str) -> Called:
        if self.dialect == "frames":
            told = self._answer(call, "the tool did not answer")
            result = Called(content=told.get("content") or (), is_error=bool(told.get("is_error")))
            result.structured = told.get("structured_content")
            result.activate = told.get("activate_tools") or []
            result.progress = self._progress.get(call, [])
            return result
        told = self._answer(int(call), "the tool did not answer")
        if "error" in told:
            return Called(text=told["error"]["message"], is_error=True)
        said = told["result"]
        result = Called(
            content=[own_block(block) for block in said.get("content") or ()], is_error=bool(said.get("isError"))
        )
        result.code, result.hint = said.get("errorCode") or "", said.get("errorHint") or ""
        result.progress = self._progress.get(f"call_{call}", [])
        return result

    def cancel(self, call: str) -> None:
        """Nobody waits for it any more."""
        if self.dialect == "frames":
            self._send({"type": "tool_cancel", "id": call})
        else:
            self._notify("$/cancelRequest", {"id": int(call)})

    def run(self, line: str) -> Action:
        """Run a slash command: `host.run("/hi Ada")`."""
        name, _, args = line.lstrip("/").partition(" ")
        if self.dialect == "frames":
            frame: Message = {"type": "command_invoked", "name": name}
            return self._acted({**frame, "args": args.strip()} if args.strip() else frame)
        return self._did("command/execute", {"name": name, "args": args.strip()})

    def press(self, key: str) -> Action:
        """Press a shortcut."""
        if self.dialect == "frames":
            return self._acted({"type": "shortcut_invoked", "key": key})
        return self._did("shortcut/handle", {"key": key})

    def intercept(self, tool: str, args: Mapping[str, Any] | None = None, *, origin: str = "") -> Verdict:
        """Ask whether a tool may be called."""
        verdict = Verdict()
        verdict.args = dict(args or {})
        for told in self._interceptors(
            "interceptor/before", toolName=tool, args=verdict.args, callId="c1", origin=origin
        ):
            verdict.args = told.get("args") or verdict.args
            if not told.get("allow"):
                verdict.blocked, verdict.reason = True, told.get("preview") or told.get("error") or ""
                return verdict
        if "tool_call" not in self._subscribed("intercept"):
            return verdict
        fields: Message = {"tool_id": "c1", "tool_name": tool, "tool_args": verdict.args}
        return self._decided("tool_call", {**fields, "origin_extension": origin} if origin else fields, verdict.args)

    def intercept_turn(self, step: int = 1) -> Verdict:
        return self._intercept_event("turn_start", {"step": step})

    def intercept_message(self, text: str) -> Verdict:
        return self._intercept_event("assistant_message", {"text": text})

    def intercept_prompt(self, system_prompt: str) -> Verdict:
        return self._intercept_event("before_agent_start", {"system_prompt": system_prompt})

    def intercept_result(self, tool: str, text: str, *, is_error: bool = False) -> Verdict:
        """Show interceptors what a tool returned."""
        content: list[Message] = [{"type": "text", "text": text}]
        verdict = Verdict()
        for params in self._interceptors(
            "interceptor/after", toolName=tool, callId="c1", content=content, isError=is_error
        ):
            changed = params.get("content")
            if changed is not None:
                content = [{"type": "text", "text": changed}] if isinstance(changed, str) else changed
                is_error = bool(params.get("isError", is_error))
        verdict.result = Result(content=[own_block(block) for block in content], is_error=is_error)
        verdict.text = verdict.result.text
        return verdict

    def emit(self, event: str, **members: Any) -> None:
        """Tell of an event, and wait until its handlers are done."""
        if event.startswith("Event"):
            self._method("event/dispatch", {"type": event, "data": members})
        elif self.dialect == "jsonrpc":
            raw = COUNTERPARTS.get(event)
            if raw is None:
                raise AssertionError(f"there is no {event} in the jsonrpc dialect")
            self._method("event/dispatch", {"type": raw, "data": _raw_event(event, members)})
        else:
            self._send({"type": "event", "event": event, **members})
            self._flush("events")

    def key(self, panel: ShownPanel | str, key: str, text: str = "") -> None:
        """Press a key in a panel, and wait until it was dealt with. One character alone is a `rune`."""
        if len(key) == 1:
            key, text = "rune", key
        members: Message = {"panel_id": _panel_id(panel), "key": key}
        self._panel("panel_key", "panel/key", {**members, "text": text} if text else members)

    def resize(self, panel: ShownPanel | str, width: int, height: int) -> None:
        members = {"panel_id": _panel_id(panel), "width": width, "height": height}
        self._panel("panel_resize", "panel/resize", members)

    def close_panel(self, panel: ShownPanel | str) -> None:
        """Close a panel as the user does."""
        members = {"panel_id": _panel_id(panel)}
        self._shut(members)
        self._panel("panel_close", "panel/closed", members)

    def hook(self, message: str) -> str:
        """What message hooks add to it."""
        return str(self._method("messageHook/onMessage", {"message": message}).get("injection") or "")

    def transform(self, text: str) -> str | None:
        """What input transformers make of it; None when they have dealt with it."""
        told = self._method("inputTransformer/transform", {"input": text})
        return None if told.get("handled") else str(told.get("output") or "")

    def compact(self, messages: Sequence[Message]) -> list[Message]:
        return self._method("compact/execute", {"messages": list(messages)}).get("messages") or []

    def stream(self, prompt: str, *, api: str = "", model: str = "", **params: Any) -> Answer:
        """Ask a provider; the first of them, and its first model, if none is named. Pieces are in `told`."""
        entries = self.registered.get("provider") or [{}]
        entry = next((one for one in entries if one.get("api") == api), entries[0])
        models = entry.get("models") or [{}]
        api, model = api or entry.get("api") or "", model or models[0].get("id") or ""
        asked = {"id": model, "name": model, "api": api, "provider": api}
        self._count += 1
        request = {"requestId": self._count, "model": asked, "system": "", "options": {}, "tools": []}
        request["messages"] = [{"role": "user", "content": prompt}]
        message = self._method("provider/stream", {**request, **params}).get("message")
        assert isinstance(message, dict), message
        return Answer(message)

    def publish(self, topic: str, data: Any = None) -> None:
        """Tell all handlers of a topic that it has subscribed to, and wait for them."""
        for number, one in enumerate(self._subscriptions(), 1):
            if one == topic:
                params = {"topic": topic, "subscriptionId": number, "data": data}
                if self.dialect == "frames":
                    self._send({"type": "ext_notify", "method": "eventBus/event", "params": params})
                else:
                    self._notify("eventBus/event", params)
        self._flush("bus")

    def wait(self, condition: Callable[[], object], what: str = "it did not happen") -> None:
        """Until the condition holds, which is looked at whenever the extension says something."""
        self._until(condition, what)

    def _interceptors(self, method: str, **params: Any) -> list[Message]:
        """The answers of each registered interceptor in order of priority; a refusal ends it."""
        answers = []
        for one in sorted(self.registered.get("interceptor", ()), key=lambda one: -(one.get("priority") or 0)):
            try:
                told = self._method(method, {"name": one["name"], **params})
            except HostTimeout:
                raise
            except AssertionError as error:
                told = {"allow": False, "error": str(error)}
            answers.append(told)
            if told.get("args"):
                params["args"] = told["args"]
            if method == "interceptor/before" and not told.get("allow"):
                break
        return answers

    def _intercept_event(self, event: str, fields: Message) -> Verdict:
        if self.dialect == "frames" and event in self._subscribed("intercept"):
            return self._decided(event, fields, None)
        verdict = Verdict()
        params = {("systemPrompt" if name == "system_prompt" else name): value for name, value in fields.items()}
        verdict.text, verdict.system_prompt = fields.get("text"), fields.get("system_prompt")
        for told in self._interceptors("interceptor/event", event=event, **params):
            if told.get("allow") is False:
                verdict.blocked, verdict.reason = True, told.get("reason") or told.get("error") or ""
                return verdict
            verdict.text = told.get("text", verdict.text)
            verdict.system_prompt = told.get("systemPrompt", verdict.system_prompt)
        return verdict

    def _decided(self, event: str, fields: Message, args: Message | None) -> Verdict:
        key = str(self._key())
        self._send({"type": "event_intercept", "id": key, "event": event, **fields})
        told = self._answer(key, f"{event} was not decided about")
        verdict = Verdict()
        verdict.blocked, verdict.reason = bool(told.get("block")), told.get("reason") or ""
        verdict.args = told.get("modified_args", args)
        verdict.text = told.get("replace_text", fields.get("text"))
        verdict.system_prompt = told.get("system_prompt", fields.get("system_prompt"))
        return verdict

    def _acted(self, frame: Message) -> Action:
        key = str(self._key())
        self._send({**frame, "id": key})
        told = self._answer(key, "the command did not answer")
        action = Action()
        action.error = told.get("error") or ""
        if action.error:
            return action
        kind = told.get("action")
        action.shown, action.inserted = told.get("display") or "", told.get("insert") or ""
        action.prompt, action.tool = told.get("prompt") or "", told.get("tool_name") or ""
        action.args = told.get("tool_args") or {}
        if kind == "open_panel":
            action.panel = self._open(told["open_panel"], told["open_panel"]["id"])
        return action

    def _did(self, method: str, params: Message) -> Action:
        """In the jsonrpc dialect a command's doings are notifications before its answer."""
        begun = len(self.said)
        action = Action()
        try:
            told = self._ask(method, params)
        except HostTimeout:
            raise
        except AssertionError as error:
            action.error = str(error)
            return action
        done = [(one["method"], one.get("params") or {}) for one in self.said[begun:] if "method" in one]
        if told.get("action"):
            done.append((told["action"].get("type"), told["action"].get("payload") or {}))
        for method_, said in done:
            if method_ == "showMessage":
                action.shown = said.get("text") or ""
            elif method_ == "setInputText":
                action.inserted = said.get("text") or ""
            elif method_ == "sendMessage":
                action.prompt = said.get("content") or ""
            elif method_ == "panel/open":
                action.panel = self.panels[said["panel_id"]]
        return action

    def _panel(self, frame: str, method: str, members: Message) -> None:
        if self.dialect == "frames":
            self._send({"type": frame, **members})
        else:
            self._notify(method, members)
        self._flush(f"panel {members['panel_id']}")

    def _flush(self, lane: str) -> None:
        """Until all that was sent has been read and dealt with in that lane, and what was said then has arrived."""
        self._until_heard()
        self._until(lambda: not self._link.is_busy(lane), "a handler did not end")
        self._until_heard()


def _panel_id(panel: ShownPanel | str) -> str:
    return panel if isinstance(panel, str) else panel.id


def _raw_event(event: str, members: Message) -> Message:
    """What the jsonrpc dialect would tell in place of these members."""
    if event == "turn_start":
        return {}
    if event == "turn_end":
        reason = {"end": "stop", "tool_use": "toolUse"}.get(members.get("stop", "end"), members.get("stop"))
        return {"Assistant": {"content": [], "stopReason": reason, "error": members.get("error")}, "ToolResults": None}
    if event == "assistant_message":
        return {"Message": {"content": [{"type": "text", "text": members.get("text", "")}], "stopReason": "stop"}}
    if event == "user_prompt_submit":
        return {"Content": members.get("text", "")}
    if event == "post_compact":
        return {"Before": 0, "After": members.get("message_count"), "TokensAtCompact": members.get("token_estimate")}
    called = {"ToolCallID": members.get("tool_id", "c1"), "ToolName": members.get("tool_name", "")}
    if event == "tool_call":
        return {**called, "Args": members.get("tool_args")}
    result = members.get("result") or {}
    return {**called, "Result": result, "IsError": bool(result.get("is_error"))}
