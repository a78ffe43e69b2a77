"""A tool call that an extension makes: it goes through all a model's call goes through, and is on record apart."""

import asyncio
import os

from hilt.agent.loop import told
from hilt.agent.toolcalls import Desk, Ran, run_call
from hilt.model.content import Args, ToolCall, text_of
from hilt.model.contributions import ToolOutput
from hilt.model.conversation import unknown_outcome
from hilt.model.events import ToolCalled
from hilt.sessions.journal import Journal
from hilt.sessions.records import NoteRecord

DEPTH = 4
"""Tools that may be under way within each other, the first included."""
_RECORDED = 4096
_TAKEN_BACK = "Cancelled by the extension that called it, or ended with it: its outcome is unknown."


async def call_for(desk: Desk, name: str, args: Args, journal: Journal) -> ToolOutput:
    """A refusal is an error result, as it is for the model."""
    if problem := _chain_problem(name, desk.chain):
        return ToolOutput.of(problem, is_error=True)
    call = ToolCall(f"ext_{os.urandom(6).hex()}", name, args)
    await desk.emit(ToolCalled(call.id, name, args, desk.origin, known=desk.tool(name) is not None))
    try:
        ran = await run_call(call, desk)
    except asyncio.CancelledError:
        # Nobody waits for the answer any more; that it was begun is worth knowing all the same.
        await _end(Ran(unknown_outcome(call, _TAKEN_BACK), "cancelled", executed=True, args=args), desk, journal)
        raise
    await _end(ran, desk, journal)
    return ToolOutput(ran.result.content, ran.result.is_error, ran.result.details)


async def _end(ran: Ran, desk: Desk, journal: Journal) -> None:
    result = ran.result
    record = {"extension": desk.origin, "id": result.call_id, "name": result.name, "args": ran.args}
    said = {"status": ran.status, "text": text_of(result.content)[:_RECORDED]}
    journal.append(NoteRecord("extension_call", {**record, **said}))
    await desk.emit(told(ran, desk.origin))


def _chain_problem(name: str, chain: tuple[str, ...]) -> str:
    whole = " → ".join((*chain, name))
    if name in chain:
        return f"refused, because {name} would run within itself: {whole}"
    if len(chain) >= DEPTH:
        return f"refused, because tools call each other too deeply ({DEPTH} is the limit): {whole}"
    return ""
