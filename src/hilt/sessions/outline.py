"""A session's tree as extensions and clients are given it: flat, each entry with its place and a few words of it."""

from collections.abc import Iterator

from msgspec import structs

from hilt.model.content import Text, text_of
from hilt.model.conversation import AssistantMessage
from hilt.model.services import SessionNode
from hilt.sessions.index import Entry, lineage
from hilt.sessions.log import SessionLog
from hilt.sessions.records import (
    CONVERSATION,
    CompactionRecord,
    EntryRecord,
    LabelRecord,
    MessageRecord,
    Record,
    ReplacementRecord,
)
from hilt.sessions.replay import time_of

_PREVIEW = 60
SHORTENED = "compact"
"""What an entry is called that stands for all before it, whoever made it."""


def path_of(log: SessionLog) -> tuple[SessionNode, ...]:
    """From the root to where the conversation is. Reads no message."""
    places = _Places(log)
    return tuple(_node(log, entry, places, active=True) for entry in log.branch())


def outline_of(log: SessionLog) -> tuple[SessionNode, ...]:
    """Every entry, depth first: what leads to the present place before its siblings, those and the roots oldest first.

    Reads all of the file; may be called in a thread.
    """
    entries = log.entries()
    labels = {
        record.target: record.label
        for entry in entries
        if entry.type == LabelRecord.TYPE and isinstance(record := log.read(entry), LabelRecord)
    }
    places = _Places(log)
    active = {entry.id for entry in log.branch()}
    found: list[SessionNode] = []
    for depth, entry in places.walk(active):
        record = log.read(entry)
        node = _node(log, entry, places, active=entry.id in active)
        more = {"depth": depth, "preview": _preview(record), "label": labels.get(entry.id, "")}
        tokens = record.tokens_before if isinstance(record, CompactionRecord | ReplacementRecord) else 0
        found.append(structs.replace(node, **more, tokens_before=tokens))
    return tuple(found)


class _Places:
    """Which entry is under which."""

    def __init__(self, log: SessionLog) -> None:
        entries = log.entries()
        self._entries = {entry.id: entry for entry in entries if entry.type in CONVERSATION}
        parents = {entry.id: entry.parent for entry in entries}
        self.parent: dict[str, str] = {}
        self.children: dict[str, list[str]] = {name: [] for name in ("", *self._entries)}
        for name, entry in self._entries.items():
            # The closest that is part of a conversation: other versions may put records in between.
            above = next((one for one in lineage(entry.parent, parents) if one in self._entries), "")
            self.parent[name] = above
            self.children[above].append(name)

    def walk(self, active: set[str]) -> Iterator[tuple[int, Entry]]:
        waiting = [(0, root) for root in reversed(self.children[""])]
        while waiting:
            depth, name = waiting.pop()
            yield depth, self._entries[name]
            below = sorted(self.children[name], key=lambda one: one not in active)
            waiting.extend((depth + 1, child) for child in reversed(below))


def _node(log: SessionLog, entry: Entry, places: _Places, *, active: bool) -> SessionNode:
    kind = _kind(log, entry)
    return SessionNode(entry.id, places.parent[entry.id], kind, time_of(entry), len(places.children[entry.id]), active)


def _kind(log: SessionLog, entry: Entry) -> str:
    match entry.type:
        case MessageRecord.TYPE:
            return entry.role or entry.type
        case CompactionRecord.TYPE | ReplacementRecord.TYPE:
            return SHORTENED
        case EntryRecord.TYPE:
            record = log.read(entry)
            return record.kind if isinstance(record, EntryRecord) else entry.type
    return entry.type


def _preview(record: Record) -> str:
    """The beginning of what was said; of an answer, of its first text."""
    if not isinstance(record, MessageRecord):
        return ""
    message = record.message
    if isinstance(message, AssistantMessage):
        text = next((block.text for block in message.seen if isinstance(block, Text)), "")
    else:
        text = text_of(message.content)
    return text if len(text) <= _PREVIEW else text[:_PREVIEW] + "..."
