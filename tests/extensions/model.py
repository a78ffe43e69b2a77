"""What the extension host must do, worked out from what its programs did and when.

The programs are puppets, so everything that befell them is known to the moment. The model follows from that, in the
order of time, what must have become of every extension, every call and every question to a guard; `check` compares it
with the host. It knows the rules and the times of the host, and nothing of how it is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGKILL
from typing import Any, Literal, NamedTuple

from hilt.errors import HiltError
from hilt.model.contributions import Tool
from hilt.model.events import Decided, ExtensionChanged, Intercepted, Noticed, ToolCalled
from hilt.model.extensions import Reloaded
from hilt.registry.snapshot import Snapshot
from hilt.transport.process import Exit
from support.puppets import BUILTIN, TERM_GRACE, Frame, Moment, Puppet, Said, Settings, World, quiet, token

SLACK = 0.1
"""Seconds that anything may be late."""
DRAIN, EOF_GRACE, STALL = 2.0, 2.0, 5.0
IDLE, READY, SETTLING = 0.25, 3.0, 3.0
CRASHES, WINDOW = 5, 300.0
FIRST_DELAY, LONGEST_DELAY, JITTER = 0.5, 30.0, 0.25
BUDGET = 10.0
PROGRESS_CAP = 10
LONGEST_CALL = 20.0
"""No manifest may allow more; the host would."""
NONSENSE = "nonsense"
"""In the place of an answer's content: one that cannot be used."""

_LAST = 10**9
_ROUNDING = 1e-6
_UNASKED = ("register_tool", "register_command", "subscribe", "notify", "tool_progress")
_Kind = Literal["tool_call", "command_invoked"]


# What there is to know


@dataclass(eq=False)
class Post:
    """One extension, as it should be."""

    name: str
    number: int
    """The when-th it was started."""
    order: int
    """Its place among those that were on the disk then."""
    manifest: Settings
    first: int
    """Puppets born before are none of its own."""
    refusals: int
    """Starts that failed, as far as followed."""
    state: str = "starting"
    life: Puppet | None = None
    last: Puppet | None = None
    """The one before, when it ended before its time."""
    newcomer: Puppet | None = None
    """To be its life, once it is ready."""
    replaced: dict[Puppet, float] = field(default_factory=dict)
    """Those that had to make room, and since when."""
    known: set[Puppet] = field(default_factory=set)
    reloading: bool = False
    attempted: bool = False
    """The reload has got as far as starting a process."""
    lost: bool = False
    """Its process ended during a reload."""
    crashes: list[float] = field(default_factory=list)
    restarts: int = 0
    ended: float = 0.0
    """When it crashed last."""
    intercepts: bool = False
    removed: bool = False

    @property
    def offering(self) -> Puppet | None:
        """The process whose tools are published."""
        return self.life if self.life and hello(self.life) and not self.life.over else None

    @property
    def coming(self) -> bool:
        return self.state in ("starting", "restarting")

    @property
    def declared(self) -> bool:
        return "guard" in self.manifest

    @property
    def tool_timeout(self) -> float:
        return float(self.manifest["tool_timeout_ms"]) / 1000


class Guard(NamedTuple):
    """One that has a say, as it was when the question came up."""

    name: str
    policy: str
    """What is applied without a verdict; nobody is there who could be asked."""
    timeout: float
    declared: bool


@dataclass(eq=False)
class Asked:
    """A call of a tool, or a command, made directly."""

    kind: _Kind
    token: int
    puppet: Puppet
    begun: Moment
    patience: float
    task: "asyncio.Task[None] | None"
    cancelled: Moment | None = None
    ended: Moment | None = None
    text: str = ""
    failed: bool = False


@dataclass(eq=False)
class Heard:
    """A question to all guards; or with a tool, a call that goes through all that an agent's call goes through."""

    token: int
    begun: Moment
    guards: list[Guard]
    tool: str
    task: "asyncio.Task[None] | None"
    cancelled: Moment | None = None
    ended: Moment | None = None
    args: Frame | None = None
    """As the guards left them; None when they refused."""
    text: str = ""


@dataclass(eq=False)
class Reload:
    name: str
    kind: Literal["add", "reload", "remove"]
    bound: float
    """When it has to be done."""
    done: Moment | None = None
    outcome: Reloaded | HiltError | None = None
    followed: bool = False


def hello(puppet: Puppet) -> Said | None:
    return next((said for said in puppet.said if said.frame["type"] == "hello"), None)


def said_ready(puppet: Puppet) -> list[Moment]:
    return [said.moment for said in puppet.said if said.frame["type"] == "ready"]


def names(puppet: Puppet, kind: str) -> list[str]:
    """What it has registered."""
    return [said.frame["name"] for said in puppet.said if said.frame["type"] == kind]


def subscribed(puppet: Puppet, to: Literal["events", "intercept"]) -> bool:
    return any(said.frame["type"] == "subscribe" and said.frame[to] for said in puppet.said)


def ready_at(puppet: Puppet) -> Moment | None:
    """When it has had its time to register: when it says so, or falls silent."""
    greeting = hello(puppet)
    if greeting is None:
        return None
    lines = [said.moment.time for said in puppet.said if said.frame["type"] in _UNASKED]
    since = greeting.moment.time
    while any(since < line <= since + IDLE for line in lines):
        since += IDLE
    silent = min(since + IDLE, greeting.moment.time + READY) - _ROUNDING
    when = min([Moment(silent, 0), *said_ready(puppet)])
    return None if puppet.output_closed and puppet.output_closed < when else when


def answer_text(kind: _Kind, frame: Frame) -> str:
    """What a good answer says; nothing, when this is none."""
    if kind == "tool_call" and frame["type"] == "tool_result" and isinstance(frame["content"], list):
        return str(frame["content"][0]["text"])
    if kind == "command_invoked" and frame["type"] == "command_response" and isinstance(frame["display"], str):
        return frame["display"]
    return ""


def due(asked: Asked, now: float) -> tuple[Moment, str, str] | None:
    """When and how a call had to end, and with what text; None when it may still go on."""
    puppet, deadline = asked.puppet, asked.begun.time + asked.patience
    limit = asked.begun.time + PROGRESS_CAP * asked.patience
    ends: list[tuple[Moment, str, str]] = []
    for id_, frame in puppet.asked(asked.kind).items():
        for said in puppet.answers(id_) if token(frame) == asked.token else ():
            if said.frame["type"] == "tool_progress" and asked.kind == "tool_call":
                if said.moment.time < deadline:
                    deadline = min(said.moment.time + asked.patience, limit)
            elif text := answer_text(asked.kind, said.frame):
                ends.append((said.moment, "answered", text))
                break
            elif NONSENSE in (said.frame.get("content"), *said.frame.get("display", ())):
                ends.append((said.moment, "unusable", ""))
                break
    ends.append((Moment(deadline, _LAST), "timeout", ""))
    if puppet.over:
        ends.append((max(puppet.over, asked.begun), "gone", ""))
    if asked.cancelled:
        ends.append((asked.cancelled, "cancelled", ""))
    first = min(ends)
    return first if first[0].time <= now else None


def refuses(decision: Decided) -> bool:
    return decision.decision == "block" or decision.applied == "block"


class Model:
    """All of one host: what should be, and the comparison with what is."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.stage = self.world.stage
        self.posts: dict[str, Post] = {}
        self.leaving: list[Post] = []
        """Removed, with a process on its way out."""
        self.arriving: Post | None = None
        """To be started when the last one of its name has gone."""
        self.started = 0
        self.reload: Reload | None = None
        self.asked: list[Asked] = []
        self.heard: list[Heard] = []
        self.old_tools: list[tuple[Tool, Puppet, float]] = []
        self.patience: dict[Puppet, float] = {}
        """How long each may take to say hello."""
        self.owed: dict[Puppet, list[tuple[str, int]]] = {}
        """Events and calls, in the order in which each process must hear them."""
        self.unread: dict[Puppet, float] = {}
        """Since when something waits for a process that does not read."""
        self.worked: dict[Puppet, float] = {}
        """When its last call ended."""
        self.entered = self.world.now
        self._events_read = 0
        self._decided: dict[str, Intercepted] = {}
        self.ids: dict[int, str] = {}
        """Under which id the question about each token is on record."""

    # Doing something

    def act(self, do: Callable[[], Awaitable[object] | object]) -> None:
        """Do it, let everything happen that can, and follow what must have happened."""

        async def step() -> None:
            doing = do()
            if isinstance(doing, Awaitable):
                await doing
            await quiet()

        self.world.run(step())
        self.follow()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        def create() -> None:
            self.world.group.create_task(work)

        self.act(create)

    @property
    def snapshot(self) -> Snapshot:
        return self.world.it.session.parts.registry.snapshot()

    # What follows from it

    def post(self, name: str, manifest: Settings) -> Post:
        self.started += 1
        order = sorted(other for other, usable in self.world.disk.items() if usable).index(name)
        refusals = sum(refused == name for refused, _ in self.stage.refused)
        return Post(name, self.started, order, manifest, len(self.stage.puppets), refusals)

    def follow(self) -> None:
        """Work out what must have become of each extension."""
        for post in self.leaving:
            self._follow(post)
        self.leaving = [post for post in self.leaving if any(puppet.alive for puppet in post.known)]
        if (new := self.arriving) and new.name not in [post.name for post in self.leaving]:
            self.posts[new.name], self.arriving = new, None
        for post in self.posts.values():
            self._follow(post)
        for puppet in self.stage.puppets:
            if puppet.over is None and not puppet.reading and puppet.channel.waiting:
                self.unread.setdefault(puppet, self.world.now)
            else:
                self.unread.pop(puppet, None)
        self._read_events()

    def _follow(self, post: Post) -> None:
        while events := self._events(post):
            min(events, key=lambda event: event[0])[1]()
            self._keep_slot(post)
        self._keep_slot(post)

    def _keep_slot(self, post: Post) -> None:
        """What it guarded before a crash stays guarded until the new process has had its say."""
        if puppet := post.offering:
            undecided = post.restarts > 0 and not said_ready(puppet)
            post.intercepts = subscribed(puppet, "intercept") or (post.intercepts and undecided)

    def _read_events(self) -> None:
        for event in self.world.it.events[self._events_read :]:
            if isinstance(event, Intercepted):
                assert event.id not in self._decided
                self._decided[event.id] = event
            elif isinstance(event, ToolCalled):
                self.ids[event.args["token"]] = event.id
        self._events_read = len(self.world.it.events)

    def _events(self, post: Post) -> list[tuple[Moment, Callable[[], None]]]:
        """What has happened and was not followed yet."""
        events: list[tuple[Moment, Callable[[], None]]] = []
        if not post.removed:
            unknown = [p for p in self.stage.puppets[post.first :] if p.name == post.name and p not in post.known]
            events += [(puppet.born, partial(self._born, post, puppet)) for puppet in unknown]
            refused = [moment for name, moment in self.stage.refused if name == post.name][post.refusals :]
            events += [(moment, partial(self._refused, post, moment)) for moment in refused]
        for puppet in filter(None, (post.life, post.newcomer)):
            when, over = ready_at(puppet), puppet.over
            if over:
                events.append((over, partial(self._over, post, puppet, over)))
            unready = puppet is post.newcomer or post.state != "ready"
            if unready and when and when.time <= self.world.now and not (over and over < when):
                events.append((when, partial(self._ready, post, puppet, when)))
        reload = self.reload
        if reload and reload.name == post.name and reload.done and not reload.followed and not post.removed:
            events.append((reload.done, partial(self._reloaded, post, reload, reload.done)))
        return events

    def _born(self, post: Post, puppet: Puppet) -> None:
        post.known.add(puppet)
        self.owed[puppet] = []
        manifest = self.world.disk[post.name] if post.reloading else post.manifest
        assert manifest
        self.patience[puppet] = manifest["start_timeout_ms"] / 1000
        if post.reloading:
            assert not post.attempted, "two were started for one reload"
            assert post.life is None or post.state == "ready"
            post.attempted, post.newcomer = True, puppet
            if post.life is None:
                post.state = "starting"
            return
        assert post.life is None and post.coming, f"nobody asked for {puppet.name} {puppet.pid}"
        last = post.last
        assert last is None or (last.died and last.died < puppet.born), "the last one was still there"
        if post.state == "restarting":
            assert puppet.born.time >= post.ended + self._delay(post) * (1 - JITTER), "started again too soon"
            post.restarts += 1
        post.life = puppet

    def _delay(self, post: Post) -> float:
        return min(FIRST_DELAY * 2.0 ** (len(post.crashes) - 1), LONGEST_DELAY)

    def _refused(self, post: Post, moment: Moment) -> None:
        post.refusals += 1
        if post.reloading:
            post.attempted = True
            return
        post.restarts += post.state == "restarting"
        self._crashed(post, moment, started=False)

    def _ready(self, post: Post, puppet: Puppet, moment: Moment) -> None:
        if puppet is post.newcomer:
            manifest = self.world.disk[post.name]
            assert manifest
            if post.life:
                post.replaced[post.life] = moment.time
            post.life, post.newcomer, post.manifest = puppet, None, manifest
            post.restarts, post.lost = 0, False
        post.state = "ready"

    def _over(self, post: Post, puppet: Puppet, moment: Moment) -> None:
        if puppet is post.newcomer:
            post.newcomer = None
            return
        post.life, post.last = None, puppet
        if post.removed:
            return
        if post.reloading:
            post.state, post.lost = "starting", True
        else:
            self._crashed(post, moment, started=hello(puppet) is not None)

    def _crashed(self, post: Post, moment: Moment, *, started: bool) -> None:
        post.ended = moment.time
        if not started and not post.restarts and not post.crashes:
            post.state = "failed"
            return
        post.crashes = [crash for crash in (*post.crashes, moment.time) if moment.time - crash <= WINDOW]
        post.state = "failed" if len(post.crashes) >= CRASHES else "restarting"

    def _reloaded(self, post: Post, reload: Reload, moment: Moment) -> None:
        reload.followed = True
        if reload.kind != "reload":
            return
        assert isinstance(reload.outcome, Reloaded)
        fine = post.attempted and post.life is not None and post.state == "ready" and not reload.outcome.problems
        assert fine or any(post.name in problem for problem in reload.outcome.problems)
        post.reloading = post.attempted = False
        if post.lost:
            post.lost = False
            self._crashed(post, moment, started=True)
        elif post.life is None:
            post.state = "failed"

    # What should be

    def owners(self, kind: Literal["register_tool", "register_command"]) -> dict[str, Post | None]:
        """Who has each name, None for built-ins: they come first, then those that were found first."""
        owners: dict[str, Post | None] = {BUILTIN: None} if kind == "register_tool" else {}
        for post in sorted(self.posts.values(), key=lambda post: (post.order, post.number)):
            for name in names(post.offering, kind) if post.offering else ():
                owners.setdefault(name, post)
        return owners

    def guards(self) -> list[Guard]:
        """Who is asked before a tool runs, in the order in which it counts."""
        posts = [post for post in (*self.posts.values(), *self.leaving) if post.declared or post.intercepts]
        posts.sort(key=lambda post: (-post.manifest["priority"], post.order, post.number))
        guards = []
        for post in posts:
            wish = post.manifest.get("guard", {})
            block = wish.get("required") or wish.get("on_failure", "allow") != "allow"
            timeout = wish.get("timeout_ms", 5000) / 1000
            guards.append(Guard(post.name, "block" if block else "allow", timeout, post.declared))
        return guards

    def open(self) -> list[Asked | Heard]:
        """What has not ended."""
        every: list[Asked | Heard] = [*self.asked, *self.heard]
        return [one for one in every if one.ended is None]

    def busy(self, puppet: Puppet) -> bool:
        """Whether it has a call to deal with, as far as can be told: the agent's may be anyone's."""
        return any(one.puppet is puppet for one in self.asked if one.ended is None) or any(
            one.tool for one in self.heard if one.ended is None
        )

    # Is it so?

    def check(self) -> None:
        assert self.world.loop.faults == []
        assert not self.world.main.done()
        self._the_host_is_as_it_should_be()
        self._a_name_has_one_owner_and_builtins_are_never_lost()
        self._guards_keep_their_place()
        self._only_those_live_that_should()
        self._nobody_is_ended_without_a_reason()
        self._whoever_crashed_is_started_again()
        self._a_reload_ends()
        self._every_call_ends_once_in_time_and_with_its_own_answer()
        self._nobody_is_asked_twice()
        self._every_guard_is_heard_or_its_policy_is_applied_and_recorded()
        self._when_all_is_quiet_nothing_is_pending()
        self._readers_hear_everything_in_order_but_for_counted_drops()

    def _the_host_is_as_it_should_be(self) -> None:
        statuses = {status.name: status for status in self.world.it.host.statuses()}
        unusable = {name for name, usable in self.world.disk.items() if not usable}
        assert statuses.keys() == self.posts.keys() | unusable
        told = {event.extension: event for event in self.world.it.of(ExtensionChanged)}
        for name, post in self.posts.items():
            status = statuses[name]
            assert status.state == post.state, f"{name} is {status.state} ({status.reason}) and should be {post.state}"
            assert status.pid == (post.offering.pid if post.offering else None)
            assert (told[name].state, told[name].reason) == (status.state, status.reason), "the user was told otherwise"
            assert status.reason or status.state in ("ready", "starting")
            if post.state == "ready":
                assert status.restarts == post.restarts
            if post.offering:
                assert status.tools == tuple(dict.fromkeys(names(post.offering, "register_tool")))
                assert status.events_lost == post.offering.channel.dropped

    def _a_name_has_one_owner_and_builtins_are_never_lost(self) -> None:
        tools = {name: post.name if post else "hilt" for name, post in self.owners("register_tool").items()}
        assert {name: owned.owner for name, owned in self.snapshot.tools.items()} == tools
        commands = {name: post.name for name, post in self.owners("register_command").items() if post}
        assert {name: owned.owner for name, owned in self.snapshot.commands.items()} == commands
        for post in self.posts.values():
            for name in names(post.offering, "register_tool") if post.offering else ():
                if tools[name] != post.name:
                    said = f"conflict: {tools[name]} and {post.name} both offer tool {name}"
                    assert any(warning.startswith(said) for warning in self.world.it.warnings())

    def _guards_keep_their_place(self) -> None:
        owned = self.snapshot.guards("tool_call")
        assert [one.owner for one in owned] == [guard.name for guard in self.guards()]

    def _only_those_live_that_should(self) -> None:
        now = self.world.now
        wanted = {puppet: post for post in self.posts.values() for puppet in (post.life, post.newcomer) if puppet}
        for puppet in self.stage.live:
            if puppet.dismissed:
                assert now <= puppet.dismissed.time + puppet.grace + TERM_GRACE + SLACK
            elif puppet in wanted:
                self._check_patience(puppet)
            else:
                (replaced,) = (p.replaced[puppet] for p in self.posts.values() if puppet in p.replaced)
                waits = DRAIN if self.busy(puppet) or self.heard else 0.0
                assert now <= replaced + waits + SLACK

    def _check_patience(self, puppet: Puppet) -> None:
        now = self.world.now
        if hello(puppet) is None:
            assert now <= puppet.born.time + max(self.patience[puppet], EOF_GRACE) + SLACK
        if puppet.output_closed:
            assert now <= puppet.output_closed.time + EOF_GRACE + SLACK
        if puppet in self.unread and hello(puppet) and not self.busy(puppet):
            since = max(self.unread[puppet], self.worked.get(puppet, 0.0))
            assert now <= since + STALL + SLACK, "it has stopped reading, and nobody does anything about it"

    def _nobody_is_ended_without_a_reason(self) -> None:
        for post in self.posts.values():
            for puppet in post.known - post.replaced.keys():
                gone = puppet.dismissed
                if gone is None or (puppet.died and puppet.died < gone):
                    continue
                late = hello(puppet) is None and gone.time >= puppet.born.time + self.patience[puppet]
                closed = puppet.output_closed and gone.time >= puppet.output_closed.time + EOF_GRACE
                hung = puppet.hung and gone.time >= puppet.hung.time + STALL
                assert late or closed or hung, f"{puppet.name} {puppet.pid} was ended for no reason"

    def _whoever_crashed_is_started_again(self) -> None:
        for post in self.posts.values():
            if post.state == "restarting" and post.life is None and not post.reloading:
                due = post.ended + self._delay(post) * (1 + JITTER)
                if post.last:
                    assert post.last.dismissed
                    due = max(due, post.last.dismissed.time + post.last.grace + TERM_GRACE)
                assert self.world.now <= due + SLACK, f"{post.name} is not started again"

    def _a_reload_ends(self) -> None:
        if reload := self.reload:
            assert (reload.done.time if reload.done else self.world.now) <= reload.bound + SLACK

    def _every_call_ends_once_in_time_and_with_its_own_answer(self) -> None:
        for asked in self.asked:
            expected = due(asked, self.world.now)
            if expected is None:
                assert asked.ended is None, f"{asked.token} ended for no reason: {asked.text}"
                continue
            moment, how, text = expected
            assert asked.ended, f"{asked.token} should be {how}"
            assert moment.time <= asked.ended.time <= moment.time + SLACK
            self._check_outcome(asked, how, text)
            self.worked[asked.puppet] = asked.ended.time
        self.asked = [asked for asked in self.asked if asked.ended is None]

    def _check_outcome(self, asked: Asked, how: str, text: str) -> None:
        name = asked.puppet.name
        match how:
            case "answered":
                assert (asked.text, asked.failed) == (text, False)
            case "timeout":
                assert asked.failed and f"timeout waiting for {name}/" in asked.text
            case "unusable":
                assert asked.failed and "unusable" in asked.text and name in asked.text
            case "gone":
                assert asked.failed and name in asked.text
                self._check_gone(asked)
            case _:
                assert asked.text == ""
        if how in ("timeout", "cancelled") and asked.kind == "tool_call" and asked.puppet.manner.cancels:
            self._check_told_of_cancel(asked)

    def _check_gone(self, asked: Asked) -> None:
        puppet = asked.puppet
        died, dismissed = puppet.died, puppet.dismissed
        assert dismissed
        if died and died < dismissed:
            if died > asked.begun:
                assert str(puppet.exit) in asked.text
                assert " | ".join(puppet.last_words()) in asked.text
        elif asked.begun < dismissed and not puppet.output_closed:
            for post in self.posts.values():
                assert dismissed.time >= post.replaced.get(puppet, -DRAIN) + DRAIN, "it had no time to finish"

    def _check_told_of_cancel(self, asked: Asked) -> None:
        puppet = asked.puppet
        ids = [id_ for id_, frame in puppet.asked("tool_call").items() if token(frame) == asked.token]
        if ids and puppet.reading and not puppet.over:
            assert ids[0] in puppet.asked("tool_cancel")

    def _nobody_is_asked_twice(self) -> None:
        asked = [token(frame) for puppet in self.stage.puppets for frame in puppet.asked("tool_call").values()]
        assert len(asked) == len(set(asked))

    def _every_guard_is_heard_or_its_policy_is_applied_and_recorded(self) -> None:
        for heard in self.heard:
            self._check_hearing(heard)
        self.heard = [heard for heard in self.heard if heard.ended is None]

    def _check_hearing(self, heard: Heard) -> None:
        settled = self.entered + SETTLING + SLACK
        begun = max(heard.begun.time, settled) if heard.tool else heard.begun.time
        hearing = max([BUDGET, *(guard.timeout + SLACK for guard in heard.guards)])
        running = PROGRESS_CAP * LONGEST_CALL if heard.tool else 0.0
        assert (heard.ended.time if heard.ended else self.world.now) <= begun + hearing + running + SLACK
        if heard.ended is None:
            assert heard.tool or any(map(partial(self._awaited, heard), heard.guards)), "it waits for nobody"
        elif not heard.cancelled:
            decided = self._decided.get(self.ids.get(heard.token, ""))
            unsettled = heard.tool and heard.begun.time < settled
            if decided is None:
                assert not heard.guards or unsettled or "unknown tool" in heard.text
                return
            if not unsettled:
                self._check_decisions(heard, decided)
            self._check_records(decided)
            self._check_run(heard, decided)

    def _awaited(self, heard: Heard, guard: Guard) -> bool:
        """Whether there can still be an answer of this one."""
        post = self.posts.get(guard.name)
        if guard.declared and post and (post.coming or post.offering):
            return True
        puppets = [puppet for puppet in self.stage.puppets if puppet.name == guard.name and not puppet.over]
        return any(not puppet.reading or self._undecided(puppet, heard.token) for puppet in puppets)

    def _undecided(self, puppet: Puppet, number: int) -> bool:
        asked = [id_ for id_, frame in puppet.asked("event_intercept").items() if token(frame) == number]
        verdicts = [said.frame["id"] for said in puppet.said if said.frame["type"] == "event_intercept_response"]
        return bool(set(asked) - set(verdicts))

    def _check_decisions(self, heard: Heard, decided: Intercepted) -> None:
        order = [guard.name for guard in heard.guards]
        asked = list(dict.fromkeys(decision.extension for decision in decided.decisions))
        if decided.outcome == "blocked":
            assert refuses(decided.decisions[-1])
            assert asked == list(dict.fromkeys(order))[: len(asked)]
        else:
            assert set(asked) == set(order)
            assert not any(map(refuses, decided.decisions))
        for decision in decided.decisions:
            if decision.decision == "fail":
                assert decision.applied in [guard.policy for guard in heard.guards if guard.name == decision.extension]
            else:
                assert self._verdicts(decision.extension, heard.token), "a verdict that nobody gave"
        failed = {decision.extension for decision in decided.decisions if decision.decision == "fail"}
        if heard.args is not None:
            for name in set(order) - failed:
                allowed = [args for args, block in self._verdicts(name, heard.token) if not block]
                assert heard.args in allowed, f"{name} never saw what is about to run"

    def _verdicts(self, name: str, number: int) -> list[tuple[Frame, bool]]:
        """What its processes said about this question, for each form of it they know: whether it is refused."""
        given: list[tuple[Frame, bool]] = []
        for puppet in self.stage.puppets:
            for id_, frame in puppet.asked("event_intercept").items() if puppet.name == name else ():
                for said in puppet.answers(id_) if token(frame) == number else ():
                    args = said.frame.get("modified_args") or frame["tool_args"]
                    given += [(form, bool(said.frame.get("block"))) for form in (frame["tool_args"], args)]
        return given

    def _check_records(self, decided: Intercepted) -> None:
        failed = [decision for decision in decided.decisions if decision.decision == "fail"]
        notes = [note for note in self.world.it.notes("guard_failed") if note["id"] == decided.id] if failed else []
        assert [(note["guard"], note["decision"]) for note in notes] == [(one.extension, one.applied) for one in failed]
        for one in failed:
            assert any(f"guard {one.extension} gave no verdict" in said.message for said in self.world.it.of(Noticed))

    def _check_run(self, heard: Heard, decided: Intercepted) -> None:
        runs = [
            (puppet, id_)
            for puppet in self.stage.puppets
            for id_, frame in puppet.asked("tool_call").items()
            if token(frame) == heard.token
        ]
        assert not (decided.outcome == "blocked" and runs), "it ran although it was refused"
        if heard.text.replace(":", "").isdigit():
            ((puppet, id_),) = runs
            assert heard.text in [answer_text("tool_call", said.frame) for said in puppet.answers(id_)]
            assert heard.text.startswith(f"{puppet.pid}:{heard.token}:")

    def _when_all_is_quiet_nothing_is_pending(self) -> None:
        if not self.open():
            for supervisor in self.world.it.host._supervisors.values():
                assert supervisor.current is None or supervisor.current.peer.pending == 0

    def _readers_hear_everything_in_order_but_for_counted_drops(self) -> None:
        for puppet, owed in self.owed.items():
            if not puppet.reading or puppet.over or puppet.output_closed:
                continue
            heard = [key for said in puppet.heard if (key := _key(said.frame)) in set(owed)]
            missing = [key for key in owed if key not in set(heard)]
            assert heard == [key for key in owed if key not in set(missing)]
            assert all(kind == "event" for kind, _ in missing)
            assert len(missing) == puppet.channel.dropped
            if owed and owed[-1][0] == "event":
                assert owed[-1] not in missing, "the newest must not give way"

    # The end

    def leave(self) -> None:
        """Quit the host: in time, everything ends, nobody is killed before its time, and nothing is left."""
        world = self.world
        grace = max((puppet.grace for puppet in self.stage.live), default=0.0)
        begun = world.now
        world.finish()
        assert world.left is not None
        assert world.left <= begun + grace + 1.0 + SLACK
        assert world.now == world.left, "a call went on without a host"
        assert self.open() == []
        assert self.reload is None or self.reload.done
        for puppet in self.stage.puppets:
            if puppet.exit == Exit(None, SIGKILL) and puppet.died and puppet.dismissed:
                assert puppet.died.time >= puppet.dismissed.time + puppet.grace, "it did not get the time it has"
        world.check_nothing_left()


def _key(frame: Frame) -> tuple[str, int] | None:
    match frame["type"]:
        case "event":
            return ("event", frame["step"])
        case "tool_call" | "command_invoked":
            return (frame["type"], token(frame))
        case _:
            return None
