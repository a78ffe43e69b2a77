"""`/theme`: how everything looks. The list puts each theme on as it is walked through."""

from collections.abc import Callable, Sequence

from hilt.errors import ConfigError, HiltError
from hilt.frontends.tui import themes
from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.frontends.tui.look import Look


class Wardrobe(Picker):
    """Tells of each one that Enter would take, as soon as it would."""

    def __init__(self, items: Sequence[Item], look: Look, current: str, try_on: Callable[[str], None]) -> None:
        super().__init__("theme", items, look, current=current)
        self._try_on = try_on
        self._tried = self.current

    def changed(self, *, redraw: bool = True) -> None:
        super().changed(redraw=redraw)
        if self.current != self._tried:
            self._tried = self.current
            self._try_on(self.current)


async def choose(desk: Desk, args: str = "") -> None:
    name = args.strip() or await _picked(desk)
    if not name:
        return
    desk.app.restyle(themes.find(name, desk.keeping.themes))
    try:
        desk.keeping.prefer("theme", name)
    except HiltError as error:
        desk.tell(f"for now: {error.message}", "warn")


async def _picked(desk: Desk) -> str | None:
    folder, before = desk.keeping.themes, desk.look.palette

    def try_on(name: str) -> None:
        try:
            desk.app.restyle(themes.find(name, folder) if name else before)
        except ConfigError:
            pass  # said when it is taken

    items = [Item(one, one, "yours" if one not in themes.BUILTIN else "") for one in themes.names(folder)]
    current = next((name for name, palette in themes.BUILTIN.items() if palette == before), "")
    name = await desk.ask(Wardrobe(items, desk.look, current, try_on))
    if not name:
        desk.app.restyle(before)
    return name
