"""What extensions do with the user's words: rewriting them, or adding to what the model is told with them.

Owns the order, the deadlines and what a failure costs. A failing transformer costs the submission, since nobody knows
what would have been sent; a failing hook costs its own addition.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from hilt.agent.waiting import Waits
from hilt.errors import ExtensionError, HiltError
from hilt.model.contributions import InputTransformer, MessageHook
from hilt.model.events import Event, Noticed
from hilt.registry.snapshot import Owned

_NOT_SENT = "nothing was sent; `/ext` shows how the extension is, and `--no-ext` goes without"


class Rewritten(Struct, frozen=True):
    text: str
    changed_by: tuple[str, ...] = ()
    handled_by: str = ""
    """The extension that took it: there is nothing left to send."""


async def transformed(owned: Sequence[Owned[InputTransformer]], text: str, seconds: float, waits: Waits) -> Rewritten:
    """The text as they leave it, each given what the one before made of it."""
    changed: list[str] = []
    for one in owned:
        try:
            with waits.on(one.owner, "transformer"):
                async with asyncio.timeout(seconds):
                    answer = await one.offer.transform(text)
        except TimeoutError:
            raise _refused(one.owner, f"no answer within {seconds:g} s") from None
        except ExtensionError as error:
            raise _refused(one.owner, error.message) from error
        if answer.handled or not answer.text.strip():
            return Rewritten(answer.text, tuple(changed), handled_by=one.owner)
        if answer.text != text:
            changed.append(one.owner)
            text = answer.text
    return Rewritten(text, tuple(changed))


def _refused(owner: str, why: str) -> HiltError:
    return HiltError(f"input transformer of {owner}: {why}", hint=_NOT_SENT)


async def injected(owned: Sequence[Owned[MessageHook]], text: str, seconds: float, waits: Waits) -> "Injected":
    """What they want the model to be told with this message. They are asked all at once, and come in their order."""
    said = [""] * len(owned)
    failed: list[str] = []

    async def ask(index: int, one: Owned[MessageHook]) -> None:
        try:
            with waits.on(one.owner, "hook"):
                async with asyncio.timeout(seconds):
                    said[index] = await one.offer.on_message(text)
        except TimeoutError:
            failed.append(f"message hook of {one.owner}: no answer within {seconds:g} s")
        except ExtensionError as error:
            failed.append(f"message hook of {one.owner}: {error.message}")

    async with asyncio.TaskGroup() as group:
        for index, one in enumerate(owned):
            group.create_task(ask(index, one))
    return Injected(tuple(text for text in said if text.strip()), tuple(failed))


class Injected(Struct, frozen=True):
    texts: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def system(self, prompt: str) -> str:
        """The system prompt with what is added to it."""
        return "\n\n".join((prompt, *self.texts)) if self.texts else prompt

    async def complain(self, emit: Callable[[Event], Awaitable[None]]) -> None:
        for why in self.failed:
            await emit(Noticed("warn", f"{why}; the message was sent without what it adds"))
