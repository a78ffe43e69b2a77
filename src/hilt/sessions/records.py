"""What a session file says: one frozen value per record type, and their JSON.

Owns the `data` of a line. The line around it (ids, sequence, checksum) is `envelope`, and what the
records mean together is `index` and `replay`. A type this version does not know, or knows in another
shape, becomes an `UnknownRecord` and keeps its bytes.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Raw, Struct

from hilt import __version__
from hilt.model.conversation import AssistantMessage, Message, ToolResult, Usage, UserMessage, now
from hilt.model.masking import Mask


class Meta(Struct, frozen=True, omit_defaults=True):
    """The facts of a session; the first line of its file. A later one overrides."""

    TYPE: ClassVar[str] = "meta"
    id: str
    cwd: str
    provider: str
    model: str
    version: str
    created: datetime
    parent: str = ""
    """The session this one was forked from."""
    fork_point: str = ""
    """The entry of the parent at which it was forked."""


class MessageRecord(Struct, frozen=True):
    TYPE: ClassVar[str] = "message"
    message: UserMessage | AssistantMessage


class ResultRecord(Struct, frozen=True):
    """One tool's result, written as soon as it is known; those of one message are joined when read."""

    TYPE: ClassVar[str] = "tool_result"
    result: ToolResult


class CompactionRecord(Struct, frozen=True, omit_defaults=True):
    TYPE: ClassVar[str] = "compaction"
    summary: str
    first_kept: str
    """The first entry that still reaches the model word for word; empty when none does."""
    tokens_before: int
    usage: Usage = Usage()
    """What the summary cost."""


class ReplacementRecord(Struct, frozen=True, omit_defaults=True):
    """From here on the conversation is this, in place of all that came before it on the path."""

    TYPE: ClassVar[str] = "replacement"
    messages: tuple[Message, ...]
    """Whole, but for the results of calls that were under way: those follow as records of their own."""
    tokens_before: int = 0
    extension: str = ""
    """Who wanted it."""
    usage: Usage = Usage()
    """What making it cost. What the messages cost themselves was counted when they were first recorded."""


class EntryRecord(Struct, frozen=True, omit_defaults=True):
    """Something an extension keeps at this place of the conversation; never sent to the model."""

    TYPE: ClassVar[str] = "entry"
    kind: str
    data: Any
    extension: str = ""


class TitleRecord(Struct, frozen=True):
    TYPE: ClassVar[str] = "title"
    title: str


class LabelRecord(Struct, frozen=True):
    TYPE: ClassVar[str] = "label"
    target: str
    label: str
    """Empty takes the label away."""


class LeafRecord(Struct, frozen=True, omit_defaults=True):
    """Moves the head: the next message continues from there. Its parent is the entry that was left."""

    TYPE: ClassVar[str] = "leaf"
    target: str
    """Empty begins an empty conversation."""
    summary: str = ""
    """What there is to say of the branch that was left; the model is not told."""
    extension: str = ""
    """Who wanted it, when it was not the user."""


class ModelRecord(Struct, frozen=True):
    TYPE: ClassVar[str] = "model"
    provider: str
    model: str


class SnapshotRecord(Struct, frozen=True):
    """A file as it was just before a tool changed it."""

    TYPE: ClassVar[str] = "file_snapshot"
    call_id: str
    path: str
    blob: str
    """The content's name among the blobs; empty when there was no file."""
    existed: bool
    mode: int


class Replaced(Struct, frozen=True):
    """What undo itself overwrote; empty when there was no file."""

    path: str
    blob: str


class RestoredRecord(Struct, frozen=True, omit_defaults=True):
    """The files of these calls were put back."""

    TYPE: ClassVar[str] = "file_restored"
    call_ids: tuple[str, ...]
    replaced: tuple[Replaced, ...] = ()
    paths: tuple[str, ...] = ()
    """Only these of them, when not empty."""


class NoteRecord(Struct, frozen=True):
    """A fact for programs (a decision, a guard that failed); never sent to the model."""

    TYPE: ClassVar[str] = "note"
    kind: str
    data: Any


class SpentRecord(Struct, frozen=True):
    """What a model beside the conversation cost, and for whom it worked."""

    TYPE: ClassVar[str] = "spent"
    extension: str
    provider: str
    model: str
    usage: Usage


class _Spent(Struct):
    usage: Usage = Usage()


class _SpentMessage(Struct):
    message: _Spent


class UnknownRecord(Struct, frozen=True):
    """Written by another version, or damaged in a way the checksum allows: kept, not understood."""

    type: str
    data: Raw


KnownRecord: TypeAlias = (
    Meta
    | MessageRecord
    | ResultRecord
    | CompactionRecord
    | ReplacementRecord
    | EntryRecord
    | TitleRecord
    | LabelRecord
    | LeafRecord
    | ModelRecord
    | SnapshotRecord
    | RestoredRecord
    | NoteRecord
    | SpentRecord
)
Record: TypeAlias = KnownRecord | UnknownRecord

CONVERSATION = frozenset(
    {MessageRecord.TYPE, ResultRecord.TYPE, CompactionRecord.TYPE, ReplacementRecord.TYPE, EntryRecord.TYPE}
)
"""The types that form the path from the head to the root; all others hang beside it."""

_KNOWN: tuple[type[KnownRecord], ...] = (
    Meta,
    MessageRecord,
    ResultRecord,
    CompactionRecord,
    ReplacementRecord,
    EntryRecord,
    TitleRecord,
    LabelRecord,
    LeafRecord,
    ModelRecord,
    SnapshotRecord,
    RestoredRecord,
    NoteRecord,
    SpentRecord,
)
_DECODERS: dict[str, "msgspec.json.Decoder[KnownRecord]"] = {
    kind.TYPE: msgspec.json.Decoder(kind) for kind in _KNOWN if kind is not MessageRecord
}
_MESSAGES = msgspec.json.Decoder(MessageRecord)
_SPENT = msgspec.json.Decoder(_SpentMessage)
_ENCODER = msgspec.json.Encoder(enc_hook=repr)  # an odd value in a tool's details must not cost the record
_BLOCKS = frozenset({"text", "image", "thinking", "tool_call"})


def new_id() -> str:
    """A session's name: 32 hex digits, of which people type the first eight."""
    import uuid  # 3 ms

    return uuid.uuid4().hex


def new_meta(cwd: str, provider: str, model: str, *, parent: str = "", fork_point: str = "") -> Meta:
    return Meta(new_id(), cwd, provider, model, __version__, now(), parent, fork_point)


def type_of(record: Record) -> str:
    return record.type if isinstance(record, UnknownRecord) else record.TYPE


def encode(record: Record, mask: Mask | None = None) -> bytes:
    """The record's data as JSON, with every known secret blanked."""
    if isinstance(record, UnknownRecord):
        data = bytes(record.data)
    else:
        try:
            data = _ENCODER.encode(record)
        except UnicodeEncodeError:  # half a surrogate pair: a file name, or a model cut short
            data = _ENCODER.encode(_each_text(msgspec.to_builtins(record, enc_hook=repr), _whole_characters))
    return data if mask is None else _masked(data, mask)


def decode(kind: str, data: Raw | bytes) -> Record:
    """Never raises: what cannot be understood is an `UnknownRecord`."""
    try:
        if kind == MessageRecord.TYPE:
            return _decode_message(data)
        if decoder := _DECODERS.get(kind):
            return decoder.decode(data)
    except (ValueError, RecursionError):
        pass
    return UnknownRecord(kind, Raw(data))


def usage_of(data: Raw | bytes) -> Usage:
    """What a message cost, without reading what it says."""
    try:
        return _SPENT.decode(data).message.usage
    except (ValueError, RecursionError):
        return Usage()


def _decode_message(data: Raw | bytes) -> MessageRecord:
    try:
        return _MESSAGES.decode(data)
    except msgspec.ValidationError:
        # A newer version may know more kinds of blocks; the message is worth having without them.
        plain = msgspec.json.decode(data)
        message = plain["message"] if isinstance(plain, dict) and isinstance(plain.get("message"), dict) else {}
        content = message.get("content")
        if not isinstance(content, list):
            raise
        message["content"] = [block for block in content if isinstance(block, dict) and block.get("type") in _BLOCKS]
        return msgspec.convert(plain, MessageRecord)


def _masked(data: bytes, mask: Mask) -> bytes:
    masked = mask.line(data)
    if masked == data:
        return data
    try:
        msgspec.json.decode(masked)
    except ValueError:  # the secret stood outside a string: a number made of the same digits
        return msgspec.json.encode(_each_text(msgspec.json.decode(data), mask.text))
    return masked


def _whole_characters(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {_each_text(key, change): _each_text(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_each_text(item, change) for item in value]
    return value
