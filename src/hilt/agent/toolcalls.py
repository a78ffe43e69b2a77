"""From a model's tool calls to their results: prepare, execute, review, finalize.

Prepare looks the tool up, hears the interceptors, checks the arguments and asks for permission; whatever it refuses
is a value, an error result the model can read. One of the four places where exceptions become values.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct, structs

from hilt.agent.activation import Activation
from hilt.agent.interception import Bench, Ruling, consult
from hilt.agent.permissions import Decision, Permissions
from hilt.agent.results import Review
from hilt.agent.schema import problems
from hilt.agent.stopping import Stop, Stopped
from hilt.agent.waiting import settled
from hilt.errors import ToolError
from hilt.model.content import Args, Text, ToolCall
from hilt.model.contributions import Effect, Finished, Invocation, Preview, Tool, ToolOutput
from hilt.model.conversation import ToolResult, unknown_outcome
from hilt.model.events import Event, PermissionDecided, ToolProgressed, ToolStatus
from hilt.model.ports import Extensions, PermissionRequest
from hilt.model.verdicts import Question
from hilt.registry.registry import Registry
from hilt.sessions.records import NoteRecord

log = logging.getLogger(__name__)

CANCELLED = "Cancelled by the user while it ran: its outcome is unknown. Check before running it again."
NOT_STARTED = "Cancelled by the user before it started: it was not run. Treat its outcome as unknown."
CUT_OFF = "Not run: the reply reached its output limit before this call was complete. Ask for less at a time."


class Ran(Struct, frozen=True):
    """What became of a call."""

    result: ToolResult
    status: ToolStatus
    executed: bool
    args: Args
    """As the interceptors left them."""
    invalid: str = ""
    changed_by: tuple[str, ...] = ()
    """The extensions that changed the result."""


class Desk(Struct, frozen=True):
    """What running calls needs."""

    registry: Registry
    activation: Activation
    permissions: Permissions
    bench: Bench
    emit: Callable[[Event], Awaitable[None]]
    deliver: Callable[[Ran], Awaitable[None]]
    """Takes each result once, in the model's order."""
    stop: Stop
    extensions: Extensions
    origin: str = ""
    """The extension on whose behalf the call is made, when it is not the user."""
    direct: bool = False
    """The extension makes the call itself; otherwise a model does."""
    chain: tuple[str, ...] = ()
    """The tools that led to it."""

    def tool(self, name: str) -> Tool | None:
        """As it is now: the process that offered it to the model may have been replaced since."""
        snapshot = self.registry.snapshot()
        return snapshot.tool(name) or self.activation.tool(snapshot, name)


class _Ready(Struct, frozen=True):
    call: ToolCall
    tool: Tool
    shown: Preview | None
    """What the permission was given for; None when the mode alone allowed it."""


async def run_calls(calls: Sequence[ToolCall], desk: Desk) -> None:
    """Run every call and deliver one result for each, also for those that a stop prevents."""
    slots: list[Ran | None] = [None] * len(calls)
    delivered = 0

    async def run(index: int, call: ToolCall) -> None:
        nonlocal delivered
        slots[index] = await run_call(call, desk)
        # Deliver the finished prefix, so that results keep the model's order whoever is first.
        while delivered < len(slots) and (ready := slots[delivered]) is not None:
            delivered += 1
            await desk.deliver(ready)

    # A person who looks at every call looks at one after the other.
    if len(calls) > 1 and not desk.permissions.step and all(_parallel(call, desk) for call in calls):
        async with asyncio.TaskGroup() as group:
            for index, call in enumerate(calls):
                group.create_task(run(index, call))
    else:
        for index, call in enumerate(calls):
            await run(index, call)


async def refuse_calls(calls: Sequence[ToolCall], reason: str, desk: Desk) -> None:
    for call in calls:
        await desk.deliver(_refusal(call, reason))


def _parallel(call: ToolCall, desk: Desk) -> bool:
    tool = desk.tool(call.name)
    return tool is not None and tool.parallel


async def run_call(call: ToolCall, desk: Desk) -> Ran:
    """One call and its result. What breaks costs this one call; a call without a result would cost the conversation."""
    started: _Ready | None = None
    try:
        with desk.stop.here():
            prepared = await _prepare(call, desk)
            if isinstance(prepared, Ran):
                return prepared
            started = prepared
            output = await _execute(prepared, desk)
        return await _reviewed(prepared.call, output, desk)
    except Stopped:
        result = unknown_outcome(call, CANCELLED if started else NOT_STARTED)
        args = started.call.args if started else call.args
        return Ran(result, "cancelled", started is not None, args, call.invalid)
    except Exception as error:
        log.exception("the call of %s failed", call.name)
        return _refusal(call, f"{call.name} failed: {type(error).__name__}: {error}")


async def _prepare(call: ToolCall, desk: Desk) -> _Ready | Ran:
    tool = desk.tool(call.name)
    if tool is None or tool.effect is not Effect.READ:
        await settled(desk.extensions, desk.bench.waits)  # one that is being started may offer the tool, or guard it
        tool = desk.tool(call.name)
    if tool is None or (tool.exposure == "codemode" and not desk.direct):
        return _refusal(call, f'unknown tool "{call.name}"; the tools are: {_known(desk)}{_down(desk)}')
    if tool.exposure == "model-only" and desk.direct:
        return _refusal(call, f"{call.name} is for the model only; extensions cannot call it")
    if why := _withheld(call.name, desk):
        return _refusal(call, f"{call.name} cannot be called now: {why}; the tools are: {_known(desk)}")
    if call.invalid:
        return _refusal(call, f"the arguments of {call.name} are not a JSON object: {call.invalid[:200]}")
    if not desk.direct:
        desk.activation.used(tool)
    ruling = await _hear(call, tool, desk)
    if ruling.blocked_by:
        return _refusal(call, _refused(ruling), "blocked")
    call = structs.replace(call, args=ruling.question.tool_args)
    if wrong := problems(tool.schema, call.args):
        return _refusal(call, f"invalid arguments for {call.name}: " + "; ".join(wrong))
    return await _permitted(call, tool, ruling, desk)


def _withheld(name: str, desk: Desk) -> str:
    """Why a model may not have this tool. What activates others is nobody's, and goes with them."""
    is_offered = not desk.direct and name in desk.registry.snapshot().tools
    return desk.activation.withheld(name) if is_offered else ""


def _known(desk: Desk) -> str:
    """The tools that whoever makes the call may call."""
    closed = "model-only" if desk.direct else "codemode"
    tools = desk.registry.snapshot().tools
    free = (name for name in tools if not _withheld(name, desk))
    return ", ".join(sorted(name for name in free if tools[name].tool.exposure != closed)) or "none"


def _down(desk: Desk) -> str:
    """The extensions that may have offered it before."""
    gone = [f"{one.name} ({one.state})" for one in desk.extensions.statuses() if one.state in ("restarting", "failed")]
    return f"; extensions that are not running: {', '.join(gone)}" if gone else ""


async def _hear(call: ToolCall, tool: Tool, desk: Desk) -> Ruling:
    question = Question("tool_call", tool_id=call.id, tool_name=call.name, tool_args=call.args, origin=desk.origin)

    def fits(question: Question) -> str:
        return "; ".join(problems(tool.schema, question.tool_args))

    owned = desk.registry.snapshot().guards("tool_call")
    return await consult(owned, question, desk.bench, fits=fits, effect=tool.effect)


def _refused(ruling: Ruling) -> str:
    """The guard's own words, and whose they are."""
    named = ruling.blocked_by in ruling.reason
    return ruling.reason if named else f"{ruling.reason} (refused by guard {ruling.blocked_by})"


async def _permitted(call: ToolCall, tool: Tool, ruling: Ruling, desk: Desk) -> _Ready | Ran:
    """What is shown here is what runs."""
    if desk.permissions.allows(tool.effect) and not ruling.unsure:
        yolo = desk.permissions.mode == "yolo"
        await desk.emit(PermissionDecided(call.id, tool.name, approved=True, source="yolo" if yolo else "policy"))
        return _Ready(call, tool, None)
    try:
        preview = await tool.preview(call.args) if tool.preview else _json_preview(call)
    except ToolError as error:
        # It would fail in the same way when run: nobody needs to be asked.
        return _refusal(call, _with_hint(error))
    request = PermissionRequest(
        call.id,
        tool.name,
        tool.effect,
        call.args,
        preview,
        rewritten_by=ruling.changed_by,
        unchecked_by=ruling.unsure,
        step=desk.permissions.step,
    )
    decision = await _permission(request, desk)
    return _Ready(call, tool, preview) if decision.approved else _refusal(call, decision.reason, "blocked")


async def _permission(request: PermissionRequest, desk: Desk) -> Decision:
    """On record before it is told. What the mode alone allows was never a question, and is not."""
    decision = await desk.permissions.decide(request)
    decided = PermissionDecided(request.call_id, request.tool, decision.approved, decision.source, decision.reason)
    desk.bench.journal.append(NoteRecord("permission", decided))
    await desk.emit(decided)
    return decision


def _json_preview(call: ToolCall) -> Preview:
    return Preview("json", msgspec.json.format(msgspec.json.encode(call.args), indent=2).decode())


async def _execute(ready: _Ready, desk: Desk) -> ToolOutput:
    call = ready.call

    async def progress(text: str) -> None:
        await desk.emit(ToolProgressed(call.id, text))

    try:
        output = await ready.tool.invoke(Invocation(call.id, call.args, progress, ready.shown, desk.chain))
    except ToolError as error:
        output = ToolOutput.of(_with_hint(error), is_error=True)
    desk.activation.activate(output)
    return output


async def _reviewed(call: ToolCall, output: ToolOutput, desk: Desk) -> Ran:
    """What the tool said, as the interceptors leave it. A stop ends the hearing; that the tool has run is a fact."""
    owned = desk.registry.snapshot().results
    if not owned:
        return _finalize(call, output)
    review = Review(Finished(call.id, call.name, output))
    try:
        with desk.stop.here():
            await review.hear(owned, desk.bench)
    except Stopped:
        pass
    await review.publish(output, desk.bench)
    return _finalize(call, review.finished.output, tuple(review.changed_by))


def _finalize(call: ToolCall, output: ToolOutput, changed_by: tuple[str, ...] = ()) -> Ran:
    content = output.content or (Text("(no output)"),)
    result = ToolResult(call.id, call.name, content, output.is_error, dict(output.details))
    status: ToolStatus = "failed" if output.is_error else "completed"
    if output.details.get("timed_out"):
        status = "timed_out"
    return Ran(result, status, executed=True, args=call.args, changed_by=changed_by)


def _with_hint(error: ToolError) -> str:
    return f"{error.message}\n{error.hint}" if error.hint else error.message


def _refusal(call: ToolCall, reason: str, status: ToolStatus = "failed") -> Ran:
    result = ToolResult(call.id, call.name, (Text(reason),), is_error=True)
    return Ran(result, status, executed=False, args=call.args, invalid=call.invalid)
