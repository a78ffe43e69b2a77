"""What a person types: slash commands, at once or in their turn, and words for the model, as extensions leave them.

Owns what may be typed when, and by whom in the user's place. What a command asks for is done by `applying`, and what
waits is kept by `words`.
"""

import asyncio
import logging
import re
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Protocol

from hilt.agent.bus import Bus
from hilt.agent.hooks import transformed
from hilt.agent.jobs import Asker, Job, Jobs
from hilt.agent.loop import failure, mistake
from hilt.agent.parts import Parts
from hilt.agent.run import Outcome
from hilt.agent.stopping import Stops
from hilt.agent.waiting import Waits, settled
from hilt.agent.words import SELF, Words
from hilt.errors import HiltError, UsageError
from hilt.model.actions import Action, Clear, SetJail, SetPermissions, SwitchModel, ToggleStep, Undo
from hilt.model.conversation import user_text
from hilt.model.events import Noticed
from hilt.model.ports import Extensions
from hilt.registry.snapshot import OwnedCommand
from hilt.sessions.records import NoteRecord

log = logging.getLogger(__name__)

_COMMAND = re.compile(r"/([A-Za-z0-9_-]+)(?:\s+(.*))?$", re.DOTALL)


class Stage(Protocol):
    """What a session is, for whoever types in it."""

    parts: Parts
    bus: Bus
    words: Words
    extensions: Extensions
    waits: Waits

    async def apply(self, actions: Iterable[Action], source: str, *, by: str = "") -> None: ...

    def abort(self) -> bool: ...

    async def idle(self) -> None: ...


class Typed:
    def __init__(self, stage: Stage, jobs: Jobs, stops: Stops) -> None:
        self._stage = stage
        self._jobs = jobs
        self._stops = stops
        self._one_by_one = asyncio.Lock()
        """What extensions say as if typed is rewritten in their order."""

    async def input(
        self, text: str, asker: Asker | None = None, *, steering: bool = False
    ) -> tuple[Action, ...] | Job | None:
        """Take a line as a person would type it: a slash command, or words for the model.

        Answers the actions taken, the job begun, or None for words that steer the running turn.
        """
        if command := _COMMAND.match(text.strip()):
            return await self.command(command[1], command[2] or "", asker=asker)
        if not text.strip():
            return ()
        return await self.say(text, asker, steering=steering)

    async def say(self, text: str, asker: Asker | None = None, *, steering: bool = False) -> tuple[()] | Job | None:
        """Words for the model. Extensions may rewrite them, or deal with them: then there is no job."""
        rewritten = await self._rewritten(text)
        if rewritten is None:
            return ()
        words = self._stage.words
        return await (words.steer if steering else words.prompt)(user_text(rewritten), asker)

    async def say_for(self, text: str, by: str) -> None:
        """Words of an extension: into the turn that runs, or else as if typed."""
        if self._jobs.busy:
            await self._stage.words.interject(text, by)
        elif command := self.known_command(text):
            # Beside: it may be one of the extension whose wish is being done, and wait for others of its wishes.
            self._jobs.beside(self._run_for(*command, by))
        elif self._stage.parts.registry.snapshot().transformers:
            # Beside: whoever rewrites it may be the extension whose wish is being done.
            self._jobs.beside(self._say_rewritten(text, by))
        else:
            await self._stage.words.interject(text, by)

    def known_command(self, text: str) -> tuple[str, str] | None:
        """The name and the arguments, when the text is a slash command that somebody offers."""
        typed = _COMMAND.match(text.strip())
        if typed and self._stage.parts.registry.snapshot().command(typed[1]):
            return typed[1], typed[2] or ""
        return None

    async def command(
        self, name: str, args: str = "", *, by: str = "", asker: Asker | None = None
    ) -> tuple[Action, ...] | Job:
        """Run a slash command and do what it asks for. `by` an extension, or the user.

        One that is not to run beside a turn waits for its own; then the job is the answer, and `asker` hears of it.
        """
        name, args = name.removeprefix("/"), args.strip()
        if not by:
            self._stage.words.asked()
        owned = await self._find(name, by)
        if owned.command.immediate or not self._jobs.busy:
            return await self._perform(owned, args, by)
        self._stage.words.make_room()
        job = Job(asker=asker, name=f"/{name} {args}".rstrip(), work=lambda: self._in_turn(name, args, by, asker))
        return await self._stage.words.enqueue(job)

    async def press(self, key: str) -> tuple[Action, ...]:
        """Do what a shortcut of an extension stands for."""
        owned = self._stage.parts.registry.snapshot().shortcuts.get(key.lower())
        if owned is None:
            raise UsageError(f"no extension has a shortcut for {key}")
        with self._stage.waits.on(owned.owner, f"shortcut {owned.shortcut.key}"):
            actions = await self._stops.stoppable(owned.shortcut.run(), key)
        await self._stage.apply(actions, owned.owner)
        return actions

    async def _find(self, name: str, by: str) -> OwnedCommand:
        registry = self._stage.parts.registry
        owned = registry.snapshot().command(name)
        if owned is None:
            # One that is being started may offer it.
            await self._stops.stoppable(settled(self._stage.extensions, self._stage.waits), f"/{name}")
            owned = registry.snapshot().command(name)
        if owned is None:
            starting = [one.name for one in self._stage.extensions.statuses() if one.state == "starting"]
            hint = f"{', '.join(starting)} is still starting, and may bring it" if starting else ""
            raise UsageError(f"unknown command /{name} — type /help to see the list", hint=hint)
        if by and owned.command.personal:
            # Or one that is confined could have files written by us, who are not, or its guard switched off.
            raise UsageError(f"/{name} is for the user alone: extension {by} may not run it")
        return owned

    async def _perform(self, owned: OwnedCommand, args: str, by: str) -> tuple[Action, ...]:
        name = owned.command.name
        with self._stage.waits.on(owned.owner, f"command /{name}") if owned.owner != SELF else nullcontext():
            actions = await self._stops.stoppable(owned.command.run(args), f"/{name}")
        if by and any(isinstance(action, SetPermissions | SetJail | ToggleStep) for action in actions):
            # Or whoever may type for the user could answer for them whatever they are asked.
            raise UsageError(f"/{name} is for the user alone: extension {by} may not decide what needs permission")
        if by and self._jobs.in_a_turn and any(isinstance(action, Clear | SwitchModel | Undo) for action in actions):
            # As if typed: a person would end the turn first.
            self._stage.abort()
            await self._stage.idle()
        await self._stage.apply(actions, owned.owner, by=by)
        return actions

    async def _in_turn(self, name: str, args: str, by: str, asker: Asker | None) -> Outcome:
        """A command whose turn has come. It may ask for what waits for the next turn, so it does not hold that up."""
        try:
            task = self._jobs.beside(self._answered(name, args, by, asker))
        except UsageError as error:
            await self._failed(error, asker)
            return Outcome("error", error.message, error.hint)
        await asyncio.wait({task}, timeout=self._stage.parts.deadlines.command)
        return Outcome("end")

    async def _answered(self, name: str, args: str, by: str, asker: Asker | None) -> None:
        try:
            actions = await self._perform(await self._find(name, by), args, by)
        except HiltError as error:
            await self._failed(error, asker)
        except Exception as error:
            log.exception("a command failed")  # and costs that one command, not the session
            await self._failed(mistake(error), asker)
        else:
            if asker:
                await asker.ran(actions)

    async def _failed(self, error: HiltError, asker: Asker | None) -> None:
        await (asker.failed(error) if asker else self._stage.bus.emit(failure(error)))

    async def _run_for(self, name: str, args: str, by: str) -> None:
        try:
            await self.command(name, args, by=by)
        except HiltError as error:
            await self._stage.bus.emit(Noticed("warn", f"extension {by}: {error.message}"))

    async def _say_rewritten(self, text: str, by: str) -> None:
        async with self._one_by_one:
            try:
                if rewritten := await self._rewritten(text):
                    await self._stage.words.interject(rewritten, by)
            except HiltError as error:
                why = f"what extension {by} wanted to say was not sent: {error.message}"
                await self._stage.bus.emit(Noticed("warn", why))

    async def _rewritten(self, text: str) -> str | None:
        """As extensions leave it; None when one of them has dealt with it."""
        parts = self._stage.parts
        owned = parts.registry.snapshot().transformers
        if not owned:
            return text
        work = transformed(owned, text, parts.deadlines.transformer, self._stage.waits)
        rewritten = await self._stops.stoppable(work, "rewriting the message")
        if rewritten.handled_by:
            what = f"extension {rewritten.handled_by} dealt with what was typed; the model is not told"
            await self._stage.bus.emit(Noticed("info", what))
            return None
        if rewritten.changed_by:
            note = {"by": rewritten.changed_by, "typed": text}
            parts.journal.append(NoteRecord("input_transformed", note))
        return rewritten.text
