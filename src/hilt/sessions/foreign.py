"""Sessions of the program whose files came first: JSONL rows of `meta`, `message`, `usage` and `rename`.

Their content blocks have no type tag and are told apart by their keys; a tool's results are a message
of role `tool`; usage rows hold running totals. Only reading: hilt never writes this form.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from hilt.errors import SessionError
from hilt.model.content import AssistantBlock, Image, ResultBlock, Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, ToolResult, Usage, UserMessage, now
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, Meta, Record, ResultRecord, TitleRecord

_USAGE_KEYS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd")


def read(source: Path) -> SessionLog | None:
    """The session as a log in memory, or None when the file is not of that form. Raises `SessionError`."""
    if source.exists() and not source.is_file():  # reading a pipe would wait for ever
        raise SessionError(f"{source} is not a regular file", hint="name an exported session file")
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise SessionError(
            f"{source} cannot be read: {error.strerror}", hint="name an exported session file"
        ) from error
    first = next((row for line in lines if (row := _row(line)) is not None), {})
    facts = first.get("meta")
    if not isinstance(facts, dict) or first.get("type") != "meta":
        return None
    rows = [row for line in lines if (row := _row(line)) is not None]
    for row in rows:  # a later meta row, written at a model switch, overrides
        if row.get("type") == "meta" and isinstance(row.get("meta"), dict):
            facts = facts | row["meta"]
    meta = Meta(
        _text(facts, "id"),
        _text(facts, "cwd"),
        _text(facts, "provider"),
        _text(facts, "model"),
        _text(facts, "version"),
        _time(facts.get("started")),
        _text(facts, "parent"),
    )
    log = SessionLog.in_memory(meta)
    for record in _Reader(meta).records(rows):
        log.append(record)
    if title := _text(facts, "title"):
        log.append(TitleRecord(title))
    return log


class _Reader:
    """One pass over the rows; remembers the calls, for their names, and the totals, for the differences."""

    def __init__(self, meta: Meta) -> None:
        self._meta = meta
        self._names: dict[str, str] = {}
        self._total = Usage()
        self._unspent = Usage()

    def records(self, rows: list[dict[str, Any]]) -> Iterator[Record]:
        waiting: AssistantMessage | None = None  # until it is known what it cost
        for row in rows:
            match row:
                case {"type": "usage", "cumulative": dict() as total} | {"type": "usage", "usage": dict() as total}:
                    self._spend(total)
                    continue
                case {"type": "rename", "title": str() as title}:
                    yield TitleRecord(title)
                    continue
                case {"type": "message", "message": {"role": str() as role, "content": list() as content} as message}:
                    pass
                case _:
                    continue
            if waiting:
                yield MessageRecord(self._paid(waiting))
                waiting = None
            blocks = [block for block in content if isinstance(block, dict)]
            time = _time(message.get("time"))
            if role == "assistant":
                answer = tuple(block for item in blocks if (block := self._answer_block(item)) is not None)
                waiting = AssistantMessage(answer, time, self._meta.provider, self._meta.model)
            elif role == "tool":
                yield from (ResultRecord(self._result(item)) for item in blocks if "call_id" in item)
            else:
                marks = message.get("meta")
                summary = isinstance(marks, dict) and str(marks.get("compaction", "")).lower() == "true"
                yield MessageRecord(UserMessage(_blocks(blocks), time, summary=summary))
        if waiting:
            yield MessageRecord(self._paid(waiting))

    def _spend(self, total: dict[str, Any]) -> None:
        numbers = [total.get(key) if isinstance(total.get(key), int | float) else 0 for key in _USAGE_KEYS]
        reached = msgspec.convert(dict(zip(Usage.__struct_fields__, numbers, strict=True)), Usage, strict=False)
        self._unspent += Usage(
            *(getattr(reached, name) - getattr(self._total, name) for name in Usage.__struct_fields__)
        )
        self._total = reached

    def _paid(self, message: AssistantMessage) -> AssistantMessage:
        spent, self._unspent = self._unspent, Usage()
        return msgspec.structs.replace(message, usage=spent)

    def _answer_block(self, block: dict[str, Any]) -> AssistantBlock | None:
        match block:
            case {"id": str() as call_id, "name": str() as name}:
                self._names[call_id] = name
                arguments = block.get("arguments")
                if isinstance(arguments, dict):
                    return ToolCall(call_id, name, arguments)
                return ToolCall(call_id, name, {}, invalid="" if arguments is None else _as_text(arguments))
            case {"text": str() as text}:
                return Text(text)
            case {"summary": _} | {"reasoning_id": _} | {"encrypted_content": _}:
                return Thinking(
                    _as_text(block.get("summary", "")),
                    _text(block, "encrypted_content"),
                    _text(block, "reasoning_id"),
                    provider=self._meta.provider,
                )
        return None

    def _result(self, block: dict[str, Any]) -> ToolResult:
        call_id = _text(block, "call_id")
        inner = block.get("content")
        content = _blocks([item for item in inner if isinstance(item, dict)] if isinstance(inner, list) else [])
        return ToolResult(call_id, self._names.get(call_id, ""), content, is_error=block.get("is_error") is True)


def _blocks(blocks: list[dict[str, Any]]) -> tuple[ResultBlock, ...]:
    import base64  # only images need it

    found: list[ResultBlock] = []
    for block in blocks:
        match block:
            case {"text": str() as text}:
                found.append(Text(text))
            case {"mime_type": str() as mime_type, "data": str() as data}:
                try:
                    found.append(Image(mime_type, base64.b64decode(data, validate=True)))
                except ValueError:
                    found.append(Text(f"[an image of type {mime_type} that could not be read]"))
    return tuple(found)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(_as_text(item.get("text", "") if isinstance(item, dict) else item) for item in value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _time(value: Any) -> datetime:
    try:
        return msgspec.convert(value, datetime, strict=False)
    except msgspec.ValidationError:
        return now()
