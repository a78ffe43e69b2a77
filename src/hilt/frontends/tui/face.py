"""The terminal interface from its first frame to its end: the lifetimes of the screen, the session and the user's
wishes, nested.

The screen comes first, so that there is something to see and to type into before anything else is imported. It also
goes first: whatever then takes time to end, the terminal is the user's again.
"""

import asyncio
import gc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hilt.frontends.tui.app import HiltApp

if TYPE_CHECKING:  # on the way to the first frame nothing of the agent is imported: 80 ms
    from pathlib import Path

    from msgspec import Struct

    from hilt.agent.questions import Questions
    from hilt.agent.session import Session
    from hilt.frontends.tui.commands.desk import Keeping, Opening
    from hilt.model.events import Event
    from hilt.model.masking import Mask

_Told = TypeVar("_Told", bound="Struct")


@dataclass(frozen=True)
class TuiParts:
    """What the interface needs of the rest."""

    session: "Session"
    questions: "Questions"
    mask: "Mask"
    keeping: "Keeping"
    first: "Opening | None" = None
    """What the user is asked before anything else."""


@dataclass
class Ending:
    """How it ended, filled in as it does: however it ends, there is something to say."""

    session: str = ""
    """The one to go on with; empty when there is nothing in it, or nothing of it is kept."""
    fault: BaseException | None = None
    """What went wrong with the interface itself."""
    elsewhere: "Path | None" = None
    """Where to begin again, when the user wants that."""


async def run(app: HiltApp, opening: Callable[[], AbstractAsyncContextManager[TuiParts]], ending: Ending) -> None:
    """Show it until the user leaves. Raises what `opening` raises, with the terminal as it was before."""
    async with asyncio.TaskGroup() as group:
        screen = group.create_task(app.run_async(), name="screen")
        try:
            await _either(screen, app.painted, group)
            if not screen.done():
                # Textual looks for its app in the context of a task: whatever begins in here may reach for the screen.
                with app.on_stage():
                    async with opening() as parts:
                        try:
                            if not app.ending:
                                await _serve(app, parts, screen)
                        finally:
                            ending.session = _resumable(parts.session)
        finally:
            ending.fault, ending.elsewhere = app.fault, app.elsewhere
            if not screen.done():
                app.exit()
                screen.cancel()  # it puts the terminal back however it ends


async def _either(screen: "asyncio.Task[None]", painted: asyncio.Event, group: asyncio.TaskGroup) -> None:
    first = group.create_task(painted.wait(), name="first frame")
    await asyncio.wait({screen, first}, return_when=asyncio.FIRST_COMPLETED)
    first.cancel()


def _load() -> None:
    """Import what comes after the first frame, and what the first reply would wait for. Takes a fifth of a second."""
    import hilt.frontends.tui.commands.table
    import hilt.frontends.tui.dialogs.asking
    import hilt.frontends.tui.editor.history_file
    import hilt.frontends.tui.editor.surroundings
    import hilt.frontends.tui.presenter
    import hilt.frontends.tui.surfaces.around
    import hilt.frontends.tui.transcript.gallery  # noqa: F401
    from hilt.frontends.tui.drawing.markdown import warm

    warm()


async def _serve(app: HiltApp, parts: TuiParts, screen: "asyncio.Task[None]") -> None:
    await asyncio.to_thread(_load)  # one can type meanwhile
    from hilt.frontends.masked import Masked, concealed
    from hilt.frontends.tui.client import Client
    from hilt.frontends.tui.commands import table
    from hilt.frontends.tui.commands.desk import Desk
    from hilt.frontends.tui.editor.history_file import HistoryFile
    from hilt.frontends.tui.presenter import Presenter
    from hilt.registry.snapshot import Owner

    session, masked = parts.session, Masked(parts.mask)

    def conceal(told: _Told, /) -> _Told:
        return concealed(told, parts.mask)

    presenter = Presenter(
        session,
        app.scene,
        ask=app.ask,
        withdraw=app.withdraw,
        leave=app.leave,
        clock=asyncio.get_running_loop().time,
        conceal=conceal,
    )

    async def show(event: "Event") -> None:
        for one in masked.show(event):
            await presenter(conceal(one))

    async with Client(session, parts.questions, app.complain) as client:
        desk = Desk(app, client, parts.keeping)
        with session.parts.registry.publish(Owner("hilt", builtin=True), table.own(desk)):
            client.here = partial(table.here, desk)
            client.shell = partial(presenter.shells.run, parts.mask)
            app.attach(client, presenter)
            gc.freeze()  # a long conversation is there for good, and need not be gone through again and again
            history = HistoryFile(parts.keeping.history, parts.mask.text)
            client.do(app.editor.past.keep_in(history), "reading the history")
            if parts.first:
                client.do(table.opened(parts.first, desk), "beginning")
            async with session.bus.faced(show):
                await asyncio.wait({screen})
        session.abort()


def _resumable(session: "Session") -> str:
    log = session.parts.log
    return log.meta.id if log.path and log.path.exists() and session.transcript.messages else ""
