"""One prompt or one slash command, seen through to its end: what `-p` and `--json` have in common."""

from collections.abc import Callable

from hilt.agent.run import Outcome
from hilt.agent.session import Session
from hilt.model.content import text_of
from hilt.model.events import AssistantMessageAdded, Displayed, Event, Failed, PanelShown


def _elsewhere(_: str) -> None:
    """Whoever prints all events has shown it already."""


async def perform(session: Session, text: str, show: Callable[[str], None] = _elsewhere) -> Outcome:
    """A known slash command is run; anything else, unknown ones included, is for the model.

    `show` is given what the owner of the command has to say, at once: it counts however the command ends.
    """
    await session.extensions.settled()  # what they offer and guard counts from the first word
    command = session.known_command(text)
    if command is None:
        job = await session.say(text)
        outcome = await job.result() if job else Outcome("end", handled=True)
        await session.extensions.caught_up()  # what they make of it is part of the answer
        return outcome
    watched = _Watched(asked_of(session, text), show)
    with session.bus.subscribed(watched):
        await session.command(*command)
        await session.idle()
    if watched.failed:
        return Outcome("error", watched.failed.message, watched.failed.hint)
    return Outcome("end", text=watched.said.strip("\n"))


def asked_of(session: Session, text: str) -> str:
    """Whose words are the answer, when the text is a slash command that somebody offers."""
    command = session.known_command(text)
    owned = session.parts.registry.snapshot().command(command[0]) if command else None
    return owned.owner if owned else ""


class _Watched:
    """What a command led to, when it started something."""

    def __init__(self, owner: str, show: Callable[[str], None]) -> None:
        self._owner = owner
        self._show = show
        self.failed: Failed | None = None
        self.said = ""

    async def __call__(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.failed = event
        elif isinstance(event, AssistantMessageAdded):
            self.said = text_of(event.content)
        elif isinstance(event, Displayed | PanelShown) and event.extension != self._owner:
            pass  # not what was asked for
        elif isinstance(event, Displayed):
            self._show(event.text.strip("\n"))
        elif isinstance(event, PanelShown):  # there are no keys to press, but its lines can be read
            self._show("\n".join(filter(None, (event.title, *event.lines, event.footer))))
