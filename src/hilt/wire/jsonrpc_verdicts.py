"""What interceptors of the jsonrpc dialect are asked, and what their answers decide."""

from typing import assert_never

from msgspec import UNSET, Raw, UnsetType

from hilt.errors import FrameError
from hilt.model.content import Args
from hilt.model.verdicts import Allow, Block, Interceptable, Question, ReplaceText, Rewrite, SystemPrompt, Verdict
from hilt.wire.jsonrpc_reading import read, twice
from hilt.wire.jsonrpc_types import InterceptorBefore, InterceptorBeforeResult, InterceptorEvent, InterceptorEventResult
from hilt.wire.limits import SYSTEM_PROMPT_LIMIT

_BEFORE_MEMBERS = InterceptorBeforeResult.__struct_encode_fields__
_EVENT_MEMBERS = InterceptorEventResult.__struct_encode_fields__


def before_params(name: str, question: Question) -> InterceptorBefore:
    return InterceptorBefore(name, question.tool_name, question.tool_args, question.tool_id, question.origin)


def before_verdict(result: Raw | UnsetType, name: str, given: Args) -> Verdict:
    """What the interceptor of this name decided about a call with these arguments.

    Raises `FrameError` for an answer nobody can act on. One that does not say `allow` forbids, as ever. The
    arguments mostly come back as they were, which changes nothing.
    """
    _once(result, _BEFORE_MEMBERS)
    answer = read(result, InterceptorBeforeResult)
    if not answer.allow:
        return Block(answer.preview or f"blocked by interceptor: {name}")
    return Allow() if answer.args is None or answer.args == given else Rewrite(answer.args)


def event_params(name: str, question: Question) -> InterceptorEvent:
    return InterceptorEvent(
        name,
        question.event,
        question.step,
        question.text,
        question.system_prompt if question.event == "before_agent_start" else UNSET,
        question.session_id,
        question.run_id,
        question.cwd,
        question.provider,
        question.model,
    )


def event_verdict(result: Raw | UnsetType, name: str, event: Interceptable) -> Verdict:
    """The same for all that is no tool call; here an answer that does not say `allow` allows.

    Members that belong to other events are ignored, and a refusal outweighs a change.
    """
    _once(result, _EVENT_MEMBERS)
    answer = read(result, InterceptorEventResult)
    blocked = None if answer.allow else Block(answer.reason or f"blocked by interceptor: {name}")
    match event:
        case "tool_call" | "turn_start":
            return blocked or Allow()
        case "assistant_message":
            return blocked or (ReplaceText(answer.text) if answer.text else Allow())
        case "before_agent_start":
            return _system_prompt(answer)  # `allow` has no meaning here
        case never:
            assert_never(never)


def _system_prompt(answer: InterceptorEventResult) -> Verdict:
    if answer.system_prompt is UNSET:
        return Allow()
    size = len(answer.system_prompt.encode())
    if size > SYSTEM_PROMPT_LIMIT:
        raise FrameError(f"`systemPrompt` has {size:,} bytes; {SYSTEM_PROMPT_LIMIT:,} is the limit")
    return SystemPrompt(answer.system_prompt)


def _once(result: Raw | UnsetType, members: tuple[str, ...]) -> None:
    if member := twice(result, members):
        raise FrameError(f"`{member}` is given twice")
