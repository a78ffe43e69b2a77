"""An agent at work beside the conversation: the same loop, guards and permissions, with a transcript of its own.

Nothing of it reaches the conversation or those who watch it, but for warnings. The tools it called are on record.
"""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct, field, structs

from hilt.agent.activation import Activation
from hilt.agent.compaction import estimated_tokens
from hilt.agent.loop import run_prompt
from hilt.agent.parts import ActiveModel
from hilt.agent.run import Outcome, Run
from hilt.agent.session import Session
from hilt.agent.stopping import Stop
from hilt.agent.toolbox import background_safe
from hilt.agent.transcript import Transcript
from hilt.model.content import Text, text_of
from hilt.model.conversation import Usage, UserMessage, user_text
from hilt.model.events import (
    AssistantMessageAdded,
    Event,
    Noticed,
    ToolCalled,
    ToolResultAdded,
    ToolStatus,
    TurnStarted,
    UsageReported,
)
from hilt.model.services import AgentReport, AgentTask
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Snapshot
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import NoteRecord, new_meta

_RECORDED = 4096
"""Characters of a result."""


class Aside(Struct, frozen=True):
    """Who works for whom, and how it is ended."""

    session: Session
    active: ActiveModel
    source: str
    spend: Callable[[Usage, int], Awaitable[str]]
    """Told what each answer cost, and about how many tokens it was about; says why there must be no further one."""
    stop: Stop = field(default_factory=Stop)


class _Heard(Struct):
    """What has come of it so far."""

    texts: list[str] = field(default_factory=list)
    turns: int = 0
    usage: Usage = Usage()
    refusal: str = ""
    """Why there must be no further answer."""
    ended: str = ""
    """Why it was ended, when that was not the user's doing."""
    calls: dict[str, ToolCalled] = field(default_factory=dict)
    """Those that have no result yet."""


async def work(aside: Aside, task: AgentTask) -> AgentReport:
    """See a task through. Whatever ends it, what it said until then is the answer; cancelling leaves none."""
    heard = _Heard()
    run = _run(aside, task, heard)

    def give_up() -> None:
        heard.ended = f"it was stopped after {task.seconds:g} s"
        aside.stop.request()

    timer = asyncio.get_running_loop().call_later(task.seconds, give_up)
    try:
        outcome = await run_prompt(run, user_text(task.task, aside.source))
    except asyncio.CancelledError:
        for call in heard.calls.values():  # nobody waits any more; that it was begun is worth knowing all the same
            _record(aside, call, "cancelled", "Cancelled by whoever asked for it: its outcome is unknown.")
        raise
    finally:
        timer.cancel()
    return AgentReport("\n".join(heard.texts), heard.turns, heard.usage, _error(outcome, heard))


def _error(outcome: Outcome, heard: _Heard) -> str:
    if outcome.stop == "aborted":
        return heard.ended or "it was cancelled"
    return outcome.error


def _run(aside: Aside, task: AgentTask, heard: _Heard) -> Run:
    session, info = aside.session, aside.active.info
    parts = session.parts
    log = SessionLog.in_memory(new_meta(parts.cwd, info.provider, info.id))
    transcript = Transcript(Journal(log))

    async def emit(event: Event) -> None:
        await _follow(aside, heard, transcript, event)

    return Run(
        transcript=transcript,
        provider=aside.active.provider,
        model=info,
        system=task.system or parts.system,
        registry=_Surroundings(parts.registry, sections=not task.system),
        activation=Activation(session.activation, _allowed(session, task)),
        permissions=parts.permissions,
        bench=structs.replace(session.bench, emit=emit),
        emit=emit,
        steering=_nobody_steers,
        extensions=session.extensions,
        stop=aside.stop,
        retry=parts.retry,
        reasoning=parts.reasoning,
        max_steps=task.max_turns,
        cwd=parts.cwd,
        origin=aside.source,
    )


def _allowed(session: Session, task: AgentTask) -> set[str] | None:
    """The tools it may have; None for all."""
    return None if task.tools == "all" else background_safe(session.parts.registry.snapshot())


async def _follow(aside: Aside, heard: _Heard, transcript: Transcript, event: Event) -> None:
    match event:
        case AssistantMessageAdded(content=content):
            heard.texts += [block.text for block in content if isinstance(block, Text) and block.text]
        case TurnStarted():
            heard.turns += 1
            if heard.refusal:  # not before: an answer that needs no further one is whole
                heard.ended = heard.refusal
                aside.stop.request()
        case UsageReported(usage=usage):
            heard.usage += usage
            heard.refusal = await aside.spend(usage, estimated_tokens(transcript.messages))
        case ToolCalled():
            heard.calls[event.id] = event
        case ToolResultAdded():
            heard.calls.pop(event.id, None)
            _record(aside, event, event.status, text_of(event.content))
        case Noticed():
            await aside.session.bus.emit(event)
        case _:
            pass


def _record(aside: Aside, call: ToolCalled | ToolResultAdded, status: ToolStatus, text: str) -> None:
    record = {"extension": aside.source, "id": call.id, "name": call.name, "args": call.args}
    said = {"status": status, "text": text[:_RECORDED]}
    aside.session.parts.journal.append(NoteRecord("agent_call", {**record, **said}))


class _Surroundings(Registry):
    """What there is, but for what belongs to the conversation itself."""

    def __init__(self, whole: Registry, *, sections: bool) -> None:
        super().__init__()
        self._whole = whole
        self._sections = sections

    def snapshot(self) -> Snapshot:
        whole = self._whole.snapshot()
        sections = whole.sections if self._sections else ()
        return structs.replace(whole, sections=sections, hooks=(), compactor=None)


async def _nobody_steers() -> UserMessage | None:
    return None
