"""A session: append records, read the conversation back, survive whatever happens in between.

Joins what the lines say (`index`, `replay`) to where they are (`disk`). A log without a disk keeps
everything in memory and is otherwise the same.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import msgspec
from msgspec import Raw

from hilt import __version__
from hilt.errors import SessionError
from hilt.model.conversation import AssistantMessage, Message, Usage, now
from hilt.model.masking import Mask
from hilt.sessions.blobs import Blobs, blobs_folder, move_in, move_out
from hilt.sessions.disk import Disk, Durability
from hilt.sessions.envelope import PADDING, Head, open_line, parse, seal
from hilt.sessions.files import OS, Files
from hilt.sessions.index import Entry, Index
from hilt.sessions.records import (
    CONVERSATION,
    CompactionRecord,
    LeafRecord,
    MessageRecord,
    Meta,
    Record,
    ReplacementRecord,
    SpentRecord,
    UnknownRecord,
    decode,
    encode,
    type_of,
    usage_of,
)
from hilt.sessions.replay import messages_of

_ID_BYTES = 4
_OPENING = b'{"type":'
_Paid: TypeAlias = CompactionRecord | ReplacementRecord | SpentRecord
_PAID = (CompactionRecord.TYPE, ReplacementRecord.TYPE, SpentRecord.TYPE)


class SessionLog:
    def __init__(self, index: Index, disk: Disk | None, blobs: Blobs | None, mask: Mask, *, writable: bool) -> None:
        """Use `create`, `open` or `in_memory`."""
        self._index = index
        self._disk = disk
        self.blobs = blobs
        """The side files; None for a log in memory."""
        self._mask = mask
        self._writable = writable
        self._recovered: list[str] = []
        self._usage = Usage()
        self._counted = 0
        self._spent: dict[str, Usage] = {}
        """What messages cost that were read before anyone asked for the sum, so that it need not read them again."""

    # Beginning and ending

    @classmethod
    def create(
        cls, path: Path, meta: Meta, *, mask: Mask | None = None, durability: Durability = "turn", fs: Files = OS
    ) -> "SessionLog":
        """A new session. Its file appears with the first record; one that exists already is opened."""
        if path.exists():
            return cls._read(path, mask or Mask(), durability, fs, writable=True, meta=meta)
        disk = Disk(path, fs, durability)
        log = cls(Index(), disk, Blobs(blobs_folder(path), fs), mask or Mask(), writable=True)
        log.append(meta)
        return log

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        mask: Mask | None = None,
        durability: Durability = "turn",
        writable: bool = True,
        fs: Files = OS,
    ) -> "SessionLog":
        """A session that exists, with its end repaired. Raises `SessionError`.

        A log that is not writable takes no lock and changes nothing.
        """
        return cls._read(path, mask or Mask(), durability, fs, writable=writable)

    @classmethod
    def in_memory(cls, meta: Meta, *, mask: Mask | None = None) -> "SessionLog":
        log = cls(Index(), None, None, mask or Mask(), writable=True)
        log.append(meta)
        return log

    def close(self) -> None:
        """Write and force what is left, and let another process have the file."""
        self._writable = False
        if self._disk:
            self._disk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing

    def append(self, record: Record, *, parent: str | None = None) -> str:
        """Write one record and answer its id. A failing disk is told by `trouble`, never raised.
        Raises `SessionError` for what cannot be written at all.

        The parent is the head unless given; an empty one begins a conversation of its own.
        """
        if not self._writable:
            raise SessionError(f"{self.path} is closed or was opened for reading", hint="open the session for writing")
        if parent:
            self._known(parent)
        above = self._index.head if parent is None else parent
        head = Head(type_of(record), self._new_id(), above, _timestamp(), self._index.next_n)
        try:
            line = self._line(head, encode(record, self._mask))
        except RecursionError:
            raise SessionError("it is nested too deeply to be kept", hint="use fewer lists within lists") from None
        entry = self._index.add(head, line)
        assert entry is not None  # its id was made not to be known
        entry.line = line + b"\n"
        if self._disk:
            self._disk.add(entry)
        return entry.id

    def move(self, target: str, summary: str = "", extension: str = "") -> str:
        """Continue from another entry, or from nothing when the target is empty."""
        if target:
            self._known(target)
        return self.append(LeafRecord(target, summary, extension))

    def place(self, entry_id: str) -> str:
        """The same id, when it is that of a place in the conversation. Raises `SessionError`."""
        entry = self._index.by_id.get(entry_id)
        if entry is None or entry.type not in CONVERSATION:
            raise SessionError(f"entry {entry_id!r:.60} not found", hint="see `/session tree`")
        return entry_id

    def sync(self) -> None:
        """Force what was appended to the disk; may be called in a thread."""
        if self._disk:
            self._disk.sync()

    @property
    def trouble(self) -> str:
        """What is not saved and why; empty when all is."""
        return self._disk.trouble if self._disk else ""

    # Reading

    @property
    def path(self) -> Path | None:
        return self._disk.path if self._disk else None

    @property
    def head(self) -> str:
        """The entry the next record follows; empty before the first message."""
        return self._index.head

    @property
    def meta(self) -> Meta:
        assert self._index.meta is not None  # every way to make a log gives it one
        return self._index.meta

    @property
    def title(self) -> str:
        """The given title, else the first line of the first prompt."""
        return self._index.title or self._index.first_prompt

    @property
    def given_title(self) -> str:
        """As somebody chose it; empty when nobody did."""
        return self._index.title

    @property
    def model(self) -> tuple[str, str]:
        """The provider and model last chosen."""
        return self._index.model

    @property
    def recovered(self) -> list[str]:
        """What opening the file found and did, for people."""
        return [*self._recovered, *(self._disk.notes if self._disk else [])]

    @property
    def usage(self) -> Usage:
        """The sum over all answers and summaries of the file, on every branch, and over what was done beside it."""
        entries = self._index.entries
        while self._counted < len(entries):
            entry = entries[self._counted]
            if entry.id in self._spent:
                self._usage += self._spent.pop(entry.id)
            elif entry.role == "assistant" and (opened := open_line(self.line(entry))):
                self._usage += usage_of(opened.data)
            elif entry.type in _PAID and isinstance(record := self.read(entry), _Paid):
                self._usage += record.usage
            self._counted += 1
        return self._usage

    def messages(self, head: str | None = None) -> list[Message]:
        """The conversation from the root, or the last compaction, to an entry or the head. Calls may lack results."""
        return messages_of(self.branch(head), self.read, self._index.resolve)

    def entries(self) -> list[Entry]:
        """Every good record of the file, in its order."""
        return list(self._index.entries)

    def branch(self, head: str | None = None) -> list[Entry]:
        """The conversation's entries from the root to an entry, or to the head."""
        return self._index.path(self._index.head if head is None else head)

    def line(self, entry: Entry) -> bytes:
        """The entry's line exactly as it is stored."""
        return self._disk.read(entry) if self._disk else entry.line.rstrip(b"\n")

    def read(self, entry: Entry) -> Record:
        """The entry's record, with what lives in side files put back."""
        opened = open_line(self.line(entry))
        if opened is None:  # whole when it was indexed: somebody else changed the file since
            return UnknownRecord(entry.type, Raw(b"null"))
        record = decode(entry.type, move_in(opened.data, opened.blobs, self.blobs) if self.blobs else opened.data)
        if not self._counted and isinstance(record, MessageRecord) and isinstance(record.message, AssistantMessage):
            self._spent[entry.id] = record.message.usage
        return record

    # Steps

    def _known(self, entry_id: str) -> None:
        if entry_id not in self._index.by_id:
            raise SessionError(f"there is no entry {entry_id!r} in this session", hint="see `hilt sessions tree`")

    def _new_id(self) -> str:
        while (fresh := os.urandom(_ID_BYTES).hex()) in self._index.by_id:
            pass
        return fresh

    def _line(self, head: Head, data: bytes) -> bytes:
        fields = {"type": msgspec.json.encode(head.type), "id": b'"%b"' % head.id.encode()}
        if head.parent:
            fields["parent"] = msgspec.json.encode(head.parent)
        fields |= {"time": b'"%b"' % head.time.encode(), "n": b"%d" % head.n, "data": data}
        if self.blobs:
            try:
                fields["data"], moved = move_out(data, self.blobs)
            except (OSError, RecursionError):
                moved = ()  # no side file, so the line stays long: reading has no limit
            if moved:
                fields["blobs"] = msgspec.json.encode(moved)
        return seal(fields)

    @classmethod
    def _read(
        cls,
        path: Path,
        mask: Mask,
        durability: Durability,
        fs: Files,
        *,
        writable: bool,
        meta: Meta | None = None,
    ) -> "SessionLog":
        disk = Disk(path, fs, durability)
        disk.open(writable=writable)
        log = cls(Index(), disk, Blobs(blobs_folder(path), fs), mask, writable=True)
        try:
            log._take_in(disk)
            if log._index.meta is None:
                log.append(meta or _meta_for_lost(path, datetime.fromtimestamp(disk.modified, UTC)))
            if writable:
                disk.flush()
        except SessionError:
            disk.abandon()
            raise
        except OSError as error:
            disk.abandon()
            raise SessionError(f"{path} cannot be opened: {error.strerror}", hint="check the disk") from error
        log._writable = writable
        return log

    def _take_in(self, disk: Disk) -> None:
        """Read the whole file once: index the good lines, count the others, find out how it ends."""
        index = self._index
        length, unreadable, torn, unended = 0, 0, b"", False
        for at, raw, ended in disk.lines():
            line = raw
            head = parse(line)
            if head is None and (line := raw.strip(PADDING)) != raw:
                head = parse(line)
            if head is None and not ended:
                torn = raw
                break
            length, unended = at + len(raw) + ended, not ended
            if head is None:
                unreadable += bool(line)
            elif entry := index.add(head, line):
                entry.at, entry.size = at + raw.find(line[:1]), len(line)
        if not index.entries and (unreadable or (torn and not _may_begin_a_session(torn))):
            raise SessionError(
                f"{disk.path} is not a hilt session",
                hint="bring in sessions of other programs with `hilt sessions import`",
            )
        disk.found(length, torn, unended=unended)
        self._report(unreadable)

    def _report(self, unreadable: int) -> None:
        index = self._index
        counts: list[tuple[int, Callable[[int], str]]] = [
            (unreadable, lambda count: f"{count} unreadable line{'s' * (count > 1)} kept in the file, and left out"),
            (index.missing - unreadable, lambda count: f"{count} record{'s' * (count > 1)} missing from the file"),
            (index.duplicates, lambda count: f"{count} doubled line{'s' * (count > 1)} read once"),
        ]
        self._recovered = [say(count) for count, say in counts if count > 0]
        if index.entries and index.meta is None:
            self._recovered.append("the session's facts were lost: its folder and model are not known")


def _timestamp() -> str:
    return now().isoformat().replace("+00:00", "Z")


def _may_begin_a_session(torn: bytes) -> bool:
    """Whether these bytes can be the start of a first line that was cut short."""
    start = torn.lstrip(PADDING)[: len(_OPENING)]
    return _OPENING.startswith(start)


def _meta_for_lost(path: Path, created: datetime) -> Meta:
    return Meta(path.stem.rpartition("-")[2], "", "", "", __version__, created)
