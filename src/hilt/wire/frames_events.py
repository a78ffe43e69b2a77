"""Every event an extension can observe, from plain values. `stamp` adds what all of them share."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType, structs

from hilt.model.content import Args, ResultBlock
from hilt.model.conversation import StopReason
from hilt.model.events import ToolStatus
from hilt.wire.frames_results import result_summary
from hilt.wire.frames_types import Event
from hilt.wire.freeform import pack
from hilt.wire.limits import TEXT_LIMIT

SessionEnd: TypeAlias = Literal["shutdown", "session_switch", "cwd_change"]
Decision: TypeAlias = Literal["approved", "denied", "cancelled"]
DecisionSource: TypeAlias = Literal["user", "remembered", "policy", "yolo"]
DecisionStage: TypeAlias = Literal["pre_execution", "tool_execution"]


def stamp(event: Event, *, session_id: str, cwd: str, sequence: int) -> Event:
    """Say which session it belongs to and where it stands in the order; do it once for all who listen."""
    return structs.replace(event, session_id=session_id, cwd=cwd, sequence=sequence)


def session_start() -> Event:
    return Event("session_start")


def session_end(reason: SessionEnd) -> Event:
    return Event("session_end", reason=reason)


def turn_start(step: int) -> Event:
    return Event("turn_start", step=step)


def turn_end(stop: StopReason, error: str = "") -> Event:
    return Event("turn_end", stop=stop, error=_cut(error))


def user_prompt_submit(text: str, *, queued: bool = False, image_count: int = 0) -> Event:
    return Event("user_prompt_submit", text=_cut(text), queued=queued, image_count=image_count)


def assistant_message(text: str) -> Event:
    """`text` is all text blocks joined without a separator; a message of tool calls alone has none."""
    return Event("assistant_message", text=_cut(text))


def tool_call(tool_id: str, tool_name: str, tool_args: Args, *, invalid: str = "") -> Event:
    """`invalid` is what the model wrote in place of arguments, when that was not JSON."""
    args, raw = _args(tool_args, invalid)
    return Event("tool_call", tool_id=tool_id, tool_name=tool_name, tool_args=args, tool_args_raw=raw)


def tool_result(
    tool_id: str,
    tool_name: str,
    tool_args: Args,
    status: ToolStatus,
    content: Iterable[ResultBlock],
    *,
    is_error: bool = False,
    executed: bool = True,
    invalid: str = "",
) -> Event:
    args, raw = _args(tool_args, invalid)
    return Event(
        "tool_result",
        tool_id=tool_id,
        tool_name=tool_name,
        tool_args=args,
        tool_args_raw=raw,
        status=status,
        executed=executed,
        result=result_summary(content, is_error=is_error),
    )


def tool_confirmation_requested(tool_id: str, tool_name: str, tool_args: Args, preview: str) -> Event:
    return Event(
        "tool_confirmation_requested",
        tool_id=tool_id,
        tool_name=tool_name,
        tool_args=pack(tool_args),
        tool_preview=_cut(preview),
    )


def permission_decision(
    tool_id: str,
    tool_name: str,
    decision: Decision,
    source: DecisionSource,
    *,
    stage: DecisionStage = "pre_execution",
    reason: str = "",
) -> Event:
    return Event(
        "permission_decision",
        tool_id=tool_id,
        tool_name=tool_name,
        decision=decision,
        source=source,
        stage=stage,
        reason=_cut(reason),
    )


def pre_compact(compaction_id: str, message_count: int, token_estimate: int) -> Event:
    return Event("pre_compact", compaction_id=compaction_id, message_count=message_count, token_estimate=token_estimate)


def post_compact(
    compaction_id: str, message_count: int, token_estimate: int, status: Literal["completed", "failed"], error: str = ""
) -> Event:
    return Event(
        "post_compact",
        compaction_id=compaction_id,
        message_count=message_count,
        token_estimate=token_estimate,
        status=status,
        error=_cut(error),
    )


def subagent_start(agent_id: str, agent_run_id: str, name: str) -> Event:
    return Event("subagent_start", agent_id=agent_id, agent_run_id=agent_run_id, name=name)


def subagent_stop(
    agent_id: str, agent_run_id: str, name: str, status: Literal["completed", "failed", "cancelled"], error: str = ""
) -> Event:
    return Event(
        "subagent_stop", agent_id=agent_id, agent_run_id=agent_run_id, name=name, status=status, error=_cut(error)
    )


def _args(args: Args, invalid: str) -> tuple[Raw | UnsetType, str]:
    return (UNSET, _cut(invalid)) if invalid else (pack(args), "")


def _cut(text: str) -> str:
    return text[:TEXT_LIMIT]
