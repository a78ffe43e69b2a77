"""`hilt` in a terminal: the interface first, then everything it stands on, and the line that tells how to go on."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hilt.cli.explain import admit
from hilt.errors import ConfigError
from hilt.frontends.terminal import clean
from hilt.home import Home

if TYPE_CHECKING:
    from hilt.cli.faces import Interrupts
    from hilt.cli.wiring import App as Assembled
    from hilt.frontends.tui.commands.desk import Keeping, Opening
    from hilt.frontends.tui.face import Ending, TuiParts
    from hilt.frontends.tui.look import Palette


async def show(options: argparse.Namespace, interrupts: "Interrupts", started: Callable[[], None]) -> int:
    """Run the interface until the user leaves, and say how to go on."""
    home = Home.find()
    first_time = not any(place.exists() for place in (home.config, home.auth, home.sessions))
    while True:
        ending = await _shown(options, interrupts, started, first_time=first_time)
        if ending.elsewhere is None:
            return 1 if ending.fault else 0
        os.chdir(ending.elsewhere)
        options.prompt, first_time = [], False


def _load() -> None:
    """Import what comes after the first frame: takes a tenth of a second."""
    import hilt.cli.accounts
    import hilt.cli.facilities
    import hilt.cli.wiring
    import hilt.extensions.host
    import hilt.frontends.tui.commands.sessions
    import hilt.frontends.tui.commands.welcome
    import hilt.packages.finder  # noqa: F401


async def _shown(
    options: argparse.Namespace, interrupts: "Interrupts", started: Callable[[], None], *, first_time: bool
) -> "Ending":
    from hilt.frontends.tui.app import HiltApp
    from hilt.frontends.tui.face import Ending, TuiParts, run

    home = Home.find()
    palette, trouble = _palette(home)
    app = HiltApp(typed=" ".join(options.prompt), palette=palette)
    app.tell(trouble)

    @asynccontextmanager
    async def opening() -> "AsyncIterator[TuiParts]":
        await asyncio.to_thread(_load)  # one can type meanwhile
        from hilt.cli.wiring import assemble

        async with assemble(options, can_ask=True, tell=app.tell, keyless=True) as assembled:
            started()
            interrupts.first = assembled.session.abort
            first = _first(options, assembled, first_time=first_time)
            keeping = _keeping(assembled, home, options)
            yield TuiParts(assembled.session, assembled.questions, assembled.mask, keeping, first)

    ending = Ending()
    interrupts.last = app.give_back
    try:
        await run(app, opening, ending)
    finally:
        _say_goodbye(ending)
    return ending


def _say_goodbye(ending: "Ending") -> None:
    if ending.fault:
        admit("the interface failed", ending.fault)
    try:
        if ending.session:
            sys.stdout.write(clean(f"to go on with this session: hilt --session {ending.session}\n"))
            sys.stdout.flush()
    except OSError:
        pass  # the terminal is gone


def _first(options: argparse.Namespace, assembled: "Assembled", *, first_time: bool) -> "Opening | None":
    """What the user is asked before anything else."""
    from hilt.frontends.tui.commands import sessions, welcome

    if options.resume:
        return sessions.resume
    said = options.provider or options.model or options.script or options.prompt or options.continue_ or options.session
    return welcome.greet if first_time and not said and assembled.session.active.info.provider == "demo" else None


def _keeping(assembled: "Assembled", home: Home, options: argparse.Namespace) -> "Keeping":
    from hilt.cli.accounts import Keys
    from hilt.cli.configuring import prefer
    from hilt.frontends.tui.commands.desk import Keeping

    return Keeping(
        models=assembled.models,
        store=assembled.store,
        skills=assembled.skills,
        accounts=Keys(home, assembled.mask, assembled.session.active.info.provider, options.base_url),
        themes=home.themes,
        history=home.history,
        prefer=lambda key, value: prefer(home.config, {key: value}),
    )


def _palette(home: Home) -> "tuple[Palette, str]":
    """The theme to begin with, and what is wrong with the one that was wanted."""
    from hilt.frontends.tui import themes

    try:
        return themes.find(themes.wanted(os.environ, home.root), home.themes), ""
    except ConfigError as error:
        return themes.BUILTIN["dark"], f"{error.message} ({error.hint})" if error.hint else error.message
