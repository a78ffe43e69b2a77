"""What every command of the terminal has at hand: the session, the screen to ask on, and what the program keeps."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hilt.agent.session import Session
from hilt.context.skills import Skill
from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.look import Look
from hilt.model.models import ModelInfo
from hilt.sessions.store import SessionStore

if TYPE_CHECKING:
    from hilt.frontends.tui.app import HiltApp
    from hilt.frontends.tui.client import Client

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Account:
    """Somebody whose models can be used with a key."""

    name: str
    label: str
    key_page: str
    """Where a key is made."""
    known: bool
    """Whether there is a key, wherever it is, or none is needed."""
    stored: bool
    """Whether it was stored by hilt, and can be forgotten."""
    model: str
    """The one to use when none is named; empty when there is none."""
    needs_key: bool = True


class Accounts(Protocol):
    """The keys, for whoever shows and changes them."""

    def all(self) -> list[Account]: ...

    async def log_in(self, name: str, key: str) -> str:
        """Try the key and keep it; what became of it, in words. Raises `HiltError`, and nothing is kept."""

    def log_out(self, name: str) -> str:
        """Forget one, or `all`."""


@dataclass(frozen=True)
class Keeping:
    """What the program keeps and can do beside the session."""

    models: Callable[[], list[ModelInfo]]
    store: SessionStore
    skills: tuple[Skill, ...]
    accounts: Accounts
    themes: Path
    """The folder of the user's own themes."""
    history: Path
    """The file of what was typed."""
    prefer: Callable[[str, str], None]
    """Set a choice in the user's configuration. Raises `HiltError`."""


class Desk:
    def __init__(self, app: "HiltApp", client: "Client", keeping: Keeping) -> None:
        self.app = app
        self.client = client
        self.keeping = keeping

    @property
    def session(self) -> Session:
        return self.client.session

    @property
    def look(self) -> Look:
        return self.app.look

    async def ask(self, dialog: Dialog[_Result]) -> _Result | None:
        """Wait for what the user makes of it; None when it is closed without anything."""
        answer: asyncio.Future[_Result | None] = asyncio.get_running_loop().create_future()

        def answered(result: _Result | None) -> None:
            if not answer.done():
                answer.set_result(result)

        self.app.push_screen(dialog, answered)
        try:
            return await answer
        finally:
            dialog.close()

    def tell(self, text: str, level: str = "info") -> None:
        if self.app.presenter:
            self.app.presenter.tell(level, text)


Opening = Callable[[Desk, str], Awaitable[Any]]
"""Does what a command does, given its arguments."""
