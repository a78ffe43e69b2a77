"""From the first frame to the end: what happens in the wrong order is no mistake."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import ConfigError
from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.face import Ending, TuiParts, run
from hilt.model.masking import Mask
from support.extending import extended

DEADLINE = 20


class Unseen(HiltApp):
    async def run_async(self, **_: Any) -> None:
        await super().run_async(headless=True)


async def test_leaving_while_it_still_starts_ends_it_without_a_fault(tmp_path: Path) -> None:
    app, ending = Unseen(), Ending()

    @asynccontextmanager
    async def opening() -> AsyncIterator[TuiParts]:
        async with extended(tmp_path) as it:
            app.exit()  # as Ctrl-C twice does
            while app.is_running:
                await asyncio.sleep(0)
            yield TuiParts(it.session, it.questions, Mask(()), keeping=None)  # type: ignore[arg-type]  # not needed

    async with asyncio.timeout(DEADLINE):
        await run(app, opening, ending)
    assert ending == Ending()


async def test_what_goes_wrong_while_it_starts_ends_it_and_is_passed_on() -> None:
    app = Unseen()

    @asynccontextmanager
    async def opening() -> AsyncIterator[TuiParts]:
        raise ConfigError("max_steps is wrong")
        yield

    async with asyncio.timeout(DEADLINE):
        with pytest.raises(BaseExceptionGroup) as raised:
            await run(app, opening, Ending())
    assert raised.group_contains(ConfigError, match="max_steps")
    assert not app.is_running
