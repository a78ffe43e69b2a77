"""What a call of a tool came to, refusals and failures included: values, not exceptions."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hilt.agent.toolcalls import Ran
from hilt.model.content import Args, ResultBlock, text_of
from hilt.model.events import Decided, ToolStatus


class Called(Struct, frozen=True):
    call_id: str
    tool: str
    status: ToolStatus
    """`completed`, `failed`, `blocked` by a guard or a refused permission, `cancelled`, or `timed_out`."""
    content: tuple[ResultBlock, ...]
    """For the model, also when it failed: then it says why."""
    is_error: bool
    args: Args
    """What the tool ran with, or would have: guards may have changed what was given."""
    details: Mapping[str, Any]
    """Facts for screens and programs; not for the model."""
    decisions: tuple[Decided, ...] = ()
    """Every guard that was heard, in the order in which its answer counted."""
    changed_by: tuple[str, ...] = ()
    """The extensions that changed the result."""

    @property
    def text(self) -> str:
        """The text of the content."""
        return text_of(self.content, "\n")

    @property
    def blocked(self) -> bool:
        return self.status == "blocked"

    @classmethod
    def of(cls, ran: Ran, decisions: tuple[Decided, ...]) -> "Called":
        result = ran.result
        return cls(
            call_id=result.call_id,
            tool=result.name,
            status=ran.status,
            content=result.content,
            is_error=result.is_error,
            args=ran.args,
            details=result.details,
            decisions=decisions,
            changed_by=ran.changed_by,
        )


class Refused(Struct, frozen=True):
    """A guard does not let something begin."""

    by: str
    """The extension."""
    reason: str
