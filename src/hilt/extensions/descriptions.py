"""What extensions tell the model about their tools: nothing that a person could not read.

Owns the cleaning of such texts. What they said last time is `memory`'s, and what is registered others' business.
"""

import re
from functools import cache
from typing import Any

from hilt.model.unseen import CONTROLS, SURROGATES, UNSEEN

_DEEPEST = 64
_SHOWN = 80

_VALUES = frozenset({"default", "const", "example"})
"""Members of a schema that hold a value, which null is too."""
_LISTS = frozenset({"enum", "examples"})
"""Those that hold several."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Those that hold schemas by names of the author's choice."""


def cleaned(text: str) -> str:
    """The same text without what cannot be seen in it. Joiners and selectors stay where scripts and emoji need them."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _hidden().sub("", text)


def hides(text: str) -> bool:
    """Whether there is anything in it that cannot be seen; how lines end is of no interest."""
    return cleaned(text) != text.replace("\r\n", "\n")


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Why it cannot be shown to the model. A name cannot be cleaned: its owner would not know it any more."""
    todo: list[tuple[Any, int]] = [(schema, 1)]
    while todo:
        value, depth = todo.pop()
        if depth > _DEEPEST:
            return f"schema is nested more than {_DEEPEST} deep"
        if isinstance(value, dict):
            if odd := next(filter(hides, value), None):
                return f"schema: the name {ascii(odd)[:_SHOWN]} has invisible characters"
            todo += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            todo += [(item, depth + 1) for item in value]
    return None


def cleaned_schema(schema: Any) -> Any:
    """The same schema with every text in it cleaned. `schema_problem` comes first: it bounds the depth."""
    match schema:
        case str():
            return cleaned(schema)
        case dict():
            return {name: cleaned_schema(item) for name, item in schema.items()}
        case list():
            return [cleaned_schema(item) for item in schema]
        case _:
            return schema


def without_nulls(schema: Any) -> Any:
    """The same schema without members that are null, which is how Go writes an empty list, and no schema has.

    `schema_problem` comes first here as well.
    """
    match schema:
        case dict():
            return {name: _member(name, item) for name, item in schema.items() if item is not None or name in _VALUES}
        case list():
            return [without_nulls(item) for item in schema]
        case _:
            return schema


def _member(name: str, item: Any) -> Any:
    if name in _VALUES or name in _LISTS:
        return item
    if name in _NAMED and isinstance(item, dict):
        return {own: {} if inner is None else without_nulls(inner) for own, inner in item.items()}
    return without_nulls(item)


@cache  # compiled when it is needed: few have such texts
def _hidden() -> re.Pattern[str]:
    hidden = f"{UNSEEN}{SURROGATES}"
    drawn = f"[^\x00-\x9f{hidden}]"
    needed = (
        f"(?<={drawn})[\u200c\u200d](?={drawn})",
        f"(?<={drawn}\ufe0f)\u200d(?={drawn})",
        f"(?<={drawn})[\ufe0e\ufe0f]",
        "(?<=[#*0-9])\ufe0f(?=\u20e3)",
    )
    return re.compile(f"(?!{'|'.join(needed)})[{CONTROLS}{hidden}]")
