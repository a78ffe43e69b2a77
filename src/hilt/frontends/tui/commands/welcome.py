"""The first time: a short welcome, with three ways to begin."""

from pathlib import Path

from textual.strip import Strip

from hilt import __version__
from hilt.errors import UsageError
from hilt.frontends.terminal import one_line
from hilt.frontends.tui.commands import accounts
from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.entry import Entry
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.status import home_relative

_WAYS = (
    Item("login", "log in", "give an API key, and a real model answers"),
    Item("demo", "try the demo", "a stand-in for a model: no key, no network"),
    Item("project", "open a project", "work in another directory"),
)
_TRY = """This is the demo: it is not a language model, it follows a few simple rules. Try:
  list the files
  read README.md
  run `git status`
  /help for everything else, /login for a real model"""


class Welcome(Picker):
    def __init__(self, look: Look, folder: str) -> None:
        super().__init__(f"hilt {__version__}", _WAYS, look)
        self._folder = one_line(home_relative(folder), 200)

    def head(self, width: int, /) -> list[Strip]:
        lines = (
            ("A coding agent that you can bend: its extensions are programs in any language.", self.look.text),
            (
                f"It works in {self._folder}, and asks before it runs anything that came with that directory.",
                self.look.dim,
            ),
        )
        told = [row for text, style in lines for row in wrap([(text, style)], width)]
        return [*told, Strip.blank(0), *super().head(width)]


async def greet(desk: Desk, _: str = "") -> None:
    match await desk.ask(Welcome(desk.look, desk.session.parts.cwd)):
        case "login":
            await accounts.log_in(desk)
        case "demo":
            desk.tell(_TRY)
        case "project":
            await _open(desk)
        case _:
            pass


async def _open(desk: Desk) -> None:
    typed = await desk.ask(Entry("which directory?", desk.look, text="~/"))
    if not typed:
        return
    desk.app.reopen(_directory(desk.session.parts.cwd, typed))


def _directory(cwd: str, typed: str) -> Path:
    if typed.startswith(("~//", "~/~")):  # a whole path, behind what stood there
        typed = typed.removeprefix("~/")
    folder = (Path(cwd) / Path(typed).expanduser()).resolve()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a directory", hint="leave, and start hilt in the directory you mean")
    return folder
