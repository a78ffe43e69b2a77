"""A fixture made of a trace: what hilt asked of an extension and what came of it, as steps. Pure.

Ids, times and what depends on the machine are left out: the steps name what was asked, and the scripted host finds its
own ids. What hilt answered when it was asked stands at the beginning, in its order.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from hilt.authoring.exchange import Id
from hilt.authoring.greeting import registered
from hilt.authoring.speaking import tongue
from hilt.authoring.speaking.tongue import Answer, Asked, Happened, Occasion, Tongue
from hilt.authoring.speaking.verdicts import frame_verdict
from hilt.authoring.stage import Line
from hilt.authoring.values import Value
from hilt.errors import UsageError
from hilt.extensions.trace_line import Traced
from hilt.model.extensions import Dialect

_OPENING = ("hello", "hello_ack", "ready", "subscribe", "shutdown", "shutdown_ack", "initialize", "$/cancelRequest")
_OF_THE_MOMENT = ("type", "event", "session_id", "cwd", "sequence")
"""What an event has in each session anew, beside its name."""


def fixture_of(lines: Iterable[Traced], about: str) -> list[Value]:
    """The head and the steps, of what was said to and by one process.

    Raises `UsageError` when there is nothing in it to be tested.
    """
    whole = [line for line in lines if line.direction != "lifecycle" and isinstance(line.frame, dict)]
    if not whole:
        raise UsageError("there is nothing of this extension in the trace", hint="was it started?")
    dialect: Dialect = "jsonrpc" if whole[0].dialect == "jsonrpc" else "frames"
    recorder = _Recorder(whole, tongue(dialect))
    steps = list(recorder.steps())
    if not steps:
        raise UsageError("hilt asked nothing of it, and it said nothing", hint="use what it offers in the prompt")
    return [{"about": about, "dialect": dialect}, *recorder.replies(), *steps]


def fixture_text(values: Iterable[Value]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values)


def loosened(step: Value) -> Value:
    """The same step, with no word of what comes of it."""
    kind = next(iter(step))
    given = ("args", "params", "data", "text", "step", "panel", "as", "wait")
    return {key: value for key, value in step.items() if key == kind or key in given}


class _Recorder:
    def __init__(self, lines: list[Traced], spoken: Tongue) -> None:
        self._tongue = spoken
        self._told: list[tuple[bool, Value]] = [(line.direction == "to_extension", line.frame) for line in lines]
        """Who spoke, the host or not, and what was said."""
        self._answers: dict[Id, Value] = {}
        self._positions: dict[Id, int] = {}
        for at, (by_host, value) in enumerate(self._told):
            heard = None if by_host else spoken.heard(value)
            if isinstance(heard, Answer):
                self._answers[heard.id] = heard.value
                self._positions[heard.id] = at
        self._late: dict[Id, Value] = {}
        """Steps that wait for an answer which came after other things."""

    def replies(self) -> Iterator[Value]:
        """What the host answered, by the method that it was asked by."""
        asked: dict[Id, Asked] = {}
        for by_host, value in self._told:
            heard = self._tongue.heard(value) if not by_host else None
            if isinstance(heard, Asked):
                asked[heard.id] = heard
            elif by_host and "method" not in value and (question := asked.pop(value.get("id", ""), None)):
                yield _reply(question, value)

    def steps(self) -> Iterator[Value]:
        opened = False
        for at, (by_host, value) in enumerate(self._told):
            opened = opened or value.get("type") == "ready" or (not by_host and value.get("id") == 1)
            if value.get("type") in _OPENING or value.get("method") in _OPENING:
                continue
            step = self._question(value, at) if by_host else self._said(value, opened=opened)
            if step:
                yield step

    def _said(self, value: Value, *, opened: bool) -> Value | None:
        if (one := registered(Line("", 0.0, value))) and opened:
            return {"registers": {"kind": one.kind, "name": one.name}}
        match self._tongue.heard(value):
            case Happened(kind=kind, value=told):
                return {kind: told}
            case Answer(id=id_) if id_ in self._late:
                return self._late.pop(id_)
        return None

    def _question(self, value: Value, at: int) -> Value | None:
        id_ = value.get("id", "")
        answer = self._answers.get(id_)
        if answer is not None and self._is_late(at, id_):
            return self._begun(value, answer, id_)
        match value:
            case {"type": "tool_call", "name": name, "args": args}:
                return {"call": name, "args": args, **self._result(answer)}
            case {"method": "tool/execute", "params": {"name": name, "args": args}}:
                return {"call": name, "args": args, **self._result(answer)}
            case {"type": "command_invoked", "name": name} | {"method": "command/execute", "params": {"name": name}}:
                said = value.get("args") or value.get("params", {}).get("args") or ""
                return {"run": f"/{name} {said}".rstrip(), **self._acted(answer)}
            case {"type": "shortcut_invoked", "key": key} | {"method": "shortcut/handle", "params": {"key": key}}:
                return {"shortcut": key, **self._acted(answer)}
            case {"type": "event_intercept", "event": event}:
                return _intercepted(value, event, answer)
            case {"type": "event", "event": name}:
                return {"event": name, "data": _without(value, *_OF_THE_MOMENT)}
            case {"method": "event/dispatch", "params": {"type": name, "data": data}}:
                return {"event": name, "data": data}
        return self._other(value, answer)

    def _other(self, value: Value, answer: Value | None) -> Value | None:
        match value:
            case {"type": "panel_key", "panel_id": panel} | {"method": "panel/key", "params": {"panel_id": panel}}:
                pressed = value.get("params", value)
                text = {"text": pressed["text"]} if pressed.get("text") else {}
                return {"key": pressed.get("key", ""), **text, "panel": panel}
            case {"type": "panel_resize", "width": width, "height": height, "panel_id": panel}:
                return {"resize": [width, height], "panel": panel}
            case {"method": "panel/resize", "params": {"width": width, "height": height, "panel_id": panel}}:
                return {"resize": [width, height], "panel": panel}
            case {"type": "panel_close", "panel_id": panel} | {"method": "panel/closed", "params": {"panel_id": panel}}:
                return {"close_panel": panel}
            case {"method": str(method), "params": params, "id": _}:
                return {"ask": method, "params": params, **self._answered(answer)}
            case {"method": str(method), "params": params}:
                return {"tell": method, "params": params}
        return None  # an answer to something it asked, which stands among the replies

    def _is_late(self, at: int, id_: Id) -> bool:
        """Whether something else was asked before the answer came."""
        between = self._told[at + 1 : self._positions[id_]]
        return any(by_host and "id" in value and value["id"] in self._answers for by_host, value in between)

    def _begun(self, value: Value, answer: Value, id_: Id) -> Value | None:
        """A call that goes on while other things happen; of other questions nobody says when they were answered."""
        called = value.get("params", value)
        if value.get("type") == "tool_call" or value.get("method") == "tool/execute":
            name = f"call {id_}"
            self._late[id_] = {"answer": name, **self._result(answer)}
            return {"call": called["name"], "args": called["args"], "wait": False, "as": name}
        self._positions[id_] = 0
        return self._question(value, len(self._told))

    def _result(self, answer: Value | None) -> Value:
        if answer is None:
            return {"wait": False}
        result = self._tongue.called(answer)
        plain = all(block.get("type") == "text" for block in result.value["content"])
        if result.failed:
            return {"error": result.text}
        return {"result": result.text if plain else {"content": result.value["content"]}}

    def _acted(self, answer: Value | None) -> Value:
        if answer is None:
            return {}
        result, happened = self._tongue.acted(answer)
        return {"error": result.text} if result.failed else {one.kind: one.value for one in happened}

    def _answered(self, answer: Value | None) -> Value:
        if answer is None:
            return {}
        result = self._tongue.answered(answer)
        return {"error": result.text} if result.failed else {"result": result.value}


def _reply(asked: Asked, value: Value) -> Value:
    step: Value = {"host": asked.method, "params": asked.params}
    if error := value.get("error"):
        return {**step, "error": error}
    if asked.method == "call_tool":
        return {**step, "reply": _without(value, "type", "id", "name")}
    return {**step, "reply": value.get("result")}


def _intercepted(value: Value, event: str, answer: Value | None) -> Value:
    if event == "tool_call":
        occasion = Occasion(event, value.get("tool_name", ""), value.get("tool_args", {}))
        step: Value = {"intercept": occasion.tool, "args": occasion.args}
    else:
        text = value.get("text") or value.get("system_prompt") or ""
        occasion = Occasion(event, text=text, step=value.get("step", 1))
        step = {"intercept": event, **({"step": occasion.step} if event == "turn_start" else {"text": text})}
    if answer is None:
        return step
    decided = frame_verdict(answer, occasion)
    changed: dict[str, Any] = {"reason": decided.reason, "to": decided.to}
    return {**step, "verdict": decided.verdict, **{name: part for name, part in changed.items() if part}}


def _without(value: Value, *names: str) -> Value:
    return {key: part for key, part in value.items() if key not in names}
