"""The inside of a paragraph: emphasis, code, links and the rest of Markdown's inline markup, as parts with roles.

Owns what the user sees of it: whatever has words is shown, also the address of a link or an image. Parsing is
markdown-it's, and is left out where it would take too long.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.paint import Part, Role

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

NESTED = 60
"""Blocks within blocks; what is nested deeper is drawn as it was written."""
_BRACKETS, _MARKS = 100, 600
"""In one paragraph. Parsing takes the square of them, so with more it is drawn as it was written."""
_MARKED = re.compile(r"[\\`*_~!\[\]<&]")
"""What markup is made of: most paragraphs and nearly all cells of tables have none, and need no parser."""
_BREAK = re.compile(r"[ \t]*\n[ \t]*")
_ROLES = {"em": "emphasis", "strong": "strong", "s": "strike"}


@cache
def parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # 30 to 100 ms, and nothing needs it before there is a reply

    # Without references and blocks of HTML each block stands for itself, and nothing that was written disappears.
    found = MarkdownIt("commonmark", {"maxNesting": NESTED}).enable(["table", "strikethrough"])
    found.disable(["reference", "html_block"])
    # Addresses are only shown, and as they were written.
    for name, change in (("validateLink", bool), ("normalizeLink", str), ("normalizeLinkText", str)):
        setattr(found, name, change)
    return found


@lru_cache(256)  # the open end of a reply is drawn again and again, and most of it is as it was
def inline(text: str, base: Role) -> Sequence[Part]:
    """The parts of a paragraph's text, which is clean. Its line feeds are kept."""
    if not _MARKED.search(text):
        return ((_BREAK.sub("\n", text), base),)
    if text.count("[") > _BRACKETS or sum([text.count(mark) for mark in "*_`~<&!"]) > _MARKS:
        return ((text, base),)
    tokens: list[Token] = []
    parser().inline.parse(text, parser(), {}, tokens)
    return tuple(_clean(_parts(tokens, base)))


def _parts(tokens: "Iterable[Token]", base: Role) -> list[Part]:
    parts: list[Part] = []
    roles = [base]
    links: list[tuple[int, str]] = []
    for token in tokens:
        kind = token.type
        if kind in ("softbreak", "hardbreak"):
            parts.append(("\n", roles[-1]))
        elif kind == "code_inline":
            parts.append((token.content, (*roles[-1], "code")))
        elif kind == "image":
            parts.append((_image(token), (*roles[-1], "link")))
        elif kind == "link_open":
            links.append((len(parts), _address(token, "href")))
            roles.append((*roles[-1], "link"))
        elif kind == "link_close":
            roles.pop()
            start, address = links.pop()
            if address and "".join([text for text, _ in parts[start:]]) != address.removeprefix("mailto:"):
                parts.append((f" ({address})", (*roles[-1], "dim")))
        elif token.nesting > 0:
            roles.append((*roles[-1], _ROLES.get(token.tag, "text")))
        elif token.nesting < 0:
            roles.pop()
        elif token.content:
            parts.append((token.content, roles[-1]))
    return parts


def _image(token: "Token") -> str:
    address = _address(token, "src")
    return f"[image: {token.content}]" + (f" ({address})" if address else "")


def _address(token: "Token", name: str) -> str:
    address, title = str(token.attrGet(name) or ""), token.attrGet("title")
    return f'{address} "{title}"'.strip() if title else address


def _clean(parts: list[Part]) -> list[Part]:
    """Entities such as `&#x202E;` may have brought in what the text did not have when it was cleaned."""
    whole = "".join([text for text, _ in parts])
    return parts if clean(whole) == whole else [(clean(text), role) for text, role in parts]
