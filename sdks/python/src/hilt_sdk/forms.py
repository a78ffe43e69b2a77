"""Types: the JSON Schema of each, and how values of it come from JSON.

`typing`, `dataclasses` and `enum` are recognised by what they leave behind, never imported: they cost more than
everything an extension does until it is ready.
"""

from __future__ import annotations

import sys

from hilt_sdk.values import RegistrationError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Convert = Callable[[Any, str], Any]
    """From a JSON value and its place to a value of the type. Raises `BadArgument`."""

_SHOWN = 80
"""Characters of a value that does not fit."""


class BadArgument(ToolError):
    """An argument that does not fit; the message names it."""


class Form:
    """A type: its schema, and how values of it come about. Without `convert` they are what JSON has."""

    __slots__ = ("convert", "schema")

    def __init__(self, schema: dict[str, Any], convert: Convert | None) -> None:
        self.schema = schema
        self.convert = convert


def form_of(annotation: Any) -> Form:
    """Raises `RegistrationError` for a type that has no form in JSON."""
    scalar = _SCALARS.get(annotation) if isinstance(annotation, type) and _plain_type(annotation) else None
    if scalar is not None:
        return scalar
    typing = sys.modules.get("typing")
    if annotation is object or (typing is not None and annotation is typing.Any):
        return Form({}, None)
    if annotation is None or annotation is type(None):
        return Form({"type": "null"}, _exactly(type(None), "null"))
    if type(annotation).__name__ == "UnionType":
        return _union(annotation.__args__)
    if hasattr(annotation, "__metadata__"):  # Annotated[T, "description"]
        return _described(annotation)
    origin = getattr(annotation, "__origin__", None)
    if origin is not None:
        return _generic(annotation, origin, annotation.__args__)
    if isinstance(annotation, type):
        return _class(annotation)
    if getattr(annotation, "__supertype__", None) is not None:  # NewType
        return form_of(annotation.__supertype__)
    raise RegistrationError(f"{annotation!r} has no form in JSON Schema; give schema=")


def _plain_type(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def unfit(place: str, expected: str, value: Any) -> BadArgument:
    """What was expected there, in the words of JSON Schema, and what came."""
    from hilt_sdk.transport import encoded_text

    got = encoded_text(value)
    return BadArgument(f"{place} must be {expected}, not {got if len(got) <= _SHOWN else got[:_SHOWN] + '…'}")


def no_such(place: str, known: Iterable[str]) -> BadArgument:
    return BadArgument(f"there is no argument {place}; there are {', '.join(sorted(known)) or 'none'}")


def left_out(convert: Convert | None, place: str) -> bool:
    """Whether a null where one may be left out means just that, as models have it, and is no value."""
    if convert is None:
        return False
    try:
        convert(None, place)
    except BadArgument:
        return True
    return False


def _exactly(kind: type, words: str) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if type(value) is kind:
            return value
        raise unfit(place, words, value)

    return convert


def _integer(value: Any, place: str) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise unfit(place, "an integer", value)


def _number(value: Any, place: str) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise unfit(place, "a number", value)


_SCALARS: dict[Any, Form] = {
    str: Form({"type": "string"}, _exactly(str, "a string")),
    int: Form({"type": "integer"}, _integer),
    float: Form({"type": "number"}, _number),
    bool: Form({"type": "boolean"}, _exactly(bool, "a boolean")),
    dict: Form({"type": "object"}, _exactly(dict, "an object")),
    list: Form({"type": "array"}, _exactly(list, "an array")),
}


def _described(annotation: Any) -> Form:
    form = form_of(annotation.__origin__)
    texts = [one for one in annotation.__metadata__ if isinstance(one, str)]
    return Form({**form.schema, "description": texts[0]}, form.convert) if texts else form


def _generic(annotation: Any, origin: Any, args: tuple[Any, ...]) -> Form:
    named = getattr(origin, "__name__", "") or getattr(origin, "_name", "") or ""
    if named == "Union" or named == "Optional":
        return _union(args)
    if named == "Literal":
        return _choice(list(args), {value: value for value in args})
    if named in ("Required", "NotRequired", "Final", "ReadOnly"):
        return form_of(args[0])
    if origin in (list, set, frozenset) or named in ("Sequence", "Iterable", "Collection"):
        return _list(args[0], origin if origin in (set, frozenset) else None)
    if origin is tuple:
        return _tuple(args)
    if origin is dict or named in ("Mapping", "MutableMapping"):
        return _mapping(args)
    raise RegistrationError(f"{annotation!r} has no form in JSON Schema; give schema=")


def _list(member: Any, made: Any) -> Form:
    form = form_of(member)

    def convert(value: Any, place: str) -> Any:
        if type(value) is not list:
            raise unfit(place, "an array", value)
        if form.convert is not None:
            value = [form.convert(one, f"{place}[{number}]") for number, one in enumerate(value)]
        return value if made is None else made(value)

    schema: dict[str, Any] = {"type": "array", "items": form.schema}
    if made is not None:
        schema["uniqueItems"] = True
    return Form(schema, convert)


def _tuple(args: tuple[Any, ...]) -> Form:
    if len(args) == 2 and args[1] is ...:
        return _tuple_of_any_length(args[0])
    forms = [form_of(one) for one in args]

    def convert(value: Any, place: str) -> Any:
        if type(value) is not list or len(value) != len(forms):
            raise unfit(place, f"an array of {len(forms)}", value)
        return tuple(
            one if form.convert is None else form.convert(one, f"{place}[{number}]")
            for number, (one, form) in enumerate(zip(value, forms))
        )

    count = len(forms)
    schema = {"type": "array", "prefixItems": [form.schema for form in forms], "minItems": count, "maxItems": count}
    return Form(schema, convert)


def _tuple_of_any_length(member: Any) -> Form:
    form = _list(member, None)
    to_list = form.convert
    assert to_list is not None
    return Form(form.schema, lambda value, place: tuple(to_list(value, place)))


def _mapping(args: tuple[Any, ...]) -> Form:
    if args[0] is not str:
        raise RegistrationError(f"the keys of JSON objects are texts, not {args[0]!r}")
    form = form_of(args[1])

    def convert(value: Any, place: str) -> Any:
        if type(value) is not dict:
            raise unfit(place, "an object", value)
        if form.convert is None:
            return value
        return {key: form.convert(one, f"{place}.{key}") for key, one in value.items()}

    return Form({"type": "object", "additionalProperties": form.schema or True}, convert)


def _union(args: tuple[Any, ...]) -> Form:
    forms = [form_of(one) for one in args]
    if any(not form.schema for form in forms):
        return Form({}, None)

    def convert(value: Any, place: str) -> Any:
        first: BadArgument | None = None
        for form in forms:
            try:
                return value if form.convert is None else form.convert(value, place)
            except BadArgument as error:
                first = first or error
        assert first is not None
        raise first

    return Form(_union_schema([form.schema for form in forms]), convert)


def _union_schema(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """`T | None` reads as one type where it can."""
    if len(schemas) == 2 and {"type": "null"} in schemas:
        other = schemas[0] if schemas[1] == {"type": "null"} else schemas[1]
        if isinstance(other.get("type"), str):
            nullable = {**other, "type": [other["type"], "null"]}
            if "enum" in other:
                nullable["enum"] = [*other["enum"], None]
            return nullable
    return {"anyOf": schemas}


def _choice(choices: list[Any], values: dict[Any, Any]) -> Form:
    def convert(value: Any, place: str) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return values[choice]
        from hilt_sdk.transport import encoded_text

        raise unfit(place, f"one of {', '.join(map(encoded_text, choices))}", value)

    schema: dict[str, Any] = {"enum": choices}
    names = {type(choice): _JSON_TYPES.get(type(choice)) for choice in choices}
    if len(names) == 1 and (only := next(iter(names.values()))):
        schema = {"type": only, "enum": choices}
    return Form(schema, convert)


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


# Classes


def _class(annotation: Any) -> Form:
    if hasattr(annotation, "__members__"):  # an enum
        members = list(annotation.__members__.values())
        return _choice([one.value for one in members], {one.value: one for one in members})
    if hasattr(annotation, "__dataclass_fields__"):
        return _dataclass(annotation)
    if hasattr(annotation, "__total__") and issubclass(annotation, dict):
        return _typed_dict(annotation)
    if annotation is tuple:
        return _tuple_of_any_length(object)
    if annotation in (set, frozenset):
        return _list(object, annotation)
    raise RegistrationError(
        f"{annotation.__name__} has no form in JSON Schema: use str, int, float, bool, list, dict, Literal, an Enum, "
        "a dataclass or a TypedDict, or give schema="
    )


def _dataclass(annotation: Any) -> Form:
    hints = _class_annotations(annotation)
    forms: dict[str, Form] = {}
    properties: dict[str, Any] = {}
    required = []
    for name, field in annotation.__dataclass_fields__.items():
        if not field.init:
            continue
        form = _member(annotation, name, hints[name])
        forms[name] = form
        properties[name] = dict(form.schema)
        missing = sys.modules["dataclasses"].MISSING
        if field.default is not missing:
            add_default(properties[name], field.default)
        elif field.default_factory is missing:
            required.append(name)
    build = _object(forms, required)
    return Form(_object_schema(properties, required), lambda value, place: annotation(**build(value, place)))


def _typed_dict(annotation: Any) -> Form:
    hints = _class_annotations(annotation)
    forms = {name: _member(annotation, name, hint) for name, hint in hints.items()}
    needed = getattr(annotation, "__required_keys__", frozenset(hints))
    required = [name for name in hints if name in needed]
    return Form(_object_schema({name: form.schema for name, form in forms.items()}, required), _object(forms, required))


def _member(owner: Any, name: str, hint: Any) -> Form:
    try:
        return form_of(hint)
    except RegistrationError as error:
        raise RegistrationError(f"{owner.__name__}.{name}: {error}") from None


def _object(forms: dict[str, Form], required: list[str]) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if type(value) is not dict:
            raise unfit(place, "an object", value)
        made = {}
        for name, form in forms.items():
            if name in value:
                one, where = value[name], f"{place}.{name}"
                if one is None and name not in required and left_out(form.convert, where):
                    continue
                made[name] = one if form.convert is None else form.convert(one, where)
            elif name in required:
                raise BadArgument(f"{place}.{name} is missing")
        for name in value:
            if name not in forms:
                raise no_such(f"{place}.{name}", forms)
        return made

    return convert


def _object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def _class_annotations(annotation: Any) -> dict[str, Any]:
    """Of the class and those it is made from."""
    found: dict[str, Any] = {}
    for base in reversed(getattr(annotation, "__mro__", (annotation,))):
        space = vars(sys.modules.get(base.__module__)) if base.__module__ in sys.modules else {}
        for name, hint in (getattr(base, "__annotations__", None) or {}).items():
            if type(hint).__name__ == "ForwardRef":
                hint = hint.__forward_arg__
            found[name] = resolved(hint, space, f"{base.__name__}.{name}", {}) if isinstance(hint, str) else hint
    return found


def add_default(schema: dict[str, Any], default: Any) -> None:
    """Told to the model where JSON has a form for it."""
    if hasattr(type(default), "__members__"):
        default = default.value
    if default is None or type(default) in _JSON_TYPES or type(default) in (list, dict):
        schema["default"] = default


def resolved(annotation: str, space: dict[str, Any], place: str, enclosed: dict[str, Any]) -> Any:
    try:
        return eval(annotation, space, enclosed)  # noqa: S307  # the author's own words, which Python would run as well
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise RegistrationError(
            f"{place}: the type {annotation!r} cannot be found ({error}); write it where the function can see it, "
            "or give schema="
        ) from None
