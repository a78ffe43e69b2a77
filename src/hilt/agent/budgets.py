"""How many tokens each extension may have models use beside the conversation, and how many it has."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hilt.errors import BudgetSpent


class Budgets:
    """By extension, for as long as the session runs; a restart of the extension changes nothing."""

    def __init__(self, limit: Callable[[str], int]) -> None:
        self._limit = limit
        self._used: dict[str, int] = {}
        self._held: dict[str, int] = {}
        """What is being asked for and not counted yet, so that many requests at once are not many budgets."""

    def used(self, source: str) -> int:
        return self._used.get(source, 0)

    def spend(self, source: str, tokens: int) -> None:
        self._used[source] = self.used(source) + tokens

    def exceeded(self, source: str, more: int = 1) -> str:
        """Why it may not use so many more, at least one; empty if it may."""
        limit = self._limit(source)
        if self.used(source) + self._held.get(source, 0) + max(more, 1) <= limit:
            return ""
        return (
            f"{source} has used {self.used(source):,} tokens beside the conversation, and {limit:,} is what it may use "
            f"in a session: set `tokens` below [extensions.{source}] in config.toml, or `extension_tokens` for all"
        )

    @contextmanager
    def held(self, source: str, tokens: int) -> Iterator[None]:
        """Set so many aside for the life of the block. Raises `BudgetSpent` when there are not so many left."""
        if refusal := self.exceeded(source, tokens):
            raise BudgetSpent(refusal)
        self._held[source] = self._held.get(source, 0) + tokens
        try:
            yield
        finally:
            self._held[source] -= tokens
