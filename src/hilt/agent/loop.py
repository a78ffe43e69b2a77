"""The loop: ask the model, run the tools it calls, until it stops, is stopped, or takes too many steps.

Free functions over a `Run`; the session decides what runs when.
"""

import os
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, field, structs

from hilt.agent.activation import Activation
from hilt.agent.asking import Answer, ask
from hilt.agent.compaction import cut_point, estimated_tokens, over_threshold, summary_request
from hilt.agent.interception import Bench, Ruling, consult
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.agent.stopping import Stop, Stopped
from hilt.agent.toolcalls import CUT_OFF, Desk, Ran, refuse_calls, run_calls
from hilt.agent.transcript import Transcript
from hilt.errors import AuthError, ContextOverflow, HiltError, ProviderError
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, StopReason, Usage, UserMessage, now, tool_calls
from hilt.model.events import (
    AssistantMessageAdded,
    AssistantReplaced,
    CompactionDone,
    CompactionFailed,
    CompactionStarted,
    Done,
    Event,
    Failed,
    Noticed,
    Retrying,
    ToolCalled,
    ToolResultAdded,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserMessageAdded,
)
from hilt.model.models import ModelInfo, Reasoning, priced
from hilt.model.ports import Extensions, Provider
from hilt.model.stream import Completed, ModelRequest
from hilt.model.verdicts import Question
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Snapshot


class Run(Struct, frozen=True):
    """What one prompt needs, fixed for its duration."""

    transcript: Transcript
    provider: Provider
    model: ModelInfo
    system: str
    registry: Registry
    activation: Activation
    permissions: Permissions
    bench: Bench
    emit: Callable[[Event], Awaitable[None]]
    steering: Callable[[], Awaitable[UserMessage | None]]
    """The next message that the user wants delivered at a tool boundary, if there is one."""
    extensions: Extensions
    stop: Stop
    retry: RetryPolicy
    reasoning: Reasoning
    max_steps: int
    cwd: str
    id: str = field(default_factory=lambda: os.urandom(6).hex())


class Outcome(Struct, frozen=True):
    """How a prompt or a compaction ended."""

    stop: StopReason
    error: str = ""
    hint: str = ""
    text: str = ""
    """The last assistant text."""


async def run_prompt(run: Run, message: UserMessage) -> Outcome:
    """Deliver a message and see it through. A failure or a stop is the answer, not an exception."""
    try:
        await _say(run, message)
        return await _steps(await _with_system(run))
    except Stopped:
        return Outcome("aborted", "cancelled")
    except HiltError as error:
        failed = failure(error)
        await run.emit(failed)
        return Outcome("error", failed.message, failed.hint)


async def finish(run: Run, outcome: Outcome) -> None:
    await run.transcript.settle()
    await _warn_if_unsaved(run)
    await run.emit(Done(outcome.stop))


async def compact(run: Run, *, automatic: bool = False) -> str:
    """Summarise all but the last exchanges. Returns the summary."""
    messages = run.transcript.messages
    cut = cut_point(messages)
    if not cut:
        raise HiltError("nothing to compact: the conversation is short enough to keep whole")
    id_, tokens, count = os.urandom(6).hex(), estimated_tokens(messages), len(messages)
    await run.emit(CompactionStarted(automatic, tokens, count, id_))
    try:
        completed = await _summary(run, summary_request(messages[:cut], run.model))
    except (Stopped, HiltError) as error:
        why = error.message if isinstance(error, HiltError) else "cancelled"
        await run.emit(CompactionFailed(why, tokens, count, id_))
        raise
    summary = text_of(completed.content).strip()
    usage = priced(completed.usage, run.model)
    run.transcript.compact(summary, cut, usage)
    await run.transcript.settle()
    await _warn_if_unsaved(run)
    await run.emit(UsageReported(usage, run.transcript.usage))
    messages = run.transcript.messages
    await run.emit(CompactionDone(summary, estimated_tokens(messages), len(messages), id_))
    return summary


async def _summary(run: Run, request: ModelRequest) -> Completed:
    with run.stop.here():
        completed = await ask(run.provider, request, run.retry, _quietly(run), Answer())
    if not text_of(completed.content).strip():
        raise ProviderError("empty summary from the model; the conversation was left as it is")
    return completed


async def _with_system(run: Run) -> Run:
    """The system prompt of this run: what extensions add to it is part of it, and interceptors may replace it."""
    snapshot = run.registry.snapshot()
    sections = [f"# {section.title}\n\n{section.content}" for section in snapshot.sections]
    system = "\n\n".join([run.system, *sections, *run.activation.instructions(snapshot)])
    question = Question(
        "before_agent_start",
        system_prompt=system,
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


async def _steps(run: Run) -> Outcome:
    for step in range(1, run.max_steps + 1):
        await run.emit(TurnStarted(step))
        try:
            ruling = await _hear(run, Question("turn_start", step=step))
        except Stopped:
            await run.emit(TurnEnded("aborted", "cancelled"))
            raise
        if ruling.blocked_by:
            return await _blocked(run, ruling)
        reply = await _reply(run, run.registry.snapshot())
        calls = tool_calls(reply)
        for call in calls:
            await run.emit(ToolCalled(call.id, call.name, call.args, invalid=call.invalid))
        await run.emit(TurnEnded(reply.stop))
        if calls:
            await _run(run, calls, reply.stop)
        if run.stop.requested:
            raise Stopped
        if not await _steer(run) and not calls:
            return Outcome(reply.stop, text=text_of(reply.content) if reply.shown is None else reply.shown)
    error = f"max steps ({run.max_steps}) exceeded"
    hint = "send another message to go on, or raise the limit with --max-steps"
    await run.emit(Failed(error, hint, "step_limit"))
    return Outcome("error", error, hint)


async def _run(run: Run, calls: Sequence[ToolCall], stop: StopReason) -> None:
    desk = Desk(
        run.registry,
        run.activation,
        run.permissions,
        run.bench,
        run.emit,
        lambda ran: _deliver(run, ran),
        run.stop,
        run.extensions,
    )
    if stop == "length":
        await refuse_calls(calls, CUT_OFF, desk)
    else:
        await run_calls(calls, desk)
    await run.transcript.settle()


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
    await run.transcript.settle()
    await _warn_if_unsaved(run)
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
    )


async def _reply(run: Run, snapshot: Snapshot) -> AssistantMessage:
    """One whole assistant message, recorded and announced."""
    answer = Answer()
    try:
        await _compact_if_full(run)
        with run.stop.here():
            completed = await ask(run.provider, _request(run, snapshot), run.retry, run.emit, answer)
        reply, replaced = await _censored(run, _message(run, completed))
    except ProviderError as error:
        await _keep_partial(run, answer, "error", error.message)
        raise
    except Stopped:
        await _keep_partial(run, answer, "aborted", "cancelled")
        raise
    if reply.content:
        run.transcript.add(reply)
        await _warn_if_unsaved(run)
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


def _request(run: Run, snapshot: Snapshot) -> ModelRequest:
    return ModelRequest(
        model=run.model,
        system=run.system,
        messages=run.transcript.messages,
        tools=run.activation.offered(snapshot),
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


async def _compact_if_full(run: Run) -> None:
    if not over_threshold(run.transcript.messages, run.model):
        return
    try:
        await compact(run, automatic=True)
    except ProviderError as error:
        # The turn may still fit; if it does not, the overflow is reported for what it is.
        await run.emit(Noticed("warn", f"automatic compaction failed: {error.message}"))


async def _warn_if_unsaved(run: Run) -> None:
    if trouble := run.transcript.new_trouble():
        await run.emit(Noticed("warn", trouble))


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


def _quietly(run: Run) -> Callable[[Event], Awaitable[None]]:
    """A summary's deltas are not part of the conversation; its retries are worth knowing."""

    async def emit(event: Event) -> None:
        if isinstance(event, Retrying):
            await run.emit(event)

    return emit
