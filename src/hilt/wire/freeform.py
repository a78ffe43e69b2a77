"""JSON of any shape inside a message: arguments, schemas, data. It stays `Raw` until somebody asks for it."""

import math
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hilt.errors import FrameError
from hilt.wire.line import UNREADABLE, reason_of, scrub

_encoder = msgspec.json.Encoder()
_Value = TypeVar("_Value")


def pack(value: Any) -> Raw:
    """Ready to be put into a message. Raises `FrameError` for what JSON cannot say."""
    try:
        try:
            encoded = _encoder.encode(value)
        except UnicodeEncodeError:
            encoded = _encoder.encode(fit_for_utf8(value))
        # The encoder writes null for NaN and infinity, so only a value with a null in it needs a look.
        if b"null" in encoded and not _finite(value):
            raise FrameError("NaN and infinity are not JSON")
    except RecursionError:
        raise FrameError("the value is nested too deeply") from None
    return Raw(encoded)


def unpack(raw: Raw | UnsetType) -> Any:
    """What it says, None when absent. Raises `FrameError` when it cannot be represented."""
    if raw is UNSET:
        return None
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE as error:
        raise FrameError(reason_of(error)) from None


def unpack_object(raw: Raw | UnsetType) -> dict[str, Any]:
    """The same where only an object makes sense: arguments, parameters, a schema. Absent is empty."""
    value = unpack(raw)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FrameError("it must be a JSON object")
    return value


def fit_for_utf8(value: _Value) -> _Value:
    """The same value with every string fit for UTF-8."""
    match value:
        case str():
            sound: Any = scrub(value)
        case Struct():
            sound = type(value)(**{name: fit_for_utf8(getattr(value, name)) for name in value.__struct_fields__})
        case dict():
            sound = {fit_for_utf8(key): fit_for_utf8(item) for key, item in value.items()}
        case list() | tuple():
            sound = type(value)([fit_for_utf8(item) for item in value])
        case _:
            return value
    return sound  # type: ignore[no-any-return]  # each branch rebuilds the type it was given


def _finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_finite, value.values()))
        case list() | tuple():
            return all(map(_finite, value))
    return True
