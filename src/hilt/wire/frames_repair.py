"""Reading lines that are not exactly right, as leniently as the programs extensions were written for.

The reference host is a Go program, and extensions lean on what its decoder lets pass: keys in any
case (Go programs write theirs capitalised), broken UTF-8, lone surrogates, `null` for "nothing",
keys nobody knows. Such a line is rewritten into the exact form, which the exact decoder then reads:
there is one way to make a frame. Costs are linear in the line, with no Python step per character.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, structs

from hilt.wire.frames_types import EventInterceptResponse
from hilt.wire.line import HEAD, UNREADABLE, Malformed, Unknown, mend, reason_of

_Frame = TypeVar("_Frame")

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]:,]', re.DOTALL)
_NULL = Raw(b"null")
_EMPTY = Raw(b'""')
_INTERCEPTOR_KEYS = ("type", *EventInterceptResponse.__struct_encode_fields__)
_QUOTED_KEYS = tuple(f'"{key}"'.encode() for key in _INTERCEPTOR_KEYS)

_QUOTES_OF_ALLOWING = 8
"""An answer with a type and an id has room for nothing else in so many quotes."""

_MANY = 4096
"""Longer lists and fuller objects are not repaired: that would hold up everyone else."""


def peek(head: bytes) -> tuple[str, str]:
    """The type and id of a line of which only the beginning is at hand; empty where not to be seen.

    Only the frame's own keys count, not those of objects inside it.
    """
    found = {"type": "", "id": ""}
    depth, key, before = 0, "", b""
    head = head[:HEAD].lstrip()
    for match in _TOKEN.finditer(head if head.startswith(b"{") else b""):
        token = match[0]
        if token == b'"':
            break  # a string that goes on beyond the head
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1 and len(token) > 1:
            if before in b"{,":
                key = _text(token).casefold()
            elif before == b":" and key in found:
                found[key] = _text(token)
        before = token
    return found["type"], found["id"]


def reread(
    line: bytes, shapes: Mapping[str, type[Struct]], exact: msgspec.json.Decoder[_Frame]
) -> _Frame | Unknown | Malformed:
    """Read a line the exact decoder refused: a frame, `Unknown` or `Malformed`. Never raises."""
    mended = mend(line)
    try:
        keys, fields = _members(mended)
    except UNREADABLE as error:
        return Malformed(reason_of(error), *peek(mended))
    type_, id_ = _string(fields.get("type", _EMPTY)), _string(fields.get("id", _EMPTY))
    if type_ is None or id_ is None:
        return Malformed(f"`{'type' if type_ is None else 'id'}` must be a string", type_ or "", id_ or "")
    shape = shapes.get(type_)
    if shape is None:
        return Unknown(type_, line)
    if shape is EventInterceptResponse and (twice := _repeated(keys)):
        return Malformed(f"`{twice}` is given twice", type_, id_)
    try:
        return exact.decode(_exact(fields, shape, type_))
    except UNREADABLE as error:
        return Malformed(reason_of(error), type_, id_)


def says_twice(line: bytes) -> bool:
    """Does an interceptor's answer, read without trouble, give a key twice? Raises `UNREADABLE`."""
    # Almost none does, and counting rules it out in a tenth of the time. An escape may hide a key.
    if b"\\" not in line and line.count(b'"') == _QUOTES_OF_ALLOWING:
        return False
    if b"\\u" not in line and all(line.count(key) < 2 for key in _QUOTED_KEYS):
        return False
    return bool(_repeated(_members(line)[0]))


def _repeated(keys: list[str]) -> str:
    """The first of an interceptor's own keys given twice, in whatever case; empty when there is none."""
    seen: set[str] = set()
    for key in keys:
        name = key.casefold()
        if name in seen and name in _INTERCEPTOR_KEYS:
            return name
        seen.add(name)
    return ""


class _Key(str):
    """A key the decoder reports each time it comes by; a plain dict would show only the last."""

    __slots__ = ()


def _members(line: bytes) -> tuple[list[str], dict[str, Raw]]:
    """All keys, and the values by lower-case key: the exact spelling wins, then the last; null is absent."""
    keys: list[str] = []

    def note(_: type, key: str) -> _Key:
        keys.append(key)
        if len(keys) > _MANY:
            raise ValueError(f"more than {_MANY} keys")
        return _Key(key)

    members = msgspec.json.decode(line, type=dict[_Key, Raw], dec_hook=note)
    present = {key: raw for key, raw in members.items() if raw != _NULL}
    return keys, {key.casefold(): raw for key, raw in present.items()} | {str(key): raw for key, raw in present.items()}


def _exact(fields: Mapping[str, Raw], shape: type[Struct], tag: str = "") -> bytes:
    """Write an object again with the shape's own keys only, spelt its way."""
    members = [b'"type":' + msgspec.json.encode(tag)] if tag else []
    for name, kind, many in _fields(shape):
        # Keys that are not lower-case themselves (`tokenHint`) are found by their folded spelling.
        raw = fields.get(name, fields.get(name.casefold()))
        if raw is not None:
            members.append(b'"%b":%b' % (name.encode(), _value(raw, kind, many)))
    return b"{" + b",".join(members) + b"}"


def _value(raw: Raw, kind: type, many: bool) -> bytes:
    if not many:
        return _element(raw, kind)
    try:
        items = msgspec.json.decode(raw, type=list[Raw])
    except UNREADABLE:
        return bytes(raw)  # the exact decoder says best what is wrong with it
    if len(items) > _MANY:
        return bytes(raw)
    return b"[" + b",".join(_element(item, kind) for item in items) + b"]"


def _element(raw: Raw, kind: type) -> bytes:
    if issubclass(kind, Struct):
        try:
            return _exact({} if raw == _NULL else _members(bytes(raw))[1], kind)
        except UNREADABLE:
            return bytes(raw)
    return b'""' if kind is str and raw == _NULL else bytes(raw)


@cache
def _fields(shape: type[Struct]) -> tuple[tuple[str, type, bool], ...]:
    """Of each field its key, what it holds, and whether it holds a list of them."""
    return tuple((info.encode_name, *_kind(info.type)) for info in structs.fields(shape))


def _kind(annotation: Any) -> tuple[type, bool]:
    arguments = get_args(annotation)
    if not arguments:
        return annotation, False
    return arguments[0], get_origin(annotation) is tuple


def _string(raw: Raw) -> str | None:
    value = bytes(raw)
    return _text(value) if value.startswith(b'"') else None


def _text(token: bytes) -> str:
    try:
        return msgspec.json.decode(mend(token), type=str)
    except UNREADABLE:
        return ""
