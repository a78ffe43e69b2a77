"""`hilt ext dev`: the agent with one extension, line by line, while its author changes it.

Lines come from a terminal or a pipe: prompts, slash commands, answers to questions. How everything is shown is
`beholding`'s business.
"""

import argparse
import asyncio
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from hilt.agent.bus import Sink
from hilt.agent.questions import Reply
from hilt.agent.session import Session
from hilt.cli.ext.beholding import Frames, Hiding, View
from hilt.cli.ext.growing import Growing
from hilt.cli.ext.picking import pick
from hilt.cli.ext.prompting import flags_with
from hilt.cli.ext.secrets import secrets
from hilt.cli.ext.site import Site, Told
from hilt.cli.wiring import App, assemble
from hilt.errors import HiltError, UsageError
from hilt.extensions.trace_line import Secrets
from hilt.frontends.oneshot import asked_of, perform
from hilt.frontends.plain import Progress
from hilt.frontends.terminal import one_line
from hilt.model.events import Event, PermissionAsked, PickerAsked, QuestionAsked, RequestWithdrawn, TrustAsked
from hilt.packages.discovery import Found, log_name
from hilt.transport.lines import TooLong
from hilt.transport.stdio import read_lines

_HOW = "prompts and /commands, a line each; a save reloads it; Ctrl-C cancels, Ctrl-D ends"
_LONGEST = 1024 * 1024
_YES = ("y", "yes")
_MOST = 256 * 1024
"""Bytes of the log that are shown at once."""


def develop(site: Site, options: argparse.Namespace) -> Told:
    if options.script and options.provider == "demo":
        raise UsageError("--script is for the script model", hint="leave out --provider demo")
    found = pick(site, options.target).found
    with TemporaryDirectory(prefix="hilt-dev-") as scratch:
        code = asyncio.run(_until_interrupted(_Desk(site, options, found, Path(scratch, "frames"))))
    return Told({"type": "ended", "code": code}, "", code)


async def _until_interrupted(desk: "_Desk") -> int:
    task = asyncio.current_task()
    assert task
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, desk.interrupted, task.cancel)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, desk.end, task.cancel)
    try:
        return await desk.work()
    except asyncio.CancelledError:
        if not desk.ending:
            raise
        task.uncancel()
        return 130


class _Desk:
    """One author at work."""

    def __init__(self, site: Site, options: argparse.Namespace, found: Found, pipe: Path) -> None:
        self._options = options
        self._found = found
        self._secrets = secrets(site)
        self._view = View(self._secrets, as_json=options.json, named=options.with_others)
        self._frames = Frames(pipe, self._view.frame)
        self._log = Growing(site.home.logs / log_name(found.name), self._view.log, _MOST, from_now=True)
        self._typed = ""
        """The last line."""
        self._session: Session | None = None
        self._questions: deque[_Question] = deque()
        self._wanted = asyncio.Event()
        """A line is: nothing runs, or there is a question."""
        self._interrupts = 0
        """Since the last line."""
        self.ending = False

    async def work(self) -> int:
        async with self._frames.flowing(), asyncio.TaskGroup() as group:
            following = group.create_task(self._log.follow(), name="log")
            try:
                async with assemble(self._flags(), can_ask=True) as app:
                    self._session = app.session
                    return await self._converse(app)
            finally:
                following.cancel()
                self._log.look()

    def _flags(self) -> argparse.Namespace:
        options = self._options
        traced = [] if options.quiet_frames else ["--trace", str(self._frames.path)]
        return flags_with(
            self._found,
            "--watch-ext",
            *traced,
            provider=options.provider,
            script=options.script,
            others=options.with_others,
        )

    # Lines

    async def _converse(self, app: App) -> int:
        if sys.stdin.isatty():
            self._view.say(f"{self._found.name}: {_HOW}")
        mask = Hiding(Secrets((app.mask, *self._secrets.masks)))
        plain = Progress(sys.stderr, mask, answers=lambda: asked_of(app.session, self._typed))
        face: Sink = self._view.event if self._options.json else plain
        lines = read_lines(0, _LONGEST)
        async with app.session.bus.faced(face, self._ask), asyncio.TaskGroup() as group:
            self._wanted.set()
            while (line := await self._line(lines)) is not None:
                self._interrupts = 0
                if self._questions:
                    self._answer(app, line)
                elif line.strip():
                    self._typed = line.strip()
                    self._wanted.clear()
                    group.create_task(self._take(app, self._typed), name="line")
            app.questions.close()  # nobody is left to answer
        await app.session.extensions.settled()  # an author without a word to say wants to see it start
        await app.session.at_rest()
        await app.session.extensions.caught_up()
        state = {one.name: one.state for one in app.session.extensions.statuses()}.get(self._found.name)
        return 0 if state == "ready" else 1

    async def _line(self, lines: AsyncIterator[bytes | TooLong]) -> str | None:
        """None at the end."""
        await self._wanted.wait()
        line = await anext(lines, None)
        if isinstance(line, TooLong):
            self._view.say(f"hilt: a line of {line.size:,} bytes is left out")
            return ""
        return None if line is None else line.decode("utf-8", "replace")

    async def _take(self, app: App, text: str) -> None:
        try:
            await app.session.extensions.settled()
            if text.startswith("/") and app.session.known_command(text) is None:
                raise UsageError(f"unknown command {one_line(text, 80)}", hint="/help lists them")
            outcome = await perform(app.session, text, self._view.answer)
            if outcome.stop not in ("error", "aborted"):
                self._view.answer(outcome.text)
        except HiltError as error:
            self._view.say(f"hilt: error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
        finally:
            self._wanted.set()

    def interrupted(self, cancel: Callable[[], object]) -> None:
        """Ctrl-C: the first stops what runs, the second ends it all."""
        self._interrupts += 1
        if self._interrupts > 1 or self._session is None:
            self.end(cancel)
        else:
            stopped = "cancelled; " if self._session.abort() else ""
            self._view.say(f"hilt: {stopped}Ctrl-C again ends")

    def end(self, cancel: Callable[[], object]) -> None:
        self.ending = True
        cancel()

    # Questions

    async def _ask(self, event: Event) -> None:
        match event:
            case PickerAsked(id=id_, title=title, items=items):
                listed = tuple((item.label, item.id) for item in items)
                self._put(_Question(id_, f"[{event.extension}] {title}", listed))
            case QuestionAsked(id=id_, prompt=prompt, choices=choices):
                self._put(_Question(id_, f"[{event.extension}] {prompt}", tuple((one, one) for one in choices)))
            case PermissionAsked(id=id_, request=request):
                self._put(_Question(id_, f"may {request.tool} run? {request.preview.text}"))
            case TrustAsked(id=id_, text=text):
                self._put(_Question(id_, text))
            case RequestWithdrawn(id=id_):
                self._questions = deque(one for one in self._questions if one.id != id_)

    def _put(self, question: "_Question") -> None:
        self._questions.append(question)
        choices = [f"  {number}  {label}" for number, (label, _) in enumerate(question.choices, 1)]
        self._view.say("\n".join((question.text, *(choices or ["  y or n"]))))
        self._wanted.set()

    def _answer(self, app: App, line: str) -> None:
        question = self._questions.popleft()
        try:
            app.questions.answer(question.id, question.reply(line.strip()))
        except UsageError as error:
            self._view.say(f"hilt: {error.message}")
        if app.session.busy and not self._questions:
            self._wanted.clear()


class _Question(Struct, frozen=True):
    id: str
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    """What is shown, and what it stands for; none for yes or no."""

    def reply(self, line: str) -> Reply:
        if not self.choices:
            return Reply(approved=line.lower() in _YES)
        for number, (label, value) in enumerate(self.choices, 1):
            if line in (str(number), label):
                return Reply(selected=value)
        return Reply(cancelled=True)
