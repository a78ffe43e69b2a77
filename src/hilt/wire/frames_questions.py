"""An interceptor's question as a line. Several are asked the same, so all but the id is written once."""

from functools import lru_cache

from msgspec import UNSET

from hilt.model.verdicts import Question
from hilt.wire.frames import encode
from hilt.wire.frames_types import EventIntercept
from hilt.wire.freeform import pack

_HEAD = b'{"type":"event_intercept","id":"'


def intercept_line(id_: str, question: Question) -> bytes:
    """Raises `FrameError` when it cannot be put on a line."""
    return _HEAD + id_.encode() + _tail(question)


@lru_cache(maxsize=8)
def _tail(question: Question) -> bytes:
    is_call = question.event == "tool_call"
    frame = EventIntercept(
        "",
        question.event,
        tool_id=question.tool_id,
        tool_name=question.tool_name,
        tool_args=pack(question.tool_args) if is_call else UNSET,
        step=question.step,
        text=question.text,
        system_prompt=question.system_prompt if question.event == "before_agent_start" else UNSET,
        origin_extension=question.origin,
        session_id=question.session_id,
        agent_run_id=question.run_id,
        cwd=question.cwd,
        provider=question.provider,
        model=question.model,
    )
    return encode(frame, packed=True)[len(_HEAD) :]
