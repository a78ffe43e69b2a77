"""A scripted host: does to an extension what a fixture says, step by step, and compares what comes of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hilt.authoring.deciding import decision, review
from hilt.authoring.dialogue import Dialogue, Question, Scripted
from hilt.authoring.fixtures import Fixture, FixtureStep
from hilt.authoring.greeting import Registered
from hilt.authoring.matching import filled, is_text, matched, mismatches, variables_in
from hilt.authoring.speaking.streaming import message_text, to_stream
from hilt.authoring.speaking.tongue import EVENTS, HAPPENINGS, Occasion, Result
from hilt.authoring.streams import Stream, Wanted
from hilt.authoring.values import Value, brief
from hilt.errors import Departure

_COMMAND = 30.0
_METHOD = 30.0
_STREAM = 300.0
"""Seconds on the clock of the conversation after which hilt gives up what it asked."""
_LOOK = 0.02
"""Seconds between looks at the log."""


class ScriptedHost:
    def __init__(self, dialogue: Dialogue, fixture: Fixture) -> None:
        self._dialogue = dialogue
        self._fixture = fixture
        self._variables: dict[str, Any] = {}
        self._calls: dict[str, Question] = {}
        self._left = False
        """It was told that this is the end."""
        self._exit: int | None = 0
        """What its exit code shall be."""
        for step in fixture.steps:
            if step.kind != "host":
                break  # what stands before all else holds from the start, also in the opening
            self._host(step)
        self.step: FixtureStep | None = None
        """The one that is being done."""

    async def play(self) -> None:
        """Raises `Departure` at the first thing that is otherwise."""
        opening = True
        for step in self._fixture.steps:
            self.step = step
            opening = opening and step.kind == "host"
            if not opening:
                await self._do(step)
        self.step = None
        await self._end()

    async def _do(self, step: FixtureStep) -> None:
        match step.kind:
            case "send":
                self._dialogue.send(self._said(step.value))
            case "send_raw":
                self._dialogue.send_raw(step.value.removesuffix("\n").encode())
            case "expect_not":
                self._dialogue.lines.banned.append(Wanted(f"line {step.line}", "expect_not", step.value))
            case "host":
                self._host(step)
            case "cancel":
                self._dialogue.give_up(self._called(step.value))
            case "advance_ms":
                self._dialogue.advance(step.value)
            case "shutdown" | "close":
                await self._leave(told=step.kind == "shutdown")
            case _:
                await self._steps[step.kind](self, step)
        if step.kind not in HAPPENINGS:
            await self._effects(step)

    # What is waited for

    def _patience(self, step: FixtureStep) -> float:
        within = step.fields.get("within_ms")
        return within / 1000 if within else self._fixture.within

    async def _expect(self, step: FixtureStep) -> None:
        await self._seen(self._dialogue.lines, Wanted(f"line {step.line}", step.kind, step.value), step)

    async def _seen(self, stream: Stream, wanted: Wanted, step: FixtureStep) -> None:
        first, patience = stream.taken, self._patience(step)
        found = await self._dialogue.until(lambda: stream.look(wanted, self._variables), patience)
        if found is None:
            when = f"before its end: {self._dialogue.end}" if self._dialogue.over else f"within {patience:g} s"
            raise stream.never(wanted, self._variables, first, when)
        self._variables = found

    async def _effects(self, step: FixtureStep) -> None:
        for kind in HAPPENINGS:
            if kind in step.fields:
                await self._happening(kind, step)

    async def _happens(self, step: FixtureStep) -> None:
        await self._happening(step.kind, step)

    async def _happening(self, kind: str, step: FixtureStep) -> None:
        pattern = step.fields[kind]
        whole = {"text": pattern} if is_text(pattern) else {kind: pattern}
        await self._seen(self._dialogue.happened[kind], Wanted(f"line {step.line}", kind, whole), step)

    async def _registers(self, step: FixtureStep) -> None:
        def look() -> dict[str, Any] | None:
            for one in self._dialogue.registered:
                found = matched(_offered(one), step.value, self._variables)
                if found is not None:
                    return found
            return None

        found = await self._dialogue.until(look, self._patience(step))
        if found is None:
            offered = ", ".join(f"{one.kind} {one.name}" for one in self._dialogue.registered) or "nothing"
            raise Departure(f"it has not registered {brief(step.value)}, but {offered}")
        self._variables = found

    async def _log(self, step: FixtureStep) -> None:
        def look() -> dict[str, Any] | None:
            return matched(self._dialogue.actor.complaints(), step.value, self._variables)

        # It is read beside the lines, so there is nothing to wait for but time.
        for _ in range(max(1, round(self._patience(step) / _LOOK))):
            if look() is not None or self._dialogue.over:
                break
            await self._dialogue.until(lambda: None, _LOOK)
        found = look()
        if found is None:
            said = self._dialogue.actor.complaints()
            raise Departure(f"its log: expected {brief(step.value)}, got {brief(said[-1000:], 1000)}")
        self._variables = found

    async def _expect_exit(self, step: FixtureStep) -> None:
        patience = self._patience(step)
        ended = await self._dialogue.until(lambda: self._dialogue.over or None, patience)
        exit_ = self._dialogue.actor.exit
        if not ended or exit_ is None:
            raise Departure(f"it did not end within {patience:g} s")
        if exit_.code != step.value:
            raise Departure(f"its exit: expected code {step.value}, but it {self._dialogue.actor.ending}")
        self._exit = None

    # Questions

    async def _call(self, step: FixtureStep) -> None:
        tool, args = step.value, self._said(step.fields.get("args", {}))
        if tool not in self._names("tool"):
            raise Departure(self._unknown("tool", tool))
        question = self._dialogue.ask(
            f"the call of {tool}",
            lambda id_: self._dialogue.tongue.call(id_, tool, args),
            self._dialogue.actor.found.manifest.tool_timeout_ms / 1000,
            call=True,
        )
        self._calls[step.fields.get("as", tool)] = question
        if step.fields.get("wait", True):
            await self._compare_call(step, question)

    async def _answer(self, step: FixtureStep) -> None:
        await self._compare_call(step, self._called(step.value))

    async def _compare_call(self, step: FixtureStep, question: Question) -> None:
        answer = await self._dialogue.answer(question, self._patience(step))
        self._compare_result(step, self._dialogue.tongue.called(answer))

    async def _run(self, step: FixtureStep) -> None:
        name, _, args = step.value.removeprefix("/").partition(" ")
        if name not in self._names("command"):
            raise Departure(self._unknown("command", name))
        await self._act(step, lambda id_: self._dialogue.tongue.command(id_, name, args.strip()))

    async def _shortcut(self, step: FixtureStep) -> None:
        if step.value not in self._names("shortcut"):
            raise Departure(self._unknown("shortcut", step.value))
        await self._act(step, lambda id_: self._dialogue.tongue.shortcut(id_, step.value))

    async def _act(self, step: FixtureStep, line: Callable[[Any], Value]) -> None:
        question = self._dialogue.ask(step.value, line, _COMMAND)
        result, happened = self._dialogue.tongue.acted(await self._dialogue.answer(question, self._patience(step)))
        for one in happened:
            self._dialogue.happen(one)
        self._compare_result(step, result)

    async def _ask(self, step: FixtureStep) -> None:
        self._compare_result(step, await self._method(step, step.value, self._said(step.fields.get("params", {}))))

    async def _tell(self, step: FixtureStep) -> None:
        self._dialogue.send(self._dialogue.tongue.notice(step.value, self._said(step.fields.get("params", {}))))

    async def _method(self, step: FixtureStep, method: str, params: Value, allowed: float = _METHOD) -> Result:
        return await self._dialogue.request(method, params, allowed, self._patience(step))

    async def _event(self, step: FixtureStep) -> None:
        name, data = step.value, self._said(step.fields.get("data", {}))
        if name in self._dialogue.events:
            self._dialogue.send({"type": "event", "event": name, **data})
            return
        handlers = [
            one for one in self._dialogue.offers("event_handler") if name in (one.fields.get("events") or [name])
        ]
        if not handlers:
            wanted = ", ".join(sorted(self._dialogue.events)) or "nothing"
            raise Departure(f"it has not subscribed to {name}, but to {wanted}")
        answer = await self._method(step, "event/dispatch", {"type": name, "data": data})
        for one in self._dialogue.tongue.acted({"id": 0, "result": answer.value})[1]:
            self._dialogue.happen(one)

    async def _stream(self, step: FixtureStep) -> None:
        providers = self._dialogue.offers("provider")
        if not providers:
            raise Departure("it has registered no provider")
        result = await self._method(
            step, "provider/stream", to_stream(step.value, step.fields.get("model", ""), providers[0]), _STREAM
        )
        value = result.value if isinstance(result.value, dict) else {}
        if error := value.get("error"):
            result = Result(value, str(error), failed=True)
        said = message_text(value.get("message"))
        self._compare_result(step, Result(value, result.text if result.failed else said, result.failed), "says")

    # Interceptors

    async def _intercept(self, step: FixtureStep) -> None:
        what = step.value
        text, args = step.fields.get("text", ""), self._said(step.fields.get("args", {}))
        occasion = Occasion("tool_call", what, args)
        if what in EVENTS:
            occasion = Occasion(what, text=text, step=step.fields.get("step", 1))
        decided = await decision(self._dialogue, occasion, self._patience(step))
        if (wanted := step.fields.get("verdict")) and wanted != decided.verdict:
            said = f": {decided.reason}" if decided.reason else ""
            raise Departure(f"the verdict: expected {wanted}, got {decided.verdict}{said}")
        self._compare(step, "reason", decided.reason)
        self._compare(step, "to", decided.to)

    async def _after(self, step: FixtureStep) -> None:
        given, failed = step.fields.get("text", ""), step.fields.get("failed", False)
        text = await review(self._dialogue, step.value, given, failed=failed, patience=self._patience(step))
        self._compare(step, "result", text)

    # Panels

    async def _key(self, step: FixtureStep) -> None:
        key, text = step.value, step.fields.get("text", "")
        if len(key) == 1:
            key, text = "rune", key
        self._dialogue.send(self._dialogue.tongue.panel_key(self._panel(step), key, text))

    async def _resize(self, step: FixtureStep) -> None:
        self._dialogue.send(self._dialogue.tongue.panel_resize(self._panel(step), *step.value))

    async def _close_panel(self, step: FixtureStep) -> None:
        self._dialogue.send(self._dialogue.tongue.panel_closed(step.value or self._panel(step)))

    def _panel(self, step: FixtureStep) -> str:
        panel: str = step.fields.get("panel", self._dialogue.panel)
        if not panel:
            raise Departure("it has opened no panel")
        return panel

    # The host's own side

    def _host(self, step: FixtureStep) -> None:
        fields = step.fields
        self._dialogue.script(Scripted(step.value, fields.get("params"), fields.get("reply"), fields.get("error")))

    async def _leave(self, *, told: bool) -> None:
        if not self._left and not self._dialogue.over:
            self._left = True
            if told:
                self._dialogue.send(self._dialogue.tongue.shutdown())
            await self._dialogue.actor.close_input()

    async def _end(self) -> None:
        """Say goodbye, and see whether it goes as it should."""
        await self._leave(told=True)
        grace = self._dialogue.actor.found.manifest.stop_grace_ms / 1000
        ended = await self._dialogue.until(lambda: self._dialogue.over or None, grace)
        exit_ = self._dialogue.actor.exit
        if self._exit is not None and exit_ and not ended:
            kept = "but a process that it started has kept its output open"
            raise Departure(f"at the end: it {self._dialogue.actor.ending}, {kept} for {grace:g} s")
        if self._exit is not None and exit_ is None:
            raise Departure(f"at the end: it did not end within {grace:g} s of shutdown")
        if self._exit is not None and exit_ and exit_.code != self._exit:
            raise Departure(f"at the end: it {self._dialogue.actor.ending}")
        self._dialogue.lines.check_rest()
        if self._dialogue.problems:
            raise Departure("\n".join(self._dialogue.problems))

    # Comparing

    def _compare_result(self, step: FixtureStep, result: Result, member: str = "result") -> None:
        if "error" in step.fields:
            if not result.failed:
                raise Departure(f"expected an error, got {brief(result.text or result.value, 400)}")
            if step.fields["error"] is not True:
                self._compare(step, "error", result.text if is_text(step.fields["error"]) else result.value)
        elif result.failed:
            raise Departure(f"it failed: {result.text or brief(result.value, 400)}")
        elif member in step.fields:
            pattern = step.fields[member]
            texts = is_text(pattern) and (bool(result.text) or not isinstance(result.value, str))
            blocks = isinstance(pattern, list) and isinstance(result.value, dict) and "content" in result.value
            value = result.value["content"] if blocks else result.value
            self._compare(step, member, result.text if texts else value)

    def _compare(self, step: FixtureStep, member: str, value: Any) -> None:
        if member not in step.fields:
            return
        found = matched(value, step.fields[member], self._variables)
        if found is None:
            raise Departure("\n".join(mismatches(value, step.fields[member], self._variables, member)))
        self._variables = found

    # What is known

    def _said(self, value: Any) -> Any:
        """With the variables' values; one that has none yet takes one that is made up."""
        for name in variables_in(value):
            made_up = len(self._variables) + 1
            self._variables.setdefault(name, made_up if name.startswith("$#") else f"{name[1:]}-{made_up}")
        return filled(value, self._variables)

    def _called(self, name: str) -> Question:
        if name not in self._calls:
            raise Departure(f"there was no call {name!r}, only {', '.join(self._calls) or 'none'}")
        return self._calls[name]

    def _names(self, kind: str) -> list[str]:
        return [one.name for one in self._dialogue.offers(kind)]

    def _unknown(self, kind: str, name: str) -> str:
        return f"it has no {kind} {name!r}; it offers {', '.join(self._names(kind)) or 'none'}"

    _steps: Mapping[str, Callable[["ScriptedHost", FixtureStep], Awaitable[None]]] = {
        "expect": _expect,
        "expect_exit": _expect_exit,
        "registers": _registers,
        "log": _log,
        "call": _call,
        "answer": _answer,
        "run": _run,
        "shortcut": _shortcut,
        "ask": _ask,
        "tell": _tell,
        "event": _event,
        "stream": _stream,
        "intercept": _intercept,
        "after": _after,
        "key": _key,
        "resize": _resize,
        "close_panel": _close_panel,
        **dict.fromkeys(HAPPENINGS, _happens),
    }


def _offered(one: Registered) -> Value:
    """The same in both dialects: `schema` is what tools of the other one call `parameters`."""
    fields = {name: value for name, value in one.fields.items() if name not in ("type", "parameters")}
    schema = {"schema": one.schema} if one.kind == "tool" and one.schema is not None else {}
    return {**fields, **schema, "kind": one.kind, "name": one.name}
