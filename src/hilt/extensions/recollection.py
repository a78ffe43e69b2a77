"""Whether one process of an extension tells the model what it told it last time; the user hears of it if not."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from hilt.extensions.chores import Errands
from hilt.extensions.memory import Change, Memory, News
from hilt.model.contributions import Tool
from hilt.packages.discovery import Found

_NAMED = 5
_TOLD = 20
"""Changes of one process that the user is told of, beside all else it does: nothing it does can use them up first."""


class Listener(Protocol):
    def tell(self, level: Literal["info", "warn"], message: str) -> None:
        """Tell the user."""

    def note(self, text: str) -> None:
        """Tell its log."""


class Recollection:
    def __init__(
        self, found: Found, memory: Memory, tools: Callable[[], tuple[Tool, ...]], errands: Errands, listener: Listener
    ) -> None:
        """`errands` are its own alone: nothing else may wait for it, nor keep it from its work."""
        self._name = found.name
        # Two of the same name that lie in different places are not the same.
        self._known_as = found.name if found.source == "user" else f"{found.name} {found.where}"
        self._memory = memory
        self._tools = tools
        self._errands = errands
        self._listener = listener
        self._due = self._late = False
        self._told: set[Change] = set()

    def look(self, *, late: bool = False) -> None:
        """Compare, soon, what it offers with what it offered last. `late`: that there is more is known already."""
        self._due, self._late = True, late
        self._errands.run("look", self._compare())  # or one that is under way looks once more

    def stop(self) -> None:
        self._errands.cancel_all()

    async def _compare(self) -> None:
        while self._due:
            self._due, late = False, self._late
            news = await self._memory.news(self._known_as, self._tools())
            if news.problem:
                self._listener.note(news.problem)
                self._listener.tell("warn", news.problem)
            self._tell_changes(news)
            if news.added and not late:
                self._listener.tell("info", f"extension {self._name} offers what it did not before: {few(news.added)}")

    def _tell_changes(self, news: News) -> None:
        for change in news.changed[:_NAMED]:
            self._tell(change, f"{self._changed(change.tool)}: {change.difference}")
        if rest := news.changed[_NAMED:]:
            self._tell(rest[0], self._changed(few([change.tool for change in rest])))

    def _changed(self, tools: str) -> str:
        return f"extension {self._name} changed what it tells the model about {tools} since you last used it"

    def _tell(self, change: Change, message: str) -> None:
        self._listener.note(message)
        if change not in self._told and len(self._told) < _TOLD:
            self._told.add(change)
            more = "; what follows is in its log only" if len(self._told) == _TOLD else ""
            self._listener.tell("warn", message + more)


def few(names: Sequence[str]) -> str:
    """Enough of them for a message."""
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
