"""`ExtensionHost`: extensions of both dialects for any Python program with a loop of its own.

The face of what hilt itself uses: the host of `extensions` keeps the processes, `agent.toolcalls` and
`agent.interception` decide what a call goes through. Owns how the program reaches them without a session, and nothing
of what they do.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec
from msgspec import structs

from hilt.agent.activation import Activation
from hilt.agent.bus import Bus
from hilt.agent.hooks import injected, transformed
from hilt.agent.interception import Bench, GuardRules, Ruling, consult
from hilt.agent.loop import told
from hilt.agent.prompt import with_contributions
from hilt.agent.stopping import Stop
from hilt.agent.toolcalls import Desk, Ran, run_call
from hilt.agent.waiting import settled
from hilt.embedding.agent import EmbeddedAgent
from hilt.embedding.called import Called, Refused
from hilt.embedding.finding import choices_of, finder, insist, places_of
from hilt.embedding.listening import Listener, OnEvent, Progress, Seen
from hilt.embedding.services import Chat
from hilt.embedding.setting import Approve, Setting
from hilt.errors import ExtensionError, ExtensionTimeout, FrameError, UsageError
from hilt.extensions.host import Finds, RunningExtensions
from hilt.model.actions import Action
from hilt.model.content import Args, ToolCall
from hilt.model.contributions import Command
from hilt.model.conversation import unknown_outcome
from hilt.model.events import Event, ToolCalled, TurnStarted
from hilt.model.extensions import ExtensionStatus, Reloaded
from hilt.model.stream import ToolSpec
from hilt.model.verdicts import Question
from hilt.registry.registry import Registry
from hilt.registry.snapshot import OwnedCommand, Snapshot
from hilt.wire.freeform import pack

_WITHDRAWN = "Cancelled by the program that made the call: its outcome is unknown."


class ExtensionHost:
    """Made by `open`, and alive as long as its block. All of it is for the event loop it was opened in."""

    def __init__(self, setting: Setting, finds: Finds, *, watch: bool, wait: float) -> None:
        self._setting = setting
        self._registry, self._bus, self._activation = Registry(), Bus(), Activation()
        self._bench = setting.bench(self._bus)
        self._agent = EmbeddedAgent(self._bus, self._activation, lambda: self._extensions, self._desk_for, self.run)
        house = setting.house(self._agent, self._registry, self._activation, self._bus)
        self._extensions = RunningExtensions(finds, house, self._registry, settling=wait, watch=watch)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        extensions: Iterable[str | os.PathLike[str]] | None = None,
        *,
        cwd: str | os.PathLike[str] = ".",
        home: str | os.PathLike[str] | None = None,
        model: str = "",
        on_event: OnEvent | None = None,
        approve: Approve | None = None,
        chat: Chat | None = None,
        strict_guards: bool = False,
        watch: bool = False,
        wait: float = 5.0,
        finds: Finds | None = None,
    ) -> AsyncIterator["ExtensionHost"]:
        """Run these extensions, each a directory or a file, for the life of the block; without any, what is installed.

        It begins when all are ready or have failed, or after `wait` seconds: `statuses` tells. Raises `ManifestError`
        for a path that cannot be used, `ConfigError` for settings that cannot be read.
        """
        if isinstance(extensions, str | os.PathLike):
            raise UsageError("one path is no list of paths", hint=f'such as ExtensionHost.open(["{extensions}"])')
        place, root = places_of(cwd, home)
        choices = choices_of(root)
        if finds is None:
            named = None if extensions is None else [os.fspath(one) for one in extensions]
            finds = finder(named, root, place, choices)
            if named is not None:
                insist(await asyncio.to_thread(finds.all))
        setting = Setting.of(root, place, choices, model, GuardRules(strict=strict_guards), approve, chat)
        host = cls(setting, finds, watch=watch, wait=wait)
        async with host._running(on_event):
            yield host

    @asynccontextmanager
    async def _running(self, on_event: OnEvent | None) -> AsyncIterator[None]:
        raised: BaseException | None = None
        shown, sinks = self._agent, [Listener(on_event)] if on_event else []
        try:
            async with (
                self._bus.faced(*sinks, self._extensions),
                shown.screen.running(),
                shown.panels.running(),
                shown.notes.running(),
                self._extensions.running(),
            ):
                await self._extensions.settled()
                try:
                    yield
                except BaseException as error:
                    raised = error
                    raise
        except BaseExceptionGroup as group:
            # What the program itself raised comes out as it was raised: that there are tasks here is no concern of its.
            _, others = group.split(lambda error: error is raised)
            if raised is None or others is not None:
                raise
            raise raised from None

    # What extensions offer

    def tools(self) -> tuple[ToolSpec, ...]:
        """What a model is to be shown, as of now: each has `name`, `description` and `schema`, a JSON Schema."""
        return self._activation.offered(self._registry.snapshot())

    def commands(self) -> tuple[Command, ...]:
        """The slash commands, each with `name`, `description` and `usage`."""
        return tuple(owned.command for owned in self._registry.snapshot().commands.values())

    def statuses(self) -> tuple[ExtensionStatus, ...]:
        """How each extension is, with the reason when it does not run."""
        return self._extensions.statuses()

    def snapshot(self) -> Snapshot:
        """All that is registered, with its owners. For looking; its shape may change."""
        return self._registry.snapshot()

    # Calling and running

    async def call(
        self,
        tool: str,
        args: Args | str | None = None,
        *,
        call_id: str = "",
        timeout: float | None = None,
        progress: Progress | None = None,
        direct: bool = False,
    ) -> Called:
        """Call a tool as a model would: the guards are heard, the arguments checked, the result reviewed.

        `args` may be the JSON that a model wrote. Whatever becomes of it is the answer: nothing is raised for a refusal
        or a failure. Cancelling this cancels the call. `direct`: the program itself calls, so `codemode` tools can be
        had, and `model-only` ones not.
        """
        call = _tool_call(call_id or f"call_{os.urandom(6).hex()}", tool, args)
        seen = Seen(self._bus, call.id, progress)
        bench = structs.replace(self._bench, emit=seen)
        desk = self._desk(bench, direct=direct)
        known = desk.tool(tool) is not None
        await self._bus.emit(ToolCalled(call.id, tool, call.args, invalid=call.invalid, known=known))
        try:
            async with asyncio.timeout(timeout):
                ran = await run_call(call, desk)
        except TimeoutError:
            late = f"{tool} did not answer within {timeout:g} s and was cancelled: its outcome is unknown"
            ran = Ran(unknown_outcome(call, late), "timed_out", executed=True, args=call.args)
        except asyncio.CancelledError:
            ran = Ran(unknown_outcome(call, _WITHDRAWN), "cancelled", executed=True, args=call.args)
            await self._bus.emit(told(ran))
            raise
        await self._bus.emit(told(ran))
        return Called.of(ran, seen.decisions)

    async def run(self, command: str, args: str = "", *, timeout: float | None = None) -> tuple[Action, ...]:
        """Run a slash command. What it wants done is told to `on_event`, and is the answer too.

        Raises `UsageError` for an unknown one, `ExtensionError` when it fails.
        """
        owned = await self._command(command.removeprefix("/"))
        try:
            async with asyncio.timeout(timeout):
                actions = await owned.command.run(args.strip())
        except TimeoutError:
            raise ExtensionTimeout(owned.owner, f"/{owned.command.name} did not end within {timeout:g} s") from None
        await self._agent.apply(actions, owned.owner)
        return actions

    async def _command(self, name: str) -> OwnedCommand:
        if self._registry.snapshot().command(name) is None:
            await settled(self._extensions, self._bench.waits)
        owned = self._registry.snapshot().command(name)
        if owned is None:
            known = ", ".join(f"/{one}" for one in self._registry.snapshot().commands) or "none"
            raise UsageError(f"unknown command /{name}", hint=f"the commands are: {known}")
        return owned

    def panel_key(self, panel_id: str, key: str, text: str = "") -> None:
        """The user pressed a key in an open panel. Raises `UsageError` when there is no such panel."""
        self._agent.panels.key(panel_id, key, text)

    async def close_panel(self, panel_id: str) -> None:
        """The user closed it. Raises `UsageError` when there is no such panel."""
        await self._agent.panels.close(panel_id)

    async def reload(self, name: str = "") -> Reloaded:
        """Start one, or all, anew. The old process stays until the new one is up, and for good if it is not."""
        return await self._extensions.reload(name)

    async def caught_up(self) -> None:
        """Wait, but not for long, until extensions have dealt with what they were told and have had their wishes."""
        await self._extensions.caught_up()

    # What extensions have a say in, and hear of

    async def system_prompt(self, base: str = "") -> str:
        """The base with what extensions add to it, as their interceptors leave it.

        Raises `ExtensionError` when one that is needed gives no answer.
        """
        snapshot = self._registry.snapshot()
        whole = with_contributions(base, snapshot.sections, self._activation.instructions(snapshot)).lstrip("\n")
        ruling = await self._hear(self._setting.start_question(whole))
        if ruling.blocked_by:
            raise ExtensionError(ruling.blocked_by, ruling.reason, hint="`reload` starts it anew")
        return ruling.question.system_prompt

    async def transform(self, text: str) -> str | None:
        """What the user typed, as extensions leave it; None when one of them has dealt with it.

        Raises `HiltError` when one fails: nobody knows what would have been said.
        """
        owned = self._registry.snapshot().transformers
        rewritten = await transformed(owned, text, self._bench.deadlines.transformer, self._bench.waits)
        return None if rewritten.handled_by else rewritten.text

    async def context(self, text: str) -> str:
        """What extensions want the model to be told with this message, for its next answer only; often nothing."""
        owned = self._registry.snapshot().hooks
        added = await injected(owned, text, self._bench.deadlines.hook, self._bench.waits)
        await added.complain(self._bus.emit)
        return "\n\n".join(added.texts)

    async def begin_turn(self, step: int) -> Refused | None:
        """Tell extensions that the model is about to be asked, for the `step`th time; None when none objects."""
        await self._extensions(TurnStarted(step))
        ruling = await self._hear(Question("turn_start", step=step))
        return Refused(ruling.blocked_by, ruling.reason) if ruling.blocked_by else None

    async def review(self, text: str) -> str | None:
        """What people are to be shown of the model's words, as extensions leave them; None when nothing."""
        ruling = await self._hear(Question("assistant_message", text=text))
        return None if ruling.blocked_by else ruling.question.text

    async def emit(self, event: Event) -> None:
        """Tell extensions that observe it of something that happened in the program. `on_event` is not told."""
        await self._extensions(event)

    async def _hear(self, question: Question) -> Ruling:
        return await consult(self._registry.snapshot().guards(question.event), question, self._bench)

    def _desk_for(self, source: str, chain: tuple[str, ...]) -> Desk:
        """For a call that an extension makes."""
        return structs.replace(self._desk(self._bench, direct=True), origin=source, chain=chain)

    def _desk(self, bench: Bench, *, direct: bool) -> Desk:
        return Desk(
            registry=self._registry,
            activation=self._activation,
            permissions=bench.permissions,
            bench=bench,
            emit=bench.emit,
            deliver=_nowhere,
            stop=Stop(),
            extensions=self._extensions,
            direct=direct,
        )


def _tool_call(id_: str, tool: str, args: Args | str | None) -> ToolCall:
    """What is no JSON is refused here: among the events it would cost the calls of others."""
    written = args if isinstance(args, str) else ""
    try:
        decoded = msgspec.json.decode(written or pack({} if args is None or args == "" else args))
    except (FrameError, TypeError, ValueError, RecursionError) as error:
        decoded, written = None, written or str(error)
    if not isinstance(decoded, dict):
        return ToolCall(id_, tool, {}, invalid=written or f"{type(args).__name__} is none")
    return ToolCall(id_, tool, decoded)


async def _nowhere(_: Ran) -> None:
    """The answer goes back to who asked."""
