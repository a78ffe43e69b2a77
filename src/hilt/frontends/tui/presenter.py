"""From what happens to what is on the screen: takes every event of the session and changes the scene.

Nothing is drawn here, so an event costs next to nothing. What needs an answer goes to whoever asks the user.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from hilt.agent.compaction import estimated_tokens
from hilt.agent.session import Session
from hilt.frontends.tui.dialogs.rewriting import Rewriting
from hilt.frontends.tui.git import branch_of
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.shell import Shells, ran_before
from hilt.frontends.tui.surfaces.standing import Conceal, Standing, as_it_is
from hilt.frontends.tui.transcript.answer import Answer, Thought
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.call import Call
from hilt.frontends.tui.transcript.said import Said
from hilt.frontends.tui.transcript.told import Condensed, Told
from hilt.frontends.tui.wording import applied
from hilt.model import events as happened
from hilt.model.content import Image, Text, Thinking, ToolCall, UserBlock, text_of
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, UserMessage
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart

Asking: TypeAlias = happened.PermissionAsked | happened.TrustAsked | happened.PickerAsked | happened.QuestionAsked

_SLOW = 1.0
"""Seconds after which an extension that holds things up is named."""
_SHOWN = 1000
"""What extensions may display, each."""


class Presenter:
    def __init__(
        self,
        session: Session,
        scene: Scene,
        *,
        ask: Callable[[Asking], None],
        withdraw: Callable[[str], None],
        leave: Callable[[str], None],
        clock: Callable[[], float],
        conceal: Conceal = as_it_is,
    ) -> None:
        """`ask` puts a question before the user, `withdraw` takes it back by its id; `leave` ends the program, and
        is told for whom; `conceal` blanks what is nobody's business."""
        self._session = session
        self._scene = scene
        self._ask = ask
        self._withdraw = withdraw
        self._leave = leave
        self._clock = clock
        self._standing = Standing(session, scene, conceal)
        self._answer: Answer | None = None
        self._thought: Thought | None = None
        self._streamed: list[Block] = []
        """What the answer that is being written has put on screen, should it turn out to be void."""
        self._calls: dict[str, Call] = {}
        """Those that have no result yet."""
        self.rewriting = Rewriting()
        """What became of calls before they run."""
        self.shells = Shells(session, scene, clock)
        self._shown: dict[str, list[Block]] = {}
        """What each extension has displayed, oldest first."""
        self._refused: set[str] = set()
        """Extensions that wanted to end the program when that could not be."""

    # From the beginning

    def begin(self) -> None:
        """Show the session as it is."""
        self._rebuild()
        self._refresh_facts()
        self._standing.begin()
        self._scene.queue = self._session.waiting
        self._scene.mark(Part.ALL)

    def tell(self, level: str, text: str, owner: str = "", hint: str = "") -> None:
        """Something that is not part of the conversation, where the user looks."""
        self._add(Told(level, text, owner, hint) if owner else Told(level, applied(text), hint=applied(hint)))

    def tick(self) -> None:
        """Time has passed: what shows how long something takes is drawn again."""
        before = self._scene.waits
        self._scene.waits = [one for one in self._session.waits.current if one.seconds >= _SLOW]
        for call in self._calls.values():
            call.tick(self._clock())
        if self._thought:
            self._thought.tick(self._clock())
        self.shells.tick()
        if self._scene.activity.since and not self._session.busy:
            self._rest()  # what ends last may be something that nobody tells of, such as a command's turn
        if self._scene.activity.since or self._scene.waits or before:
            self._scene.mark(Part.ACTIVITY)
        if self._calls or self._thought:
            self._scene.mark(Part.TRANSCRIPT)

    def _rebuild(self) -> None:
        self._scene.blocks = [block for message in self._session.transcript.messages for block in self._blocks(message)]
        self._calls.clear()
        self._answer = self._thought = None
        self._scene.mark(Part.TRANSCRIPT)

    def _blocks(self, message: Message) -> list[Block]:
        """As they would have come about."""
        match message:
            case UserMessage(content=content, summary=True):
                return [Condensed(text_of(content))]
            case UserMessage(content=content, extension=extension):
                ran = ran_before(text_of(content)) if not extension else None
                return [ran or _said(content, extension)]
            case AssistantMessage():
                blocks: list[Block] = []
                for one in message.seen:
                    match one:
                        case Text(text=text):
                            blocks += [Answer.of(text)] if text.strip() else []
                        case Thinking(text=text):
                            blocks += [Thought.of(text)] if text.strip() else []
                        case ToolCall(id=id_, name=name, args=args, invalid=invalid):
                            call = self._calls[id_] = Call(id_, name, self._owner(name))
                            call.called(args, invalid)
                            blocks.append(call)
                if message.stop == "aborted":
                    blocks.append(Told("info", "cancelled"))
                elif message.error:
                    blocks.append(Told("error", message.error))
                return blocks
            case ToolMessage(results=results):
                for result in results:
                    if past := self._calls.pop(result.call_id, None):
                        past.ended(result.content, is_error=result.is_error, details=result.details)
                return []

    # As things happen

    async def __call__(self, event: happened.Event) -> None:
        match event:
            case TextDelta() | ThinkingDelta() | ToolUseStart() | ToolUseArgs() | ToolUseEnd():
                self._stream(event)
            case happened.PermissionAsked() | happened.TrustAsked() | happened.PickerAsked() | happened.QuestionAsked():
                self._hold(event)
                self._ask(event)
            case happened.RequestWithdrawn(id=id_):
                self._withdraw(id_)
            case _:
                self.rewriting.heard(event)
                self._on_screen(event)
                self._in_conversation(event)

    def _stream(self, event: TextDelta | ThinkingDelta | ToolUseStart | ToolUseArgs | ToolUseEnd) -> None:
        match event:
            case TextDelta(delta=text):
                self._close_thought()
                if self._answer is None:
                    self._answer = Answer()
                    self._streamed.append(self._answer)
                    self._add(self._answer)
                self._answer.feed(text)
                self._doing("writing")
            case ThinkingDelta(delta=text):
                if self._thought is None:
                    self._thought = Thought(self._clock())
                    self._streamed.append(self._thought)
                    self._add(self._thought)
                self._thought.feed(text)
                self._doing("thinking")
            case ToolUseStart(id=id_, name=name):
                self._close_text()
                call = self._calls[id_] = Call(id_, name, self._owner(name))
                self._streamed.append(call)
                self._add(call)
                self._doing(f"preparing {name}")
            case ToolUseArgs(id=id_, delta=piece):
                if drafted := self._calls.get(id_):
                    drafted.draft(piece)
            case ToolUseEnd():
                pass
        self._scene.mark(Part.TRANSCRIPT)

    def _in_conversation(self, event: happened.Event) -> None:
        match event:
            case happened.UserMessageAdded(content=content, extension=extension):
                if not self.shells.reported(text_of(content)):
                    self._add(_said(content, extension))
            case happened.TurnStarted():
                self._scene.activity.since = self._scene.activity.since or self._clock()
                self._doing("waiting for the model")
            case happened.AssistantStarted() | happened.AssistantMessageAdded():
                self._close_text()
                self._streamed = []
            case happened.AssistantReplaced(text=text, suppressed=suppressed, extension=extension, reason=reason):
                self._replace(text, extension, reason, suppressed=suppressed)
            case happened.UsageReported(usage=usage):
                self._scene.activity.tokens += usage.output
            case happened.ToolCalled():
                self._called(event)
            case happened.ToolProgressed(id=id_, text=text):
                if running := self._calls.get(id_):
                    running.progress(text)
                    self._scene.mark(Part.TRANSCRIPT)
            case happened.ToolResultAdded():
                self._ended(event)
            case happened.PermissionDecided(id=id_) if id_ in self._calls:
                self._decided(self._calls[id_], event)
            case happened.Intercepted(id=id_) if id_ in self._calls:
                self._calls[id_].intercepted(event)
            case happened.Intercepted(outcome="blocked", decisions=decisions) if event.event == "turn_start":
                why = [f"{one.extension} refused it: {one.reason}" for one in decisions if one.decision == "block"]
                self.tell("warn", "; ".join(why))
            case happened.Done(stop=stop):
                self._over(stop)
            case happened.Failed(message=message, hint=hint):
                self.tell("error", message, hint=hint)
            case happened.Retrying():
                self._void()
                seconds = event.delay_ms / 1000
                self.tell("warn", f"{event.reason}: trying again in {seconds:.0f} s ({event.attempt}/{event.attempts})")
            case happened.CompactionStarted():
                self._scene.activity.since = self._scene.activity.since or self._clock()
                self._doing("making the conversation short")
            case happened.CompactionDone(summary=summary):
                self._add(Condensed(summary))
                self._over("end")
            case happened.CompactionFailed(error=error):
                self.tell("error", f"the conversation is as it was: {error}")
                self._over("end")
            case happened.ConversationMoved():
                self._rebuild()
            case happened.Noticed(level=level, message=message):
                self.tell(level, message)
            case happened.Displayed(extension=extension, text=text):
                self._display(text, extension)
            case happened.StepLimitReached(count=count):
                self.tell("warn", f"stopped after {count} model calls: say `go on` to continue")
            case happened.BackgroundChanged(name=name, state=state, extension=extension, text=text):
                self.tell("info", f"agent {name} {state}" + (f": {text}" if text else ""), extension)
            case _:
                pass

    def _on_screen(self, event: happened.Event) -> None:
        match event:
            case happened.QueueChanged(waiting=waiting):
                self._scene.queue = waiting
                self._scene.mark(Part.QUEUE)
            case happened.StateChanged() | happened.UsageReported() | happened.ExtensionChanged() | happened.Done():
                self._refresh_facts()
            case happened.QuitAsked(extension=extension):
                self._asked_to_leave(extension)
            case _:
                self._standing.hear(event)

    # What it comes to

    def _display(self, text: str, owner: str) -> None:
        """What a command shows. Of somebody who shows more and more, the first ones go."""
        shown = self._shown.setdefault(owner, [])
        shown.append(Told("shown", text, owner))
        self._add(shown[-1])
        if len(shown) > _SHOWN:
            gone = set(map(id, shown[: _SHOWN // 2]))
            del shown[: _SHOWN // 2]
            self._scene.blocks = [block for block in self._scene.blocks if id(block) not in gone]

    def _asked_to_leave(self, extension: str) -> None:
        if not self._session.busy:
            self._leave(extension)
        elif extension not in self._refused:
            self._refused.add(extension)
            self.tell("warn", "wants to end the program, which is not done while something runs", extension)

    def _called(self, event: happened.ToolCalled) -> None:
        call = self._calls.get(event.id)
        if call is None:
            call = self._calls[event.id] = Call(event.id, event.name, self._owner(event.name), by=event.extension)
            self._add(call)
        call.called(event.args, event.invalid)
        if any(one.state == "running" for one in self._calls.values()):
            call.queued()  # most tools run one after the other: all are told of at once
        else:
            self._start(call)
        self._scene.mark(Part.TRANSCRIPT)

    def _decided(self, call: Call, event: happened.PermissionDecided) -> None:
        """Also when nobody was asked, this is the last that happens before it runs."""
        if event.source == "user":
            call.decided(approved=event.approved, reason=event.reason)
        if event.approved:
            self._start(call)

    def _start(self, call: Call) -> None:
        call.start(self._clock())
        self._doing(f"running {call.name}")
        self._scene.mark(Part.TRANSCRIPT)

    def _hold(self, asking: Asking) -> None:
        """What the user is asked about does not run meanwhile."""
        held = self._calls.get(asking.request.call_id) if isinstance(asking, happened.PermissionAsked) else None
        if held:
            held.held()
            self._doing("waiting for your answer")
            self._scene.mark(Part.TRANSCRIPT)

    def _ended(self, event: happened.ToolResultAdded) -> None:
        if call := self._calls.pop(event.id, None):
            call.finished(event, self._clock())
            self._scene.mark(Part.TRANSCRIPT)
        self._doing("waiting for the model")

    def _replace(self, text: str, extension: str, reason: str, *, suppressed: bool) -> None:
        """The text that was streamed is another one, or none."""
        spoken = [block for block in self._streamed if isinstance(block, Answer)]
        for block in spoken:
            block.replace("")
        if not suppressed:
            answer = spoken[0] if spoken else Answer()
            answer.replace(text)
            if not spoken:
                self._add(answer)
        what = "hid the answer" if suppressed else "changed the answer"
        self.tell("info", f"{what}" + (f": {reason}" if reason else ""), extension)
        self._answer = None

    def _void(self) -> None:
        """What was streamed comes again."""
        gone = set(map(id, self._streamed))
        self._scene.blocks = [block for block in self._scene.blocks if id(block) not in gone]
        self._calls = {key: call for key, call in self._calls.items() if id(call) not in gone}
        self._streamed, self._answer, self._thought = [], None, None
        self._scene.mark(Part.TRANSCRIPT)

    def _over(self, stop: str) -> None:
        self._close_text()
        if stop == "aborted":
            self.tell("info", "cancelled")
        for call in self._calls.values():
            call.abandoned()
        self._calls.clear()
        self._rest()
        self._scene.mark(Part.TRANSCRIPT)
        if self._session.busy:
            self._scene.activity.since = self._clock()

    def _rest(self) -> None:
        """Nothing runs."""
        activity = self._scene.activity
        activity.since, activity.doing, activity.tokens = 0.0, "", 0
        self._scene.mark(Part.ACTIVITY)

    def _close_thought(self) -> None:
        if self._thought:
            self._thought.finish(self._clock())
            self._thought = None

    def _close_text(self) -> None:
        self._close_thought()
        if self._answer:
            self._answer.finish()
            self._answer = None
            self._scene.mark(Part.TRANSCRIPT)

    def _doing(self, what: str) -> None:
        if self._scene.activity.doing != what:
            self._scene.activity.doing = what
            self._scene.mark(Part.ACTIVITY)

    def _add(self, block: Block) -> None:
        self._scene.blocks.append(block)
        self._scene.mark(Part.TRANSCRIPT)

    def _owner(self, tool: str) -> str:
        """The extension whose tool it is; empty for those of hilt."""
        owned = self._session.parts.registry.snapshot().tools.get(tool)
        return owned.owner if owned and owned.owner != "hilt" else ""

    def _refresh_facts(self) -> None:
        facts, session = self._scene.facts, self._session
        info, permissions = session.active.info, session.parts.permissions
        facts.model, facts.window = info.id, info.context_window
        facts.mode, facts.step, facts.jail = permissions.mode, permissions.step, session.parts.jail.on
        facts.cwd, facts.branch = session.parts.cwd, branch_of(Path(session.parts.cwd))
        facts.usage = session.transcript.usage
        facts.context = estimated_tokens(session.transcript.messages)
        facts.extensions = session.extensions.statuses()
        self._scene.mark(Part.STATUS)


def _said(content: tuple[UserBlock, ...], extension: str) -> Said:
    return Said(text_of(content), extension, tuple(block for block in content if isinstance(block, Image)))
