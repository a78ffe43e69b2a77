"""`/btw`: questions beside the work, and what is answered. Esc ends an answer that is being given, then the chat."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from rich.segment import Segment
from textual.events import Key
from textual.strip import Strip

from hilt.errors import HiltError
from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.dialogs.field import Field
from hilt.frontends.tui.drawing.markdown import Flow
from hilt.frontends.tui.drawing.plain import plain
from hilt.frontends.tui.look import Look

Ask: TypeAlias = Callable[[str, Callable[[str], None], Callable[[str], None]], Awaitable[str]]
"""Answers a question: told each piece of the answer, and why it begins anew. Raises `HiltError`."""
Begin: TypeAlias = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None] | None"]
"""Has something done beside everything else."""

_BOTTOM = 1 << 30


class SideChat(Dialog[None]):
    def __init__(self, look: Look, ask: Ask, begin: Begin, question: str = "") -> None:
        super().__init__("by the way", look, keys="Enter ask · PgUp PgDn scroll · Esc stop, then close")
        self._ask = ask
        self._begin = begin
        self._first = question
        self._field = Field()
        self._exchanges: list[tuple[str, Flow]] = []
        self._answering: asyncio.Task[None] | None = None
        self._trouble = ""

    def on_mount(self) -> None:
        if self._first:
            self._question(self._first)

    def pressed(self, key: Key, /) -> bool:
        match key.key:
            case "enter":
                if self._field.text.strip() and not self._answering:
                    self._question(self._field.text.strip())
                    self._field.text = ""
            case "escape" | "ctrl+c" if self._answering:
                self._answering.cancel()
            case _:
                if not self._field.pressed(key):
                    return False
                self.changed(redraw=False)
        return True

    def pasted(self, text: str) -> None:
        self._field.add(text)
        self.changed(redraw=False)

    def close(self, result: None = None) -> None:
        if self._answering:
            self._answering.cancel()
        super().close(result)

    def _question(self, question: str) -> None:
        self._trouble = ""
        flow = Flow()
        self._exchanges.append((question, flow))
        self._answering = self._begin(self._answered(question))
        self._grown()

    async def _answered(self, question: str) -> None:
        def again(why: str) -> None:
            self._trouble = why
            self._exchanges[-1] = (question, Flow())
            self._grown()

        def more(text: str) -> None:
            self._exchanges[-1][1].feed(text)
            self._grown()

        try:
            await self._ask(question, more, again)
            self._trouble = ""
        except HiltError as error:
            self._trouble = f"{error.message} ({error.hint})" if error.hint else error.message
        except asyncio.CancelledError:
            self._trouble = "stopped"
            raise
        finally:
            self._answering = None  # this is what it does last
            self._exchanges[-1][1].close()
            self._grown()

    def _grown(self) -> None:
        self.changed()
        self.scroll_by(_BOTTOM)

    def page(self, width: int, /) -> list[Strip]:
        rows: list[Strip] = []
        for question, flow in self._exchanges:
            rows += [*plain(f"› {question}", width, self.look.user), *flow.lines(width, self.look), Strip.blank(0)]
        if self._answering:
            rows.append(Strip([Segment("…", self.look.dim)]))
        elif self._trouble:
            rows += plain(self._trouble, width, self.look.warn)
        return rows or plain("Asked beside the work: nothing of it is kept, no tools.", width, self.look.dim)

    def foot(self, width: int, /) -> list[Strip]:
        return [self._field.row("> ", width, self.look.text, self.look.dim, empty="ask about the conversation so far")]
