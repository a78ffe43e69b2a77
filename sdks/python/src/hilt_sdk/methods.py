"""What is asked and registered by method, alike in both dialects: hooks, transformers, compactors, providers,
interceptors with a name, and events of the jsonrpc dialect."""

from __future__ import annotations

from hilt_sdk.interception import Decision, decide
from hilt_sdk.link import log_trouble
from hilt_sdk.protocol import COUNTERPARTS, is_raw, own_block, translated, wire_block
from hilt_sdk.runner import Job, Pace
from hilt_sdk.values import Handled, Intercepted, Result, explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hilt_sdk.link import Link
    from hilt_sdk.registrations import Registrations

    Params = dict[str, Any]

INVALID, UNKNOWN, FAILED = -32602, -32601, -32603


# Registering


def kinds(registered: Registrations, name: str, *, plain_too: bool) -> Iterator[tuple[str, Params]]:
    """All that is registered by kind, with its members. `plain_too`: also what the frames dialect subscribes to."""
    for section in registered.sections.values():
        yield "prompt_section", section_fields(section)
    yield from interceptor_kinds(registered, name, plain_too=plain_too)
    yield from listener_kinds(registered, name, plain_too=plain_too)
    for shortcut in registered.shortcuts.values():
        yield "shortcut", {"key": shortcut.key, "description": shortcut.description}
    for hook in sorted(registered.message_hooks, key=_hook_number):
        yield "message_hook", {"name": hook.name, "priority": hook.number}
    for hook in sorted(registered.input_transformers, key=_hook_number):
        yield "input_transformer", {"name": hook.name, "priority": hook.number}
    for hook in registered.compactors.values():
        yield "compactor", {"name": hook.name, "threshold": hook.number}
    for provider in registered.providers.values():
        yield "provider", {"api": provider.api, "models": [model.fields() for model in provider.models]}


def kind_of(registered: Registrations, name: str, kind: str, entry: Any) -> tuple[str, Params]:
    """One thing that was registered late, as a kind and its members."""
    if kind == "interceptor":
        for group, fields in interceptor_kinds(registered, name, plain_too=True):
            if fields["name"] == (entry.name or name):
                return group, fields
    if kind == "event":
        own = registered.events[entry][-1].name or name
        for group, fields in listener_kinds(registered, name, plain_too=True):
            if fields["name"] == own:
                return group, fields
    if kind == "prompt_section":
        return kind, section_fields(entry)
    if kind == "shortcut":
        return kind, {"key": entry.key, "description": entry.description}
    if kind == "compactor":
        return kind, {"name": entry.name, "threshold": entry.number}
    if kind == "provider":
        return kind, {"api": entry.api, "models": [model.fields() for model in entry.models]}
    return kind, {"name": entry.name, "priority": entry.number}


def section_fields(section: Any) -> Params:
    fields = {"title": section.title, "content": section.content, "order": section.order}
    return {**fields, "tokenHint": section.token_hint} if section.token_hint else fields


def interceptor_kinds(registered: Registrations, name: str, *, plain_too: bool) -> Iterator[tuple[str, Params]]:
    """Interceptors of one name are one for the host."""
    groups: dict[str, Params] = {}
    for one in registered.interceptors:
        if not plain_too and one.plain:
            continue
        group = groups.setdefault(one.name, {"name": one.name or name, "priority": 0, "events": []})
        if one.priority is not None:
            group["priority"] = one.priority
        event = "tool_call" if one.event == "tool_result" else one.event
        if event not in group["events"]:
            group["events"].append(event)
    for group in groups.values():
        if group["events"] == ["tool_call"]:  # as a host would have it that knows of nothing else
            del group["events"]
        yield "interceptor", group


def listener_kinds(registered: Registrations, name: str, *, plain_too: bool) -> Iterator[tuple[str, Params]]:
    """Handlers of one name are one for the host, which is told what events of its own dialect it wants."""
    groups: dict[str, Params] = {}
    for event, listeners in registered.events.items():
        raw = event if is_raw(event) else COUNTERPARTS.get(event) if plain_too else None
        if raw is None:
            continue
        for listener in listeners:
            group = groups.setdefault(listener.name, {"name": listener.name or name, "priority": 0, "events": []})
            group["priority"] = group["priority"] or listener.priority
            group["events"].append(raw)
            if event == "turn_start":
                group["events"].append("EventAgentStart")  # from which steps are counted
    for group in groups.values():
        group["events"] = None if "*" in group["events"] else list(dict.fromkeys(group["events"]))
        yield "event_handler", group


def _hook_number(hook: Any) -> int:
    return int(hook.number)


# Being asked


class Question:
    """One question by method. It is answered once, by `reply` or by `fail`."""

    __slots__ = ("fail", "key", "method", "params", "reply")

    def __init__(
        self, key: Any, method: str, params: Any, reply: Callable[[Any], None], fail: Callable[[int, str], None]
    ) -> None:
        self.key = key
        """By which the host would take it back."""
        self.method = method
        self.params: Params = params
        self.reply = reply
        self.fail = fail

    def job(self, work: Callable[[], Any], pace: Pace) -> Job:
        """A job that answers with what `work` returns, or with why it failed."""

        def run() -> None:
            try:
                self.reply(work())
            except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
                self.failed(error)

        return Job(run, pace)

    def failed(self, error: BaseException) -> None:
        log_trouble(error)
        self.fail(FAILED, explained(error))


def asked(link: Link, question: Question) -> Job | None:
    answerer = _ANSWERERS.get(question.method)
    if answerer is None:
        question.fail(UNKNOWN, f"method not found: {question.method}")
        return None
    if not isinstance(question.params, dict):
        question.fail(INVALID, f"{question.method}: params must be an object")
        return None
    return answerer(link, question)


def _on_message(link: Link, question: Question) -> Job | None:
    params = question.params
    hooks = sorted(link.registered.message_hooks, key=_hook_number)
    message = params.get("message") or ""

    def work() -> Params:
        said = [link.value_of(hook.function, message) for hook in hooks]
        text = "\n".join(one for one in said if one)
        return {"injection": text} if text else {}

    return question.job(work, hooks[0] if hooks else Pace())


def _transform(link: Link, question: Question) -> Job | None:
    params = question.params
    hooks = sorted(link.registered.input_transformers, key=_hook_number)

    def work() -> Params:
        text = params.get("input") or ""
        for hook in hooks:
            said = link.value_of(hook.function, text)
            if isinstance(said, Handled):
                return {"output": "", "handled": True}
            text = text if said is None else said
        return {"output": text, "handled": False}

    return question.job(work, hooks[0] if hooks else Pace())


def _compact(link: Link, question: Question) -> Job | None:
    hooks = list(link.registered.compactors.values())
    if not hooks:
        question.fail(INVALID, "there is no compactor")
        return None
    hook = hooks[-1]
    messages = question.params.get("messages") or []
    return question.job(lambda: {"messages": link.value_of(hook.function, messages)}, hook)


def _stream(link: Link, question: Question) -> Job | None:
    from hilt_sdk.provider import Reply, Request

    params = question.params
    request = Request(params)
    entry = link.registered.providers.get(request.model.get("api") or "")
    if entry is None and len(link.registered.providers) == 1:
        entry = next(iter(link.registered.providers.values()))
    if entry is None:
        question.fail(INVALID, f"unknown API: {request.model.get('api')}")
        return None
    answer = Reply(link, request, params.get("requestId"))
    link.cancellable[question.key] = answer
    function = entry.function

    def work() -> Params:
        try:
            whole = link.value_of(function, request, answer)
        finally:
            link.cancellable.pop(question.key, None)
        return {"message": whole if isinstance(whole, dict) else answer.message()}

    pace = Pace()
    pace.slow = True  # a model that answers at once is rare
    return question.job(work, pace)


def _before(link: Link, question: Question) -> Job | None:
    params = question.params
    asked_about = Intercepted("tool_call", params)
    asked_about.tool = params.get("toolName") or ""
    asked_about.args = params.get("args") or {}
    asked_about.id = params.get("callId") or ""
    asked_about.origin = params.get("origin") or ""

    def verdict(decision: Decision) -> Params:
        if decision.block is not None:
            return {"allow": False, "preview": decision.block.reason} if decision.block.reason else {"allow": False}
        return {"allow": True, "args": asked_about.args} if decision.changed else {"allow": True}

    return _decided(link, question, asked_about, verdict)


def _after(link: Link, question: Question) -> Job | None:
    params = question.params
    about = Intercepted("tool_result", params)
    details = params.get("details")
    content = params.get("content")
    about.tool = params.get("toolName") or ""
    about.id = params.get("callId") or ""
    about.is_error = bool(params.get("isError"))
    about.content = _result_blocks(content if content is not None else details)
    about.text = Result(content=about.content).text

    def verdict(decision: Decision) -> Params:
        if not decision.changed:
            return {"details": details}
        if decision.text is not None and content is not None:
            return {"content": decision.text}
        blocks = [wire_block(block) for block in about.content]
        told: Params = {"content": blocks, "isError": about.is_error}
        return told if content is not None else {"details": {**_members(details), "content": blocks}}

    return _decided(link, question, about, verdict)


def _event(link: Link, question: Question) -> Job | None:
    params = question.params
    about = Intercepted(params.get("event") or "", params)
    about.step = params.get("step") or 0
    about.text = params.get("text") or ""
    about.system_prompt = params.get("systemPrompt") or ""

    def verdict(decision: Decision) -> Params:
        if decision.block is not None:
            return {"allow": False, "reason": decision.block.reason}
        if not decision.changed:
            return {"allow": True}
        if about.event == "assistant_message":
            return {"allow": True, "text": about.text}
        return {"allow": True, "systemPrompt": about.system_prompt}

    return _decided(link, question, about, verdict)


def _decided(link: Link, question: Question, about: Intercepted, verdict: Callable[[Decision], Params]) -> Job | None:
    name = question.params.get("name") or ""
    group = None if not name else "" if name == link.ext.name else name
    interceptors = link.registered.intercepts(about.event, group)
    if link.dialect == "frames":  # there the others are asked by a frame of their own
        interceptors = [one for one in interceptors if not one.plain]
    if not interceptors:
        question.reply(verdict(Decision()))
        return None

    def work() -> Params:
        return verdict(decide(link, interceptors, about))

    return question.job(work, interceptors[0])


def _dispatch(link: Link, question: Question) -> Job | None:
    """An event. It is answered once its handlers are done, so that the next one comes after them."""
    params = question.params
    raw, data = params.get("type") or "", params.get("data") or {}
    if raw == "EventAgentStart":
        link.step = 0
    elif raw == "EventTurnStart":
        link.step += 1
    step = link.step

    def work() -> None:
        try:
            _handle(link, raw, data, step)
            question.reply({"action": None})
        except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
            question.failed(error)

    return link.lane("events", work)


def _handle(link: Link, raw: str, data: Params, step: int) -> None:
    """Tell each handler. All are told; then the first failure counts."""
    from hilt_sdk.values import Event

    events = link.registered.events
    trouble = None
    told = [(listener, Event(raw, data)) for name in (raw, "*") for listener in events.get(name, ())]
    for name, counterpart in COUNTERPARTS.items():
        if counterpart == raw and link.dialect == "jsonrpc":
            event = Event(name, translated(name, data, step))
            told += [(listener, event) for listener in events.get(name, ())]
    for listener, event in told:
        try:
            link.value_of(listener.function, event)
        except BaseException as error:  # noqa: BLE001  # the others are told all the same
            trouble = trouble or error
    if trouble is not None:
        raise trouble


def _result_blocks(told: Any) -> list[Params]:
    found = told.get("content") if isinstance(told, dict) else told
    if isinstance(found, str):
        return [{"type": "text", "text": found}]
    return [own_block(block) for block in found if isinstance(block, dict)] if isinstance(found, list) else []


def _members(value: Any) -> Params:
    return value if isinstance(value, dict) else {}


_ANSWERERS: dict[str, Callable[[Link, Question], Job | None]] = {
    "messageHook/onMessage": _on_message,
    "inputTransformer/transform": _transform,
    "compact/execute": _compact,
    "provider/stream": _stream,
    "interceptor/before": _before,
    "interceptor/after": _after,
    "interceptor/event": _event,
    "event/dispatch": _dispatch,
}


# Being told


def told(link: Link, method: str, params: Params) -> Job | None:
    """What the host says by method without waiting for an answer."""
    if method == "$/cancelRequest":
        answer = link.cancellable.get(params.get("id"))
        if answer is not None:
            answer.cancelled = True
        call = link.calls.get(params.get("id"))
        return None if call is None else link.lane("cancel", call.cancel)
    if method == "eventBus/event":
        handler = link.topics.get(params.get("subscriptionId"))  # type: ignore[arg-type]  # it is in the table or not
        return None if handler is None else link.lane("bus", lambda: link.attempt(handler, params.get("data")))
    return None
