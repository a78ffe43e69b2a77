"""The extension host against its model: random scripts on a virtual clock, with programs in memory.

HILT_MODEL_EXAMPLES=1000 tries so many scripts of up to 50 steps, others each time, as `make soak` does; without it they
are the same ones each time, about 2,500 steps of them.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGSEGV
from typing import Any, Literal

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

from extensions.model import (
    LONGEST_CALL,
    NONSENSE,
    READY,
    Asked,
    Heard,
    Model,
    Post,
    Reload,
    hello,
    subscribed,
)
from hilt.agent.interception import consult
from hilt.errors import ExtensionError, HiltError, UsageError
from hilt.model.actions import Display
from hilt.model.content import text_of
from hilt.model.contributions import Effect, Invocation, Tool
from hilt.model.events import TurnStarted
from hilt.model.verdicts import Question
from hilt.transport.process import Exit
from support.puppets import BUILTIN, TERM_GRACE, Frame, Manner, Puppet, Settings

EXAMPLES = int(os.environ.get("HILT_MODEL_EXAMPLES", "0"))
NAMES = ("ant", "bee", "cat", "dog")
TOOLS = ("t1", "t2", BUILTIN)
COMMAND = "go"
COMMAND_PATIENCE = 30.0


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
        "tool_timeout_ms": dice.choice([300, 4000, int(LONGEST_CALL * 1000)]),
        "stop_grace_ms": dice.choice([0, 500, 5000]),
        "priority": dice.choice([0, 5]),
    }
    guard = {"timeout_ms": dice.choice([400, 6000]), "required": dice.choice([False, False, True])}
    policy = dice.choice([{}, {"on_failure": "allow"}, {"on_failure": "ask"}, {"on_failure": "block"}])
    return {**manifest, "guard": {**guard, **policy}} if dice.random() < 0.4 else manifest


# Chosen from lists made beforehand: the fewer choices an extension takes, the more are left for what happens to it.
DICE = Random(1)
MANNERS = [some_manner(DICE) for _ in range(64)]
MANIFESTS = [some_manifest(DICE) for _ in range(32)]
WELL = [manner for manner in MANNERS if manner.greeting == "well"]
manners = st.sampled_from([*WELL, *MANNERS])
manifests = st.sampled_from([*MANIFESTS, None, None, None])
"""None for one that cannot be used."""
beginnings = st.lists(st.tuples(st.sampled_from(MANIFESTS), st.sampled_from(WELL)), min_size=2, max_size=len(NAMES))
which = st.integers(0, 7)
Beginning = list[tuple[Settings, Manner]]


def pick(choices: list[Any], index: int) -> Any:
    return choices[index % len(choices)]


class HostMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.hosts = 0
        self.tokens = 0
        self.model = self.enter()

    def enter(self) -> Model:
        self.hosts += 1
        folder = Path(self.directory.name) / str(self.hosts)
        folder.mkdir()
        return Model(folder)

    @initialize(first=beginnings)
    def begin(self, first: Beginning) -> None:
        model = self.model
        for name, (manifest, manner) in zip(NAMES, first, strict=False):
            model.world.write(name, manifest)
            model.stage.manners[name] = manner
            model.posts[name] = model.post(name, manifest)
        model.act(lambda: None)

    @invariant()
    def all_is_well(self) -> None:
        self.model.check()

    def teardown(self) -> None:
        try:
            if not self.model.world.main.done():
                self.model.leave()
        finally:
            self.model.world.close()
            self.directory.cleanup()

    # The life of extensions

    def unhurried(self) -> bool:
        """The host reloads one at a time; the next one would only wait."""
        return self.model.reload is None or self.model.reload.done is not None

    def reload(self, name: str, kind: Literal["add", "reload", "remove"], bound: float) -> None:
        self.model.reload = reload = Reload(name, kind, self.model.world.now + bound)

        async def work() -> None:
            try:
                reload.outcome = await self.model.world.it.host.reload(name)
            except HiltError as error:
                reload.outcome = error
            reload.done = self.model.stage.now()

        self.model.start(work())

    def absent(self) -> list[str]:
        return [name for name in NAMES if name not in self.model.posts]

    @precondition(lambda self: self.unhurried() and self.absent())
    @rule(name=which, manifest=manifests, manner=manners)
    def add(self, name: int, manifest: Settings | None, manner: Manner) -> None:
        model, chosen = self.model, pick(self.absent(), name)
        model.world.write(chosen, manifest)
        model.stage.manners[chosen] = manner
        if manifest is None:
            self.reload(chosen, "add", bound=0.0)
            assert model.reload
            assert isinstance(model.reload.outcome, UsageError)
        else:
            model.arriving = model.post(chosen, manifest)
            leaving = [p.grace + TERM_GRACE for post in model.leaving for p in post.known if post.name == chosen]
            self.reload(chosen, "add", bound=max(leaving, default=0.0) + manifest["start_timeout_ms"] / 1000 + READY)

    @precondition(lambda self: self.unhurried() and len(self.model.posts) > 1)
    @rule(name=which)
    def remove(self, name: int) -> None:
        post = pick(list(self.model.posts.values()), name)
        self.model.world.remove(post.name)
        del self.model.posts[post.name]
        self.model.leaving.append(post)
        post.removed = True
        self.reload(post.name, "remove", bound=0.0)

    def reloadable(self) -> list[Post]:
        """All that are not being started; the busiest first."""
        posts = [post for post in self.model.posts.values() if post.life is None or post.state == "ready"]
        return sorted(posts, key=lambda post: not (post.life and self.model.busy(post.life)))

    @precondition(lambda self: self.unhurried() and self.reloadable())
    @rule(name=which, manifest=manifests, manner=manners, busy=st.booleans(), dies=st.booleans())
    def reload_one(self, name: int, manifest: Settings | None, manner: Manner, busy: bool, dies: bool) -> None:
        """While it is busy, perhaps; and the old process may not live to see its end."""
        model, post = self.model, pick(self.reloadable(), name)
        if busy and post.offering:
            self.call_of(post.offering)
        old = post.life
        ending = max((p.grace + TERM_GRACE for p in post.known if p.alive and p is not old), default=0.0)
        model.world.write(post.name, manifest)
        model.stage.manners[post.name] = manner
        post.reloading, post.attempted, post.crashes = True, False, []
        self.reload(post.name, "reload", ending + (manifest["start_timeout_ms"] / 1000 + READY if manifest else 0.0))
        if dies and old:
            model.act(lambda: old.die(Exit(2), "too soon"))

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.26, 0.6, 1.0, 2.1, 5.1, 12.0, 70.0, 400.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.model.world.settle(seconds)
        self.model.follow()

    @precondition(lambda self: self.model.world.loop.steps > 1000)
    @rule(again=beginnings)
    def quit_and_begin_anew(self, again: Beginning) -> None:
        self.model.leave()
        self.model.world.close()
        self.model = self.enter()
        self.begin(again)

    # What a process does

    def living(self) -> list[Puppet]:
        """Those with most at stake first: being replaced, or with calls under way."""
        model = self.model
        changing = {p for post in model.posts.values() if post.reloading for p in (post.life, post.newcomer)}
        changing |= {p for post in model.posts.values() for p in post.replaced}
        busy = {one.puppet for one in model.asked if one.ended is None}
        living = [puppet for puppet in model.stage.live if puppet.dismissed is None]
        return sorted(living, key=lambda puppet: -((puppet in changing) + (puppet in busy)))

    @precondition(lambda self: self.living())
    @rule(
        index=which, how=st.sampled_from([Exit(0), Exit(7), Exit(None, SIGSEGV)]), then=st.none() | st.none() | manners
    )
    def crash(self, index: int, how: Exit, then: Manner | None) -> None:
        """The next one may be another kind."""
        puppet = pick(self.living(), index)
        if then:
            self.model.stage.manners[puppet.name] = then
        self.model.act(lambda: puppet.die(how, "ouch"))

    @precondition(lambda self: self.model.posts)
    @rule(name=which, times=st.sampled_from([3, 5]), pause=st.sampled_from([3.0, 20.0, 130.0]))
    def crash_whenever_it_is_back(self, name: int, times: int, pause: float) -> None:
        post = pick(list(self.model.posts.values()), name)
        for _ in range(times):
            if (puppet := post.life) and not puppet.over:
                self.model.act(partial(puppet.die, Exit(9)))
                self.model.check()
            self.let_time_pass(pause)

    @precondition(lambda self: self.living())
    @rule(index=which)
    def close_output(self, index: int) -> None:
        puppet = pick(self.living(), index)
        if not puppet.output_closed:
            self.model.act(puppet.close_output)

    @precondition(lambda self: self.living())
    @rule(index=which, number=st.sampled_from([0, 30]))
    def hang_or_wake(self, index: int, number: int) -> None:
        puppet = pick(self.living(), index)
        self.model.act(puppet.stop_reading if puppet.reading else puppet.read_on)
        self.emit(number)

    @precondition(lambda self: self.living())
    @rule(index=which, number=st.sampled_from([1, 10, 40]))
    def sleep_through(self, index: int, number: int) -> None:
        """Read nothing for a moment in which much happens."""
        puppet = pick(self.living(), index)
        self.model.act(puppet.stop_reading)
        self.emit(number)
        self.call_of(puppet)
        self.emit(1)
        self.model.act(puppet.read_on)

    @precondition(lambda self: self.living())
    @rule(index=which, what=st.sampled_from(["ready", *TOOLS, COMMAND, "guard", "listen", "notify"]))
    def speak(self, index: int, what: str) -> None:
        puppet = pick(self.living(), index)
        if hello(puppet) is None:
            self.model.act(puppet.introduce)
        elif what in TOOLS:
            self.model.act(lambda: puppet.say("register_tool", name=what))
        elif what == COMMAND:
            self.model.act(lambda: puppet.say("register_command", name=what))
        elif what == "guard":
            self.model.act(lambda: puppet.say("subscribe", events=[], intercept=["tool_call"]))
        elif what == "listen":
            self.model.act(lambda: puppet.say("subscribe", events=["turn_start"], intercept=[]))
        else:
            self.model.act(lambda: puppet.say(what))

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

        self.model.act(talk)

    def questions(self) -> list[tuple[Puppet, Frame]]:
        """All that was ever asked and can be answered, rightly or not; what waits for an answer comes first."""
        kinds = ("tool_call", "command_invoked", "event_intercept")
        asked = [(p, said.frame) for p in self.living() for said in p.heard if said.frame["type"] in kinds]
        asked.reverse()
        return sorted(asked, key=lambda one: bool(one[0].answers(one[1]["id"])))

    @precondition(lambda self: self.questions())
    @rule(index=st.integers(0, 30), dies=st.sampled_from([False, False, False, True]))
    def answer(self, index: int, dies: bool) -> None:
        """Also when nobody waits any more, or for the second time; and perhaps with its last breath."""
        puppet, question = pick(self.questions(), index)

        def say() -> None:
            puppet.answer(question)
            if dies:
                puppet.die(Exit(1))

        self.model.act(say)

    @precondition(lambda self: self.questions())
    @rule(index=which, how=st.sampled_from(["wrong id", "wrong kind", NONSENSE, "twice", "block"]))
    def answer_oddly(self, index: int, how: str) -> None:
        puppet, question = pick(self.questions(), index)
        kind = question["type"]

        def say() -> None:
            match how:
                case "wrong id":
                    puppet.answer({**question, "id": "0" * 17})
                case "wrong kind":
                    others = {"tool_call": "command_response", "command_invoked": "event_intercept_response"}
                    puppet.say(others.get(kind, "tool_result"), id=question["id"], content=[])
                case "nonsense":
                    fields = {"tool_call": "content", "command_invoked": "display", "event_intercept": "block"}
                    puppet.answer(question, **{fields[kind]: NONSENSE if kind == "tool_call" else [NONSENSE]})
                case "twice":
                    puppet.answer(question)
                    puppet.answer(question)
                case _:
                    puppet.answer(question, **({"block": True} if kind == "event_intercept" else {}))

        self.model.act(say)

    @precondition(lambda self: self.questions() and len(self.living()) > 1)
    @rule(index=which, other=which)
    def answer_for_another(self, index: int, other: int) -> None:
        asked, question = pick(self.questions(), index)
        puppet = pick([p for p in self.living() if p is not asked], other)
        self.model.act(lambda: puppet.answer(question))

    # What the agent does

    def offered(self) -> list[tuple[str, Post]]:
        return [(name, post) for name, post in self.model.owners("register_tool").items() if post]

    @precondition(lambda self: self.offered())
    @rule(index=which, event=st.booleans())
    def call(self, index: int, event: bool) -> None:
        name, post = pick(self.offered(), index)
        assert post.offering
        found = self.model.snapshot.tools[name].tool
        self.model.old_tools.append((found, post.offering, post.tool_timeout))
        self.invoke(found, post.offering, post.tool_timeout, event=event)

    def call_of(self, puppet: Puppet) -> None:
        for index, (_, post) in enumerate(self.offered()):
            if post.offering is puppet:
                self.call(index, event=True)
                return

    @precondition(lambda self: self.model.old_tools)
    @rule(index=which)
    def call_as_it_once_was(self, index: int) -> None:
        """A turn keeps what it was given, whatever has become of the process since."""
        self.invoke(*pick(self.model.old_tools[::-1], index))

    def invoke(self, found: Tool, puppet: Puppet, patience: float, *, event: bool = False) -> None:
        async def shown(_: str) -> None:
            pass

        async def work(token: int) -> tuple[str, bool]:
            output = await found.invoke(Invocation("1", {"token": token}, shown))
            return text_of(output.content), output.is_error

        self.ask("tool_call", puppet, patience, work, event=event)

    @precondition(lambda self: self.model.owners("register_command"))
    @rule()
    def command(self) -> None:
        post = self.model.owners("register_command")[COMMAND]
        assert post and post.offering
        found = self.model.snapshot.commands[COMMAND].command

        async def work(token: int) -> tuple[str, bool]:
            (action,) = await found.run(str(token))
            assert isinstance(action, Display)
            return action.display, False

        self.ask("command_invoked", post.offering, COMMAND_PATIENCE, work)

    def ask(
        self,
        kind: Literal["tool_call", "command_invoked"],
        puppet: Puppet,
        patience: float,
        work: Callable[[int], Awaitable[tuple[str, bool]]],
        *,
        event: bool = False,
    ) -> None:
        """With an event, something happens right before, and must be told before."""
        model, number = self.model, self.next_token()

        async def run() -> None:
            if event:
                await self.tell(1)
            asked = Asked(kind, number, puppet, model.stage.now(), patience, asyncio.current_task())
            model.asked.append(asked)
            if puppet.over is None:
                model.owed[puppet].append((kind, number))
            try:
                asked.text, asked.failed = await work(number)
            except asyncio.CancelledError:
                assert asked.cancelled, "cancelled, but nobody did"
            except ExtensionError as error:
                asked.text, asked.failed = error.message, True
            asked.ended = model.stage.now()

        model.start(run())

    def next_token(self) -> int:
        self.tokens += 1
        return self.tokens

    @rule()
    def ask_the_guards(self) -> None:
        model, number = self.model, self.next_token()
        question = Question("tool_call", tool_id=str(number), tool_name="t1", tool_args={"token": number})
        model.ids[number] = question.tool_id

        async def work(heard: Heard) -> None:
            bench = model.world.it.session.bench
            ruling = await consult(model.snapshot.guards("tool_call"), question, bench, effect=Effect.EXECUTE)
            heard.args = None if ruling.blocked_by or ruling.unsure else ruling.question.tool_args

        self.hear(number, "", work)

    @rule(name=st.sampled_from(TOOLS))
    def call_as_the_agent_does(self, name: str) -> None:
        number = self.next_token()

        async def work(heard: Heard) -> None:
            output = await self.model.world.it.session.call_tool(name, {"token": number}, "model")
            heard.text = text_of(output.content)

        self.hear(number, name, work)

    def hear(self, number: int, tool: str, work: Callable[[Heard], Awaitable[None]]) -> None:
        model, guards = self.model, self.model.guards()

        async def run() -> None:
            heard = Heard(number, model.stage.now(), guards, tool, asyncio.current_task())
            model.heard.append(heard)
            try:
                await work(heard)
            except asyncio.CancelledError:
                assert heard.cancelled, "cancelled, but nobody did"
            heard.ended = model.stage.now()

        model.start(run())

    @precondition(lambda self: self.model.open())
    @rule(index=which)
    def cancel(self, index: int) -> None:
        one = pick(self.model.open(), index)

        def stop() -> None:
            one.cancelled = self.model.stage.now()
            one.task.cancel()

        self.model.act(stop)

    @rule(number=st.sampled_from([1, 3, 30]))
    def emit(self, number: int) -> None:
        self.model.act(lambda: self.tell(number))

    async def tell(self, number: int) -> None:
        for _ in range(number):
            step = self.next_token()
            for post in self.model.posts.values():
                if post.offering and subscribed(post.offering, "events"):
                    self.model.owed[post.offering].append(("event", step))
            await self.model.world.it.session.bus.emit(TurnStarted(step))


@pytest.mark.timeout(300)  # a machine with other things to do takes several times as long
def test_whatever_happens_in_whatever_order_the_host_does_what_its_model_says() -> None:
    run_state_machine_as_test(
        HostMachine,
        settings=settings(
            max_examples=EXAMPLES or 75,
            stateful_step_count=50,
            derandomize=not EXAMPLES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
