"""The envelope of the jsonrpc dialect: lines to messages and messages to lines.

Owns what a line is (a request, a notice, a reply) and how one is written: compact, UTF-8, shorter than 4 MiB,
members in the order `jsonrpc`, `id`, `method`, `params`. Reading is exact first and lenient second, and never
raises. What the methods carry is `jsonrpc_types` and `jsonrpc_services`, and `jsonrpc_reading` reads it.
"""

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hilt.errors import FrameError
from hilt.wire.freeform import pack
from hilt.wire.jsonrpc_reading import shaped, value_of
from hilt.wire.line import HEAD, LINE_LIMIT, UNREADABLE, mend, reason_of, scrub, within_limit

__all__ = [
    "Fault",
    "Malformed",
    "Message",
    "Notice",
    "Reply",
    "Request",
    "decode",
    "fault",
    "notice",
    "peek",
    "reply",
    "request",
    "speaks",
    "tool_execute_line",
]

_NULL = Raw(b"null")
_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]{0,18})")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?[0-9][0-9.eE+-]*+|["{}\[\]:,]', re.DOTALL)
_ID_LIMIT = 2**63
"""Go programs hold an id in 64 bits."""


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a request was not carried out."""

    code: int = 0
    message: str = ""


class Request(Struct, frozen=True):
    """Wants a `Reply` with the same id. The two sides count their ids apart."""

    id: int
    method: str
    params: Raw | UnsetType = UNSET


class Notice(Struct, frozen=True):
    """Wants no answer."""

    method: str
    params: Raw | UnsetType = UNSET


class Reply(Struct, frozen=True):
    """The answer to a request: what came of it, or the fault."""

    id: int
    result: Raw | UnsetType = UNSET
    error: Fault | None = None


class Malformed(Struct, frozen=True):
    """A line that cannot be used, and what could still be read of it."""

    reason: str
    method: str = ""
    id: int | None = None
    """With a method: who asked can be told. Without: who waits for the answer can be."""


Message: TypeAlias = Request | Notice | Reply


class _Envelope(Struct, frozen=True, forbid_unknown_fields=True):
    jsonrpc: Raw | UnsetType = UNSET
    """Nobody looks at it."""
    id: int | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Fault | None = None


class _Asking(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: int
    method: str
    params: Any


class _Telling(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any


class _Answering(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: int
    result: Any


class _Failing(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: int
    error: Fault


class _Call(Struct, frozen=True, rename="camel"):
    """The params of `tool/execute`, with the arguments still to be written."""

    call_id: str
    name: str
    args: dict[str, Any]


_Line: TypeAlias = _Asking | _Telling | _Answering | _Failing

_envelopes: msgspec.json.Decoder[_Envelope] = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder()


def decode(line: bytes) -> Request | Notice | Reply | Malformed:
    """Read one line, with or without its line end. Never raises."""
    try:
        envelope = _envelopes.decode(line)
    except UNREADABLE:
        return _reread(line)
    return _classified(envelope)


def speaks(line: bytes) -> bool | None:
    """Whether a line of a program, of which nobody knows yet where it speaks, shows that it speaks there.

    None if it may be speech or chatter: the Go SDK prints what an author lets it say before it has looked for its
    descriptors, and some print what they hear. What answers us, or asks us for something, is neither.
    """
    if b'"jsonrpc"' not in line:
        return False
    match decode(line):
        case Malformed():
            return False
        case Reply():
            return True
        case Request() as asked:
            return True if asked.method.startswith("host/") else None
        case Notice():
            return None


def peek(head: bytes) -> tuple[str, int | None]:
    """The method and id of a line of which only the beginning is at hand; what is not to be seen is empty, or None.

    Only the envelope's own members count, not those of objects inside it.
    """
    found = {b"method": b"", b"id": b""}
    depth, key, before = 0, b"", b""
    head = head[:HEAD].lstrip()
    for match in _TOKEN.finditer(head if head.startswith(b"{") else b""):
        token = match[0]
        if token == b'"' or (match.end() == len(head) and token not in b"{}[]:,"):
            break  # it may go on beyond the head
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1 and token not in b":,":
            if before in b"{,":
                key = token.strip(b'"').lower()
            elif before == b":" and key in found:
                found[key] = token
        before = token
    return _text(found[b"method"]), _id(found[b"id"])


def request(id_: int, method: str, params: Any = None) -> bytes:
    """The line without its newline. `params` is always there: programs refuse a request without.

    Like all of these it takes structs and plain values, and raises `FrameError` for what JSON cannot say and
    for what would be too long.
    """
    return _written(_Asking(id_, method, {} if params is None else params), method)


def notice(method: str, params: Any = None) -> bytes:
    return _written(_Telling(method, UNSET if params is None else params), method)


def reply(id_: int, result: Any) -> bytes:
    return _written(_Answering(id_, result), f"the answer to request {id_}")


def fault(id_: int, code: int, message: str) -> bytes:
    return _written(_Failing(id_, Fault(code, scrub(message))), f"the answer to request {id_}")


def tool_execute_line(call_id: str, name: str, args: dict[str, Any], id_: int) -> bytes:
    """A `tool/execute` in one go, for it is on the way of every call. Raises `FrameError` like `request`."""
    call = _Asking(id_, "tool/execute", _Call(call_id, name, args))
    try:
        line = _encoder.encode(call)
    except (UnicodeEncodeError, RecursionError):
        return _written(call, "tool/execute")
    if b"null" in line or len(line) + 1 >= LINE_LIMIT:
        return _written(call, "tool/execute")  # it may have to be refused
    return line


def _classified(envelope: _Envelope) -> Request | Notice | Reply | Malformed:
    id_, method = envelope.id, envelope.method
    if id_ is None:
        return Notice(method, envelope.params) if method else Malformed("it has neither `id` nor `method`")
    if not -_ID_LIMIT <= id_ < _ID_LIMIT:
        return Malformed("`id` has more than 64 bits", method or "")
    if method:
        return Request(id_, method, envelope.params)
    return Reply(id_, envelope.result, envelope.error)


def _reread(line: bytes) -> Request | Notice | Reply | Malformed:
    """A line the exact decoder refused: keys in other case, members nobody knows, or damage."""
    mended = mend(line)
    try:
        members = msgspec.json.decode(mended, type=dict[str, Raw])
    except UNREADABLE as error:
        return Malformed(reason_of(error), *peek(mended))
    present = {key: raw for key, raw in members.items() if raw != _NULL}
    # The exact spelling wins over others.
    fields = {key.casefold(): raw for key, raw in present.items()} | present
    method, number = bytes(fields.get("method", b"")), bytes(fields.get("id", b""))
    name, id_ = _text(method), _id(number)
    if number and id_ is None:
        return Malformed(f"`id` must be an integer of at most 64 bits, not {_kind(number)}", name)
    if method and not method.startswith(b'"'):
        return Malformed(f"`method` must be a string, not {_kind(method)}", "", id_)
    cause = None
    if "error" in fields and not name:
        try:
            cause = shaped(value_of(fields["error"]), Fault)
        except FrameError as wrong:
            return Malformed(f"`error`: {wrong.message}", "", id_)
    envelope = _Envelope(UNSET, id_, name, fields.get("params", UNSET), fields.get("result", UNSET), cause)
    return _classified(envelope)


def _written(line: _Line, what: str) -> bytes:
    """Raises `FrameError`."""
    free = _free(line)
    if type(free) is Raw:
        # From another program's line: sound as JSON, but not always as UTF-8, and with its own spaces.
        line, free = _with(line, value_of(free)), None
    try:
        try:
            written = _encoder.encode(line)
            if b"null" in written:
                pack(
                    msgspec.to_builtins(free, builtin_types=(Raw,))
                )  # the encoder writes null for NaN, and this refuses it
        except UnicodeEncodeError:
            written = _encoder.encode(_with(line, pack(msgspec.to_builtins(_free(line), builtin_types=(Raw,)))))
    except RecursionError:
        raise FrameError(f"{what}: nested too deeply") from None
    except FrameError as error:
        raise FrameError(f"{what}: {error.message}") from None
    return within_limit(written, what)


def _free(line: _Line) -> Any:
    match line:
        case _Asking() | _Telling():
            return None if line.params is UNSET else line.params
        case _Answering():
            return line.result
    return None


def _with(line: _Line, free: Any) -> _Line:
    match line:
        case _Asking():
            return _Asking(line.id, line.method, free)
        case _Telling():
            return _Telling(line.method, UNSET if line.params is UNSET else free)
        case _Answering():
            return _Answering(line.id, free)
    return line


def _text(token: bytes) -> str:
    try:
        return msgspec.json.decode(mend(token), type=str) if token.startswith(b'"') else ""
    except UNREADABLE:
        return ""


def _id(token: bytes) -> int | None:
    if not _INTEGER.fullmatch(token):
        return None
    number = int(token)
    return number if -_ID_LIMIT <= number < _ID_LIMIT else None


def _kind(token: bytes) -> str:
    kinds = {b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"{": "an object", b"[": "an array"}
    return kinds.get(token[:1], "another number")
