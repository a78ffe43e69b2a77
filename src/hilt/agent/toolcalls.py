"""From a model's tool calls to their results: prepare, execute, finalize.

Prepare looks the tool up, checks the arguments and asks for permission; whatever it refuses is
a value, an error result the model can read. One of the four places where exceptions become values.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from hilt.agent.permissions import Decision, Permissions
from hilt.agent.schema import problems
from hilt.agent.stopping import Stop, Stopped
from hilt.errors import ToolError
from hilt.model.content import Text, ToolCall
from hilt.model.contributions import Invocation, Preview, Tool, ToolOutput
from hilt.model.conversation import ToolResult, unknown_outcome
from hilt.model.events import Event, PermissionDecided, ToolProgressed
from hilt.model.ports import PermissionRequest
from hilt.registry.snapshot import Snapshot

log = logging.getLogger(__name__)

CANCELLED = "Cancelled by the user while it ran: its outcome is unknown. Check before running it again."
NOT_STARTED = "Cancelled by the user before it started: it was not run. Treat its outcome as unknown."
CUT_OFF = "Not run: the reply reached its output limit before this call was complete. Ask for less at a time."


class Desk(Struct, frozen=True):
    """What running a batch of calls needs."""

    snapshot: Snapshot
    permissions: Permissions
    emit: Callable[[Event], Awaitable[None]]
    deliver: Callable[[ToolResult], Awaitable[None]]
    """Takes each result once, in the model's order."""
    stop: Stop


class _Ready(Struct, frozen=True):
    call: ToolCall
    tool: Tool
    shown: Preview | None
    """What the permission was given for; None when the mode alone allowed it."""


async def run_calls(calls: Sequence[ToolCall], desk: Desk) -> None:
    """Run every call and deliver one result for each, also for those that a stop prevents."""
    slots: list[ToolResult | None] = [None] * len(calls)
    delivered = 0

    async def run(index: int, call: ToolCall) -> None:
        nonlocal delivered
        slots[index] = await _run_call(call, desk)
        # Deliver the finished prefix, so that results keep the model's order whoever is first.
        while delivered < len(slots) and (ready := slots[delivered]) is not None:
            delivered += 1
            await desk.deliver(ready)

    if len(calls) > 1 and all(_parallel(call, desk.snapshot) for call in calls):
        async with asyncio.TaskGroup() as group:
            for index, call in enumerate(calls):
                group.create_task(run(index, call))
    else:
        for index, call in enumerate(calls):
            await run(index, call)


async def refuse_calls(calls: Sequence[ToolCall], reason: str, desk: Desk) -> None:
    for call in calls:
        await desk.deliver(_refusal(call, reason))


def _parallel(call: ToolCall, snapshot: Snapshot) -> bool:
    tool = snapshot.tool(call.name)
    return tool is not None and tool.parallel


async def _run_call(call: ToolCall, desk: Desk) -> ToolResult:
    """One call and its result. What breaks costs this one call; a call without a result would cost the conversation."""
    started = False
    try:
        with desk.stop.here():
            prepared = await _prepare(call, desk)
            if isinstance(prepared, ToolResult):
                return prepared
            started = True
            return await _execute(prepared, desk)
    except Stopped:
        return unknown_outcome(call, CANCELLED if started else NOT_STARTED)
    except Exception as error:
        log.exception("the call of %s failed", call.name)
        return _refusal(call, f"{call.name} failed: {type(error).__name__}: {error}")


async def _prepare(call: ToolCall, desk: Desk) -> _Ready | ToolResult:
    tool = desk.snapshot.tool(call.name)
    if tool is None:
        known = ", ".join(sorted(desk.snapshot.tools)) or "none"
        return _refusal(call, f'unknown tool "{call.name}"; the tools are: {known}')
    if call.invalid:
        return _refusal(call, f"the arguments of {call.name} are not a JSON object: {call.invalid[:200]}")
    if wrong := problems(tool.schema, call.args):
        return _refusal(call, f"invalid arguments for {call.name}: " + "; ".join(wrong))
    if desk.permissions.allows(tool.effect):
        return _Ready(call, tool, None)
    try:
        preview = await tool.preview(call.args) if tool.preview else _json_preview(call)
    except ToolError as error:
        # It would fail in the same way when run: nobody needs to be asked.
        return _refusal(call, _with_hint(error))
    decision = await _permission(call, tool, preview, desk)
    return _Ready(call, tool, preview) if decision.approved else _refusal(call, decision.reason)


async def _permission(call: ToolCall, tool: Tool, preview: Preview, desk: Desk) -> Decision:
    request = PermissionRequest(call.id, tool.name, tool.effect, call.args, preview)
    decision = await desk.permissions.decide(request)
    await desk.emit(PermissionDecided(call.id, tool.name, decision.approved, decision.source, decision.reason))
    return decision


def _json_preview(call: ToolCall) -> Preview:
    return Preview("json", msgspec.json.format(msgspec.json.encode(call.args), indent=2).decode())


async def _execute(ready: _Ready, desk: Desk) -> ToolResult:
    call = ready.call

    async def progress(text: str) -> None:
        await desk.emit(ToolProgressed(call.id, text))

    try:
        output = await ready.tool.invoke(Invocation(call.id, call.args, progress, ready.shown))
    except ToolError as error:
        output = ToolOutput.of(_with_hint(error), is_error=True)
    return _finalize(call, output)


def _finalize(call: ToolCall, output: ToolOutput) -> ToolResult:
    content = output.content or (Text("(no output)"),)
    return ToolResult(call.id, call.name, content, output.is_error, dict(output.details))


def _with_hint(error: ToolError) -> str:
    return f"{error.message}\n{error.hint}" if error.hint else error.message


def _refusal(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(reason),), is_error=True)
