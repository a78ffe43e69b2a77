"""Questions that extensions have for the user: pick one of these, choose an answer.

Owns how many and how large they may be, and which answers fit. They are never taken for hilt's own: each has a kind
that permissions do not have, and names its extension.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from hilt.agent.questions import Questions, Reply
from hilt.errors import HiltError, UsageError
from hilt.model.events import Event, PickerAsked, QuestionAsked
from hilt.model.extensions import PickerItem

_OPEN = 16
"""Of one extension at once."""
_ITEMS = 1000
_WORDS = 1000
"""Characters of a title, a label or a choice."""
_PROMPT = 16 * 1024
_WHOLE = 256 * 1024


class Dialogs:
    """Many can be open at once, and none of them holds anything up but its asker."""

    def __init__(self, questions: Questions | None) -> None:
        """Without `questions` nobody can be asked."""
        self._questions = questions
        self._open: Counter[str] = Counter()

    async def pick(self, title: str, items: tuple[PickerItem, ...], source: str) -> str | None:
        """The id of what was picked; None when it was dismissed, or when there is nothing to pick."""
        _few(items, "items")
        texts = [part for item in items for part in (item.id, item.label, item.description)]
        _short([title, *texts], _WORDS)
        ids = frozenset(item.id for item in items)
        return await self._asked(lambda id_: PickerAsked(id_, source, title, items), ids, source)

    async def ask(self, prompt: str, choices: tuple[str, ...], source: str) -> str | None:
        """The choice; None when it was dismissed, or when there is none."""
        _few(choices, "choices")
        _short([prompt], _PROMPT)
        _short(choices, _WORDS)
        return await self._asked(lambda id_: QuestionAsked(id_, source, prompt, choices), frozenset(choices), source)

    async def _asked(self, question: Callable[[str], Event], answers: Collection[str], source: str) -> str | None:
        if self._questions is None or not answers:
            return None
        if self._open[source] >= _OPEN:
            raise HiltError(f"{_OPEN} questions of {source} are open already", hint="wait until one is answered")

        def read(reply: Reply) -> str | None:
            if reply.cancelled or (reply.approved is False and reply.selected is None):
                return None  # whoever says no to whatever is asked need not know of dialogs
            if reply.selected is None:
                raise UsageError("the answer must say what was selected, or that it was cancelled")
            if reply.selected not in answers:
                raise UsageError(f"{reply.selected[:80]!r} is none of what can be selected")
            return reply.selected

        self._open[source] += 1
        try:
            return await self._questions.ask(question, read, None)
        finally:
            self._open[source] -= 1
            self._open += Counter()  # forgets those that have none


def _few(offered: Collection[object], what: str) -> None:
    if len(offered) > _ITEMS:
        raise HiltError(f"{len(offered):,} {what} are too many to choose from; {_ITEMS:,} are the limit")


def _short(texts: Iterable[str], most: int) -> None:
    lengths = [len(text) for text in texts]
    if (longest := max(lengths, default=0)) > most:
        raise HiltError(f"a text of {longest:,} characters is too long for a dialog; {most:,} are the limit")
    if (whole := sum(lengths)) > _WHOLE:
        raise HiltError(f"{whole:,} characters are too many for a dialog; {_WHOLE:,} are the limit")
