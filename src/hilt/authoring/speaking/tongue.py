"""What both dialects have in common for a scripted host: questions, answers, and what happens of its own accord."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from hilt.authoring.exchange import Id
from hilt.authoring.values import Value

HAPPENINGS = (
    "shows",
    "notes",
    "prompts",
    "inserts",
    "opens",
    "renders",
    "closes",
    "progress",
    "status",
    "widget",
    "overlay",
    "asks",
)
"""What an extension can make happen without being asked, by the word for it in a fixture."""

EVENTS = ("turn_start", "assistant_message", "before_agent_start")
"""What can be intercepted besides tool calls."""


class Answer(Struct, frozen=True):
    """To a question of the host's."""

    id: Id
    value: Value


class Asked(Struct, frozen=True):
    """A question to the host."""

    id: Id
    method: str
    params: Value


class Happened(Struct, frozen=True):
    kind: str
    """One of `HAPPENINGS`."""
    value: Any
    of: Id | None = None
    """The question that it belongs to: of progress."""


Heard: TypeAlias = Answer | Asked | Happened | None
"""None for what is none of these: registrations, and what nobody knows."""


class Result(Struct, frozen=True):
    """What came of a question."""

    value: Any
    """All of it, with the same members in both dialects where they mean the same."""
    text: str = ""
    """What a person would read of it."""
    failed: bool = False


class Verdict(Struct, frozen=True):
    verdict: Literal["allow", "block", "rewrite", "replace"]
    reason: str = ""
    to: Any = None
    """What it is changed to: the arguments of a call, or a text."""


class Occasion(Struct, frozen=True):
    """What may be intercepted."""

    event: str
    tool: str = ""
    args: Value = {}
    text: str = ""
    step: int = 1


class Tongue(Protocol):
    """Lines to the extension are values, to be sent as they are."""

    def first_id(self) -> Id: ...
    def next_id(self, id_: Id) -> Id: ...

    # Questions

    def call(self, id_: Id, tool: str, args: Value) -> Value: ...
    def command(self, id_: Id, name: str, args: str) -> Value: ...
    def shortcut(self, id_: Id, key: str) -> Value: ...
    def request(self, id_: Id, method: str, params: Value) -> Value: ...

    # What needs no answer

    def notice(self, method: str, params: Value) -> Value: ...
    def give_up(self, id_: Id, *, call: bool, capabilities: Sequence[str]) -> Value | None:
        """What tells it that nobody waits for an answer any more, if anything does."""

    def panel_key(self, panel: str, key: str, text: str) -> Value: ...
    def panel_resize(self, panel: str, width: int, height: int) -> Value: ...
    def panel_closed(self, panel: str) -> Value: ...
    def shutdown(self) -> Value: ...

    # Answers to it

    def reply(self, asked: Asked, result: Any) -> Value: ...
    def refuse(self, asked: Asked, code: int, message: str) -> Value: ...

    # What it says

    def heard(self, value: Value) -> Heard: ...
    def called(self, answer: Value) -> Result: ...
    def acted(self, answer: Value) -> tuple[Result, list[Happened]]:
        """What came of a command or a shortcut, and what happens therefore."""

    def answered(self, answer: Value) -> Result:
        """To a request by method."""


def joined(blocks: Any) -> str:
    """The text of a result; images in words."""
    texts = []
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("type") == "image":
            texts.append(f"[image {block.get('mime_type', '')}]")
        elif isinstance(block, dict):
            texts.append(str(block.get("text", "")))
    return "\n".join(texts)
