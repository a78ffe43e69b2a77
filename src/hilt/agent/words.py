"""What is to be said to the model: now, at the next boundary of the turn that runs, or when its turn comes.

Owns what waits, how much of it there may be, and how often extensions may speak without the user. What a turn is made
of is the loop's business.
"""

import logging
from collections import deque

from msgspec import structs

from hilt.agent.bus import Bus
from hilt.agent.jobs import Asker, Job, Jobs
from hilt.agent.notes import Notes
from hilt.agent.screen import Screen
from hilt.errors import UsageError
from hilt.model.content import text_of
from hilt.model.conversation import UserMessage, user_text
from hilt.model.events import Inserted, Noticed, PromptSubmitted, QueueChanged

log = logging.getLogger(__name__)

SELF = "hilt"
"""The owner's name on what built-in commands show."""
_WAITING = 100
_UNASKED = 3
"""Turns in a row that extensions may start without the user saying anything."""


class Words:
    def __init__(self, jobs: Jobs, bus: Bus, notes: Notes, screen: Screen, *, one_shot: bool) -> None:
        self._jobs = jobs
        self._bus = bus
        self._notes = notes
        self._screen = screen
        self._one_shot = one_shot
        self._steering: deque[UserMessage] = deque()
        self._unasked = 0
        self._queue_shown = False

    @property
    def waiting(self) -> tuple[str, ...]:
        """What will be delivered later, in order."""
        return (*(text_of(message.content) for message in self._steering), *(job.label for job in self._jobs.waiting))

    def asked(self) -> None:
        """The user did something: whoever speaks without being asked may begin anew."""
        self._unasked = 0

    async def prompt(self, message: UserMessage, asker: Asker | None = None, *, by: str = "") -> Job:
        """Send it to the model now, or when what runs and waits before it has ended. `by` an extension, or the user."""
        if not by:
            self.asked()
            await self._notes.clear_all()
        self.make_room()
        message = await self._with_image(message)
        job = Job(message, asker)
        await self._bus.emit(PromptSubmitted(message.content, self._jobs.busy, by))
        return await self.enqueue(job)

    async def steer(self, message: UserMessage, asker: Asker | None = None) -> Job | None:
        """Deliver at the next tool boundary of the running turn; a prompt of its own when idle."""
        if not self._jobs.busy:
            return await self.prompt(message, asker)
        self.make_room()
        self.asked()
        await self._put_in(await self._with_image(message))
        return None

    async def submit(self, text: str, by: str) -> None:
        """A turn that nobody asked for: allowed, but not for ever."""
        if self._one_shot:
            why = f"extension {by} wants to say more, which a single prompt cannot hold"
            await self._bus.emit(Noticed("warn", why))
        elif self._unasked > _UNASKED:
            log.debug("extension %s goes on submitting: %s", by, text)  # it has been told, and so has the user
        elif self._unasked == _UNASKED:
            self._unasked += 1
            why = f"extension {by} has had {_UNASKED} turns in a row without you; what it wants to say is up to you now"
            await self._bus.emit(Noticed("warn", why))
            await self._bus.emit(Inserted(by, text))
        else:
            self._unasked += 1
            await self.prompt(user_text(text, by), by=by)

    async def interject(self, text: str, by: str) -> None:
        """Words of an extension: into the turn that runs, or else a turn of their own."""
        if not self._jobs.busy:
            await self.submit(text, by)
            return
        self.make_room()
        await self._put_in(user_text(text, by))

    async def next_steering(self) -> UserMessage | None:
        if not self._steering:
            return None
        message = self._steering.popleft()
        await self._show()
        return message

    async def return_undelivered(self) -> None:
        """Steering that found no boundary goes back to where it was typed; an extension's is a prompt of its own."""
        if not self._steering:
            return
        while self._steering:
            message = self._steering.popleft()
            if message.extension:
                await self.submit(text_of(message.content), message.extension)
            else:
                await self._bus.emit(Inserted(SELF, text_of(message.content)))
        await self._show()

    async def take_back(self) -> list[str]:
        """Withdraw everything that waits, newest last, so that it can be changed and sent again."""
        texts = list(self.waiting)
        withdrawn = self._jobs.withdraw()
        self._steering.clear()
        for job in withdrawn:
            if job.asker:
                await job.asker.withdrawn()
        await self._show()
        return texts

    async def enqueue(self, job: Job) -> Job:
        was_busy = self._jobs.busy
        self._jobs.add(job)
        if was_busy:
            await self._show()
        return job

    def make_room(self) -> None:
        if len(self._jobs.waiting) + len(self._steering) >= _WAITING:
            raise UsageError(f"{_WAITING} messages already wait for the running turn", hint="cancel it, or wait")

    async def begun(self) -> None:
        """Something that waited has begun."""
        if self._queue_shown:
            await self._show()

    async def _with_image(self, message: UserMessage) -> UserMessage:
        """With what an extension has attached to the next message."""
        images = await self._screen.take_image()
        return structs.replace(message, content=(*message.content, *images)) if images else message

    async def _put_in(self, message: UserMessage) -> None:
        await self._bus.emit(PromptSubmitted(message.content, queued=True, extension=message.extension))
        self._steering.append(message)
        await self._show()

    async def _show(self) -> None:
        self._queue_shown = bool(self.waiting)
        await self._bus.emit(QueueChanged(self.waiting))
