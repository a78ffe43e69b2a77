"""Questions that show how an extension behaves: each probe asks something of a running one, and notes what it finds.

No probe does what could have an effect: tools that exist are called only without arguments they need, and when the
user has named them. A probe that ends the process costs nothing but its own rule, for the next ones get a new one.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from hilt.authoring.conformance.rules import Findings
from hilt.authoring.dialogue import Dialogue, Question
from hilt.authoring.exchange import Id
from hilt.authoring.greeting import Registered
from hilt.authoring.speaking.tongue import Occasion, Result, Verdict
from hilt.authoring.speaking.verdicts import frame, frame_verdict, request, verdict
from hilt.authoring.values import Value, brief
from hilt.errors import Departure, FrameError
from hilt.wire.faults import METHOD_NOT_FOUND

Ask: TypeAlias = Callable[[Id], Value]
Probe: TypeAlias = Callable[["Probing"], Awaitable[None]]

NOBODY = "hilt_conformance_unknown"
"""The name of nothing."""
_CALL = 60.0
_LISTENING = 0.3
"""Seconds in which one ends that ends at once; for those that nothing can be asked."""
_MOST_TOOLS = 8
_TIME = "2026-01-01T00:00:00Z"
_TALK = [
    {"type": "user", "data": {"role": "user", "content": "hi", "timestamp": _TIME}},
    {
        "type": "assistant",
        "data": {
            "role": "assistant",
            "content": [{"type": "text", "text": "hello"}],
            "model": "demo",
            "provider": "demo",
            "usage": {},
            "stopReason": "stop",
            "timestamp": _TIME,
        },
    },
]
_HARMLESS: dict[str, dict[str, Any]] = {
    "message_hook": {"method": "messageHook/onMessage", "params": {"message": "hi"}},
    "input_transformer": {"method": "inputTransformer/transform", "params": {"input": "hi"}},
    "event_handler": {"method": "event/dispatch", "params": {"type": "EventTurnStart", "data": {}}},
    "compactor": {"method": "compact/execute", "params": {"messages": _TALK}},
}
"""What each kind can be asked without an effect. Providers are not: an answer may cost money."""
_OCCASIONS = (
    Occasion("tool_call", "read", {"path": "README.md"}),
    Occasion("turn_start"),
    Occasion("assistant_message", text="All is well."),
    Occasion("before_agent_start", text="Be brief."),
)


class Probing:
    """One running extension, and what is found out about it."""

    def __init__(self, dialogue: Dialogue, findings: Findings, calls: Mapping[str, Value], patience: float) -> None:
        self._dialogue = dialogue
        """With the process that runs now."""
        self._findings = findings
        self._calls = calls
        self._patience = patience
        self._usual: Ask | None = None
        """A question that it is known to answer."""

    def meet(self, dialogue: Dialogue) -> None:
        """The last process has ended: from now on this one is asked."""
        self._dialogue = dialogue

    # What is asked

    async def interceptors(self) -> None:
        for occasion in _OCCASIONS:
            for ask, read in self._interceptors(occasion):
                if self._dialogue.over:
                    return
                self._findings.passed("intercepts")
                answer = await self._answer("intercepts", occasion.event, ask, self._deadline())
                if answer is None:
                    continue
                self._usual = self._usual or ask
                self._findings.passed("harmless")
                try:
                    decided = read(answer)
                except FrameError as error:
                    self._findings.failed("intercepts", f"{error.message}: {brief(answer, 300)}")
                    continue
                if decided.verdict != "allow":
                    self._findings.failed("harmless", f"{occasion.event}: {decided.verdict}: {brief(answer, 300)}")

    def _interceptors(self, occasion: Occasion) -> list[tuple[Ask, Callable[[Value], Verdict]]]:
        dialogue, found = self._dialogue, []
        if dialogue.asked_by_frame(occasion.event):
            found.append((lambda id_: frame(id_, occasion), lambda answer: frame_verdict(answer, occasion)))
        return [*found, *(self._by_method(one, occasion) for one in dialogue.interceptors(occasion.event))]

    def _by_method(self, one: Registered, occasion: Occasion) -> tuple[Ask, Callable[[Value], Verdict]]:
        method, params = request(one.name, occasion, "call_1")
        tongue = self._dialogue.tongue
        return (
            lambda id_: tongue.request(id_, method, params),
            lambda answer: verdict(tongue.answered(answer), one.name, occasion),
        )

    async def missing_arguments(self) -> None:
        tools = [
            one for one in self._dialogue.offers("tool") if isinstance(one.schema, dict) and one.schema.get("required")
        ]
        for one in tools[:_MOST_TOOLS]:
            if self._dialogue.over:
                return
            self._findings.passed("missing-arguments")
            ask = self._call_of(one.name, {})
            if await self._answer("missing-arguments", f"{one.name} without arguments", ask) is not None:
                self._usual = self._usual or ask

    async def unknown_tool(self) -> None:
        if self._dialogue.offers("tool"):
            await self._unknown("unknown-tool", "an unknown tool", self._call_of(NOBODY, {}))

    async def unknown_command(self) -> None:
        if self._dialogue.offers("command"):
            command = self._dialogue.tongue.command
            await self._unknown("unknown-command", "an unknown command", lambda id_: command(id_, NOBODY, ""))

    async def _unknown(self, rule: str, what: str, ask: Ask) -> None:
        self._findings.passed(rule)
        answer = await self._answer(rule, what, ask)
        if answer is None:
            return
        self._usual = self._usual or ask
        tongue = self._dialogue.tongue
        result: Result = tongue.called(answer) if rule == "unknown-tool" else tongue.acted(answer)[0]
        if not result.failed:
            self._findings.failed(rule, f"it was answered as if there were one: {brief(answer, 300)}")

    async def unknown_method(self) -> None:
        if self._dialogue.actor.dialect != "jsonrpc":
            return
        self._findings.passed("unknown-message")
        ask = self._request(f"hilt/{NOBODY}", {})
        answer = await self._answer("unknown-message", "an unknown request", ask)
        if answer is not None:
            self._usual = self._usual or ask
            error = answer.get("error", answer.get("Error"))
            code = error.get("code", error.get("Code")) if isinstance(error, dict) else None
            if code != METHOD_NOT_FOUND:
                self._findings.failed("unknown-message", f"expected the error −32601: {brief(answer, 300)}")

    async def unknown_message(self) -> None:
        if self._dialogue.actor.dialect == "frames":
            self._dialogue.send({"type": NOBODY, "id": "x1", "data": {}})
        else:
            self._dialogue.send(self._dialogue.tongue.notice(f"hilt/{NOBODY}", {}))
        await self._survives("unknown-message")

    async def kinds(self) -> None:
        for kind, asked in _HARMLESS.items():
            names = self._dialogue.offers(kind)
            if not names or self._dialogue.over:
                continue
            self._findings.passed("kinds")
            method, params = asked["method"], asked["params"]
            if kind == "event_handler" and (wanted := names[0].fields.get("events")):
                params = {**params, "type": wanted[0]}
            ask = self._request(method, params)
            answer = await self._answer("kinds", method, ask)
            if answer is not None and (result := self._dialogue.tongue.answered(answer)).failed:
                self._findings.failed("kinds", f"{method}: {result.text}")

    def _request(self, method: str, params: Value) -> Ask:
        return lambda id_: self._dialogue.tongue.request(id_, method, params)

    async def unknown_fields(self) -> None:
        if ask := self._usual:
            self._findings.passed("unknown-fields")
            await self._answer("unknown-fields", "a question with more fields", lambda id_: {**ask(id_), NOBODY: 1})

    async def garbage(self) -> None:
        self._dialogue.send_raw(b"this is no JSON {")
        await self._survives("garbage")

    async def concurrent(self) -> None:
        if self._usual is None:
            return
        self._findings.passed("concurrent")
        questions = [self._dialogue.ask(f"question {number} of 2", self._usual, self._patience) for number in (1, 2)]
        for question in questions:
            await self._wait("concurrent", question, self._patience)

    async def cancel(self) -> None:
        capable = self._dialogue.actor.dialect == "jsonrpc" or "tool_cancel" in self._dialogue.capabilities
        if not capable:
            return
        if self._usual:
            question = self._dialogue.ask("a question that is taken back", self._usual, self._patience)
            question.call = True
            self._dialogue.give_up(question)
        await self._survives("cancel")

    async def calls(self) -> None:
        for tool, args in self._calls.items():
            if self._dialogue.over:
                return
            self._findings.passed("calls")
            if tool not in {one.name for one in self._dialogue.offers("tool")}:
                self._findings.failed("calls", f"it has no tool {tool!r}")
                continue
            answer = await self._answer("calls", tool, self._call_of(tool, args), _CALL)
            if answer is not None and (result := self._dialogue.tongue.called(answer)).failed:
                self._findings.failed("calls", f"{tool} failed: {result.text or brief(answer, 300)}")

    async def shutdown(self) -> None:
        """The last one: it is to end."""
        dialogue, grace = self._dialogue, self._dialogue.actor.found.manifest.stop_grace_ms / 1000
        self._findings.passed("quiet")
        heard = len(dialogue.lines.came)
        dialogue.send(dialogue.tongue.shutdown())
        await dialogue.actor.close_input()
        await self._ends("shutdown", f"within {grace:g} s of shutdown", grace)
        for value in dialogue.lines.came[heard:]:
            if value.get("type") != "shutdown_ack" and value.get("id") not in dialogue.asked:
                self._findings.failed("quiet", brief(value, 300))

    async def poverty(self) -> None:
        """With a host that has no extras: it still answers, and ends with its input."""
        grace = self._dialogue.actor.found.manifest.stop_grace_ms / 1000
        self._findings.passed("poor-host")
        if self._usual and self._usual(self._dialogue.tongue.first_id()).get("type") != "ext_request":
            await self._answer("poor-host", "what it answers elsewhere", self._usual)
        if self._dialogue.over:
            return
        await self._dialogue.actor.close_input()
        await self._ends("end-of-input", f"within {grace:g} s of the end of its input", grace)

    # How it is found out

    async def _ends(self, rule: str, when: str, grace: float) -> None:
        self._findings.passed(rule)
        dialogue = self._dialogue
        ended = await dialogue.until(lambda: dialogue.over or None, grace)
        exit_ = dialogue.actor.exit
        if not ended or exit_ is None:
            self._findings.failed(rule, f"it did not end {when}")
        elif exit_.code != 0:
            self._findings.failed(rule, f"it {dialogue.actor.ending}")

    async def _survives(self, rule: str) -> None:
        self._findings.passed(rule)
        if self._usual:
            await self._answer(rule, "the next question", self._usual)
        else:
            await self._dialogue.until(lambda: None, _LISTENING)
            if self._dialogue.over:
                self._findings.failed(rule, self._dialogue.end)

    async def _answer(self, rule: str, what: str, ask: Ask, patience: float | None = None) -> Value | None:
        return await self._wait(rule, self._dialogue.ask(what, ask, _CALL), patience or self._patience)

    async def _wait(self, rule: str, question: Question, patience: float) -> Value | None:
        try:
            return await self._dialogue.answer(question, patience)
        except Departure as error:
            self._findings.failed(rule, error.message)
            return None

    def _deadline(self) -> float:
        guard = self._dialogue.actor.found.manifest.guard
        return guard.timeout_ms / 1000 if guard else self._patience

    def _call_of(self, tool: str, args: Value) -> Ask:
        return lambda id_: self._dialogue.tongue.call(id_, tool, args)


PROBES: tuple[Probe, ...] = (
    Probing.interceptors,
    Probing.missing_arguments,
    Probing.unknown_tool,
    Probing.unknown_command,
    Probing.unknown_method,
    Probing.kinds,
    Probing.unknown_message,
    Probing.unknown_fields,
    Probing.garbage,
    Probing.concurrent,
    Probing.cancel,
    Probing.calls,
    Probing.shutdown,
)
"""In this order: the first ones find out what can be asked at all."""
