"""Frames to lines and lines to frames.

Owns the form of a line: compact, `type` first, UTF-8, shorter than 4 MiB, one `\\n`. Reading is exact
first and lenient second (`frames_repair`), and never raises. Cutting a stream into lines is the
transport's business, what a frame means is the host's.
"""

from typing import Any, get_args

import msgspec
from msgspec import UNSET, Raw, Struct

from hilt.errors import FrameError
from hilt.wire.frames_repair import peek, reread, says_twice
from hilt.wire.frames_types import (
    EventInterceptResponse,
    ExtensionFrame,
    Frame,
    HostFrame,
    ToolCall,
    ToolResult,
)
from hilt.wire.freeform import fit_for_utf8, pack
from hilt.wire.line import LINE_LIMIT, UNREADABLE, Malformed, Unknown, reason_of, within_limit

__all__ = ["decode", "decode_host", "encode", "peek", "tool_call_line"]

_NULL = Raw(b"null")
_encoder = msgspec.json.Encoder()


class _Call(Struct, frozen=True, tag_field="type", tag="tool_call"):
    """`ToolCall` with its arguments still to be written."""

    id: str
    name: str
    args: dict[str, Any]


def _raw_fields(shape: type[Struct]) -> tuple[str, ...]:
    # The annotations as they stand: msgspec's own look at a type costs 0.1 ms, and there are 33 of them.
    return tuple(name for name, kind in shape.__annotations__.items() if Raw in (kind, *get_args(kind)))


def _by_type(union: Any) -> dict[str, type[Struct]]:
    return {str(shape.__struct_config__.tag): shape for shape in get_args(union)}


_FROM_EXTENSION = _by_type(ExtensionFrame)
_FROM_HOST = _by_type(HostFrame)
_RAW_FIELDS = {
    shape: names for shape in {*_FROM_EXTENSION.values(), *_FROM_HOST.values()} if (names := _raw_fields(shape))
}
"""Only these frames hold JSON that the decoder passed over without looking closely."""

_extension_decoder: msgspec.json.Decoder[ExtensionFrame] = msgspec.json.Decoder(ExtensionFrame)
_host_decoder: msgspec.json.Decoder[HostFrame] = msgspec.json.Decoder(HostFrame)


def encode(frame: Frame, *, packed: bool = False) -> bytes:
    """The frame as a line without its newline. Raises `FrameError` when it would be too long or is not JSON.

    `packed` says that all its free-form parts were made by `pack` and need no second look.
    """
    try:
        line = _encoder.encode(frame)
    except UnicodeEncodeError:
        # A file name that is not UTF-8 arrives as lone surrogates.
        line = _encoder.encode(fit_for_utf8(frame))
    if not packed and type(frame) in _RAW_FIELDS:
        # Free-form parts may come from elsewhere with line breaks inside; this also proves they are JSON.
        try:
            line = msgspec.json.format(line, indent=-1)
        except UNREADABLE as error:
            raise FrameError(f"{_name(frame)}: a part is not JSON: {reason_of(error)}") from None
    return within_limit(line, _name(frame))


def decode(line: bytes) -> ExtensionFrame | Unknown | Malformed:
    """Read one line an extension wrote, with or without its line end. Never raises."""
    try:
        frame = _extension_decoder.decode(line)
        if type(frame) is ToolResult and frame.structured_content is UNSET:
            return frame  # what a caller waits for most: nothing free-form in it
        if type(frame) not in _RAW_FIELDS or not _doubtful(frame, line):
            return frame
    except UNREADABLE:
        pass
    return reread(line, _FROM_EXTENSION, _extension_decoder)


def decode_host(line: bytes) -> HostFrame | Unknown | Malformed:
    """The other direction: what an extension's side, a transcript or a trace reads. Never raises."""
    try:
        frame = _host_decoder.decode(line)
        if type(frame) not in _RAW_FIELDS or not _doubtful(frame, line):
            return frame
    except UNREADABLE:
        pass
    return reread(line, _FROM_HOST, _host_decoder)


def tool_call_line(name: str, args: dict[str, Any], id_: str) -> bytes:
    """A `ToolCall` in one go, for it is on the way of every call. Raises `FrameError` like `encode`."""
    try:
        line = _encoder.encode(_Call(id_, name, args))
    except (UnicodeEncodeError, RecursionError):
        return encode(ToolCall(id_, name, pack(args)), packed=True)
    if b"null" in line or len(line) + 1 >= LINE_LIMIT:
        return encode(ToolCall(id_, name, pack(args)), packed=True)  # it may have to be refused
    return line


def _doubtful(frame: ExtensionFrame | HostFrame, line: bytes) -> bool:
    """Did the exact decoder let something pass in a free-form part, or in what an interceptor says?"""
    for name in _RAW_FIELDS[type(frame)]:
        raw = getattr(frame, name)
        if raw is not UNSET and (raw == _NULL or not _is_utf8(raw)):
            return True
    return type(frame) is EventInterceptResponse and says_twice(line)


def _is_utf8(raw: Raw) -> bool:
    text = bytes(raw)
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _name(frame: Frame) -> str:
    return str(frame.__struct_config__.tag)
