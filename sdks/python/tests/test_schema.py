"""From signatures to schemas, and from JSON to values of their types."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, Union

import pytest

from hilt_sdk import Call, Extension, RegistrationError
from hilt_sdk.docstring import described
from hilt_sdk.forms import BadArgument, form_of
from hilt_sdk.schema import Signature


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    name: str
    colour: Colour = Colour.RED
    tags: list[str] = field(default_factory=list)


class Options(TypedDict):
    size: int
    deep: NotRequired[bool]


@dataclass
class Knot:
    next: "Knot"


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "value"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, 3.0, 3),
        (float, {"type": "number"}, 3, 3.0),
        (bool, {"type": "boolean"}, True, True),
        (list, {"type": "array"}, [1], [1]),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1.0}, {"a": 1}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": True}, {"a": None}, {"a": None}),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1.0], [1]),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["a"], {"a"}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
            [1, "a"],
            (1, "a"),
        ),
        (Optional[str], {"type": ["string", "null"]}, None, None),  # noqa: UP045  # both spellings are in use
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", "a"),  # noqa: UP007  # the same
        (int | None, {"type": ["integer", "null"]}, 1, 1),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
        (Colour, {"type": "string", "enum": ["red", "blue"]}, "blue", Colour.BLUE),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, 1, 1),
        (Any, {}, [None], [None]),
        (
            Place,
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "additionalProperties": False,
                "required": ["name"],
            },
            {"name": "x", "colour": "blue"},
            Place("x", Colour.BLUE),
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "deep": {"type": "boolean"}},
                "additionalProperties": False,
                "required": ["size"],
            },
            {"size": 1},
            {"size": 1},
        ),
    ],
    ids=str,
)
def test_a_type_has_a_schema_and_values_arrive_as_that_type(
    annotation: Any, schema: dict[str, Any], given: Any, value: Any
) -> None:
    form = form_of(annotation)
    assert form.schema == schema
    made = given if form.convert is None else form.convert(given, "x")
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("annotation", "given", "says"),
    [
        (str, 1, "x must be a string, not 1"),
        (int, True, "x must be an integer, not true"),
        (int, 1.5, "x must be an integer, not 1.5"),
        (list[int], [1, "a"], 'x[1] must be an integer, not "a"'),
        (dict[str, int], {"a": None}, "x.a must be an integer, not null"),
        (Colour, "green", 'x must be one of "red", "blue", not "green"'),
        (Literal[1], True, "x must be one of 1, not true"),
        (Place, {}, "x.name is missing"),
        (Place, {"name": "a", "size": 1}, "there is no argument x.size; there are colour, name, tags"),
        (int | None, "a", 'x must be an integer, not "a"'),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_named(annotation: Any, given: Any, says: str) -> None:
    convert = form_of(annotation).convert
    assert convert is not None
    with pytest.raises(BadArgument) as error:
        convert(given, "x")
    assert str(error.value) == says


def _signature(function: Callable[..., Any]) -> Signature:
    ext = Extension("demo")
    ext.tool(function)
    return ext._registered.tools[function.__name__].signature


def test_a_function_s_signature_and_docstring_become_the_schema() -> None:
    def look(city: str, days: int = 1, *, call: Call, units: Literal["c", "f"] = "c") -> str:
        """Look at the sky.

        Not at the ground.

        Args:
            city: where to look,
                be it far
            days (int): how many

        Returns:
            city: nothing
        """
        return ""

    signature = _signature(look)
    assert signature.call_parameter == "call"
    assert signature.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where to look, be it far"},
            "days": {"type": "integer", "description": "how many", "default": 1},
            "units": {"type": "string", "enum": ["c", "f"], "default": "c"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert described(look.__doc__)[0] == "Look at the sky.\n\nNot at the ground."
    assert signature.bind({"city": "Rome"}) == {"city": "Rome"}
    for args, says in [({}, "city is missing"), ({"city": "a", "x": 1}, "there is no argument x"), ([], "an object")]:
        with pytest.raises(BadArgument, match=says):
            signature.bind(args)


def test_rest_style_docstrings_are_understood() -> None:
    text = "Look.\n\n:param str city: where\n    to look\n:returns: nothing\n"
    assert described(text) == ("Look.", {"city": "where to look"})


def test_annotations_may_be_text_as_with_future_annotations() -> None:
    def look(place: "Place", more: "list[int] | None" = None) -> "str":
        return place.name

    signature = _signature(look)
    assert signature.bind({"place": {"name": "x"}, "more": [1]}) == {"place": Place("x"), "more": [1]}


def test_what_has_no_schema_is_refused_with_the_parameter_and_a_way_out() -> None:
    def strange(thing: complex) -> None: ...

    def unknown(thing: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821  # that is the point

    def many(*things: int) -> None: ...

    def knotted(knot: Knot) -> None: ...

    refused: list[tuple[Callable[..., Any], str]] = [
        (strange, "strange: thing: complex has no form in JSON Schema.*schema="),
        (unknown, "unknown: thing: the type 'Nowhere' cannot be found.*schema="),
        (many, r"many: \*things has no name"),
        (knotted, "knotted: knot: the type contains itself; give schema="),
    ]
    for function, says in refused:
        with pytest.raises(RegistrationError, match=says):
            _signature(function)


def test_a_schema_of_one_s_own_is_used_as_it_is() -> None:
    ext = Extension("demo")
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}

    @ext.tool(name="own", schema=schema)
    def anything(call: Call, **args: Any) -> str:
        return str(args)

    signature = ext._registered.tools["own"].signature
    assert signature.schema == schema
    assert signature.bind({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(RegistrationError, match="anything_else has no parameter a"):

        @ext.tool(schema=schema)
        def anything_else(b: int) -> None: ...


@pytest.mark.parametrize(
    ("register", "says"),
    [
        (lambda ext: ext.tool(name="two words")(len), "'two words' is no name for a tool"),
        (lambda ext: ext.tool(colour="red"), "no option colour"),
        (lambda ext: ext.command("a b"), "is no name for a command"),
        (lambda ext: ext.on("turn_over"), "there is no event 'turn_over'; there are session_start"),
        (lambda ext: ext.intercept("event"), "'event' cannot be intercepted"),
        (lambda ext: ext.uses("shortcut"), "there is no feature 'shortcut'; did you mean shortcuts"),
        (lambda ext: ext.prompt_section("", "x"), "'' is no title"),
        (lambda ext: Extension(""), "'' is no name for an extension"),
    ],
)
def test_names_are_checked_when_they_are_registered(register: Callable[[Extension], Any], says: str) -> None:
    with pytest.raises(RegistrationError, match=says):
        register(Extension("demo"))
