"""One prompt or one slash command, seen through to its end: what `-p` and `--json` have in common."""

from hilt.agent.loop import Outcome
from hilt.agent.session import Session
from hilt.model.content import text_of
from hilt.model.conversation import user_text
from hilt.model.events import AssistantMessageAdded, Displayed, Event, Failed, PanelShown


async def perform(session: Session, text: str) -> Outcome:
    """A known slash command is run; anything else, unknown ones included, is for the model."""
    await session.extensions.settled()  # what they offer and guard counts from the first word
    command = session.known_command(text)
    if command is None:
        return await (await session.prompt(user_text(text))).result()
    watched = _Watched()
    with session.bus.subscribed(watched):
        await session.command(*command)
        await session.idle()
    if watched.failed:
        return Outcome("error", watched.failed.message, watched.failed.hint)
    return Outcome("end", text="\n".join([*watched.shown, watched.said]).strip("\n"))


class _Watched:
    """What a command led to, when it started something."""

    def __init__(self) -> None:
        self.failed: Failed | None = None
        self.shown: list[str] = []
        self.said = ""

    async def __call__(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.failed = event
        elif isinstance(event, Displayed):
            self.shown.append(event.text)
        elif isinstance(event, PanelShown):  # there are no keys to press, but its lines can be read
            self.shown.append("\n".join(filter(None, (event.title, *event.lines, event.footer))))
        elif isinstance(event, AssistantMessageAdded):
            self.said = text_of(event.content)
