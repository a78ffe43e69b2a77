"""Reading the parts of a message: exact first, lenient second.

Compiled Go extensions write their keys capitalised, and say `null` for "nothing"; others write `5.0` for five.
The reference's decoder lets all of that pass, so a value the exact decoder refused is put into the exact form
by its type and then read again. What the type leaves free (arguments, data, a schema) is never touched.
"""

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from hilt.errors import FrameError
from hilt.wire.line import UNREADABLE, mend, reason_of

_Value = TypeVar("_Value")

_MANY = 4096
"""Longer lists are read exactly or not at all: putting them right would hold up everyone else."""


def read(raw: Raw | UnsetType, shape: type[_Value]) -> _Value:
    """Params or a result as this type; absent and null are all defaults.

    Raises `FrameError`, which names the member that is wrong.
    """
    exact: Any = shape
    if raw is not UNSET:
        try:
            value: _Value = _decoder(exact).decode(raw)
        except UNREADABLE:
            pass
        else:
            return value
    return shaped(value_of(raw), shape)


def value_of(raw: Raw | UnsetType) -> Any:
    """What it says, as plain values; None when absent. Raises `FrameError` when that cannot be represented."""
    if raw is UNSET:
        return None
    try:
        return msgspec.json.decode(mend(bytes(raw)))
    except UNREADABLE as error:
        raise FrameError(reason_of(error)) from None


def shaped(value: Any, shape: type[_Value]) -> _Value:
    """The same for a value that was decoded already, such as a free-form part that turns out to have a form."""
    try:
        return msgspec.convert(_adapted(value, _kind(shape)), shape)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `")
        member = place.rstrip("`").removeprefix("$").removeprefix(".")
        raise FrameError(f"`{member}`: {reason}" if member else reason) from None
    except RecursionError:
        raise FrameError("nested too deeply") from None


def twice(raw: Raw | UnsetType, names: tuple[str, ...]) -> str:
    """The first of these members that is given more than once, in whatever case; empty when there is none.

    Of a guard that says two things there is no telling which it meant.
    """
    if raw is UNSET:
        return ""
    text = bytes(raw)
    # Almost none does, and counting rules it out in a tenth of the time. An escape may hide a key.
    lowered = text.lower()
    if b"\\u" not in text and all(lowered.count(b'"%b"' % name.lower().encode()) < 2 for name in names):
        return ""
    seen: set[str] = set()
    folded = {name.casefold(): name for name in names}
    found = ""

    def note(_: type, key: str) -> _Key:
        nonlocal found
        name = key.casefold()
        if name in seen and name in folded:
            found = found or folded[name]
        seen.add(name)
        return _Key(key)

    try:
        msgspec.json.decode(mend(text), type=dict[_Key, Raw], dec_hook=note)
    except UNREADABLE:
        return ""  # whoever reads it says best what is wrong with it
    return found


class _Key(str):
    """A key the decoder reports each time it comes by; a plain dict would show only the last."""

    __slots__ = ()


class _Listed(NamedTuple):
    of: "_Kind"


class _Mapped(NamedTuple):
    of: "_Kind"


_Kind: TypeAlias = "type[Struct] | Literal['int', 'str', 'free'] | _Listed | _Mapped"


class _Member(NamedTuple):
    key: str
    kind: _Kind
    optional: bool


def _adapted(value: Any, kind: _Kind) -> Any:
    match kind:
        case "free":
            return value
        case "str":
            return "" if value is None else value
        case "int":
            return int(value) if isinstance(value, float) and value.is_integer() else value
        case _Listed(of):
            if value is None:
                return []
            fits = isinstance(value, list) and len(value) <= _MANY
            return [_adapted(item, of) for item in value] if fits else value
        case _Mapped(of):
            if value is None:
                return {}
            fits = isinstance(value, dict) and len(value) <= _MANY
            return {key: _adapted(item, of) for key, item in value.items()} if fits else value
    if value is None:
        return {}
    return _object(value, _members(kind)) if isinstance(value, dict) else value


def _object(value: dict[str, Any], members: Mapping[str, _Member]) -> dict[str, Any]:
    """The members the type knows, spelt its way: the exact spelling wins over others, null is absent."""
    exact: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for key, item in value.items():
        member = members.get(key.casefold())
        if member is None or (item is None and member.optional):
            continue
        (exact if key == member.key else other)[member.key] = _adapted(item, member.kind)
    return other | exact


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


@cache
def _members(shape: type[Struct]) -> dict[str, _Member]:
    return {
        info.encode_name.casefold(): _Member(info.encode_name, _kind(info.type), not info.required)
        for info in structs.fields(shape)
    }


def _kind(annotation: Any) -> _Kind:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (Union, UnionType):
        said = [argument for argument in arguments if argument not in (type(None), UnsetType)]
        return _kind(said[0]) if len(said) == 1 else "free"
    if origin is tuple:
        return _Listed(_kind(arguments[0]))
    if origin is dict:
        return _Mapped(_kind(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation
    return "int" if annotation is int else "str" if annotation is str else "free"
