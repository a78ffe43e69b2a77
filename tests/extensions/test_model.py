"""The extension host against a model of it: any order of events, on a virtual clock, with programs in memory.

After each step of a random script everything is compared with what must follow from it: who owns which name, how every
call and every question to a guard ended and when, which processes live, what each of them was told. And a short script
is interrupted at each of its steps in turn.

HILT_MODEL_EXAMPLES sets how many scripts of 50 steps are tried, at random then; 200 that are always the same otherwise.
"""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGSEGV
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hilt.agent.interception import consult
from hilt.errors import ExtensionError, HiltError, UsageError
from hilt.extensions.manifest import MANIFEST
from hilt.model.actions import Display
from hilt.model.content import text_of
from hilt.model.contributions import Command, Effect, Invocation, Tool
from hilt.model.events import Decided, ExtensionChanged, Intercepted, Noticed, ToolCalled, TurnStarted
from hilt.model.extensions import Reloaded
from hilt.model.verdicts import Question
from hilt.transport.process import Exit
from support.agent import echo, tool
from support.extending import Extended, extended
from support.puppets import Frame, Manner, Moment, Puppet, Said, Stage, StageLoop, quiet, token

NAMES = ("ant", "bee", "cat", "dog")
TOOLS = ("t1", "t2", "echo")
BUILTIN = "echo"
COMMAND = "go"
COMMAND_PATIENCE = 30.0
SLACK = 0.1
"""Seconds of the virtual clock that anything may be late."""
KILLED = 0.5
"""Seconds after its grace in which a program that does not end is made to."""
DRAIN, EOF_GRACE, STALL = 2.0, 2.0, 5.0
IDLE, READY = 0.25, 3.0
CRASHES, WINDOW = 5, 300.0
BUDGET = 10.0
LAST = 10**9
ROUNDING = 1e-6
UNASKED = ("register_tool", "register_command", "subscribe", "notify", "tool_progress")

Settings = dict[str, Any]
Script: TypeAlias = "Callable[[World], Awaitable[str]]"


# What the model knows


@dataclass(eq=False)
class Post:
    """One extension, as it should be."""

    name: str
    number: int
    order: int
    manifest: Settings
    first: int
    """The first puppet that can be its own."""
    state: str = "starting"
    life: Puppet | None = None
    last: Puppet | None = None
    """The one before, when it ended before its time."""
    newcomer: Puppet | None = None
    replaced: dict[Puppet, float] = field(default_factory=dict)
    known: set[Puppet] = field(default_factory=set)
    refusals: int = 0
    reloading: bool = False
    attempted: bool = False
    """The reload has got as far as starting a process."""
    lost: bool = False
    """Its process ended during a reload."""
    crashes: list[float] = field(default_factory=list)
    restarts: int = 0
    ended: float = 0.0
    intercepts: bool = False
    removed: bool = False

    @property
    def declared(self) -> bool:
        return "guard" in self.manifest

    @property
    def guards(self) -> bool:
        return self.declared or self.intercepts

    @property
    def offering(self) -> Puppet | None:
        """The process whose tools are published."""
        return self.life if self.life and hello(self.life) and not self.life.over else None

    @property
    def coming(self) -> bool:
        return self.state in ("starting", "restarting")

    @property
    def policy(self) -> str:
        """What is applied when it gives no verdict, with nobody there who could be asked."""
        guard = self.manifest.get("guard", {})
        return "block" if guard.get("required") or guard.get("on_failure", "allow") != "allow" else "allow"

    @property
    def guard_timeout(self) -> float:
        return float(self.manifest.get("guard", {}).get("timeout_ms", 5000)) / 1000

    @property
    def tool_timeout(self) -> float:
        return float(self.manifest["tool_timeout_ms"]) / 1000

    @property
    def start_timeout(self) -> float:
        return float(self.manifest["start_timeout_ms"]) / 1000


class Guard(NamedTuple):
    """One that has a say, as it was when the question came up."""

    name: str
    policy: str
    timeout: float


@dataclass(eq=False)
class Asked:
    """A call of a tool, or a command, made directly."""

    kind: Literal["tool_call", "command_invoked"]
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
    """A question to all guards, or with a tool, a call of it that goes through all an agent's call goes through."""

    token: int
    begun: Moment
    guards: list["Guard"]
    tool: str
    task: "asyncio.Task[None] | None"
    cancelled: Moment | None = None
    ended: Moment | None = None
    args: Frame | None = None
    """As the guards left them; None when they refused."""
    text: str = ""
    checked: bool = False


def hello(puppet: Puppet) -> Said | None:
    return next((said for said in puppet.said if said.frame["type"] == "hello"), None)


def ready_at(puppet: Puppet) -> Moment | None:
    """When it has had its time to register: when it says so, or falls silent."""
    greeting = hello(puppet)
    if greeting is None:
        return None
    after = [said for said in puppet.said if said.moment > greeting.moment]
    lines = [said.moment.time for said in after if said.frame["type"] in UNASKED]
    since = greeting.moment.time
    while any(since < line <= since + IDLE for line in lines):
        since += IDLE
    last = min(since + IDLE, greeting.moment.time + READY) - ROUNDING
    when = min([Moment(last, 0), *(said.moment for said in after if said.frame["type"] == "ready")])
    return None if puppet.output_closed and puppet.output_closed < when else when


def names(puppet: Puppet, kind: str) -> list[str]:
    return [said.frame["name"] for said in puppet.said if said.frame["type"] == kind]


def subscribed(puppet: Puppet, field_: str) -> bool:
    return any(said.frame["type"] == "subscribe" and said.frame[field_] for said in puppet.said)


def due(asked: Asked, now: float) -> tuple[Moment, str, str] | None:
    """When and how it had to end, if it had to: a pure consequence of what its process did."""
    puppet, deadline = asked.puppet, asked.begun.time + asked.patience
    limit = asked.begun.time + 10 * asked.patience
    ends: list[tuple[Moment, str, str]] = []
    for id_, frame in puppet.asked(asked.kind).items():
        if token(frame) != asked.token:
            continue
        for said in puppet.answers(id_):
            if said.frame["type"] == "tool_progress" and asked.kind == "tool_call":
                if said.moment.time < deadline:
                    deadline = min(said.moment.time + asked.patience, limit)
            elif text := answer_text(asked.kind, said.frame):
                ends.append((said.moment, "answered", text))
                break
            elif said.frame.get("content") == "nonsense" or said.frame.get("display") == 5:
                ends.append((said.moment, "unusable", ""))
                break
    ends.append((Moment(deadline, LAST), "timeout", ""))
    if puppet.over:
        ends.append((max(puppet.over, asked.begun), "gone", ""))
    if asked.cancelled:
        ends.append((asked.cancelled, "cancelled", ""))
    first = min(ends)
    return first if first[0].time <= now else None


def answer_text(kind: str, frame: Frame) -> str:
    if kind == "tool_call" and frame["type"] == "tool_result" and isinstance(frame["content"], list):
        return str(frame["content"][0]["text"])
    if kind == "command_invoked" and frame["type"] == "command_response" and isinstance(frame["display"], str):
        return frame["display"]
    return ""


# The host under test


class World:
    """A session with its extensions in the background of a loop that a test moves on."""

    def __init__(self, folder: Path, script: "Script | None" = None) -> None:
        self.folder = folder
        self._script = script
        self.caller: asyncio.Task[None] | None = None
        self.outcomes: list[str] = []
        """How the script ended; one, when it has."""
        self.stage = Stage()
        self.disk: dict[str, Settings | None] = {}
        self.group: asyncio.TaskGroup
        self.it: Extended
        self._runner = asyncio.Runner(loop_factory=StageLoop)
        self.loop = cast(StageLoop, self._runner.get_loop())
        self._leave = asyncio.Event()
        self.main = self.loop.create_task(self._live())
        self.left: float | None = None

    async def _live(self) -> None:
        builtin = tool(BUILTIN, echo)
        async with asyncio.TaskGroup() as self.group:
            async with extended(self.folder, opener=self.stage.open, offered=(builtin,)) as self.it:
                if self._script:
                    self.caller = self.group.create_task(self._play(self._script))
                await self._leave.wait()
            self.left = self.loop.time()

    async def _play(self, script: "Script") -> None:
        try:
            self.outcomes.append(await script(self))
        except HiltError as error:
            self.outcomes.append(error.message)
        except asyncio.CancelledError:
            self.outcomes.append("cancelled")
            raise

    def leave(self) -> None:
        self._leave.set()

    def close(self) -> None:
        self._runner.close()

    @property
    def now(self) -> float:
        return self.loop.time()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    def settle(self, seconds: float = 0.0) -> None:
        async def wait() -> None:
            if seconds:
                await asyncio.sleep(seconds)
            await quiet()

        self._runner.run(wait())

    def write(self, name: str, manifest: Settings | None) -> None:
        """Put it on the disk. None makes it unusable."""
        directory = self.folder / "user" / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MANIFEST).write_text(json.dumps({"name": name, "exec": "./run", **manifest} if manifest else []))
        self.disk[name] = manifest

    def remove(self, name: str) -> None:
        shutil.rmtree(self.folder / "user" / name)
        del self.disk[name]

    def check_nothing_left(self) -> None:
        """After the end: no program, no task, no timer, and nothing that nobody caught."""
        assert self.stage.live == []
        assert self.loop.faults == []

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        assert self.run(tasks()) == 1
        steps = []
        for _ in range(2):
            before = self.loop.steps
            self.run(asyncio.sleep(3600))
            steps.append(self.loop.steps - before)
        assert steps[0] == steps[1], "a timer was left"


# The model


def some_manner(dice: Random) -> Manner:
    return Manner(
        greeting=dice.choice(["well", "well", "well", "well", "hello", "mute", "dies", "unstartable"]),
        tools=tuple(dice.sample(TOOLS, dice.randrange(3))),
        commands=dice.choice([(), (COMMAND,)]),
        guards=dice.choice([False, True]),
        listens=dice.choice([False, True]),
        cancels=dice.choice([False, True]),
        answers=dice.choice([False, False, True]),
        verdict=dice.choice(["allow", "allow", "block", "rewrite", "none"]),
        stubborn=dice.choice([False, False, True]),
    )


def some_manifest(dice: Random) -> Settings:
    manifest = {
        "start_timeout_ms": dice.choice([500, 2000]),
        "tool_timeout_ms": dice.choice([300, 4000, 20_000]),
        "stop_grace_ms": dice.choice([0, 500, 5000]),
        "priority": dice.choice([0, 5]),
    }
    guard = {"timeout_ms": dice.choice([400, 6000]), "required": dice.choice([False, False, True])}
    policy = dice.choice([{}, {"on_failure": "allow"}, {"on_failure": "ask"}, {"on_failure": "block"}])
    return {**manifest, "guard": {**guard, **policy}} if dice.random() < 0.4 else manifest


# Drawn from a list, so that an example takes few choices: there is more room for what happens to them.
DICE = Random(1)
MANNERS = [some_manner(DICE) for _ in range(64)]
MANIFESTS = [some_manifest(DICE) for _ in range(32)]
WELL = [manner for manner in MANNERS if manner.greeting == "well"]
manners = st.sampled_from([*WELL, *MANNERS])
manifests = st.sampled_from(MANIFESTS)
on_disk = st.sampled_from([*MANIFESTS, None, None, None])
"""None for one that cannot be used."""
firsts = st.lists(st.tuples(manifests, st.sampled_from(WELL)), min_size=2, max_size=len(NAMES))
which = st.integers(0, 7)


@dataclass(eq=False)
class Reload:
    name: str
    kind: Literal["add", "reload", "remove"]
    broken: bool
    begun: float
    bound: float
    done: Moment | None = None
    outcome: Reloaded | HiltError | None = None
    applied: bool = False


class HostModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.worlds = 0
        self.tokens = 0
        self.enter()

    def enter(self) -> None:
        self.worlds += 1
        folder = Path(self.directory.name) / str(self.worlds)
        folder.mkdir()
        self.world = World(folder)
        self.stage = self.world.stage
        self.posts: dict[str, Post] = {}
        self.leaving: list[Post] = []
        self.arriving: Post | None = None
        """It waits until the last one of its name has gone."""
        self.numbers = 0
        self.asked: list[Asked] = []
        self.heard: list[Heard] = []
        self.reload: Reload | None = None
        self.old_tools: list[tuple[Tool, Puppet, float]] = []
        self.owed: dict[Puppet, list[tuple[str, int]]] = {}
        self.waiting_since: dict[Puppet, float] = {}
        self.worked: dict[Puppet, float] = {}
        self.read_events = 0
        self.decided: dict[str, Intercepted] = {}
        self.calls: dict[int, str] = {}
        self.entered = self.world.now

    # Doing something, and what follows from it

    def act(self, do: Callable[[], Awaitable[object] | object]) -> None:
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

    def post(self, name: str, manifest: Settings) -> Post:
        self.numbers += 1
        order = sorted(other for other, usable in self.world.disk.items() if usable).index(name)
        post = Post(name, self.numbers, order, manifest, len(self.stage.puppets))
        post.refusals = sum(refused == name for refused, _ in self.stage.refused)
        return post

    def follow(self) -> None:
        """Work out what must have happened to each extension, in the order of time."""
        for post in self.leaving:
            self.follow_one(post)
        self.leaving = [post for post in self.leaving if any(p.alive for p in post.known)]
        if (new := self.arriving) and new.name not in [post.name for post in self.leaving]:
            self.posts[new.name], self.arriving = new, None
        for post in self.posts.values():
            self.follow_one(post)
        for puppet in self.stage.puppets:
            if puppet.over is None and not puppet.reading and puppet.channel.waiting:
                self.waiting_since.setdefault(puppet, self.world.now)
            else:
                self.waiting_since.pop(puppet, None)
        self.read()

    def follow_one(self, post: Post) -> None:
        while events := self.events(post):
            min(events, key=lambda event: event[0])[1]()
            self.keep_slot(post)
        self.keep_slot(post)

    def keep_slot(self, post: Post) -> None:
        """What a process intercepts holds until the next one has had its time to say what that does."""
        if puppet := post.offering:
            wants = subscribed(puppet, "intercept")
            undecided = post.restarts and "ready" not in [said.frame["type"] for said in puppet.said]
            post.intercepts = wants or bool(post.intercepts and undecided)

    def read(self) -> None:
        for event in self.world.it.events[self.read_events :]:
            if isinstance(event, Intercepted):
                assert event.id not in self.decided
                self.decided[event.id] = event
            elif isinstance(event, ToolCalled):
                self.calls[event.args["token"]] = event.id
        self.read_events = len(self.world.it.events)

    def events(self, post: Post) -> list[tuple[Moment, Callable[[], None]]]:
        events: list[tuple[Moment, Callable[[], None]]] = []
        if not post.removed:
            unknown = [p for p in self.stage.puppets[post.first :] if p.name == post.name and p not in post.known]
            events += [(p.born, partial(self.born, post, p)) for p in unknown]
            refused = [moment for name, moment in self.stage.refused if name == post.name][post.refusals :]
            events += [(moment, partial(self.refused, post)) for moment in refused]
        for puppet in filter(None, (post.life, post.newcomer)):
            when = ready_at(puppet)
            over = puppet.over
            if over:
                events.append((over, partial(self.over, post, puppet)))
            unready = post.state != "ready" if puppet is post.life else True
            if unready and when and when.time <= self.world.now and not (over and over < when):
                events.append((when, partial(self.ready, post, puppet)))
        reload = self.reload
        if reload and reload.name == post.name and reload.done and not reload.applied and not post.removed:
            events.append((reload.done, partial(self.reloaded, post)))
        return events

    def born(self, post: Post, puppet: Puppet) -> None:
        post.known.add(puppet)
        self.owed[puppet] = []
        if post.reloading:
            assert not post.attempted
            assert post.life is None or post.state == "ready"
            post.attempted, post.newcomer = True, puppet
            if post.life is None:
                post.state = "starting"
            return
        last = post.last
        assert last is None or (last.died and last.died < puppet.born), "the last one was still there"
        assert post.life is None and post.coming, f"nobody asked for {puppet.name} {puppet.pid}"
        if post.state == "restarting":
            assert puppet.born.time >= post.ended + 0.5 * 2 ** (len(post.crashes) - 1) * 0.75
            post.restarts += 1
        post.life = puppet

    def refused(self, post: Post) -> None:
        post.refusals += 1
        if post.reloading:
            post.attempted = True
            return
        post.restarts += post.state == "restarting"
        self.crashed(post, self.stage.refused[-1][1].time, started=False)

    def ready(self, post: Post, puppet: Puppet) -> None:
        if puppet is post.newcomer:
            when = ready_at(puppet)
            assert when
            if post.life:
                post.replaced[post.life] = when.time
            post.life, post.newcomer = puppet, None
            manifest = self.world.disk[post.name]
            assert manifest
            post.manifest = manifest
            post.restarts, post.lost = 0, False
        post.state = "ready"

    def over(self, post: Post, puppet: Puppet) -> None:
        assert puppet.over
        if puppet is post.newcomer:
            post.newcomer = None
            return
        post.life, post.last = None, puppet
        if post.removed:
            return
        if post.reloading:
            post.state, post.lost = "starting", True
        else:
            self.crashed(post, puppet.over.time, started=hello(puppet) is not None)

    def crashed(self, post: Post, when: float, *, started: bool) -> None:
        post.ended = when
        if not started and not post.restarts and not post.crashes:
            post.state = "failed"
            return
        post.crashes = [crash for crash in (*post.crashes, when) if when - crash <= WINDOW]
        post.state = "failed" if len(post.crashes) >= CRASHES else "restarting"

    def reloaded(self, post: Post) -> None:
        assert self.reload and self.reload.done
        self.reload.applied = True
        if self.reload.kind == "reload":
            post.reloading = post.attempted = False
            outcome = self.reload.outcome
            assert isinstance(outcome, Reloaded)
            fine = post.life is not None and post.state == "ready" and not outcome.problems
            assert fine or any(post.name in problem for problem in outcome.problems)
            if post.lost:
                post.lost = False
                self.crashed(post, self.reload.done.time, started=True)
            elif post.life is None:
                post.state = "failed"

    # Rules: the life of extensions

    @initialize(first=firsts)
    def begin(self, first: list[tuple[Settings, Manner]]) -> None:
        for name, (manifest, manner) in zip(NAMES, first, strict=False):
            self.world.write(name, manifest)
            self.stage.manners[name] = manner
            self.posts[name] = self.post(name, manifest)
        self.act(lambda: None)

    @property
    def unhurried(self) -> bool:
        return self.reload is None or self.reload.done is not None

    def absent(self) -> list[str]:
        return [name for name in NAMES if name not in self.posts]

    def start_reload(self, name: str, kind: Literal["add", "reload", "remove"], *, broken: bool, bound: float) -> None:
        self.reload = reload = Reload(name, kind, broken, self.world.now, self.world.now + bound)

        async def work() -> None:
            try:
                reload.outcome = await self.world.it.host.reload(name)
            except HiltError as error:
                reload.outcome = error
            reload.done = self.stage.now()

        self.start(work())

    @precondition(lambda self: self.unhurried and self.absent())
    @rule(name=which, manifest=on_disk, manner=manners)
    def add(self, name: int, manifest: Settings | None, manner: Manner) -> None:
        chosen = pick(self.absent(), name)
        self.world.write(chosen, manifest)
        self.stage.manners[chosen] = manner
        bound = 0.0
        if manifest:
            self.arriving = self.post(chosen, manifest)
            leaving = [p.grace + KILLED for post in self.leaving for p in post.known if post.name == chosen]
            bound = manifest["start_timeout_ms"] / 1000 + READY + max(leaving, default=0.0)
        self.start_reload(chosen, "add", broken=manifest is None, bound=bound)
        if manifest is None:
            assert self.reload
            assert isinstance(self.reload.outcome, UsageError)

    @precondition(lambda self: self.unhurried and len(self.posts) > 1)
    @rule(name=which)
    def remove(self, name: int) -> None:
        post = pick(list(self.posts.values()), name)
        self.world.remove(post.name)
        del self.posts[post.name]
        self.leaving.append(post)
        post.removed = True
        self.start_reload(post.name, "remove", broken=False, bound=0.0)

    def reloadable(self) -> list[Post]:
        """The busiest first."""
        busy = [one.puppet for one in self.asked if one.ended is None]
        posts = [post for post in self.posts.values() if post.life is None or post.state == "ready"]
        return sorted(posts, key=lambda post: post.life not in busy)

    @precondition(lambda self: self.unhurried and self.reloadable())
    @rule(name=which, manifest=on_disk, manner=manners, busy=st.booleans(), dies=st.booleans())
    def reload_one(self, name: int, manifest: Settings | None, manner: Manner, busy: bool, dies: bool) -> None:
        """While it is busy, perhaps; and the old process may well not live to see its end."""
        post = pick(self.reloadable(), name)
        if busy and post.offering:
            self.call_of(post.offering)
        self.world.write(post.name, manifest)
        self.stage.manners[post.name] = manner
        post.reloading, post.attempted, post.crashes = True, False, []
        ending = max((p.grace + KILLED for p in post.known if p.alive and p is not post.life), default=0.0)
        bound = ending + (manifest["start_timeout_ms"] / 1000 + READY if manifest else 0.0)
        old = post.life
        self.start_reload(post.name, "reload", broken=manifest is None, bound=bound)
        if dies and old:
            self.act(lambda: old.die(Exit(2), "too soon"))

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.26, 0.6, 1.0, 2.1, 5.1, 12.0, 70.0, 400.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.world.settle(seconds)
        self.follow()

    @precondition(lambda self: self.world.loop.steps > 1000)
    @rule(again=firsts)
    def quit_and_begin_anew(self, again: list[tuple[Settings, Manner]]) -> None:
        self.leave()
        self.world.close()
        self.enter()
        self.begin(again)

    # Rules: what a process does

    def living(self) -> list[Puppet]:
        """Those with most at stake first: being replaced, or with calls under way."""
        changing = {p for post in self.posts.values() if post.reloading for p in (post.life, post.newcomer)}
        changing |= {p for post in self.posts.values() for p in post.replaced}
        busy = {one.puppet for one in self.asked if one.ended is None}
        living = [puppet for puppet in self.stage.live if puppet.dismissed is None]
        return sorted(living, key=lambda puppet: -((puppet in changing) + (puppet in busy)))

    @precondition(lambda self: self.living())
    @rule(
        index=which, how=st.sampled_from([Exit(0), Exit(7), Exit(None, SIGSEGV)]), then=st.none() | st.none() | manners
    )
    def crash(self, index: int, how: Exit, then: Manner | None) -> None:
        puppet = pick(self.living(), index)
        if then:
            self.stage.manners[puppet.name] = then
        self.act(lambda: puppet.die(how, "ouch"))

    @precondition(lambda self: self.posts)
    @rule(name=which, times=st.sampled_from([3, 5]), pause=st.sampled_from([3.0, 20.0, 130.0]))
    def crash_whenever_it_is_back(self, name: int, times: int, pause: float) -> None:
        post = pick(list(self.posts.values()), name)
        for _ in range(times):
            if (puppet := post.life) and not puppet.over:
                self.act(partial(puppet.die, Exit(9)))
                self.all_is_well()
            self.let_time_pass(pause)

    @precondition(lambda self: self.living())
    @rule(index=which)
    def close_output(self, index: int) -> None:
        puppet = pick(self.living(), index)
        if not puppet.output_closed:
            self.act(puppet.close_output)

    @precondition(lambda self: self.living())
    @rule(index=which, number=st.sampled_from([0, 30]))
    def hang_or_wake(self, index: int, number: int) -> None:
        puppet = pick(self.living(), index)
        self.act(puppet.stop_reading if puppet.reading else puppet.read_on)
        self.emit(number)

    @precondition(lambda self: self.living())
    @rule(index=which, number=st.sampled_from([1, 10, 40]))
    def sleep_through(self, index: int, number: int) -> None:
        """Not read for a moment in which much happens."""
        puppet = pick(self.living(), index)
        self.act(puppet.stop_reading)
        self.emit(number)
        self.call_of(puppet)
        self.emit(1)
        self.act(puppet.read_on)

    @precondition(lambda self: self.living())
    @rule(index=which, kind=st.sampled_from(["hello", "ready", *TOOLS, COMMAND, "guard", "listen", "notify"]))
    def speak(self, index: int, kind: str) -> None:
        puppet = pick(self.living(), index)
        if hello(puppet) is None:
            kind = "hello"
        elif kind == "hello":
            kind = "notify"  # a second one is somebody else's test

        def say() -> None:
            if kind == "hello":
                puppet.introduce()
            elif kind in TOOLS:
                puppet.say("register_tool", name=kind)
            elif kind == COMMAND:
                puppet.say("register_command", name=kind)
            elif kind in ("guard", "listen"):
                events, intercept = ["turn_start"] * (kind == "listen"), ["tool_call"] * (kind == "guard")
                puppet.say("subscribe", events=events, intercept=intercept)
            else:
                puppet.say(kind)

        self.act(say)

    @precondition(lambda self: self.living())
    @rule(index=which, times=st.sampled_from([2, 20]))
    def chatter(self, index: int, times: int) -> None:
        """Show signs of life for a while: of itself, and of every call it knows of."""
        puppet = pick(self.living(), index)

        async def talk() -> None:
            for _ in range(times if hello(puppet) else 0):
                puppet.say("notify")
                for id_ in puppet.asked("tool_call"):
                    puppet.say("tool_progress", id=id_, text="…")
                await asyncio.sleep(0.2)

        self.act(talk)

    def questions(self) -> list[tuple[Puppet, Frame]]:
        """All that was ever asked and can be answered, rightly or not; what waits for an answer comes first."""
        kinds = ("tool_call", "command_invoked", "event_intercept")
        asked = [(p, said.frame) for p in self.living() for said in p.heard if said.frame["type"] in kinds]
        asked.reverse()
        return sorted(asked, key=lambda one: bool(one[0].answers(one[1]["id"])))

    @precondition(lambda self: self.questions())
    @rule(index=st.integers(0, 30), dies=st.sampled_from([False, False, False, True]))
    def answer(self, index: int, dies: bool) -> None:
        """Also when nobody waits any more, or for the second time; and possibly with its last breath."""
        puppet, question = pick(self.questions(), index)

        def say() -> None:
            puppet.answer(question)
            if dies:
                puppet.die(Exit(1))

        self.act(say)

    @precondition(lambda self: self.questions())
    @rule(index=which, how=st.sampled_from(["wrong id", "wrong kind", "nonsense", "twice", "block"]))
    def answer_oddly(self, index: int, how: str) -> None:
        puppet, question = pick(self.questions(), index)
        fields: dict[str, Frame] = {"tool_call": {"content": "nonsense"}, "command_invoked": {"display": 5}}

        def say() -> None:
            match how:
                case "wrong id":
                    puppet.answer({**question, "id": "0" * 17})
                case "wrong kind":
                    kinds = {"tool_call": "command_response", "command_invoked": "event_intercept_response"}
                    kind = kinds.get(question["type"], "tool_result")
                    puppet.say(kind, id=question["id"], **({"content": []} if kind == "tool_result" else {}))
                case "nonsense":
                    puppet.answer(question, **fields.get(question["type"], {"block": "maybe"}))
                case "twice":
                    puppet.answer(question)
                    puppet.answer(question)
                case _:
                    extra = {"block": True} if question["type"] == "event_intercept" else {}
                    puppet.answer(question, **extra)

        self.act(say)

    @precondition(lambda self: self.questions() and len(self.living()) > 1)
    @rule(index=which, other=which)
    def answer_for_another(self, index: int, other: int) -> None:
        asked, question = pick(self.questions(), index)
        puppet = pick([p for p in self.living() if p is not asked], other)
        self.act(lambda: puppet.answer(question))

    # Rules: what the agent does

    def offered(self) -> list[str]:
        return [name for name, owner in self.owners("register_tool").items() if owner]

    @precondition(lambda self: self.offered())
    @rule(index=which, event=st.booleans())
    def call(self, index: int, event: bool) -> None:
        name = pick(self.offered(), index)
        post = self.owners("register_tool")[name]
        assert post and post.offering
        found = self.world.it.session.parts.registry.snapshot().tools[name].tool
        self.old_tools.append((found, post.offering, post.tool_timeout))
        self.invoke(found, post.offering, post.tool_timeout, event=event)

    def call_of(self, puppet: Puppet) -> None:
        mine = [name for name, post in self.owners("register_tool").items() if post and post.offering is puppet]
        if mine:
            self.call(self.offered().index(mine[0]), event=True)

    @precondition(lambda self: self.old_tools)
    @rule(index=which)
    def call_as_it_once_was(self, index: int) -> None:
        """A turn keeps what it was given: whatever has become of the process since."""
        self.invoke(*pick(self.old_tools[::-1], index))

    def invoke(self, found: Tool, puppet: Puppet, patience: float, *, event: bool = False) -> None:
        async def shown(_: str) -> None:
            pass

        async def work(asked: Asked) -> tuple[str, bool]:
            output = await found.invoke(Invocation("1", {"token": asked.token}, shown))
            return text_of(output.content), output.is_error

        self.ask("tool_call", puppet, patience, work, event=event)

    @precondition(lambda self: self.owners("register_command").get(COMMAND))
    @rule()
    def command(self) -> None:
        post = self.owners("register_command")[COMMAND]
        assert post and post.offering
        found: Command = self.world.it.session.parts.registry.snapshot().commands[COMMAND].command

        async def work(asked: Asked) -> tuple[str, bool]:
            (action,) = await found.run(str(asked.token))
            assert isinstance(action, Display)
            return action.display, False

        self.ask("command_invoked", post.offering, COMMAND_PATIENCE, work)

    def ask(
        self,
        kind: Literal["tool_call", "command_invoked"],
        puppet: Puppet,
        patience: float,
        work: Callable[[Asked], Awaitable[tuple[str, bool]]],
        *,
        event: bool = False,
    ) -> None:
        """With an event, something happens right before, which must be told before."""
        self.tokens += 1
        number = self.tokens

        async def run() -> None:
            if event:
                await self.tell(1)
            asked = Asked(kind, number, puppet, self.stage.now(), patience, asyncio.current_task())
            self.asked.append(asked)
            if puppet.over is None:
                self.owed[puppet].append((kind, number))
            try:
                asked.text, asked.failed = await work(asked)
            except asyncio.CancelledError:
                assert asked.cancelled, "cancelled, but nobody did"
            except ExtensionError as error:
                asked.text, asked.failed = error.message, True
            asked.ended = self.stage.now()

        self.start(run())

    @rule()
    def ask_the_guards(self) -> None:
        guards = self.guards()
        self.tokens += 1
        number = self.tokens
        session = self.world.it.session
        question = Question("tool_call", tool_id=str(number), tool_name="t1", tool_args={"token": number})

        async def run() -> None:
            heard = Heard(number, self.stage.now(), guards, "", asyncio.current_task())
            self.heard.append(heard)
            self.calls[number] = str(number)
            try:
                owned = session.parts.registry.snapshot().guards("tool_call")
                ruling = await consult(owned, question, session.bench, effect=Effect.EXECUTE)
                heard.args = None if ruling.blocked_by or ruling.unsure else ruling.question.tool_args
            except asyncio.CancelledError:
                assert heard.cancelled, "cancelled, but nobody did"
            heard.ended = self.stage.now()

        self.start(run())

    @rule(name=st.sampled_from(TOOLS))
    def call_as_the_agent_does(self, name: str) -> None:
        self.tokens += 1
        number, guards = self.tokens, self.guards()

        async def run() -> None:
            heard = Heard(number, self.stage.now(), guards, name, asyncio.current_task())
            self.heard.append(heard)
            try:
                output = await self.world.it.session.call_tool(name, {"token": number}, "model")
                heard.text = text_of(output.content)
            except asyncio.CancelledError:
                assert heard.cancelled, "cancelled, but nobody did"
            heard.ended = self.stage.now()

        self.start(run())

    def open(self) -> list[Asked | Heard]:
        return [one for one in self.all() if one.ended is None]

    def all(self) -> list[Asked | Heard]:
        return [*self.asked, *self.heard]

    @precondition(lambda self: self.open())
    @rule(index=which)
    def cancel(self, index: int) -> None:
        one = pick(self.open(), index)

        def stop() -> None:
            assert one.task
            one.cancelled = self.stage.now()
            one.task.cancel()

        self.act(stop)

    @rule(number=st.sampled_from([1, 3, 30]))
    def emit(self, number: int) -> None:
        self.act(lambda: self.tell(number))

    async def tell(self, number: int) -> None:
        for _ in range(number):
            self.tokens += 1
            for post in self.posts.values():
                if post.offering and subscribed(post.offering, "events"):
                    self.owed[post.offering].append(("event", self.tokens))
            await self.world.it.session.bus.emit(TurnStarted(self.tokens))

    # What must hold after each step

    def owners(self, kind: str) -> dict[str, Post | None]:
        """Who has each name. Built-ins first, then by the place in which an extension was found."""
        owners: dict[str, Post | None] = {BUILTIN: None} if kind == "register_tool" else {}
        for post in sorted(self.posts.values(), key=lambda post: (post.order, post.number)):
            if post.offering:
                for name in names(post.offering, kind):
                    owners.setdefault(name, post)
        return owners

    def guards(self) -> list[Guard]:
        posts = [post for post in (*self.posts.values(), *self.leaving) if post.guards]
        posts.sort(key=lambda post: (-post.manifest["priority"], post.order, post.number))
        return [Guard(post.name, post.policy, post.guard_timeout) for post in posts]

    @invariant()
    def all_is_well(self) -> None:
        self.nothing_is_uncaught()
        self.the_host_is_as_the_model_says()
        self.a_name_has_one_owner_and_builtins_are_never_lost()
        self.a_guard_keeps_its_place()
        self.only_those_live_that_should()
        self.nobody_is_ended_without_a_reason()
        self.a_reload_ends()
        self.every_call_ends_once_in_time_and_with_its_own_answer()
        self.nobody_is_asked_twice()
        self.every_guard_is_heard_or_its_policy_is_applied_and_recorded()
        self.when_all_is_quiet_nothing_is_pending()
        self.what_a_reader_hears_is_in_order_and_without_gaps_but_for_counted_drops()

    def nothing_is_uncaught(self) -> None:
        assert self.world.loop.faults == []
        assert not self.world.main.done()

    def the_host_is_as_the_model_says(self) -> None:
        statuses = {status.name: status for status in self.world.it.host.statuses()}
        assert statuses.keys() == self.posts.keys() | {name for name, usable in self.world.disk.items() if not usable}
        told = {event.extension: event for event in self.world.it.of(ExtensionChanged)}
        for name, post in self.posts.items():
            status = statuses[name]
            assert status.state == post.state, f"{name} is {status.state} ({status.reason}) and should be {post.state}"
            assert status.pid == (post.offering.pid if post.offering else None)
            assert (told[name].state, told[name].reason) == (status.state, status.reason)
            assert status.reason or status.state in ("ready", "starting")
            if post.state == "ready":
                assert status.restarts == post.restarts
            if post.offering:
                assert status.tools == tuple(dict.fromkeys(names(post.offering, "register_tool")))
                assert status.events_lost == post.offering.channel.dropped

    def a_name_has_one_owner_and_builtins_are_never_lost(self) -> None:
        snapshot = self.world.it.session.parts.registry.snapshot()
        tools = {name: post.name if post else "hilt" for name, post in self.owners("register_tool").items()}
        assert {name: owned.owner for name, owned in snapshot.tools.items()} == tools
        commands = {name: post.name for name, post in self.owners("register_command").items() if post}
        assert {name: owned.owner for name, owned in snapshot.commands.items()} == commands
        for post in self.posts.values():
            for name in names(post.offering, "register_tool") if post.offering else ():
                if tools[name] != post.name:
                    said = f"conflict: {tools[name]} and {post.name} both offer tool {name}"
                    assert any(warning.startswith(said) for warning in self.world.it.warnings())

    def a_guard_keeps_its_place(self) -> None:
        snapshot = self.world.it.session.parts.registry.snapshot()
        assert [owned.owner for owned in snapshot.guards("tool_call")] == [guard.name for guard in self.guards()]

    def only_those_live_that_should(self) -> None:
        now = self.world.now
        wanted = {p for post in self.posts.values() for p in (post.life, post.newcomer) if p}
        for puppet in self.stage.live:
            if puppet.dismissed:
                assert now <= puppet.dismissed.time + puppet.grace + KILLED + SLACK
            elif puppet not in wanted:
                replaced = next(p.replaced[puppet] for p in self.posts.values() if puppet in p.replaced)
                busy = any(one.puppet is puppet and one.ended is None for one in self.asked)
                assert now <= replaced + (DRAIN if busy or self.agent_busy() else 0.0) + SLACK
        for post in self.posts.values():
            for puppet in filter(None, (post.life, post.newcomer)):
                self.check_patience(post, puppet)

    def agent_busy(self) -> bool:
        return any(one.ended is None for one in self.heard)

    def check_patience(self, post: Post, puppet: Puppet) -> None:
        now = self.world.now
        if hello(puppet) is None:
            timeout = max(post.start_timeout, 2.0)
            assert now <= puppet.born.time + timeout + SLACK
        if puppet.output_closed:
            assert now <= puppet.output_closed.time + EOF_GRACE + SLACK
        working = any(one.puppet is puppet and one.ended is None for one in self.asked) or self.agent_busy()
        if (since := self.waiting_since.get(puppet)) is not None and not working and hello(puppet):
            since = max(since, self.worked.get(puppet, 0.0))
            assert now <= since + STALL + SLACK, "it has stopped reading, and nobody does anything about it"

    def nobody_is_ended_without_a_reason(self) -> None:
        for post in self.posts.values():
            for puppet in post.known:
                gone = puppet.dismissed
                if gone is None or (puppet.died and puppet.died < gone) or puppet in post.replaced:
                    continue
                late = hello(puppet) is None and gone.time >= puppet.born.time + 0.5
                closed = puppet.output_closed and gone.time >= puppet.output_closed.time + EOF_GRACE
                hung = puppet.hung and gone.time >= puppet.hung.time + STALL
                assert late or closed or hung, f"{puppet.name} {puppet.pid} was ended for no reason"

    def a_reload_ends(self) -> None:
        if reload := self.reload:
            end = reload.done.time if reload.done else self.world.now
            assert end <= reload.bound + SLACK

    def every_call_ends_once_in_time_and_with_its_own_answer(self) -> None:
        for asked in self.asked:
            expected = due(asked, self.world.now)
            if expected is None:
                assert asked.ended is None, f"{asked.token} ended for no reason: {asked.text}"
                continue
            moment, how, text = expected
            assert asked.ended, f"{asked.token} should be {how}"
            assert moment.time <= asked.ended.time <= moment.time + SLACK
            self.check_outcome(asked, how, text)
            self.worked[asked.puppet] = asked.ended.time
        self.asked = [asked for asked in self.asked if asked.ended is None]

    def check_outcome(self, asked: Asked, how: str, text: str) -> None:
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
                died, dismissed = asked.puppet.died, asked.puppet.dismissed
                replaced = [post.replaced.get(asked.puppet) for post in self.posts.values()]
                if dismissed and not asked.puppet.output_closed and (not died or died > dismissed):
                    for when in filter(None, replaced):
                        assert dismissed.time >= when + DRAIN, "it had no time to finish"
                if died and dismissed and died < dismissed and died > asked.begun:
                    assert str(asked.puppet.exit) in asked.text
                    assert " | ".join(asked.puppet.last_words()) in asked.text
            case _:
                assert asked.text == ""
        if how in ("timeout", "cancelled") and asked.kind == "tool_call" and asked.puppet.manner.cancels:
            self.check_told_of_cancel(asked)

    def check_told_of_cancel(self, asked: Asked) -> None:
        puppet = asked.puppet
        ids = [id_ for id_, frame in puppet.asked("tool_call").items() if token(frame) == asked.token]
        if ids and puppet.reading and not puppet.over:
            assert ids[0] in puppet.asked("tool_cancel")

    def nobody_is_asked_twice(self) -> None:
        asked = [token(said.frame) for p in self.stage.puppets for said in p.heard if said.frame["type"] == "tool_call"]
        assert len(asked) == len(set(asked))

    def every_guard_is_heard_or_its_policy_is_applied_and_recorded(self) -> None:
        for heard in self.heard:
            self.check_hearing(heard)
        self.heard = [heard for heard in self.heard if heard.ended is None]

    def check_hearing(self, heard: Heard) -> None:
        now = self.world.now
        settling = self.entered + 3.0 + SLACK
        hearing = max([BUDGET, *(guard.timeout for guard in heard.guards)]) + SLACK if heard.guards else 0.0
        running = 10 * 20.0 if heard.tool else 0.0
        end = heard.ended.time if heard.ended else now
        waited = max(heard.begun.time, settling if heard.tool else 0.0)
        assert end <= waited + hearing + running + SLACK
        if heard.ended is None or heard.cancelled:
            return
        decided = self.decided.get(self.calls.get(heard.token, ""))
        unsettled = heard.tool and heard.begun.time < settling
        if decided is None:
            assert not heard.guards or unsettled or "unknown tool" in heard.text
            return
        if not unsettled:
            self.check_decisions(heard, decided)
        self.check_records(decided)
        self.check_run(heard, decided)

    def check_decisions(self, heard: Heard, decided: Intercepted) -> None:
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
                assert self.verdicts(decision.extension, heard.token), "a verdict that nobody gave"
        failed = {decision.extension for decision in decided.decisions if decision.decision == "fail"}
        if heard.args is not None:
            for name in set(order) - failed:
                allowed = [args for args, block in self.verdicts(name, heard.token) if not block]
                assert heard.args in allowed, f"{name} never saw what is about to run"

    def verdicts(self, name: str, number: int) -> list[tuple[Frame, bool]]:
        """What its processes said in answer to this question, for each form in which it was put."""
        given: list[tuple[Frame, bool]] = []
        for puppet in self.stage.puppets:
            for id_, frame in puppet.asked("event_intercept").items():
                if puppet.name == name and token(frame) == number:
                    for said in puppet.answers(id_):
                        args = said.frame.get("modified_args") or frame["tool_args"]
                        given += [(form, bool(said.frame.get("block"))) for form in (frame["tool_args"], args)]
        return given

    def check_records(self, decided: Intercepted) -> None:
        failed = [decision for decision in decided.decisions if decision.decision == "fail"]
        notes = [note for note in self.world.it.notes("guard_failed") if note["id"] == decided.id] if failed else []
        assert [(note["guard"], note["decision"]) for note in notes] == [(one.extension, one.applied) for one in failed]
        for one in failed:
            assert any(f"guard {one.extension} gave no verdict" in said.message for said in self.world.it.of(Noticed))

    def check_run(self, heard: Heard, decided: Intercepted) -> None:
        runs = [
            (puppet, said)
            for puppet in self.stage.puppets
            for said in puppet.heard
            if said.frame["type"] == "tool_call" and token(said.frame) == heard.token
        ]
        assert not (decided.outcome == "blocked" and runs), "it ran although it was refused"
        if heard.text.count(":") == 2 and heard.text.replace(":", "").isdigit():
            ((puppet, said),) = runs
            first = puppet.answers(said.frame["id"])
            assert heard.text in [answer_text("tool_call", answer.frame) for answer in first]
            assert heard.text.split(":")[:2] == [str(puppet.pid), str(heard.token)]

    def when_all_is_quiet_nothing_is_pending(self) -> None:
        if not self.open():
            for supervisor in self.world.it.host._supervisors.values():
                if supervisor.current:
                    assert supervisor.current.peer.pending == 0

    def what_a_reader_hears_is_in_order_and_without_gaps_but_for_counted_drops(self) -> None:
        for puppet, owed in self.owed.items():
            if not puppet.reading or puppet.over or puppet.output_closed:
                continue
            heard = [key for said in puppet.heard if (key := self.key(said.frame)) in set(owed)]
            missing = [key for key in owed if key not in set(heard)]
            assert heard == [key for key in owed if key not in set(missing)]
            assert all(kind == "event" for kind, _ in missing)
            assert len(missing) == puppet.channel.dropped
            if owed and owed[-1][0] == "event":
                assert owed[-1] not in missing, "the newest must not give way"

    def key(self, frame: Frame) -> tuple[str, int] | None:
        match frame["type"]:
            case "event":
                return ("event", frame["step"])
            case "tool_call" | "command_invoked":
                return (frame["type"], token(frame))
            case _:
                return None

    # The end

    def leave(self) -> None:
        world = self.world
        grace = max((p.grace for p in self.stage.live), default=0.0)
        begun = world.now
        world.leave()
        world.run(until(world.main))
        assert world.left is not None
        assert world.left <= begun + grace + 1.0 + SLACK
        assert world.now == world.left, "a call went on without a host"
        assert all(one.ended for one in self.all())
        for puppet in self.stage.puppets:
            if puppet.exit == Exit(None, SIGKILL) and puppet.died and puppet.dismissed:
                assert puppet.died.time >= puppet.dismissed.time + puppet.grace, "it did not get the time it has"
        assert self.reload is None or self.reload.done
        world.check_nothing_left()

    def teardown(self) -> None:
        try:
            if not self.world.main.done():
                self.leave()
        finally:
            self.world.close()
            self.directory.cleanup()


async def until(task: "asyncio.Task[None]") -> None:
    await task


def pick(choices: list[Any], index: int) -> Any:
    return choices[index % len(choices)]


def refuses(decision: Decided) -> bool:
    return decision.decision == "block" or decision.applied == "block"


EXAMPLES = int(os.environ.get("HILT_MODEL_EXAMPLES", "0"))


def test_whatever_happens_in_whatever_order_the_host_does_what_its_model_says() -> None:
    run_state_machine_as_test(
        HostModel,
        settings=settings(
            max_examples=EXAMPLES or 200,
            stateful_step_count=50,
            derandomize=not EXAMPLES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# One script, interrupted at each of its steps


async def call_a_tool(world: World) -> str:
    output = await world.it.session.call_tool("t1", {"token": 1}, "model")
    return text_of(output.content)


async def reload_it(world: World) -> str:
    return str(await world.it.host.reload("ant"))


async def add_one(world: World) -> str:
    world.write("cat", PLAIN)
    return str(await world.it.host.reload("cat"))


async def remove_it(world: World) -> str:
    world.remove("ant")
    return str(await world.it.host.reload("ant"))


def crash(name: str, world: World) -> None:
    for puppet in world.stage.live:
        if puppet.name == name:
            puppet.die(Exit(5), "ouch")


def desert(world: World) -> None:
    if world.caller:
        world.caller.cancel()


INTERRUPTIONS: dict[str, Callable[[World], object]] = {
    "its process crashes": partial(crash, "ant"),
    "its guard crashes": partial(crash, "bee"),
    "the caller leaves": desert,
    "hilt quits": World.leave,
    "hilt is cancelled": lambda world: world.main.cancel(),
}
PLAIN: Settings = {"start_timeout_ms": 1000, "tool_timeout_ms": 1000, "stop_grace_ms": 500}


def play(folder: Path, script: Script, step: int = 0, interrupt: Callable[[World], object] | None = None) -> World:
    """Play it to its end, whatever happens at this step, and see that nothing is left of it."""
    world = World(folder, script)
    world.write("ant", PLAIN)
    world.write("bee", {**PLAIN, "guard": {"on_failure": "block", "timeout_ms": 2000}})
    world.stage.manners["ant"] = Manner(tools=("t1",), cancels=True, answers=True, delay=0.1)
    world.stage.manners["bee"] = Manner(tools=("t2",), guards=True, answers=True, delay=0.1)
    if interrupt:
        world.loop.before_step(step, lambda: interrupt(world))
    try:
        world.settle(10.0)
        if not world.main.done():
            check_settled(world)
            world.leave()
            world.settle(2.0)
        assert world.main.done(), "it does not come to an end"
        check_outcome(world)
        world.check_nothing_left()
    finally:
        world.close()
    return world


def check_settled(world: World) -> None:
    """Whatever it was, it is over by now, and has cost nobody but whom it befell."""
    assert world.caller is None or world.caller.done()
    for status in world.it.host.statuses():
        assert status.state == "ready" or (status.state == "failed" and "exited with code 5" in status.reason)


def check_outcome(world: World) -> None:
    """It ended once, with an answer that was given to it, or with a reason that names who is to blame."""
    assert len(world.outcomes) <= 1
    ran = [(p, f) for p in world.stage.puppets for f in p.asked("tool_call").values() if token(f) == 1]
    assert len(ran) <= 1, "it ran twice"
    for outcome in world.outcomes:
        if "gave no verdict" in outcome:
            assert "guard bee" in outcome and not ran
        elif answered := [
            text for p, f in ran for said in p.answers(f["id"]) if (text := said.frame["content"][0]["text"])
        ]:
            assert outcome in (*answered, "cancelled")
        else:
            assert any(sign in outcome for sign in ("reloaded: ", "ant", "t1", "cancelled"))
            assert "was stopped" not in outcome or not any(p.exit == Exit(5) for p in world.stage.puppets)


@pytest.mark.parametrize("how", INTERRUPTIONS)
@pytest.mark.parametrize("script", [call_a_tool, reload_it, add_one, remove_it])
def test_whatever_step_it_is_interrupted_at_a_script_ends_once_and_leaves_nothing(
    script: Script, how: str, tmp_path: Path
) -> None:
    def folder(number: int) -> Path:
        (path := tmp_path / str(number)).mkdir()
        return path

    steps = play(folder(0), script).loop.steps
    assert steps > 50
    for step in range(1, steps):
        play(folder(step), script, step, INTERRUPTIONS[how])
