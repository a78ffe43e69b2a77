"""A tool call: what was called, who had a say in it, how it goes while it runs, and what came of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.style import Style
from textual.strip import Strip

from hilt.frontends.terminal import clean, one_line
from hilt.frontends.tui.drawing.wrapping import Span, clip, wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.changes import changes, drafted, unnamed
from hilt.frontends.tui.transcript.consulted import Consulted
from hilt.frontends.tui.transcript.copying import DECORATION
from hilt.frontends.tui.transcript.draft import Draft
from hilt.frontends.tui.transcript.excerpt import behind
from hilt.frontends.tui.transcript.output import FOLDED, Output
from hilt.frontends.tui.transcript.pictures import Picture
from hilt.frontends.tui.transcript.shell import program_output
from hilt.frontends.tui.transcript.summary import elapsed, summary
from hilt.model.content import Args, Image, ResultBlock, text_of
from hilt.model.events import Intercepted, ToolResultAdded

State = Literal[
    "drafted", "queued", "held", "running", "completed", "failed", "blocked", "cancelled", "timed_out", "unknown"
]

_WORDS: Mapping[State, tuple[str, str]] = {
    "drafted": ("○", "being written"),
    "queued": ("○", "waits its turn"),
    "held": ("○", "waits for your answer"),
    "running": ("◐", "running"),
    "completed": ("✓", "done"),
    "failed": ("✗", "failed"),
    "blocked": ("⊘", "blocked"),
    "cancelled": ("⊘", "cancelled"),
    "timed_out": ("✗", "timed out"),
    "unknown": ("?", "no result"),
}
_OPEN: tuple[State, ...] = ("drafted", "queued", "held", "running")
_FILES = ("edit", "write")
_INDENT = 2
_GLIMPSE = 4
"""Rows of a file that was read: it is there to be looked at."""


class Call(Block):
    def __init__(self, id_: str, name: str, owner: str = "", by: str = "") -> None:
        """`owner` is the extension whose tool it is, `by` the one that calls it in place of the model."""
        self.id = id_
        self.name = name
        self.owner = owner
        self.by = by
        self.args: Args = {}
        self.state: State = "drafted"
        self.folded = True
        self._invalid = ""
        self._draft: Draft | None = None
        self._consulted: Consulted | None = None
        self._output = Output(from_end=self._is_own("bash"), folded=_GLIMPSE if self._is_own("read") else FOLDED)
        self._diff = ""
        self._changed_by: tuple[str, ...] = ()
        self._exit: int | None = None
        self._since = 0.0
        self._seconds = 0.0

    def _is_own(self, *names: str) -> bool:
        """Whether it is a tool of hilt's, whose arguments and results are known."""
        return not self.owner and self.name in names

    # As it goes

    def draft(self, piece: str) -> None:
        """A piece of the arguments' JSON, as the model writes it."""
        if self._draft is None:
            self._draft = Draft()
        self._draft.add(piece)
        self.touch()

    def called(self, args: Args, invalid: str = "") -> None:
        self.args, self._invalid, self._draft = args, invalid, None
        self.touch()

    def start(self, now: float) -> None:
        self.state, self._since, self._seconds = "running", now, 0.0
        self.touch()

    def queued(self) -> None:
        """Another one of the same answer is before it."""
        self.state = "queued"
        self.touch()

    def tick(self, now: float) -> None:
        if self.state == "running" and elapsed(now - self._since) != elapsed(self._seconds):
            self._seconds = now - self._since
            self.touch()

    def intercepted(self, told: Intercepted) -> None:
        """Interceptors were asked about it."""
        self._asked().intercepted(told, self.args)
        for one in told.decisions:
            if one.decision == "rewrite" and isinstance(one.changed, dict):
                self.args = one.changed
        self.touch()

    def held(self) -> None:
        """The user is asked about it: it starts with the answer, and how long that takes is not its doing."""
        self.state, self._seconds = "held", 0.0
        self.touch()

    def decided(self, *, approved: bool, reason: str) -> None:
        """The user was asked about it."""
        if not approved:
            self._asked().refused(reason)
            self.touch()

    def _asked(self) -> Consulted:
        if self._consulted is None:
            self._consulted = Consulted()
        return self._consulted

    def progress(self, text: str) -> None:
        self._output.add(text)
        self.touch()

    def finished(self, result: ToolResultAdded, now: float) -> None:
        if self._since:
            self._seconds = now - self._since
        self.args = result.args or self.args
        self._changed_by = result.changed_by
        self.ended(result.content, is_error=result.is_error, details=result.details, state=result.status)

    def ended(
        self,
        content: Sequence[ResultBlock],
        *,
        is_error: bool,
        details: Mapping[str, Any],
        state: State | None = None,
    ) -> None:
        self.state = state or ("failed" if is_error else "completed")
        text = text_of(content, "\n")
        if self._is_own("bash"):
            text, self._exit = program_output(text, self.args, details)
        diff = details.get("diff")
        if self._is_own(*_FILES) and isinstance(diff, str) and not is_error and not self._changed_by:
            self._diff = unnamed(diff) if self._is_own("write") else diff
            text = "" if self._diff else text
        self._output.end(text)
        self.pictures = tuple([Picture(block) for block in content if isinstance(block, Image)])
        self.touch()

    def abandoned(self) -> None:
        """Nobody will hear of it any more."""
        if self.state in _OPEN:
            self.state = "unknown"
            self.touch()

    # As it looks

    def rows(self, width: int, look: Look) -> list[Strip]:
        room = max(width - _INDENT, 1)
        return [self._head(width, look), *behind(" " * _INDENT, self._body(room, look), look.text)]

    def _head(self, width: int, look: Look) -> Strip:
        """One row. What it is about gives way when there is too little room, how it stands does not."""
        mark, style = _WORDS[self.state][0], self._style(look)
        front: list[Span] = [(f"{mark} ", style + DECORATION), (one_line(self.name, 64), look.strong)]
        if self.owner:
            front.append((f" [{one_line(self.owner, 40)}]", look.badge))
        if self.by:
            front.append((f" for [{one_line(self.by, 40)}]", look.badge))
        state: list[Span] = [(f" · {self._state()}", style if self.state != "completed" else look.dim)]
        room = width - sum([len(text) for text, _ in [*front, *state]]) - 1
        about = one_line(self._about(), room) if room > 3 else ""
        spans = [*front, (f" {about}" if about else "", look.text), *state]
        return clip(wrap(spans, max(width, 1) + 4096)[0], width)

    def _about(self) -> str:
        args = self._draft.args if self._draft else self.args
        return self._invalid or summary(self.name if not self.owner else "", args)

    def _state(self) -> str:
        word = _WORDS[self.state][1]
        if self._exit and self.state == "failed":
            word += f", exit {self._exit}"
        return " ".join(filter(None, (word, elapsed(self._seconds))))

    def _style(self, look: Look) -> Style:
        match self.state:
            case "completed":
                return look.success
            case "failed" | "timed_out":
                return look.error
            case "blocked" | "cancelled" | "unknown":
                return look.warn
            case _:
                return look.accent

    def _body(self, width: int, look: Look) -> Iterator[Strip]:
        folded = bool(self.folded)
        if not folded:
            yield from self._command(width, look)
        if self._consulted:
            yield from self._consulted.rows(width, look, folded=folded)
        if self._changed_by:
            who: list[Span] = [(f" [{clean(name)}]", look.badge) for name in self._changed_by]
            yield from wrap([("✎ the result was changed by", look.warn), *who], width)
        if self._draft and self._is_own(*_FILES):
            yield from drafted(self.name, self._draft.args, width, look)
        if self._diff:
            yield from changes(self._diff, self.args.get("path"), width, look, folded=folded)
        if not (self.state == "blocked" and self._consulted and self._consulted.blocked):
            failed = self.state not in ("completed", *_OPEN)
            yield from self._output.rows(width, look, folded=folded, failed=failed)
        for picture in self.pictures:
            yield from picture.rows(width, look)

    def _command(self, width: int, look: Look) -> list[Strip]:
        """All that was called, where the head has room for a part only."""
        about = clean(self._about())
        if len(about) + len(self.name) + 24 <= width and "\n" not in about:
            return []
        return wrap([(about[:4096], look.text)], width)

    def guess(self, width: int) -> int:
        body = self._output.guess(width, folded=bool(self.folded))
        return 1 + body + (min(self._diff.count("\n") + 1, 20) if self._diff else 0) + len(self.pictures)
