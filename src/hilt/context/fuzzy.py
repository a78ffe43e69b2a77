"""Finding paths by a few of their characters, as fast as somebody types.

A query's characters must occur in order. Runs, the beginnings of words and of segments, and the last segment count for
more; between equals the shorter path wins. Scoring is what takes time, so only paths that have a chance are scored:
each way of being good (the name begins so, a run, initials, any order) puts forward its shortest few, and the last ways
are not tried when the first have enough. Pure.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import accumulate, islice

_FEW = 100
"""Paths that each way of being good puts forward."""
_LONGEST_QUERY = 200
_SAMPLE = 100_000
_END = "\0"
"""Between texts: no path has it."""
_SEPARATORS = "/_-. "
_WORD_START = re.compile(r"(?<![^/_\-. ])[^/_\-. ]|(?<=[a-z0-9])[A-Z]")

_MATCH, _FIRST, _RUN = 16, 2, 4
_SEGMENT, _WORD, _HUMP = 9, 8, 7
_NAME, _WHOLE = 3, 4
_GAP, _FARTHER, _FARTHEST = 3, 1, 12


class Index:
    """Paths, prepared for being found. Preparing takes about 10 µs for each."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths, key=len)
        self._names = [path.rfind("/", 0, -1) + 1 for path in self._paths]
        """Where the last segment begins; that of a folder ends with a slash."""
        self._folded = _Texts([_fold(path) for path in self._paths], self._names)
        self._exact = _Texts(self._paths, self._names)
        self._initials = _Column("".join(_WORD_START.findall(path)).lower() for path in self._paths)
        self._narrowed: tuple[str, list[int]] = ("", [])
        """The last query that few paths matched, and all of them."""

    def __len__(self) -> int:
        return len(self._paths)

    def best(self, query: str, limit: int) -> list[str]:
        """The best first. A query with a capital means its letters as they are."""
        if not query or len(query) > _LONGEST_QUERY:
            return []
        texts = self._exact if query != query.lower() else self._folded
        ranked = (
            (-worth, len(self._paths[at]), self._paths[at])
            for at in self._hopeful(query, texts)
            if (worth := score(texts.texts[at], query, self._names[at], self._paths[at]))
        )
        return [path for _, _, path in nsmallest(limit, ranked)]

    def _hopeful(self, query: str, texts: "_Texts") -> Iterable[int]:
        """Every path that could be among the best, and some more."""
        earlier, few = self._narrowed
        if earlier and query.startswith(earlier):
            return few
        named = list(islice(texts.names.containing(_END + query), _FEW))
        if len(named) == _FEW:
            return named  # nothing else can be better
        others = list(islice(texts.whole.in_order(query), _FEW))
        if len(others) < _FEW:
            self._narrowed = (query, others)
            return others
        runs = islice(texts.whole.containing(query), _FEW)
        initialled = islice(self._initials.in_order(query.lower()), _FEW)
        return {*named, *runs, *initialled, *others}


class _Column:
    """Texts in a row, in which all can be looked through at once."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self._row = _END + _END.join(texts) + _END
        self._starts = array("L", accumulate((len(text) + 1 for text in texts), initial=0))
        """Where the end before each text is, and the one behind the last."""

    def containing(self, part: str) -> Iterator[int]:
        """Which texts have this in them; or at their beginning, if it begins with an end."""
        found = self._row.find(part)
        while found >= 0:
            at = self._at(found)
            yield at
            found = self._row.find(part, self._starts[at + 1])

    def in_order(self, query: str) -> Iterator[int]:
        """Which texts have these characters in this order."""
        steps = [f"[^{_END}{re.escape(letter)}]*+{re.escape(letter)}" for letter in query]
        # Nothing has to be tried twice in a text. Most are passed over at once if they lack the first character.
        begin = re.escape(query[0]) if self._is_rare(query[0]) else _END + steps[0]
        wanted = re.compile(f"{begin}{''.join(steps[1:])}[^{_END}]*+")
        return (self._at(found.start()) for found in wanted.finditer(self._row))

    def _is_rare(self, letter: str) -> bool:
        return self._row.count(letter, 0, _SAMPLE) * 2 < self._row.count(_END, 0, _SAMPLE)

    def _at(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1


class _Texts:
    """Paths as they are compared."""

    def __init__(self, texts: list[str], names: list[int]) -> None:
        self.texts = texts
        self.whole = _Column(texts)
        self.names = _Column(text[name:] for text, name in zip(texts, names, strict=True))


def score(text: str, query: str, name: int, path: str) -> int:
    """How well a query fits, 0 when it does not. `text` is the path as it is compared, `name` where its name begins."""
    return max((_worth(places, text, name, path) for places in _alignments(text, query, name)), default=0)


def _alignments(text: str, query: str, name: int) -> Iterator[list[int]]:
    """Where the query's characters may be: not all places there are, but those that tend to be good."""
    last = _backwards(text, query, len(text))
    if last is None:
        return
    yield last
    for start in (name, 0):
        if (run := text.find(query, start)) >= 0:
            yield list(range(run, run + len(query)))
        if words := _by_words(text, query, start):
            yield words


def _backwards(text: str, query: str, end: int) -> list[int] | None:
    places: list[int] = []
    for letter in reversed(query):
        end = text.rfind(letter, 0, end)
        if end < 0:
            return None
        places.append(end)
    places.reverse()
    return places


def _by_words(text: str, query: str, start: int) -> list[int] | None:
    """From left to right: go on with a run, else at the beginning of a word, else wherever the next one is."""
    places: list[int] = []
    for letter in query:
        if not places or not text.startswith(letter, start):
            first = found = text.find(letter, start)
            if found < 0:
                return None
            while found > 0 and text[found - 1] not in _SEPARATORS:
                found = text.find(letter, found + 1)
            start = first if found < 0 else found
        places.append(start)
        start += 1
    return places


def _worth(places: Sequence[int], text: str, name: int, path: str) -> int:
    total, before, run = 0, -2, 0
    for place in places:
        bonus = _bonus(place, text, path)
        if place == before + 1:
            bonus = run = max(bonus, run, _RUN)
        else:
            run = bonus
            if before >= 0:
                total -= min(_GAP + _FARTHER * (place - before - 2), _FARTHEST)
            else:
                bonus *= _FIRST
        total += _MATCH + bonus + (_NAME if place >= name else 0)
        before = place
    ends_word = before + 1 >= len(text) or text[before + 1] in _SEPARATORS
    return max(total + (_WHOLE if ends_word else 0), 1)


def _bonus(place: int, text: str, path: str) -> int:
    if place == 0 or text[place - 1] == "/":
        return _SEGMENT
    if text[place - 1] in _SEPARATORS:
        return _WORD
    return _HUMP if path[place].isupper() and path[place - 1].islower() else 0


def _fold(path: str) -> str:
    """In small letters, each at the place it had."""
    low = path.lower()
    if len(low) != len(path):
        low = "".join(one if len(one.lower()) != 1 else one.lower() for one in path)
    return path if low == path else low
