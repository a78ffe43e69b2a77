"""What is known of a session without reading its messages: the tree of entries, the head, the facts.

Fed one good line at a time, by reading a file or by appending to it, so both ways lead to the same
state. Pure: where the bytes are is `disk`, what the messages say is `replay`.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from hilt.model.content import text_of
from hilt.model.conversation import UserMessage
from hilt.sessions.envelope import Head, open_line, role_of
from hilt.sessions.records import (
    CONVERSATION,
    LeafRecord,
    MessageRecord,
    Meta,
    ModelRecord,
    Record,
    TitleRecord,
    decode,
)

LONGEST_TITLE = 80


def lineage(head: str, parents: Mapping[str, str]) -> Iterator[str]:
    """An entry and all above it, nearest first. No circle: an entry's parent always came before it."""
    while head:
        yield head
        head = parents.get(head, "")


class Entry(Struct, gc=False):
    """One record's place in the tree and in the file. Only `disk` changes one, when it is written."""

    id: str
    type: str
    parent: str
    """The entry it follows, always an earlier one of the same file; empty for the first."""
    time: str
    n: int
    role: str = ""
    """`user` or `assistant`, for messages."""
    at: int = -1
    size: int = 0
    line: bytes = b""
    """The line itself, as long as it is not on disk."""


class Index:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.by_id: dict[str, Entry] = {}
        self.head = ""
        self.next_n = 0
        self.meta: Meta | None = None
        self.title = ""
        self.first_prompt = ""
        self.model = ("", "")
        self.duplicates = 0
        self.missing = 0
        """Records that the sequence says were written and that no good line holds."""
        self._heirs: dict[str, str] = {}
        self._learners: dict[str, Callable[[Record], None]] = {
            Meta.TYPE: self._learn_meta,
            TitleRecord.TYPE: self._learn_title,
            ModelRecord.TYPE: self._learn_model,
            LeafRecord.TYPE: self._learn_leaf,
        }

    def add(self, head: Head, line: bytes) -> Entry | None:
        """Take in one good line; None when its id is already known, as after a doubled line."""
        if head.id in self.by_id:
            self.duplicates += 1
            return None
        entry = Entry(head.id, head.type, head.parent, head.time, head.n)
        if head.parent and head.parent not in self.by_id:
            # Its parent was lost: better a child of the last good message than a root of its own.
            entry.parent = self.head
            if head.type in CONVERSATION:
                self._heirs.setdefault(head.parent, head.id)
        if head.n >= self.next_n:
            self.missing += head.n - self.next_n
            self.next_n = head.n + 1
        self.entries.append(entry)
        self.by_id[head.id] = entry
        if head.type in CONVERSATION:
            self.head = head.id
        self._learn(entry, line)
        return entry

    def resolve(self, target: str) -> str | None:
        """The entry of that id, or the one that took its place when it was lost."""
        return target if target in self.by_id else self._heirs.get(target)

    def path(self, head: str) -> list[Entry]:
        """The conversation's entries from the root to this one."""
        found: list[Entry] = []
        while entry := self.by_id.get(head):
            if entry.type in CONVERSATION:
                found.append(entry)
            head = entry.parent
        return found[::-1]

    def _learn(self, entry: Entry, line: bytes) -> None:
        if entry.type == MessageRecord.TYPE:
            entry.role = role_of(line)
            if entry.role == "user" and not self.first_prompt:
                self.first_prompt = first_line(_prompt_of(line))
        elif (learn := self._learners.get(entry.type)) and (opened := open_line(line)):
            learn(decode(entry.type, opened.data))

    def _learn_meta(self, record: Record) -> None:
        if isinstance(record, Meta):
            self.meta = record
            self.model = (record.provider, record.model)

    def _learn_title(self, record: Record) -> None:
        if isinstance(record, TitleRecord):
            self.title = first_line(record.title)

    def _learn_model(self, record: Record) -> None:
        if isinstance(record, ModelRecord):
            self.model = (record.provider, record.model)

    def _learn_leaf(self, record: Record) -> None:
        if not isinstance(record, LeafRecord):
            return
        if not record.target:
            self.head = ""
        elif target := self.resolve(record.target):
            self.head = target


def first_line(text: str) -> str:
    """One line for a list: the first that is not empty, cut to 80 characters."""
    line = text.lstrip().partition("\n")[0].rstrip()
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"


def _prompt_of(line: bytes) -> str:
    opened = open_line(line)
    record = decode(MessageRecord.TYPE, opened.data) if opened else None
    if isinstance(record, MessageRecord) and isinstance(message := record.message, UserMessage) and not message.summary:
        return text_of(message.content, "\n")
    return ""
