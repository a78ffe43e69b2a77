"""From the entries of a path to the messages a model sees. Pure, and without repair of its own:
giving every call a result is `model.conversation.pair_calls`, called by whoever resumes.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage, now, tool_calls
from hilt.sessions.index import Entry
from hilt.sessions.records import CompactionRecord, MessageRecord, Record, ResultRecord

SUMMARY_HEADING = "## Context Summary (compacted)"


def messages_of(
    path: list[Entry], read: Callable[[Entry], Record], resolve: Callable[[str], str | None]
) -> list[Message]:
    """The conversation along a path, from its last compaction on. `resolve` finds an entry that was lost."""
    for position in range(len(path) - 1, -1, -1):
        if path[position].type != CompactionRecord.TYPE:
            continue
        record = read(path[position])
        if isinstance(record, CompactionRecord):
            summary = summary_message(record.summary, time_of(path[position]))
            kept = _kept(path[:position], resolve(record.first_kept))
            return [summary, *_plain([*kept, *path[position + 1 :]], read)]
    return _plain(path, read)


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


def _plain(path: Iterable[Entry], read: Callable[[Entry], Record]) -> list[Message]:
    messages: list[Message] = []
    results: list[ToolResult] = []
    first: Entry | None = None
    for entry in path:
        match read(entry):
            case ResultRecord(result=result):
                first = first or entry
                results.append(result)
            case MessageRecord(message=message):
                _join(messages, results, first)
                results, first = [], None
                messages.append(message)
            case _:
                continue  # an earlier compaction, or a record of another version
    _join(messages, results, first)
    return messages


def _join(messages: list[Message], results: list[ToolResult], first: Entry | None) -> None:
    """Add the results as one message, in the order in which the model made the calls."""
    if first is None:
        return
    if messages and isinstance(asked := messages[-1], AssistantMessage):
        order = {call.id: position for position, call in enumerate(tool_calls(asked))}
        results.sort(key=lambda result: order.get(result.call_id, len(order)))
    messages.append(ToolMessage(tuple(results), time_of(first)))
