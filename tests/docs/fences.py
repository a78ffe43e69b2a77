"""The documents, and the fenced blocks and links in them.

A block is run or checked by its language. An HTML comment on the line before the fence changes that:
`<!-- not run: reason -->` leaves it unrun, `<!-- file: NAME -->` saves it for the blocks that follow, and
`<!-- needs: PROGRAM -->` runs it where that program is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

LINKED = [
    *DOCUMENTS,
    *(
        page
        for place in ("examples", "spec", "sdks")
        for page in sorted((ROOT / place).rglob("README.md"))
        if "node_modules" not in page.parts
    ),
]
"""All that is linked to and fro, also what is not run here."""

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[^`]*)$")
_COMMENT = re.compile(r"^ *<!-- *(?P<kind>not run|file|needs): *(?P<value>.*?) *-->$")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.*)$")


@dataclass(frozen=True, slots=True)
class Fence:
    file: Path
    line: int
    """Of its opening, counted from 1."""
    language: str
    text: str
    not_run: str | None = None
    """The reason, when it is marked."""
    saved_as: str = ""
    needs: str = ""
    """A program without which it is not run."""

    @property
    def where(self) -> str:
        return f"{self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file}:{self.line}"


def fences_of(file: Path) -> list[Fence]:
    return list(fences_in(file, file.read_text(encoding="utf-8")))


def fences_in(file: Path, text: str) -> Iterator[Fence]:
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None:
            at += 1
            continue
        start = at
        at += 1
        while at < len(lines) and lines[at].strip() != opening["ticks"]:
            at += 1
        if at == len(lines):
            raise AssertionError(f"{file}:{start + 1}: this fence is never closed")
        body = [line.removeprefix(opening["indent"]) for line in lines[start + 1 : at]]
        at += 1
        mark = _COMMENT.match(lines[start - 1]) if start else None
        kind, value = (mark["kind"], mark["value"]) if mark else ("", "")
        yield Fence(
            file,
            start + 1,
            opening["language"].strip(),
            "".join(line + "\n" for line in body),
            value if kind == "not run" else None,
            value if kind == "file" else "",
            value if kind == "needs" else "",
        )


def prose_of(file: Path) -> list[tuple[int, str]]:
    """The numbered lines outside fences."""
    text = file.read_text(encoding="utf-8")
    inside: set[int] = set()
    for fence in fences_in(file, text):
        inside.update(range(fence.line, fence.line + fence.text.count("\n") + 2))
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if number not in inside]


def links_of(file: Path) -> list[tuple[int, str]]:
    """Where each link stands and where it leads."""
    return [(number, found["target"]) for number, line in prose_of(file) for found in _LINK.finditer(line)]


def anchors_of(file: Path) -> set[str]:
    """The names by which headings can be linked to, made as code hosts make them."""
    titles = [found["title"] for _, line in prose_of(file) if (found := _HEADING.match(line))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
