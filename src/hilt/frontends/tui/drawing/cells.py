"""The clusters of a text: characters that are drawn as one, and how many cells of a terminal each takes.

Owns what belongs together. How wide a character is comes from `rich`, by which everything else on the screen is
measured too.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from rich.cells import cell_len

Cluster: TypeAlias = tuple[int, int, int]
"""Where it begins and ends in the text, and its cells."""

TOO_WIDE = "…"
"""In place of what is wider than a whole row."""

# Every one of these takes one cell and stands for itself: most text is made of them, and needs no measuring.
_SIMPLE = re.compile(
    "[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u203b\u203d-\u2048\u204a-\u205e\u2190-\u2193"
    "\u2500-\u25a9\u25b2-\u25b5\u2713\u2717]*"
)
# With these, which take two: most text in Chinese, Japanese or Korean.
_WIDE = re.compile(
    _SIMPLE.pattern[:-2]
    + "\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60]*"
)
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_JOINER = "\u200d"


def clusters_of(text: str) -> Sequence[Cluster] | None:
    """None: each character is one, and takes one cell."""
    if _SIMPLE.fullmatch(text):
        return None
    return _remembered(text) if len(text) < 512 else _found(text)


def narrowed(text: str, clusters: Sequence[Cluster], room: int) -> str:
    """With a sign in place of each cluster that takes more cells than there are."""
    return "".join([text[start:end] if cells <= room else TOO_WIDE for start, end, cells in clusters])


@lru_cache(256)  # the same line is measured for its height, and again when it is drawn
def _remembered(text: str) -> Sequence[Cluster]:
    return _found(text)


def _found(text: str) -> Sequence[Cluster]:
    if _WIDE.fullmatch(text):
        return tuple([(at, at + 1, 1 + (letter > "\u3000")) for at, letter in enumerate(text)])
    joined = {letter for letter in set(text) if cell_len(letter) == 0}
    starts = [at for at, letter in enumerate(text) if letter not in joined and text[at - 1] != _JOINER]
    if not starts or starts[0]:
        starts.insert(0, 0)  # whatever comes first has nothing to belong to
    if _FLAG.search(text):
        starts = list(_paired(starts, text))
    return tuple([(start, end, cell_len(text[start:end])) for start, end in pairwise([*starts, len(text)])])


def _paired(starts: Sequence[int], text: str) -> Iterator[int]:
    """Two letters of those that make flags are one."""
    open_flag = False
    for start in starts:
        flag = _FLAG.match(text, start) is not None
        if not (flag and open_flag):
            yield start
        open_flag = flag and not open_flag
