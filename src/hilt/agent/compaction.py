"""Making a long conversation short: where to cut, what to ask, when to do it, what an extension may make of it.

Pure. The doing is `condensing`.
"""

from collections.abc import Sequence

from hilt.errors import HiltError
from hilt.model.content import AnyBlock, Image, Text, Thinking, ToolCall, text_of
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    pair_calls,
    user_text,
)
from hilt.model.models import ModelInfo
from hilt.model.stream import ModelRequest

KEPT = 4
"""Messages left as they are at the end."""
THRESHOLD = 0.85
"""The part of the context window at which compaction starts by itself."""
MAX_OUTPUT = 4096
_TELLING = 40
"""Characters of a sentence that nobody writes by accident."""
ENOUGH = 8
"""Messages below which an extension is not asked to shorten a conversation by itself."""
_RESULT_CHARS = 4000

SYSTEM = """\
You condense the record of a coding session so that the work can go on without it. Write for the assistant that
will continue: plain facts, exact names, paths, commands and error texts, nothing invented, no pleasantries.
Use these headings, and leave a heading out when it has nothing under it:

## Goal
## Constraints and preferences
## Done
## In progress
## Blocked
## Decisions, and why
## Next steps
## Facts to keep (paths, commands, values, open questions)
"""


def cut_point(messages: Sequence[Message], kept: int = KEPT) -> int:
    """Index of the first message to keep, or 0 when there is nothing worth cutting.

    The tail never begins with tool results: they stay with the message that asked for them.
    """
    cut = len(messages) - kept
    while cut > 0 and isinstance(messages[cut], ToolMessage):
        cut -= 1
    if cut == 1 and isinstance(first := messages[0], UserMessage) and first.summary:
        return 0  # only an earlier summary would be summarised again
    return max(cut, 0)


def summary_request(messages: Sequence[Message], model: ModelInfo) -> ModelRequest:
    # Leave room for the answer; three characters a token is on the safe side for code.
    room = int(model.context_window * 0.6) * 3 if model.context_window else 400_000
    record = _squeeze("\n\n".join(_as_text(message) for message in messages), room)
    return ModelRequest(
        model=model,
        system=SYSTEM,
        messages=(user_text(f"The record of the session so far:\n\n{record}\n\nWrite the summary now."),),
        max_tokens=MAX_OUTPUT,
    )


def estimated_tokens(messages: Sequence[Message]) -> int:
    """What the conversation will fill: the last reported usage, plus a guess for what came after it."""
    known, rest = 0, 0
    summary = messages[0] if messages and isinstance(messages[0], UserMessage) and messages[0].summary else None
    for message in reversed(messages):
        # What was reported before a compaction counts what is no longer there.
        current = summary is None or message.time > summary.time
        if current and isinstance(message, AssistantMessage) and message.usage.context:
            known = message.usage.context
            break
        rest += _tokens(message)
    return known + rest


def over_threshold(messages: Sequence[Message], model: ModelInfo, compact_at: int = 0) -> bool:
    """Whether it is time, by the model's window or by what the user wants."""
    limits = [limit for limit in (THRESHOLD * model.context_window, compact_at) if limit > 0]
    if not limits or not cut_point(messages):
        return False
    return estimated_tokens(messages) >= min(limits)


def wanted(messages: Sequence[Message], threshold: int) -> bool:
    """Whether it is time by what an extension says."""
    return threshold > 0 and len(messages) >= ENOUGH and estimated_tokens(messages) >= threshold


def sound(before: Sequence[Message], answer: Sequence[Message]) -> tuple[Message, ...]:
    """What an extension made of a conversation, as it can be gone on with. Raises when it cannot.

    Calls and results are paired, what the user said last is there, and it is shorter than it was.
    """
    kept = pair_calls(message for message in answer if _size(message))
    if not kept:
        raise HiltError("there is nothing in the conversation it returned")
    if (last := _last_said(before)) and not any(_says(message, last) for message in kept):
        place = next((at for at, message in enumerate(kept) if not isinstance(message, UserMessage)), len(kept))
        kept.insert(place, last)
    if sum(map(_size, kept)) >= sum(map(_size, before)):
        raise HiltError("the conversation it returned is no shorter")
    return tuple(kept)


def _last_said(messages: Sequence[Message]) -> UserMessage | None:
    """By the user, in words; a summary is not."""
    said = (message for message in reversed(messages) if isinstance(message, UserMessage) and not message.summary)
    return next((message for message in said if text_of(message.content).strip()), None)


def _says(message: Message, said: UserMessage) -> bool:
    """Whether these words are in it: as they are, or quoted, if they are too many to be there by chance."""
    words, text = text_of(said.content).strip(), text_of(_blocks(message), "\n")
    return (isinstance(message, UserMessage) and text.strip() == words) or (len(words) >= _TELLING and words in text)


def _as_text(message: Message) -> str:
    match message:
        case UserMessage(content=content):
            return "--- user ---\n" + "\n".join(_block(block) for block in content)
        case AssistantMessage(content=content):
            return "--- assistant ---\n" + "\n".join(_block(block) for block in content)
        case ToolMessage(results=results):
            return "\n".join(
                f"--- result of {result.name}{' (error)' if result.is_error else ''} ---\n"
                + _squeeze("\n".join(_block(block) for block in result.content), _RESULT_CHARS)
                for result in results
            )


def _block(block: AnyBlock) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(mime_type=mime):
            return f"[image, {mime}]"
        case Thinking():
            return ""
        case ToolCall(name=name, args=args):
            return f"[calls {name} with {args}]"


def _blocks(message: Message) -> Sequence[AnyBlock]:
    match message:
        case UserMessage(content=content) | AssistantMessage(content=content):
            return content
        case ToolMessage(results=results):
            return [block for result in results for block in result.content]


def _tokens(message: Message) -> int:
    """A guess: four characters a token, and what an image of usual size costs."""
    return sum(1500 if isinstance(block, Image) else len(_block(block)) // 4 for block in _blocks(message))


def _size(message: Message) -> int:
    """In characters; nothing when there is nothing in it that a model would read."""
    return sum(6000 if isinstance(block, Image) else len(_block(block).strip()) for block in _blocks(message))


def _squeeze(text: str, limit: int) -> str:
    """Keep the beginning and, as the newest matters more, twice as much of the end."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[-(limit - head) :]}"
