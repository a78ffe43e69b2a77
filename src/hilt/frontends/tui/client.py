"""What the user does, done with the session. Owns the tasks that this takes; nothing of it is left when it closes.

Words are said in the order in which they were typed. Commands may take long, and hold up nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from hilt.agent.questions import Questions, Reply
from hilt.agent.session import Session
from hilt.agent.shelling import parsed
from hilt.errors import HiltError, UsageError
from hilt.model.actions import PermissionMode, SetPermissions

log = logging.getLogger(__name__)

_AT_ONCE = 64
"""Things that the user may have under way."""
_MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "yolo")


class Client:
    def __init__(self, session: Session, questions: Questions, complain: Callable[[HiltError], None]) -> None:
        """`complain` shows what could not be done."""
        self.session = session
        self.questions = questions
        self.here: Callable[[str], bool] = lambda _: False
        """Takes what was typed when something opens for it on this screen, and says whether it does."""
        self.shell: Callable[[str, bool], Coroutine[Any, Any, None]] | None = None
        """Runs a command of the user's and shows it; and whether the model is to know of it."""
        self._complain = complain
        self._group = asyncio.TaskGroup()
        self._under_way: set[asyncio.Task[None]] = set()
        self._saying = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.questions.close()
        for task in self._under_way:
            task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    def do(self, work: Coroutine[Any, Any, object], what: str) -> "asyncio.Task[None] | None":
        """Have something done beside everything else; if it fails, the user is told."""
        if len(self._under_way) >= _AT_ONCE:
            work.close()
            self._complain(UsageError(f"{_AT_ONCE} things are under way already", hint="wait, or cancel with Esc"))
            return None
        task = self._group.create_task(self._done(work), name=what)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _done(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except HiltError as error:
            self._complain(error)
        except OSError as error:
            self._complain(HiltError(str(error)))

    # Verbs

    def submit(self, text: str) -> None:
        """A line as it was typed: a slash command, a shell command, or words for the model."""
        if self.here(text):
            return
        if self.shell and (ran := parsed(text)):
            self.do(self.shell(*ran), text[:40])
            return
        if self.session.known_command(text) or text.startswith("/"):
            self.do(self.session.input(text), text[:40])
        else:
            self.do(self._say(text), "saying")

    async def _say(self, text: str) -> None:
        async with self._saying:  # in the order in which they were typed
            await self.session.input(text)

    def cancel(self) -> bool:
        """Stop what runs; False when nothing does."""
        return self.session.abort()

    async def take_back(self) -> list[str]:
        return await self.session.take_back()

    def answer(self, id_: str, reply: Reply) -> None:
        try:
            self.questions.answer(id_, reply)
        except UsageError as error:
            log.info("an answer came too late: %s", error.message)

    def cycle_permissions(self) -> None:
        mode = _MODES[(_MODES.index(self.session.parts.permissions.mode) + 1) % len(_MODES)]
        self.do(self.session.apply((SetPermissions(mode),), "hilt"), "permissions")
