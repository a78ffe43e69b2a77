"""`/ext`: every extension live, and what the user wants done about it."""

import asyncio
import os
from pathlib import Path

from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.extensions import Extensions, Log, Wish

_TAIL = 64 * 1024


async def watch(desk: Desk, _: str = "") -> None:
    host = desk.session.extensions
    current = next((one.name for one in host.statuses() if one.state == "failed"), "")  # or the first
    while wish := await desk.ask(Extensions(desk.look, host.statuses, current)):
        current = wish.extension
        await _do(desk, wish)


async def _do(desk: Desk, wish: Wish) -> None:
    host, name = desk.session.extensions, wish.extension
    match wish.what:
        case "enable":
            desk.tell(await host.enable(name))
        case "disable":
            desk.tell(await host.disable(name))
        case "reload":
            desk.tell(str(await host.reload(name)))
        case _:
            status = next((one for one in host.statuses() if one.name == name), None)
            text = await asyncio.to_thread(_end_of, Path(status.log)) if status and status.log else ""
            await desk.ask(Log(desk.look, name, text or "it has written nothing yet"))


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - _TAIL, 0))
            return file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
