"""`hilt --json`: every event as one JSON line on stdout."""

from hilt.agent.loop import Outcome
from hilt.agent.session import Session
from hilt.errors import HiltError
from hilt.frontends.encode import event_json, json_line
from hilt.model.conversation import UserMessage
from hilt.model.events import Event
from hilt.model.masking import Mask
from hilt.transport.stdio import LineWriter


async def run(session: Session, message: UserMessage, mask: Mask) -> Outcome:
    writer = LineWriter(1)
    writer.when_broken = session.abort  # nobody reads any more: stop spending

    async def show(event: Event) -> None:
        await writer.send(mask.line(json_line(event_json(event))))
        if writer.broken:
            session.abort()  # also when it broke before there was anything to stop

    with session.bus.subscribed(show):
        outcome = await (await session.prompt(message)).result()
    await writer.flush(patience=None)  # a reader such as a pager takes its time; Ctrl-C ends the wait
    if writer.trouble:
        raise HiltError(f"the events could not be written to stdout: {writer.trouble}")
    return outcome
