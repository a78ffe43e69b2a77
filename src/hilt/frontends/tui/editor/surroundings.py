"""What the input needs of the session it types into."""

from collections.abc import Awaitable, Callable, Container, Coroutine, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hilt.frontends.tui.editor.files import Files

if TYPE_CHECKING:
    from hilt.frontends.tui.client import Client
    from hilt.registry.snapshot import OwnedCommand


@dataclass(frozen=True)
class Surroundings:
    commands: "Callable[[], Iterable[OwnedCommand]]"
    """Those that there are now."""
    files: Files
    waiting: Callable[[], bool]
    """Whether something that was sent waits."""
    take_back: Callable[[], Awaitable[list[str]]]
    """Withdraw everything that waits."""
    do: Callable[[Coroutine[Any, Any, object], str], object]
    """Have something done in the background."""
    opening: Container[str] = ()
    """Commands that open a dialog when nothing follows them."""

    @classmethod
    def of(cls, client: "Client") -> "Surroundings":
        from pathlib import Path

        from hilt.context.project_files import ProjectFiles  # not needed for the first frame
        from hilt.frontends.tui.commands.table import HERE

        session = client.session
        return cls(
            commands=lambda: session.parts.registry.snapshot().commands.values(),
            files=ProjectFiles(Path(session.parts.cwd)),
            waiting=lambda: bool(session.waiting),
            take_back=client.take_back,
            do=client.do,
            opening=HERE,
        )
