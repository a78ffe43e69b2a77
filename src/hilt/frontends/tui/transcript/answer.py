"""What the model says, and what it thinks before it does: text that grows while it is read."""

from collections.abc import Callable, Sequence
from typing import overload

from textual.strip import Strip

from hilt.frontends.tui.drawing.markdown import Flow
from hilt.frontends.tui.drawing.plain import plain
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block, Grown
from hilt.frontends.tui.transcript.copying import DECORATION
from hilt.frontends.tui.transcript.excerpt import MOST, behind, ending, more
from hilt.frontends.tui.transcript.summary import elapsed

_AT_ONCE = 2_000
"""Characters that are laid out while a frame waits: some ten milliseconds."""
_PATIENCE = 0.005
"""Seconds; more of it is laid out beside."""
_IN_SIGHT = 0.008
"""The same for one that is in sight: as far as it is laid out, it stays there."""


class Answer(Block):
    """Markdown. It is parsed when it comes into sight, and what is parsed is not kept for ever."""

    def __init__(self) -> None:
        self._grown = Grown()
        self._flow: Flow | None = None
        self._finished = False
        self._seen = False
        """Whether it was drawn, and not only what stands for it."""

    @classmethod
    def of(cls, text: str) -> "Answer":
        answer = cls()
        answer._grown = Grown(text)
        answer._finished = True
        return answer

    @property
    def text(self) -> str:
        return self._grown.text

    def feed(self, text: str) -> None:
        self._grown.add(text)
        if self._flow:
            self._flow.feed(text)
        self.touch()

    def finish(self) -> None:
        self._finished = True
        if self._flow:
            self._flow.close()
        self.touch()

    def replace(self, text: str) -> None:
        self._grown, self._flow, self._finished = Grown(text), None, True
        self.touch()

    def rows(self, width: int, look: Look) -> Sequence[Strip]:
        if not self._grown.text.strip():
            return []
        flow = self._laid_out()
        self.partial = self._seen or not self._finished
        patience = _IN_SIGHT if self.partial else _PATIENCE
        self.unready = flow.partial = self._grown.length > _AT_ONCE and not flow.advance(patience)
        if self.unready and not self.partial:
            return wrap([("… a long answer is being laid out", look.dim)], width)[:1]
        self._seen = True
        return _Rows(flow.height(width), lambda first, last: flow.rows(first, last, width, look))

    def _laid_out(self) -> Flow:
        if self._flow is None:
            self._flow = Flow()
            self._flow.feed(self._grown.text)
            if self._finished:
                self._flow.close()
        return self._flow

    def advance(self, seconds: float) -> bool:
        self.unready = not self._laid_out().advance(seconds)
        return not self.unready

    def guess(self, width: int) -> int:
        return self._grown.rows(width)

    def forget(self) -> None:
        self._flow, self._seen = None, False


class _Rows(Sequence[Strip]):
    """Rows that are drawn when somebody looks at them."""

    def __init__(self, height: int, cut: Callable[[int, int], list[Strip]]) -> None:
        self._height, self._cut = height, cut

    def __len__(self) -> int:
        return self._height

    @overload
    def __getitem__(self, index: int) -> Strip: ...

    @overload
    def __getitem__(self, index: slice) -> list[Strip]: ...

    def __getitem__(self, index: int | slice) -> Strip | list[Strip]:
        if isinstance(index, slice):
            first, last, _ = index.indices(self._height)
            return self._cut(first, last)
        if not -self._height <= index < self._height:
            raise IndexError(index)
        at = index % self._height
        return self._cut(at, at + 1)[0]


class Thought(Block):
    """Thinking, folded unless somebody wants to read it."""

    def __init__(self, now: float = 0.0) -> None:
        """By the clock that `finish` is told too; 0 when nobody knows when it was."""
        self._grown = Grown()
        self._since = now
        self._seconds = 0.0
        self._open = True
        self.folded = True

    @classmethod
    def of(cls, text: str) -> "Thought":
        thought = cls()
        thought._grown = Grown(text)
        thought._open = False
        return thought

    def feed(self, text: str) -> None:
        self._grown.add(text)
        self.touch()

    def tick(self, now: float) -> None:
        if self._open and self._since and elapsed(now - self._since) != elapsed(self._seconds):
            self._seconds = now - self._since
            self.touch()

    def finish(self, now: float = 0.0) -> None:
        if self._since and now:
            self._seconds = now - self._since
        self._open = False
        self.touch()

    def rows(self, width: int, look: Look) -> list[Strip]:
        took = elapsed(self._seconds)
        open_, closed = f"thinking {took}".rstrip() + "…", f"thought for {took}" if took else "thought"
        head = f"{'▸' if self.folded else '▾'} {open_ if self._open else closed} · {self._grown.length:,} characters"
        rows = wrap([(head, look.dim + DECORATION)], width)[:1]
        if self.folded:
            return rows
        text, hidden = ending(self._grown.text, max(width - 2, 1), look.quote, MOST, plain)
        return [*rows, *behind("  ", [*more(hidden, width - 2, look, folded=False, earlier=True), *text], look.quote)]

    def guess(self, width: int) -> int:
        return 1 if self.folded else 1 + min(self._grown.rows(width), MOST)
