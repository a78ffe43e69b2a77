"""What `edit` and `write` do to a file: as it was done, and as it is being written."""

from pathlib import PurePath

from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.diff import diff
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.copying import DECORATION
from hilt.frontends.tui.transcript.excerpt import more
from hilt.frontends.tui.transcript.output import LIVE
from hilt.model.content import Args

FOLDED = 20
"""Lines of a diff that is folded."""
_LONG = 2_000
"""Characters of a line that is being written."""


def unnamed(unified: str) -> str:
    """The diff of a `write` without its first two lines, which name the file: the call does that already."""
    return "\n".join(unified.split("\n")[2:])


def changes(text: str, path: object, width: int, look: Look, *, folded: bool) -> list[Strip]:
    """A diff, whole or its beginning."""
    lines = text.split("\n")
    numbered = lines[0].startswith("@@ ")
    hidden = max(0, len(lines) - FOLDED) if folded else 0
    shown = lines[: len(lines) - hidden]
    if numbered:
        rows = diff("\n".join(shown), width, look, _language(path))
    else:
        rows = [row for line in shown for row in marked(line, width, look)]
    return [*rows, *more(hidden, width, look, folded=folded)]


def marked(line: str, width: int, look: Look) -> list[Strip]:
    """A line of a diff without numbers: it says itself whether it comes or goes."""
    style = {"+": look.added, "-": look.removed, " ": look.text}.get(line[:1])
    if style is None:
        return wrap([(clean(line), look.dim)], width)
    mark = {"+": look.added + look.success, "-": look.removed + look.error}.get(line[0], look.gutter) + DECORATION
    fill = style if line[0] != " " else None
    return wrap([(clean(line[1:]), style)], width, indent=[(f"{line[0]} ", mark)], hanging=[("  ", mark)], fill=fill)


def drafted(name: str, args: Args, width: int, look: Look) -> list[Strip]:
    """The end of what the model has written so far."""
    match name, args:
        case "write", {"content": str(content)}:
            lines = [f"+{line}" for line in _last(content)]
        case "edit", {"edits": [*_, {"oldText": str(old), "newText": str(new)}]}:
            lines = [*[f"-{line}" for line in _last(old)][-LIVE // 2 :], *[f"+{line}" for line in _last(new)]]
        case "edit", {"edits": [*_, {"oldText": str(old)}]}:
            lines = [f"-{line}" for line in _last(old)]
        case _:
            return []
    rows = [row for line in lines[-LIVE:] for row in marked(line, width, look)]
    return rows[-LIVE:]


def _last(text: str) -> list[str]:
    """The last few lines, without looking at the others."""
    return [line[-_LONG:] for line in text[-LIVE * _LONG :].removesuffix("\n").split("\n")[-LIVE:]]


def _language(path: object) -> str:
    """By the end of its name: lexers go by such names too."""
    return PurePath(path).suffix.removeprefix(".") if isinstance(path, str) else ""
