"""What changed between two texts, by lines, and two ways to write it down.

Owns comparing with bounded work and the two layouts: context rows, as the model and the screens
see an edit, and a unified diff, as a person sees a whole file before allowing it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

_CONTEXT = 3
_MOST_COMPARED_LINES = 10_000
_MOST_EQUAL_PAIRS = 200_000
"""Pairs of equal lines; matching takes time by their number, so blank-line deserts are not matched."""
_NO_END = "\\ No newline at end of file"


class Change(Struct, frozen=True):
    """Lines `old_start` up to `old_end` became lines `new_start` up to `new_end`; counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """Lines with their ends. Only LF ends a line: `splitlines` would also cut at form feeds and such."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def compare(old: Sequence[str], new: Sequence[str], at_old: int = 0, at_new: int = 0) -> list[Change]:
    """The changes that lead from old to new, which begin at these line numbers of their texts."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if not before and not after:
        return []
    at_old, at_new = at_old + start, at_new + start
    if not _comparable(before, after):
        return [Change(at_old, at_old + len(before), at_new, at_new + len(after))]
    from difflib import SequenceMatcher  # 1 ms, and most calls change nothing that needs it

    return [
        Change(at_old + i1, at_old + i2, at_new + j1, at_new + j2)
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if tag != "equal"
    ]


def _comparable(before: Sequence[str], after: Sequence[str]) -> bool:
    if not before or not after or len(before) + len(after) > _MOST_COMPARED_LINES:
        return False
    counts = Counter(after)
    return sum(counts[line] for line in before) <= _MOST_EQUAL_PAIRS


def context_diff(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> str:
    """Rows marked ` `, `-` and `+` with three lines of context; `...` where lines are left out."""
    return "\n...\n".join("\n".join(_rows(old, new, hunk)) for hunk in _hunks(changes))


def unified_diff(old: Sequence[str], new: Sequence[str], changes: Sequence[Change], name: str, *, created: bool) -> str:
    rows = ["--- /dev/null" if created else f"--- {name}", f"+++ {name}"]
    for hunk in _hunks(changes):
        first, last = hunk[0], hunk[-1]
        old_from, old_to = max(0, first.old_start - _CONTEXT), min(len(old), last.old_end + _CONTEXT)
        new_from, new_to = max(0, first.new_start - _CONTEXT), min(len(new), last.new_end + _CONTEXT)
        rows.append(f"@@ -{_span(old_from, old_to)} +{_span(new_from, new_to)} @@")
        rows += _rows(old, new, hunk)
    return "\n".join(rows)


def _span(start: int, end: int) -> str:
    """A range as unified diffs count: from 1, and an empty one by the line before it."""
    return f"{start + (end > start)},{end - start}"


def _hunks(changes: Sequence[Change]) -> list[list[Change]]:
    """Changes whose context would touch belong together."""
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change.old_start - hunks[-1][-1].old_end <= 2 * _CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _rows(old: Sequence[str], new: Sequence[str], hunk: list[Change]) -> Iterator[str]:
    position = max(0, hunk[0].old_start - _CONTEXT)
    for change in hunk:
        yield from _marked(" ", old[position : change.old_start])
        yield from _marked("-", old[change.old_start : change.old_end])
        yield from _marked("+", new[change.new_start : change.new_end])
        position = change.old_end
    yield from _marked(" ", old[position : position + _CONTEXT])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield mark + line[:-1]
        else:
            yield mark + line
            yield _NO_END
