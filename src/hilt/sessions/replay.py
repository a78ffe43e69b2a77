"""From the entries of a path to the messages a model sees. Pure, and without repair of its own:
giving every call a result is `model.conversation.pair_calls`, called by whoever resumes.

A result belongs to the call it answers, also when something else was said in between.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import structs

from hilt.model.content import Text
from hilt.model.conversation import Message, ToolMessage, ToolResult, UserMessage, now, tool_calls
from hilt.sessions.index import Entry
from hilt.sessions.records import CompactionRecord, MessageRecord, Record, ReplacementRecord, ResultRecord

SUMMARY_HEADING = "## Context Summary (compacted)"


def messages_of(
    path: list[Entry], read: Callable[[Entry], Record], resolve: Callable[[str], str | None]
) -> list[Message]:
    """The conversation along a path, from where it was last made shorter. `resolve` finds an entry that was lost."""
    for position in range(len(path) - 1, -1, -1):
        if path[position].type not in (CompactionRecord.TYPE, ReplacementRecord.TYPE):
            continue
        record = read(path[position])
        if isinstance(record, ReplacementRecord):
            return _plain(record.messages, path[position + 1 :], read)
        if isinstance(record, CompactionRecord):
            summary = summary_message(record.summary, time_of(path[position]))
            kept = _kept(path[:position], resolve(record.first_kept))
            return _plain((summary,), [*kept, *path[position + 1 :]], read)
    return _plain((), path, read)


def summary_message(summary: str, time: datetime) -> UserMessage:
    """What stands in the conversation for everything that compaction removed."""
    text = summary if summary.startswith(SUMMARY_HEADING) else f"{SUMMARY_HEADING}\n\n{summary}"
    return UserMessage((Text(text),), time, summary=True)


def time_of(entry: Entry) -> datetime:
    try:
        return datetime.fromisoformat(entry.time)
    except ValueError:
        return now()


def _kept(before: list[Entry], first: str | None) -> list[Entry]:
    position = next((at for at, entry in enumerate(before) if entry.id == first), len(before))
    return before[position:]


def join(messages: list[Message], result: ToolResult, time: datetime) -> bool:
    """Put a result with its call, in the order in which the model made the calls. False when nobody made that call."""
    for at in range(len(messages) - 1, -1, -1):
        order = {call.id: position for position, call in enumerate(tool_calls(messages[at]))}
        if result.call_id not in order:
            continue
        answers = messages[at + 1] if at + 1 < len(messages) else None
        if not isinstance(answers, ToolMessage):
            messages.insert(at + 1, ToolMessage((result,), time))
            return True
        if any(known.call_id == result.call_id for known in answers.results):
            continue  # some providers use the same ids again
        results = sorted((*answers.results, result), key=lambda one: order.get(one.call_id, len(order)))
        messages[at + 1] = structs.replace(answers, results=tuple(results))
        return True
    return False


def _plain(start: Sequence[Message], path: Iterable[Entry], read: Callable[[Entry], Record]) -> list[Message]:
    messages = list(start)
    for entry in path:
        match read(entry):
            case ResultRecord(result=result):
                if not join(messages, result, time_of(entry)):
                    messages.append(ToolMessage((result,), time_of(entry)))
            case MessageRecord(message=message):
                messages.append(message)
            case _:
                continue  # an earlier compaction, an extension's own, or a record of another version
    return messages
