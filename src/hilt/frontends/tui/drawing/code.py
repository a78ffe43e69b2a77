"""Code: highlighted where the language is known, on a background of its own, long lines wrapped behind a mark.

Owns which tokens are in it, and where a long listing may be cut so that each piece is highlighted for itself.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Protocol

from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.blocks import Line, Lines
from hilt.frontends.tui.drawing.paint import Paint, Part
from hilt.frontends.tui.look import Look

HIGHLIGHTED = 12_000
"""Characters, at once, which take 25 ms; more is drawn plain."""
READABLE = 1000
"""Characters of a line; one that is longer is data, and all the listing is drawn plain."""
PIECE = 32
"""Lines of a listing that are highlighted together while it grows: that takes milliseconds, each time it is drawn."""
_CONTINUED: tuple[Part, ...] = (("↳ ", ("block", "gutter")),)
_BLOCK = ("block",)
_SPANNING = ("Literal.String", "Comment")
"""What may go on over lines."""


class Lexer(Protocol):
    """Of pygments, which has no types."""

    def get_tokens(self, text: str) -> Iterable[tuple[object, str]]: ...


def code(text: str, language: str, width: int, look: Look) -> list[Strip]:
    """A listing; none of it for an empty text."""
    lines = clean(text).removesuffix("\n").split("\n") if text else []
    return listing(tokens(lines, language)).draw(width, Paint.of(look))


def listing(lines: Sequence[Sequence[Part]], indent: Sequence[Part] = (), hanging: Sequence[Part] = ()) -> Lines:
    """Behind a container's marks, which stand before the mark of a line that goes on."""
    continued = (*hanging, *_CONTINUED)
    made = []
    for parts in lines:
        made.append(Line(parts, indent, continued, hard=True, fill=_BLOCK))
        indent = hanging
    return Lines(made)


def tokens(lines: Sequence[str], language: str) -> list[Sequence[Part]]:
    """The parts of each line. Lines are clean."""
    readable = max(map(len, lines), default=0) <= READABLE and sum(map(len, lines)) <= HIGHLIGHTED
    lexer = _lexer(language) if readable else None
    if lexer is None:
        return [((line, _BLOCK),) for line in lines]
    found: list[list[Part]] = [[]]
    for kind, text in _lexed(lexer, "\n".join(lines)):
        for at, part in enumerate(text.split("\n")):
            if at:
                found.append([])
            line = found[-1]
            if part and line and line[-1][1] == kind:
                line[-1] = (line[-1][0] + part, kind)
            elif part:
                line.append((part, kind))
    # Lexers drop and add line feeds at the end, and some change more than that: what is shown is what was written.
    found = found[: len(lines)]
    found += [[] for _ in range(len(lines) - len(found))]
    return [
        tuple(parts) if "".join([part for part, _ in parts]) == line else ((line, _BLOCK),)
        for parts, line in zip(found, lines, strict=True)
    ]


def piece(lines: Sequence[Sequence[Part]]) -> int:
    """How many of these lines to cut off, the last of which are looked at but not all taken.

    Best before a line without indentation, where most languages begin something new; and not within a string or a
    comment, for what is behind it would be taken for the contrary.
    """
    cuts = [at for at in range(len(lines) - 1, len(lines) // 2, -1) if not (_last(lines[at - 1]) and _first(lines[at]))]
    fresh = [at for at in cuts if lines[at] and lines[at][0][0][:1] not in " \t)]}"]
    return next(iter([*fresh, *cuts]), max(1, len(lines) - 1))


def _last(line: Sequence[Part]) -> bool:
    return bool(line) and line[-1][1][-1].startswith(_SPANNING)


def _first(line: Sequence[Part]) -> bool:
    return bool(line) and line[0][1][-1].startswith(_SPANNING)


def _lexed(lexer: Lexer, text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    kinds: dict[object, tuple[str, ...]] = {}
    for kind, part in lexer.get_tokens(text):
        role = kinds.get(kind)
        if role is None:
            name = str(kind).removeprefix("Token.")
            bare = name in ("Token", "Name") or name.startswith(("Text", "Punctuation"))
            role = kinds[kind] = _BLOCK if bare else ("block", name)
        yield role, part


def language(info: str) -> str:
    """Of a fence, by the words behind it."""
    return info.split()[0] if info.strip() else ""


def known(language: str) -> bool:
    return _lexer(language) is not None


@lru_cache(64)
def _lexer(language: str) -> Lexer | None:
    names, made = _pygments()
    return made(language, stripnl=False, ensurenl=False) if language.lower() in names else None


@cache
def _pygments() -> tuple[frozenset[str], Callable[..., Lexer]]:
    """The names of languages, to ask first: for one it does not know, pygments looks through all that is installed."""
    # 60 ms with the first lexer, and no first frame needs one
    from pygments.lexers import get_all_lexers, get_lexer_by_name  # type: ignore[import-untyped]  # it has no types

    names = frozenset([alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases])
    return names, get_lexer_by_name
