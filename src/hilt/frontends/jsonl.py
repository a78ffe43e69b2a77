"""`hilt --json`: every event as one JSON line on stdout."""

from hilt.agent.run import Outcome
from hilt.agent.session import Session
from hilt.errors import HiltError
from hilt.frontends.asides import Asides
from hilt.frontends.encode import event_json, json_line, public
from hilt.frontends.masked import Masked
from hilt.frontends.oneshot import perform
from hilt.frontends.terminal import json_for_stdout
from hilt.model.events import Event
from hilt.model.masking import Mask
from hilt.transport.stdio import LineWriter


async def run(session: Session, text: str, mask: Mask) -> Outcome:
    writer = LineWriter(1)
    writer.when_broken = session.abort  # nobody reads any more: stop spending
    masked = Masked(mask)

    async def show(event: Event) -> None:
        if not public(event):
            return
        # At one go: an event must not be lost when its sender is cancelled behind the text released for it.
        if lines := [mask.line(json_line(event_json(shown))) for shown in masked.show(event)]:
            await writer.send(json_for_stdout(b"\n".join(lines)))
        if writer.broken:
            session.abort()  # also when it broke before there was anything to stop

    try:
        async with session.bus.faced(show, Asides(mask, notes=True)):
            outcome = await perform(session, text)
        await writer.flush(patience=None)  # a reader such as a pager takes its time; Ctrl-C ends the wait
    finally:
        writer.hurry()  # interrupted: nobody must wait for a reader that has stopped reading
    if writer.trouble:
        raise HiltError(f"the events could not be written to stdout: {writer.trouble}")
    return outcome
