"""Fill a tool's arguments from a sentence, by the tool's schema.

Owns how a value is found in words; which tool is meant is decided in `demo`. Everything here is
pure, and `valid` has the last word: what does not fit the schema is never called with.
"""

import re
from collections.abc import Iterable
from typing import Any, NoReturn

from msgspec import Struct, field

from hilt.model.content import Args

Schema = dict[str, Any]

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|“([^“”]+)”|(?<![\w`\"])'([^']+)'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,15})?(?![\w]|\.\d)")
_AFTER = re.compile(
    r"\b(?i:for|in|of|to|named|called|about|on|at|with)\s+(?:the\s+|an?\s+)?"
    r"([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*(?=[,.;:!?)]*(?:\s|$))|\S+)"  # `in New York`, but not `in README` of README.md
)
_PATH_NAME = re.compile(r"path|file|filename|file_?path|dir|directory|folder", re.IGNORECASE)
PATH_LIKE = re.compile(r"[^\s/]*/\S*|[\w.-]*\.\w+|[A-Z][A-Za-z]*file|README|LICENSE")
_SMALL_WORD = re.compile(
    r"an?|and|are|at|by|can|do|for|from|i|in|is|it|me|my|of|on|or|please|that|the|this|to|tool|using|was|what|with",
    re.IGNORECASE,
)
"""Never a value when they merely follow a name."""
_LINKING = r"(?:\s+(?:is|as|to|of|the|an?|named|called))*"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_DEEPEST = 8
"""How many `$ref`s and `anyOf`s are followed to a plain schema."""


def quotations(text: str) -> list[re.Match[str]]:
    """What stands in backticks, double quotes, or single quotes that are not apostrophes."""
    return list(_QUOTED.finditer(text))


def quoted(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None)


def bare(word: str) -> str:
    """A word without the punctuation of the sentence round it."""
    return word.strip("`\"'“”").rstrip(",.;:!?)").strip("`\"'“”")


def blank_quotations(text: str) -> str:
    """The same length of text, with nothing to find inside its quotations, not even a space."""
    return _QUOTED.sub(lambda match: "\0" * len(match[0]), text)


def spellings(name: str) -> tuple[str, ...]:
    """How people write a name of a program: `word_count` and `wordCount` are also `word count`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_\-.]+", " ", name)).strip()
    return (name,) if spaced in ("", name) else (name, spaced)


def mention(text: str, name: str) -> re.Match[str] | None:
    """Where a text names something, as a word of its own."""
    for spelling in spellings(name):
        if found := re.search(rf"(?<!\w){re.escape(spelling)}(?!\w)", text, re.IGNORECASE):
            return found
    return None


def properties(schema: Schema) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required(schema: Schema) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


class Filling(Struct):
    """The arguments found so far, and what of the sentence is still free to be used."""

    text: str
    root: Schema
    name_end: int
    """Where the tool's name ends: what follows may be the value itself, as in `echo hello`."""
    args: Args = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    used: list[tuple[int, int]] = field(default_factory=list)

    def take(self, start: int, end: int) -> None:
        self.used.append((start, end))

    def free(self, start: int, end: int) -> bool:
        return all(end <= first or last <= start for first, last in self.used)


def fill(text: str, schema: Schema, name: re.Match[str] | None) -> Filling:
    """Look for every argument; the required ones may also be guessed from what is left over.

    `name` is where the text names the tool, if it does.
    """
    filling = Filling(text, schema, name.end() if name else len(text))
    if name:
        filling.take(name.start(), name.end())
    filling.args.update(_json_object(text, schema))
    wanted = required(schema)
    known = properties(schema)
    names = [*wanted, *(name for name in known if name not in wanted)]
    # Named values first, so that a guess never takes what was meant for another argument.
    for argument in names:
        if argument not in filling.args:
            _fill_named(filling, argument, plain(known.get(argument), schema))
    for argument in wanted:
        if argument not in filling.args:
            _fill_guessed(filling, argument, plain(known.get(argument), schema))
    filling.missing = [argument for argument in wanted if argument not in filling.args]
    return filling


def valid(args: Args, schema: Schema) -> bool:
    import jsonschema_rs  # costs 35 ms, and the first call of a tool pays it anyway

    try:
        return jsonschema_rs.validator_for(schema, retriever=_retrieve_nothing).is_valid(args)
    except (ValueError, OverflowError):  # the schema itself is wrong, or refers to another place
        return False


def _retrieve_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not part of the schema")


def plain(schema: object, root: Schema) -> Schema:
    """Follow local references and take the first alternative that is not null."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return {}
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if isinstance(reference := schema.get("$ref"), str):
            schema = _resolve(reference, root)
        elif isinstance(options, list) and "type" not in schema:
            schema = next((option for option in options if option != {"type": "null"}), {})
        else:
            return schema
    return {}


def _resolve(reference: str, root: Schema) -> object:
    found: object = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found


def kind(schema: Schema) -> str:
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((one for one in declared if one != "null"), "")
    return declared if isinstance(declared, str) else ""


def _json_object(text: str, schema: Schema) -> Args:
    """Arguments written out as JSON, when the sentence has some the tool knows."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return {}
    import msgspec

    try:
        found = msgspec.json.decode(text[start : end + 1].encode(), type=dict[str, Any])
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in found.items() if name in properties(schema)}


def _fill_named(filling: Filling, name: str, schema: Schema) -> None:
    """`name=value`, `name: value`, or the word after the name."""
    value = r"(`[^`]+`|\"[^\"]+\"|“[^“”]+”|'[^']+'|\S+)"
    for spelling in spellings(name):
        for between in (r"\s*[=:]\s*", rf"{_LINKING}\s+"):
            pattern = rf"(?<![\w]){re.escape(spelling)}{between}{value}"
            for found in re.finditer(pattern, filling.text, re.IGNORECASE):
                word = _unquote(found[1])
                small = word == found[1] and _SMALL_WORD.fullmatch(word)
                if small or not filling.free(found.start(1), found.end(1)):
                    continue
                parsed = _parse(word, schema)
                if parsed is not None:
                    filling.args[name] = parsed
                    filling.take(found.start(), found.end())
                    return
    if kind(schema) == "boolean" and (found_name := mention(blank_quotations(filling.text), name)):
        before = filling.text[: found_name.start()].lower().split()[-1:]
        filling.args[name] = before not in (["no"], ["not"], ["without"])


def _unquote(word: str) -> str:
    match = _QUOTED.fullmatch(word)
    return quoted(match) if match else bare(word)


def _parse(word: str, schema: Schema) -> Any:
    """One word as a value of this schema, or None when it cannot be one."""
    if isinstance(options := schema.get("enum"), list):
        return next((option for option in options if str(option).lower() == word.lower()), None)
    match kind(schema):
        case "integer" | "number" as numeric:
            return _number(word, numeric)
        case "boolean":
            lowered = word.lower()
            return lowered in _TRUE if lowered in _TRUE | _FALSE else None
        case "array":
            items = plain(schema.get("items"), {})
            values = [_parse(part.strip(), items) for part in word.split(",") if part.strip()]
            return values if values and None not in values else None
        case "object" | "null":
            return None
    return word or None


def _number(word: str, numeric: str) -> int | float | None:
    if not _NUMBER.fullmatch(word):
        return None
    if "." not in word:
        return int(word)
    return float(word) if numeric == "number" else None


def _fill_guessed(filling: Filling, name: str, schema: Schema) -> None:
    if "const" in schema:
        filling.args[name] = schema["const"]
    elif isinstance(options := schema.get("enum"), list):
        chosen = next((option for option in options if mention(filling.text, str(option))), None)
        if chosen is not None:
            filling.args[name] = chosen
    elif (shape := kind(schema)) in ("integer", "number"):
        _take_first(filling, name, _NUMBER.finditer(filling.text), schema)
    elif shape == "boolean":
        filling.args[name] = schema["default"] if isinstance(schema.get("default"), bool) else False
    elif shape == "array":
        _guess_list(filling, name, schema)
    elif shape in ("string", ""):
        _guess_text(filling, name, schema)


def _take_first(filling: Filling, name: str, matches: Iterable[re.Match[str]], schema: Schema) -> bool:
    for match in matches:
        if filling.free(match.start(), match.end()):
            groups = [group for group in match.groups() if group is not None]
            value = _parse(groups[0] if _QUOTED.fullmatch(match[0]) else bare((groups or [match[0]])[0]), schema)
            if value is not None:
                filling.args[name] = value
                filling.take(match.start(), match.end())
                return True
    return False


def _guess_text(filling: Filling, name: str, schema: Schema) -> None:
    if _PATH_NAME.fullmatch(name) and _take_path(filling, name):
        return
    if _take_first(filling, name, _QUOTED.finditer(filling.text), schema):
        return
    if _take_rest(filling, name):
        return
    _take_first(filling, name, _AFTER.finditer(filling.text), schema)


def _take_path(filling: Filling, name: str) -> bool:
    for match in re.finditer(r"\S+", filling.text):
        if PATH_LIKE.fullmatch(bare(match[0])) and filling.free(match.start(), match.end()):
            filling.args[name] = bare(match[0])
            filling.take(match.start(), match.end())
            return True
    return False


def _take_rest(filling: Filling, name: str) -> bool:
    """What follows the tool's name: all of it for the only argument, else one word."""
    rest = re.compile(r"[\s,:-]*(\S+)").match(filling.text, filling.name_end)
    if not rest or not bare(rest[1]) or _SMALL_WORD.fullmatch(bare(rest[1])):
        return False
    alone = len(required(filling.root)) == 1 and len(filling.args) == 0
    end = len(filling.text) if alone else rest.end(1)
    if not filling.free(rest.start(1), end):
        return False
    filling.args[name] = bare(filling.text[rest.start(1) : end].strip())
    filling.take(rest.start(1), end)
    return True


def _guess_list(filling: Filling, name: str, schema: Schema) -> None:
    items = plain(schema.get("items"), filling.root)
    pattern = _NUMBER if kind(items) in ("integer", "number") else _QUOTED
    found = [match for match in pattern.finditer(filling.text) if filling.free(match.start(), match.end())]
    values = [_parse(quoted(match) if pattern is _QUOTED else match[0], items) for match in found]
    if values and None not in values:
        filling.args[name] = values
        for match in found:
            filling.take(match.start(), match.end())
