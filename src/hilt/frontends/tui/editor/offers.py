"""What can be put in where the cursor stands: the values that the list of completions shows.

Owns what a choice is, and what is offered for commands and their arguments. Files are `files`' business, and showing
it all is `completion`'s.
"""

import re
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from hilt.registry.snapshot import OwnedCommand

Kind: TypeAlias = Literal["command", "argument", "file"]

SELF = "hilt"
"""The owner of the built-in commands."""
# Compiled when they are needed, and these are tuples: this is on the way to the first frame.
_COMMAND = r"/[A-Za-z0-9_-]*"
_ARGUMENT = r"/([A-Za-z0-9_-]+) +([A-Za-z0-9_-]*)"
_OPTIONAL = r"\[[^\]]*\]"
_WORD = r"[A-Za-z][A-Za-z0-9_-]*"


class Choice(NamedTuple):
    text: str
    """What is put in."""
    label: str
    usage: str = ""
    description: str = ""
    owner: str = ""
    """The extension whose it is; empty for hilt's own."""
    runs: bool = False
    """With Enter it is not only put in, but sent as well."""


class Offer(NamedTuple):
    kind: Kind
    start: int
    """Where in its line the text begins that a choice takes the place of; it ends at the cursor."""
    choices: Sequence[Choice]


def for_commands(text: str, commands: "Iterable[OwnedCommand]", opening: Container[str] = ()) -> Offer | None:
    """For an input that is the beginning of a command, or a command and the beginning of its argument.

    `opening` are those that ask for what they need themselves.
    """
    if re.fullmatch(_COMMAND, text):
        return Offer("command", 0, [_command(owned, opening) for owned in _matching(text[1:].lower(), commands)])
    if typed := re.fullmatch(_ARGUMENT, text):
        name, begun = typed[1].lower(), typed[2].lower()
        for owned in commands:
            if owned.command.name.lower() == name:
                words = [one for one in _words(owned.command.usage) if one.label.startswith(begun)]
                return Offer("argument", typed.start(2), words)
    return None


def _matching(begun: str, commands: "Iterable[OwnedCommand]") -> "list[OwnedCommand]":
    """Those that begin so; if none does, those that have these letters in this order. hilt's own come first."""
    ordered = sorted(commands, key=_order)
    names = [owned.command.name.lower() for owned in ordered]
    found = [owned for owned, name in zip(ordered, names, strict=True) if name.startswith(begun)]
    if not found:
        found = [owned for owned, name in zip(ordered, names, strict=True) if _scattered(begun, name)]
    return found


def _order(owned: "OwnedCommand") -> str:
    """hilt's own as they are, then the others by name."""
    return "" if owned.owner == SELF else owned.command.name.lower()


def _scattered(letters: str, name: str) -> bool:
    rest = iter(name)
    return all(letter in rest for letter in letters)


def _command(owned: "OwnedCommand", opening: Container[str]) -> Choice:
    command = owned.command
    return Choice(
        text=f"/{command.name} ",
        label=f"/{command.name}",
        usage=command.usage,
        description=command.description,
        owner="" if owned.owner == SELF else owned.owner,
        runs=_complete(command.usage) or (owned.owner == SELF and command.name in opening),
    )


def _complete(usage: str) -> bool:
    """Whether nothing more must be typed."""
    return "<" not in re.sub(_OPTIONAL, "", usage)


def _words(usage: str) -> list[Choice]:
    """The words with which the arguments may begin, if the usage tells: `open <id> | tree`."""
    ways = [way.strip() for way in usage.removeprefix("[").removesuffix("]").split("|")]
    heads = [re.match(_WORD, way) for way in ways]
    if len(ways) < 2 or not all(heads):
        return []
    return [
        Choice(f"{head[0]} ", head[0], way[head.end() :].strip(), runs=_complete(way))
        for head, way in zip(heads, ways, strict=True)
        if head
    ]
