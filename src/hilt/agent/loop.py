"""The loop: ask the model, run the tools it calls, until it stops, is stopped, or takes too many steps.

Free functions over a `Run`; the session decides what runs when.
"""

from collections.abc import Sequence

from msgspec import structs

from hilt.agent.asking import Answer, ask
from hilt.agent.condensing import compact_if_full
from hilt.agent.hooks import Injected, injected
from hilt.agent.interception import Ruling, consult
from hilt.agent.prompt import with_contributions
from hilt.agent.run import Outcome, Run
from hilt.agent.stopping import Stopped
from hilt.agent.toolcalls import CUT_OFF, Desk, Ran, refuse_calls, run_calls
from hilt.errors import AuthError, ContextOverflow, HiltError, ProviderError
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, StopReason, Usage, UserMessage, now, tool_calls
from hilt.model.events import (
    AssistantMessageAdded,
    AssistantReplaced,
    Done,
    Failed,
    RunStarted,
    StepLimitReached,
    ToolCalled,
    ToolResultAdded,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserMessageAdded,
)
from hilt.model.models import priced
from hilt.model.stream import Completed, ModelRequest
from hilt.model.verdicts import Question


async def run_prompt(run: Run, message: UserMessage) -> Outcome:
    """Deliver a message and see it through. A failure or a stop is the answer, not an exception."""
    try:
        history = len(run.transcript.messages)
        await _say(run, message)
        text = text_of(message.content)
        added = await _injected(run, text)
        run = await _with_system(run)
        tools = len(run.activation.offered(run.registry.snapshot()))
        await run.emit(RunStarted(text, run.system, tools, history))
        return await _steps(run, added)
    except Stopped:
        return Outcome("aborted", "cancelled")
    except HiltError as error:
        failed = failure(error)
        await run.emit(failed)
        return Outcome("error", failed.message, failed.hint)


async def finish(run: Run, outcome: Outcome) -> None:
    await run.settle()
    await run.emit(Done(outcome.stop))


async def _injected(run: Run, text: str) -> Injected:
    """What extensions want the model to be told with this message: in its next answer only."""
    owned = run.registry.snapshot().hooks
    if not owned:
        return Injected()
    with run.stop.here():
        added = await injected(owned, text, run.bench.deadlines.hook, run.bench.waits)
    await added.complain(run.emit)
    return added


async def _with_system(run: Run) -> Run:
    """The system prompt of this run: what extensions add to it is part of it, and interceptors may replace it."""
    snapshot = run.registry.snapshot()
    question = Question(
        "before_agent_start",
        system_prompt=with_contributions(run.system, snapshot.sections, run.activation.instructions(snapshot)),
        session_id=run.transcript.log.meta.id,
        run_id=run.id,
        cwd=run.cwd,
        provider=run.model.provider,
        model=run.model.id,
    )
    ruling = await _hear(run, question)
    if ruling.blocked_by:  # for want of an answer: a refusal has no meaning here
        raise HiltError(ruling.reason, hint=f"`/reload-ext {ruling.blocked_by}` starts it anew")
    return structs.replace(run, system=ruling.question.system_prompt)


async def _steps(run: Run, added: Injected) -> Outcome:
    for step in range(1, run.max_steps + 1):
        await run.emit(TurnStarted(step))
        try:
            ruling = await _hear(run, Question("turn_start", step=step))
        except Stopped:
            await run.emit(TurnEnded("aborted", "cancelled"))
            raise
        if ruling.blocked_by:
            return await _blocked(run, ruling)
        reply = await _reply(run, added.system(run.system))
        added = Injected()
        calls = tool_calls(reply)
        desk = _desk(run)
        for call in calls:
            known = desk.tool(call.name) is not None
            await run.emit(ToolCalled(call.id, call.name, call.args, invalid=call.invalid, known=known))
        await run.emit(TurnEnded(reply.stop))
        if calls:
            await _run(desk, calls, reply.stop)
            await run.transcript.settle()
        if run.stop.requested:
            raise Stopped
        if not await _steer(run) and not calls:
            return Outcome(reply.stop, text=text_of(reply.content) if reply.shown is None else reply.shown)
    error = f"max steps ({run.max_steps}) exceeded"
    hint = "send another message to go on, or raise the limit with --max-steps"
    await run.emit(StepLimitReached(run.max_steps, run.max_steps))
    await run.emit(Failed(error, hint, "step_limit"))
    return Outcome("error", error, hint)


def _desk(run: Run) -> Desk:
    return Desk(
        run.registry,
        run.activation,
        run.permissions,
        run.bench,
        run.emit,
        lambda ran: _deliver(run, ran),
        run.stop,
        run.extensions,
        run.origin,
    )


async def _run(desk: Desk, calls: Sequence[ToolCall], stop: StopReason) -> None:
    if stop == "length":
        await refuse_calls(calls, CUT_OFF, desk)
    else:
        await run_calls(calls, desk)


async def _hear(run: Run, question: Question) -> Ruling:
    guards = run.registry.snapshot().guards(question.event)
    if not guards:
        return Ruling(question)
    with run.stop.here():
        return await consult(guards, question, run.bench)


async def _blocked(run: Run, ruling: Ruling) -> Outcome:
    """An interceptor does not let the turn begin; what the user said stays."""
    hint = f"extension {ruling.blocked_by} refused it"
    await run.emit(TurnEnded("error", ruling.reason))
    await run.emit(Failed(ruling.reason, hint, "turn_blocked"))
    return Outcome("error", ruling.reason, hint)


async def _steer(run: Run) -> bool:
    """Deliver what the user wants said in between, one at a time: what a stop prevents must not be lost."""
    steered = False
    while not run.stop.requested and (message := await run.steering()):
        await _say(run, message)
        steered = True
    return steered


async def _say(run: Run, message: UserMessage) -> None:
    run.transcript.add(message)
    await run.settle()
    await run.emit(UserMessageAdded(message.content, message.time, message.extension))


async def _deliver(run: Run, ran: Ran) -> None:
    run.transcript.add_result(ran.result)
    await run.emit(told(ran))


def told(ran: Ran, extension: str = "") -> ToolResultAdded:
    result = ran.result
    return ToolResultAdded(
        result.call_id,
        result.name,
        result.is_error,
        result.content,
        extension,
        ran.status,
        ran.executed,
        ran.args,
        ran.invalid,
        result.details,
        ran.changed_by,
    )


async def _reply(run: Run, system: str) -> AssistantMessage:
    """One whole assistant message, recorded and announced."""
    answer = Answer()
    try:
        await compact_if_full(run)
        with run.stop.here():
            completed = await ask(run.provider, _request(run, system), run.retry, run.emit, answer)
        reply, replaced = await _censored(run, _message(run, completed))
    except ProviderError as error:
        await _keep_partial(run, answer, "error", error.message)
        raise
    except Stopped:
        await _keep_partial(run, answer, "aborted", "cancelled")
        raise
    if reply.content:
        run.transcript.add(reply)
        await run.warn_if_unsaved()
    else:
        run.transcript.usage += reply.usage  # no provider takes an empty message back, but it was paid for
    await run.emit(UsageReported(reply.usage, run.transcript.usage))
    if replaced:
        await run.emit(replaced)
    if reply.content and not (replaced and replaced.suppressed):
        await run.emit(AssistantMessageAdded(reply.seen, reply.time))
    return reply


async def _censored(run: Run, reply: AssistantMessage) -> tuple[AssistantMessage, AssistantReplaced | None]:
    """The reply with what is to be shown in its place, if interceptors want that. The model's words stay on record."""
    texts = [block.text for block in reply.content if isinstance(block, Text)]
    if not texts:
        return reply, None
    ruling = await _hear(run, Question("assistant_message", text="\n".join(texts)))
    if ruling.blocked_by:
        replaced = AssistantReplaced("", suppressed=True, extension=ruling.blocked_by, reason=ruling.reason)
    elif ruling.changed_by:
        replaced = AssistantReplaced(ruling.question.text, suppressed=False, extension=", ".join(ruling.changed_by))
    else:
        return reply, None
    return structs.replace(reply, shown=replaced.text), replaced


def _request(run: Run, system: str) -> ModelRequest:
    return ModelRequest(
        model=run.model,
        system=system,
        messages=run.transcript.messages,
        tools=run.activation.offered(run.registry.snapshot()),
        reasoning=run.reasoning,
    )


def _message(run: Run, completed: Completed) -> AssistantMessage:
    content = tuple(block for block in completed.content if not (isinstance(block, Text) and not block.text))
    stop = completed.stop
    if stop == "end" and any(isinstance(block, ToolCall) for block in content):
        stop = "tool_use"  # some local servers say "stop" after a tool call
    return AssistantMessage(content, now(), run.provider.name, run.model.id, priced(completed.usage, run.model), stop)


async def _keep_partial(run: Run, answer: Answer, stop: StopReason, error: str) -> None:
    """Keep the text that had arrived; half a tool call is worth nothing and is dropped."""
    if answer.started:
        await run.emit(UsageReported(Usage(), run.transcript.usage))
    if answer.text.strip():
        message = AssistantMessage((Text(answer.text),), now(), run.provider.name, run.model.id, stop=stop, error=error)
        run.transcript.add(message)
        await run.emit(AssistantMessageAdded(message.content, message.time))
    await run.emit(TurnEnded(stop, error))


def failure(error: HiltError) -> Failed:
    match error:
        case AuthError():
            code = "auth"
        case ContextOverflow():
            hint = error.hint or "compact it first (`hilt -c -p /compact`, RPC `compact`), then send the message again"
            return Failed(error.message, hint, "context_overflow")
        case _:
            code = ""
    return Failed(error.message, error.hint, code)


def mistake(error: Exception) -> HiltError:
    """What there is to say of an exception that nobody foresaw; the log has the rest."""
    return HiltError(
        f"internal error: {type(error).__name__}: {error}", hint="this is a bug in hilt; the log has the details"
    )
