"""Which commands the terminal has of its own, and which of the others open a dialog here when typed without arguments.

Its own are published like anybody's, so they are listed, completed and reserved; nobody may type them for the user.
"""

from hilt.frontends.tui.commands import accounts, aside, extensions, looks, models, reading, sessions
from hilt.frontends.tui.commands.desk import Desk, Opening
from hilt.model.actions import Action
from hilt.model.contributions import Command


async def _leave(desk: Desk, _: str) -> None:
    desk.app.leave()


OWN: dict[str, tuple[str, str, Opening]] = {
    "login": ("store an API key and use its models", "[provider]", accounts.log_in),
    "logout": ("forget a stored API key", "[provider | all]", accounts.log_out),
    "btw": ("ask something beside the work; nothing of it is kept", "[question]", aside.ask),
    "jump": ("scroll to something you said", "[text]", sessions.jump),
    "theme": ("choose how everything looks", "[name]", looks.choose),
    "exit": ("leave", "", _leave),
}
"""By name: what it does, its arguments, and who does it."""

HERE: dict[str, Opening] = {
    "help": reading.help_,
    "model": models.choose,
    "sessions": sessions.resume,
    "session": sessions.operate,
    "session fork": sessions.copy,
    "session tree": sessions.branch,
    "skills": reading.skills,
    "ext": extensions.watch,
}
"""By what is typed, whole."""


def own(desk: Desk) -> tuple[Command, ...]:
    def command(name: str) -> Command:
        what, usage, opening = OWN[name]

        async def run(args: str) -> tuple[Action, ...]:
            # Beside: a command that waits for the user must not count as something that can be cancelled.
            desk.client.do(opened(opening, desk, args), f"/{name}")
            return ()

        return Command(name, what, run, usage, personal=True)

    return tuple(map(command, OWN))


def here(desk: Desk, text: str) -> bool:
    """Whether a dialog opens in place of the command that was typed."""
    typed = " ".join(text.split())
    opening = HERE.get(typed.removeprefix("/")) if typed.startswith("/") else None
    if opening:
        desk.client.do(opened(opening, desk), typed)
    return opening is not None


async def opened(opening: Opening, desk: Desk, args: str = "") -> None:
    await opening(desk, args)
