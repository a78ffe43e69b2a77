"""What the author's interceptors decide, one after the other. One that fails refuses what it guards."""

from __future__ import annotations

from hilt_sdk.link import log_trouble
from hilt_sdk.values import Block, Intercepted, Replace, Result, Rewrite, explained, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hilt_sdk.link import Link
    from hilt_sdk.registrations import Interceptor

_GUARDED = ("tool_call", "turn_start", "assistant_message")
"""Where a failure refuses. Elsewhere there is nothing to refuse, and all stays as it was."""


class Decision:
    """What came out. The question itself has what was changed."""

    __slots__ = ("block", "changed", "text")

    def __init__(self) -> None:
        self.block: Block | None = None
        self.changed = False
        self.text: str | None = None
        """What takes the place of a result's text, when that is all that was changed."""


def decide(link: Link, interceptors: Sequence[Interceptor], asked: Intercepted) -> Decision:
    """Ask each in order; the first refusal ends it, and what one changed is what the next one sees."""
    decision = Decision()
    for interceptor in interceptors:
        try:
            said = link.value_of(interceptor.function, asked)
            if isinstance(said, Block):
                decision.block = said
                return decision
            if _changed(asked, said):
                decision.changed = True
                decision.text = said if isinstance(said, str) else None
        except BaseException as error:  # noqa: BLE001  # a guard that fails is no permission
            log_trouble(error)
            if asked.event in _GUARDED:
                decision.block = Block(f"{link.ext.name}'s guard failed: {explained(error)}")
                return decision
    return decision


def _changed(asked: Intercepted, said: Any) -> bool:
    """Do what was said to the question. Raises `TypeError` for what has no meaning there."""
    if said is None:
        return False
    event = asked.event
    if event == "tool_call" and isinstance(said, Rewrite):
        asked.args = said.args
    elif event == "assistant_message" and isinstance(said, (Replace, str)):
        asked.text = said if isinstance(said, str) else said.text
    elif event == "before_agent_start" and isinstance(said, str):
        asked.system_prompt = said
    elif event == "tool_result":
        _replace_result(asked, said)
    else:
        raise TypeError(f"an interceptor of {event} cannot return {type(said).__name__}")
    return True


def _replace_result(asked: Intercepted, said: Any) -> None:
    """A text takes the place of all text, a result that of everything."""
    if isinstance(said, str):
        others = [block for block in asked.content if block.get("type") != "text"]
        asked.content = [{"type": "text", "text": said}, *others]
    else:
        result = result_of(said)
        asked.content = result.content
        asked.is_error = result.is_error
    asked.text = Result(content=asked.content).text
