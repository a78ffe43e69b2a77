"""Shortening the conversation: by the extension that offers it, or else by a summary of the model's own.

Whatever comes of it, the log keeps the original, and a conversation that cannot be gone on with is not taken.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from hilt.agent.asking import Answer, ask
from hilt.agent.compaction import cut_point, estimated_tokens, over_threshold, sound, summary_request, wanted
from hilt.agent.run import Run
from hilt.agent.stopping import Stopped
from hilt.errors import ExtensionError, HiltError, ProviderError
from hilt.model.content import text_of
from hilt.model.contributions import Compactor
from hilt.model.conversation import Message, UserMessage
from hilt.model.events import (
    CompactionDone,
    CompactionFailed,
    CompactionStarted,
    Event,
    Noticed,
    Retrying,
    UsageReported,
)
from hilt.model.models import priced
from hilt.model.stream import Completed, ModelRequest
from hilt.registry.snapshot import Owned

_AS_IT_WAS = "the conversation was left as it is"


async def compact(run: Run) -> str:
    """Because somebody wants it: by the extension if there is one. Returns the summary."""
    offered = run.registry.snapshot().compactor
    return await (_by(offered, run, automatic=False) if offered else _by_summary(run, automatic=False))


async def compact_if_full(run: Run) -> None:
    """Before the model is asked: when the conversation fills its window, or when the extension wants it short."""
    offered = run.registry.snapshot().compactor
    messages = run.transcript.messages
    full = over_threshold(messages, run.model, run.compact_at)
    asked = offered if offered and not run.breaker.open else None
    if asked and (full or wanted(messages, asked.offer.threshold)) and await _tried(asked, run):
        return
    if not full:  # what only the extension wanted is not worth a summary
        return
    try:
        await _by_summary(run, automatic=True)
    except ProviderError as error:
        # The turn may still fit; if it does not, the overflow is reported for what it is.
        await run.emit(Noticed("warn", f"automatic compaction failed: {error.message}"))


async def _tried(offered: Owned[Compactor], run: Run) -> bool:
    try:
        await _by(offered, run, automatic=True)
    except HiltError as error:
        rest = f"; it is not asked again for {run.breaker.rest / 60:g} minutes" if run.breaker.failed() else ""
        await run.emit(Noticed("warn", f"{error.message}{rest}"))
        return False
    run.breaker.succeeded()
    return True


async def _by(offered: Owned[Compactor], run: Run, *, automatic: bool) -> str:
    before = run.transcript.messages
    if not before:
        raise HiltError("nothing to compact: nothing has been said yet")
    started = await _start(run, before, automatic=automatic)
    try:
        after = _with_later(run, before, await _answer(offered, run, before))
    except (Stopped, HiltError) as error:
        await _fail(run, started, error)
        raise
    run.transcript.replace(after, offered.owner)
    await run.settle()
    summary = text_of(after[0].content) if isinstance(after[0], UserMessage) else ""
    messages = run.transcript.messages
    await run.emit(CompactionDone(summary, estimated_tokens(messages), len(messages), started.id))
    return summary


async def _answer(offered: Owned[Compactor], run: Run, before: tuple[Message, ...]) -> tuple[Message, ...]:
    seconds = run.bench.deadlines.compactor
    try:
        with run.stop.here(), run.bench.waits.on(offered.owner, "compactor"):
            async with asyncio.timeout(seconds):
                answer = await offered.offer.compact(before)
        return sound(before, answer)
    except TimeoutError:
        why = f"no answer within {seconds:g} s"
    except HiltError as error:
        why = error.message
    raise ExtensionError(offered.owner, f"compactor of {offered.owner}: {why}", hint=_AS_IT_WAS)


def _with_later(run: Run, before: tuple[Message, ...], short: tuple[Message, ...]) -> tuple[Message, ...]:
    """With what was said while it was at work."""
    present = run.transcript.messages
    if any(one is not other for one, other in zip(before, present, strict=False)) or len(present) < len(before):
        raise HiltError("the conversation was replaced while it was being compacted", hint=_AS_IT_WAS)
    return (*short, *present[len(before) :])


async def _by_summary(run: Run, *, automatic: bool) -> str:
    """All but the last exchanges become a summary."""
    messages = run.transcript.messages
    cut = cut_point(messages)
    if not cut:
        raise HiltError("nothing to compact: the conversation is short enough to keep whole")
    started = await _start(run, messages, automatic=automatic)
    try:
        completed = await _summary(run, summary_request(messages[:cut], run.model))
    except (Stopped, HiltError) as error:
        await _fail(run, started, error)
        raise
    summary = text_of(completed.content).strip()
    usage = priced(completed.usage, run.model)
    if not run.transcript.compact(summary, messages[cut:], usage):
        replaced = ProviderError(f"the conversation was replaced while it was summarised; {_AS_IT_WAS}")
        await _fail(run, started, replaced)
        raise replaced
    await run.settle()
    await run.emit(UsageReported(usage, run.transcript.usage))
    messages = run.transcript.messages
    await run.emit(CompactionDone(summary, estimated_tokens(messages), len(messages), started.id))
    return summary


async def _start(run: Run, messages: tuple[Message, ...], *, automatic: bool) -> CompactionStarted:
    started = CompactionStarted(automatic, estimated_tokens(messages), len(messages), os.urandom(6).hex())
    await run.emit(started)
    return started


async def _fail(run: Run, started: CompactionStarted, error: Stopped | HiltError) -> None:
    why = error.message if isinstance(error, HiltError) else "cancelled"
    await run.emit(CompactionFailed(why, started.tokens, started.messages, started.id))


async def _summary(run: Run, request: ModelRequest) -> Completed:
    with run.stop.here():
        completed = await ask(run.provider, request, run.retry, _quietly(run), Answer())
    if not text_of(completed.content).strip():
        raise ProviderError("empty summary from the model; the conversation was left as it is")
    return completed


def _quietly(run: Run) -> Callable[[Event], Awaitable[None]]:
    """A summary's deltas are not part of the conversation; its retries are worth knowing."""

    async def emit(event: Event) -> None:
        if isinstance(event, Retrying):
            await run.emit(event)

    return emit
