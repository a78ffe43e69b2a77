"""Everything a session is made of, as the composition root puts it together."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from hilt.agent.deadlines import Deadlines
from hilt.agent.interception import GuardRules
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.errors import UsageError
from hilt.model.contributions import Tool
from hilt.model.extensions import ExtensionStatus, Reloaded, no_such_extension
from hilt.model.models import ModelInfo, Reasoning
from hilt.model.ports import Provider
from hilt.registry.registry import Registry
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog


class ActiveModel(Struct, frozen=True):
    provider: Provider
    info: ModelInfo
    notice: str = ""
    """Something the user should know about this choice, said once."""
    pending: "Callable[[], ActiveModel] | None" = None
    """An extension may have to answer: says who does, once they had time to start. Raises `HiltError`."""


class Jail(Protocol):
    on: bool


class Parts(Struct, frozen=True):
    registry: Registry
    journal: Journal
    active: ActiveModel
    cwd: str
    system: str
    permissions: Permissions
    jail: Jail
    undo: Callable[[], str]
    """Put back the files of the last change; says what it did."""
    switch: Callable[[str, ActiveModel], ActiveModel]
    """Find another model by id, given the present one; raises UsageError for one that is not to be had."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    reasoning: Reasoning = ""
    max_steps: int = 50
    guards: GuardRules = GuardRules()
    deadlines: Deadlines = Deadlines()
    compact_at: int = 0
    """Tokens from which on the conversation is made short by itself; 0 leaves it to the model's window."""
    shell: Tool | None = None
    """The built-in `bash`, for commands that the user runs: there also when the model has no such tool."""
    one_shot: bool = False
    """It ends with the first prompt's answer, so nothing can be asked for later."""

    @property
    def log(self) -> SessionLog:
        """As of now: to be asked for each time, and not kept."""
        return self.journal.log


class NoExtensions:
    """The port `Extensions` where there are none."""

    def statuses(self) -> tuple[ExtensionStatus, ...]:
        return ()

    async def reload(self, name: str = "") -> Reloaded:
        raise UsageError(f"there is no extension {name}" if name else "there are no extensions")

    async def enable(self, name: str) -> str:
        raise no_such_extension(name, ())

    async def disable(self, name: str) -> str:
        raise no_such_extension(name, ())

    async def settled(self) -> None:
        pass

    async def caught_up(self) -> None:
        pass

    def panel_key(self, extension: str, panel_id: str, key: str, text: str = "") -> None:
        pass

    def panel_resize(self, extension: str, panel_id: str, width: int, height: int) -> None:
        pass

    def panel_closed(self, extension: str, panel_id: str) -> None:
        pass
