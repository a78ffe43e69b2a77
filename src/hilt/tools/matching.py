"""Where the parts to replace are in a text, and what to say when they are not there.

Owns the rules of an edit: each old text occurs exactly once, none overlap, an LF in it also stands
for CRLF, and the new text takes over the line ends of the place it goes to.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from msgspec import Struct

from hilt.errors import ToolError
from hilt.tools.diff import Change, compare

_MOST_LISTED = 10
_MOST_COUNTED = 1_000
_MOST_COMPARED = 20_000  # lines looked at for one that is close
_LONGEST_COMPARED = 300  # characters of each
_CLOSE = 0.6


class Edit(Struct, frozen=True, rename="camel"):
    old_text: str
    new_text: str


class Replacement(Struct, frozen=True):
    """These characters of the original make way for `text`."""

    start: int
    end: int
    text: str


class _Normal:
    """A text with CRLF read as LF, and the way back to the original's positions."""

    def __init__(self, text: str) -> None:
        self.source = text
        self.text = text.replace("\r\n", "\n")
        self.crlf: list[int] = []
        """Where in `self.text` the LFs are that were CRLF."""
        at = text.find("\r\n")
        while at >= 0:
            self.crlf.append(at - len(self.crlf))
            at = text.find("\r\n", at + 2)

    def original(self, position: int) -> int:
        return position + bisect_left(self.crlf, position)

    def uses_crlf(self, start: int, end: int) -> bool:
        """Whether new lines at this place should end in CRLF: as there, else as most of the text does."""
        here = bisect_left(self.crlf, end) - bisect_left(self.crlf, start)
        ends = self.text.count("\n", start, end)
        if ends:
            return 2 * here >= ends
        return 2 * len(self.crlf) > self.text.count("\n")


def find_all(text: str, edits: Sequence[Edit]) -> list[Replacement]:
    """Every edit's place, in the order of the text. All of them fit, or `ToolError`."""
    if not edits:
        raise ToolError("edits is empty", hint="give at least one edit")
    normal = _Normal(text)
    found = [(_find(normal, edit, _label(index, edits)), index) for index, edit in enumerate(edits)]
    found.sort(key=lambda pair: pair[0].start)
    for (first, i), (second, j) in pairwise(found):
        if second.start < first.end:
            raise ToolError(f"{_label(i, edits)} and {_label(j, edits)} overlap", hint="join them into one edit")
    return [replacement for replacement, _ in found]


def _label(index: int, edits: Sequence[Edit]) -> str:
    return f"edit {index + 1} of {len(edits)}"


def _find(normal: _Normal, edit: Edit, label: str) -> Replacement:
    old = edit.old_text.replace("\r\n", "\n")
    if not old:
        raise ToolError(f"{label}: oldText is empty", hint="quote the text to replace; to create a file use write")
    starts = _occurrences(normal.text, old)
    if not starts:
        raise _not_found(normal.text, old, label)
    if len(starts) > 1:
        raise _ambiguous(normal.text, starts, label)
    new = edit.new_text
    if normal.uses_crlf(starts[0], starts[0] + len(old)):
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    start, end = normal.original(starts[0]), normal.original(starts[0] + len(old))
    if edit.old_text == edit.new_text or normal.source[start:end] == new:
        raise ToolError(f"{label}: oldText and newText are the same", hint="leave this edit out")
    return Replacement(start, end, new)


def _occurrences(text: str, part: str) -> list[int]:
    """Where `part` begins, overlapping ones too: `aa` is twice in `aaa`. Stops counting when it is hopeless."""
    starts: list[int] = []
    at = text.find(part)
    while at >= 0 and len(starts) < _MOST_COUNTED:
        starts.append(at)
        at = text.find(part, at + 1)
    return starts


def apply(text: str, replacements: Sequence[Replacement]) -> str:
    pieces: list[str] = []
    position = 0
    for replacement in replacements:
        pieces += (text[position : replacement.start], replacement.text)
        position = replacement.end
    return "".join([*pieces, text[position:]])


def changes(old: Sequence[str], new: Sequence[str], replacements: Sequence[Replacement]) -> list[Change]:
    """The changed lines. Known from the replacements, so the untouched rest is never compared."""
    starts = [0, *accumulate(len(line) for line in old)]
    regions: list[list[int]] = []  # first line, line after the last, characters gained in between
    for replacement in replacements:
        first = min(bisect_right(starts, replacement.start) - 1, len(old) - 1)
        after = min(bisect_right(starts, replacement.end), len(old))
        gained = len(replacement.text) - (replacement.end - replacement.start)
        if regions and first < regions[-1][1]:
            regions[-1][1] = max(after, regions[-1][1])
            regions[-1][2] += gained
        else:
            regions.append([first, after, gained])
    found: list[Change] = []
    shift = 0  # lines gained so far
    for first, after, gained in regions:
        length = starts[after] - starts[first] + gained
        last = first + shift
        while length > 0:
            length -= len(new[last])
            last += 1
        found += compare(old[first:after], new[first + shift : last], first, first + shift)
        shift = last - after
    return found


def _ambiguous(text: str, starts: list[int], label: str) -> ToolError:
    lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:_MOST_LISTED])
    more = ", …" if len(starts) > _MOST_LISTED else ""
    times = f"{len(starts)} times" if len(starts) < _MOST_COUNTED else f"{_MOST_COUNTED} times or more"
    return ToolError(
        f"{label}: oldText occurs {times}, at lines {lines}{more}",
        hint="quote more of the surrounding lines so that it occurs once",
    )


def _not_found(text: str, old: str, label: str) -> ToolError:
    lines = text.split("\n")
    wanted = old.strip("\n").split("\n")
    message = f"{label}: oldText is not in the file"
    if (at := _same_but_for_space(lines, wanted)) is not None:
        message += f"; line {at + 1} matches except for white space"
    else:
        longest = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
        at = _closest(lines, wanted[longest])
        at = None if at is None else max(0, at - longest)
    if at is None:
        return ToolError(message, hint="read the file again and quote it exactly")
    shown = lines[at : at + min(len(wanted), _MOST_LISTED)]
    rows = "\n".join(f"{at + 1 + index}: {line[:_LONGEST_COMPARED]}" for index, line in enumerate(shown))
    return ToolError(f"{message}. The closest lines are:\n{rows}", hint="quote the file exactly, white space included")


def _same_but_for_space(lines: list[str], wanted: list[str]) -> int | None:
    """Where the same lines stand with other indentation or inner spacing."""
    squeezed = ["".join(line.split()) for line in wanted]
    if not any(squeezed):
        return None
    for at in range(len(lines) - len(wanted) + 1):
        if all("".join(lines[at + index].split()) == part for index, part in enumerate(squeezed)):
            return at
    return None


def _closest(lines: list[str], wanted: str) -> int | None:
    """The line most like the wanted one, if any is; the file's first lines only, when it is very long."""
    from difflib import SequenceMatcher  # 1 ms, and only a miss needs it

    wanted = wanted.strip()[:_LONGEST_COMPARED]
    matcher = SequenceMatcher(None, b=wanted, autojunk=False)
    best, at = _CLOSE, None
    for index, line in enumerate(lines[:_MOST_COMPARED]):
        matcher.set_seq1(line.strip()[:_LONGEST_COMPARED])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, at = ratio, index
    return at
