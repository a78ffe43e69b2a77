"""Extensions without processes: programs in memory that do what a test tells them, on a clock that jumps.

`Stage` is an opener for the host, and what it opens are puppets. The channel between is the real one; at its other end
a test sees what the host says, and speaks, falls silent and dies at will. Everything that befalls a puppet is kept with
its moment, so that what had to follow from it can be worked out afterwards.
"""

import asyncio
import json
import shutil
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from signal import SIGKILL
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from hilt.errors import HiltError, StartError
from hilt.model.extensions import Dialect
from hilt.packages.manifest import MANIFEST, YAML_MANIFEST
from hilt.transport.channels import Bounds, Channel
from hilt.transport.launch import Spec
from hilt.transport.lines import TooLong
from hilt.transport.memory import MemoryPipe, VirtualLoop
from hilt.transport.process import Exit
from support.agent import echo, tool
from support.chaos import Frames, JsonRpc, usual_result
from support.extending import Extended, extended

BOUNDS = Bounds(events=4096)
CAPACITY = 512
"""Bytes on their way to a puppet; little, so that one that does not read is soon noticed."""
ROOM = 65536
TERM_GRACE = 0.5
"""What a real program gets between the two signals."""
_FLUSH = 0.5

BUILTIN = "echo"
"""The tool that a `World` offers by itself."""

Frame = dict[str, Any]
Settings = dict[str, Any]
"""A manifest, but for the name and the program."""
Script: TypeAlias = "Callable[[World], Awaitable[str]]"
_Result = TypeVar("_Result")


class Moment(NamedTuple):
    """Orders what happens at the same time, too."""

    time: float
    number: int


class Said(NamedTuple):
    moment: Moment
    frame: Frame


@dataclass(frozen=True)
class Manner:
    """What a program does by itself. Everything else is up to the test."""

    greeting: Literal["well", "hello", "mute", "dies", "unstartable"] = "well"
    """`well`: hello, registrations, ready. `hello`: no `ready`."""
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    guards: bool = False
    """It wants to be asked before tools run."""
    listens: bool = False
    """It wants to know when turns start."""
    cancels: bool = False
    """It wants to know when calls are cancelled."""
    answers: bool = False
    """It answers calls and commands."""
    delay: float = 0.0
    """Seconds it takes to answer anything."""
    verdict: Literal["allow", "block", "rewrite", "none"] = "allow"
    stubborn: bool = False
    """It does not end when it is told to."""
    dialect: Dialect = "frames"
    """As its manifest says. What a puppet says and hears is told in frames, whatever goes through the pipes."""


class Puppet:
    """One program. Its upper half is what the host needs of it, the lower half is for tests."""

    def __init__(self, stage: "Stage", name: str, number: int, grace: float) -> None:
        self.stage = stage
        self.name = name
        self.grace = grace
        self.pid = number
        self.manner = stage.manner(name)
        self._tongue = JsonRpc() if self.manner.dialect == "jsonrpc" else Frames()
        there, back = MemoryPipe(CAPACITY), MemoryPipe(ROOM)
        self.channel = Channel(back.source, there.sink, BOUNDS)
        self._ears, self._mouth = Channel(there.source, back.sink), back.sink
        self._exited = asyncio.Event()
        self._words: list[str] = []
        self.remarks: list[str] = []
        self.log_failure: OSError | None = None
        self.reading = True
        self.born = stage.now()
        self.exit: Exit | None = None
        self.died: Moment | None = None
        """When it ended, by itself or not."""
        self.dismissed: Moment | None = None
        """When the host began to end it."""
        self.output_closed: Moment | None = None
        self.hung: Moment | None = None
        """Since when it does not read."""
        self.heard: list[Said] = []
        self.said: list[Said] = []
        self._ears.listen(self)

    # The program, as the host has it

    async def exited(self) -> Exit:
        await self._exited.wait()
        assert self.exit
        return self.exit

    def last_words(self) -> list[str]:
        return self._words

    def complaints(self) -> str:
        return "\n".join(self._words)

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    async def stop(self) -> None:
        """As a real one is stopped: it is told, waited for, and killed; at once when whoever waits is cancelled."""
        self.dismissed = self.stage.now()
        deadline = self.dismissed.time + self.grace
        try:
            await self.channel.finish(min(_FLUSH, self.grace))
            for patience in (deadline, deadline + TERM_GRACE):
                try:
                    async with asyncio.timeout_at(patience):
                        await self._exited.wait()
                except TimeoutError:
                    pass
        finally:
            self.die(Exit(None, SIGKILL))
            self.channel.abort()

    # What its channel tells

    def line(self, line: bytes) -> None:
        frame = self._tongue.heard(json.loads(line))
        self.heard.append(Said(self.stage.now(), frame))
        self._react(frame)

    def overlong(self, line: TooLong) -> None:
        raise AssertionError("the host never sends a line that is too long")

    def ended(self) -> None:
        if not self.manner.stubborn:
            self.die(Exit(0))

    def broken(self) -> None:
        pass

    def stalled(self) -> None:
        pass

    # Pulling the strings

    @property
    def alive(self) -> bool:
        return self.exit is None

    @property
    def over(self) -> Moment | None:
        """When it could no longer be talked to."""
        return min(filter(None, (self.died, self.dismissed)), default=None)

    def say(self, kind: str, **fields: Any) -> bool:
        """False when it cannot speak any more."""
        frame = {"type": kind, **fields}
        if not self.alive or self.output_closed:
            return False
        self.said.append(Said(self.stage.now(), frame))
        line = b"".join(line.encode() + b"\n" for line in self._tongue.written(json.dumps(frame)))
        try:
            # Like a write of the system: what is in the pipe is there, whatever becomes of the writer.
            assert self._mouth.write(line) == len(line)
        except BrokenPipeError:
            return False
        return True

    def greet(self) -> None:
        """Begin as its manner demands."""
        if self.manner.greeting == "dies":
            self.die(Exit(3), "I will not")
        elif self.manner.greeting != "mute":
            if self.manner.dialect == "frames":
                self.introduce()
            self.register()
            if self.manner.greeting == "well" and self.manner.dialect == "frames":
                self.say("ready")

    def introduce(self) -> None:
        self.say("hello", name=self.name, capabilities=["tool_cancel"] if self.manner.cancels else [])

    def register(self) -> None:
        for name in self.manner.tools:
            self.say("register_tool", name=name)
        for name in self.manner.commands:
            self.say("register_command", name=name)
        if self.manner.guards or self.manner.listens:
            events, intercept = ["turn_start"] * self.manner.listens, ["tool_call"] * self.manner.guards
            self.say("subscribe", events=events, intercept=intercept)

    def die(self, how: Exit, *words: str) -> None:
        """As a process dies: what it wrote before can still be read."""
        if self.exit is None:
            self._words.extend(words)
            self.exit = how
            self.died = self.stage.now()
            self._ears.abort()
            self._exited.set()

    def close_output(self) -> None:
        self.output_closed = self.stage.now()
        self._mouth.close()

    def stop_reading(self) -> None:
        self.reading = False
        self.hung = self.stage.now()
        self._ears.pause()

    def read_on(self) -> None:
        self.reading = True
        self.hung = None
        self._ears.resume()

    def asked(self, kind: str) -> dict[str, Frame]:
        """What it was asked, by id."""
        return {said.frame["id"]: said.frame for said in self.heard if said.frame["type"] == kind}

    def answers(self, id_: str) -> list[Said]:
        """All it said under this id, in order."""
        return [said for said in self.said if said.frame.get("id") == id_]

    def answer(self, question: Frame, **fields: Any) -> bool:
        """Answer as a healthy one does; the text names the process, the question and the attempt."""
        text = f"{self.pid}:{token(question)}:{len(self.said)}"
        match question["type"]:
            case "tool_call":
                fields = {"content": [{"type": "text", "text": text}], **fields}
                return self.say("tool_result", id=question["id"], **fields)
            case "command_invoked":
                fields = {"action": "display", "display": text, **fields}
                return self.say("command_response", id=question["id"], **fields)
            case _:
                return self.say("event_intercept_response", id=question["id"], **fields)

    def _react(self, frame: Frame) -> None:
        match frame["type"]:
            case "tool_call" | "command_invoked" if self.manner.answers:
                self._after_a_while(self.answer, frame)
            case "event_intercept":
                self._after_a_while(self._judge, frame)
            case "initialize" if self.manner.greeting == "well":
                self.say("ready")
            case "ext_request":
                self.say("ext_response", id=frame["id"], result=usual_result(frame["method"], frame["params"], ""))
            case _:
                pass

    def _after_a_while(self, do: Callable[[Frame], object], frame: Frame) -> None:
        if self.manner.delay:
            asyncio.get_running_loop().call_later(self.manner.delay, do, frame)
        else:
            do(frame)

    def _judge(self, frame: Frame) -> None:
        match self.manner.verdict:
            case "allow":
                self.answer(frame)
            case "block":
                self.answer(frame, block=True, reason=f"{self.name} says no")
            case "rewrite":
                self.answer(frame, modified_args={**frame["tool_args"], "by": self.name})
            case "none":
                pass


def token(question: Frame) -> int:
    """What tells questions of a test apart, whoever is asked them and however often."""
    if question["type"] == "command_invoked":
        return int(question["args"])
    return int(question["tool_args" if question["type"] == "event_intercept" else "args"]["token"])


@dataclass
class Stage:
    """Where puppets live. Its `open` is an `Opener`."""

    manners: dict[str, Manner] = field(default_factory=dict)
    """By extension; whoever is started next behaves so."""
    puppets: list[Puppet] = field(default_factory=list)
    """All that ever were, in order of birth."""
    refused: list[tuple[str, Moment]] = field(default_factory=list)
    """Starts that failed."""
    _numbers: "count[int]" = field(default_factory=count)

    def manner(self, name: str) -> Manner:
        return self.manners.get(name, Manner())

    def now(self) -> Moment:
        return Moment(asyncio.get_running_loop().time(), next(self._numbers))

    @property
    def live(self) -> list[Puppet]:
        return [puppet for puppet in self.puppets if puppet.alive]

    @asynccontextmanager
    async def open(self, spec: Spec) -> AsyncIterator[Puppet]:
        name = spec.cwd.name
        await asyncio.sleep(0)  # a start takes its time, and whoever waits may leave meanwhile
        if self.manner(name).greeting == "unstartable":
            self.refused.append((name, self.now()))
            raise StartError(f"{name} is no program", hint="write one")
        puppet = Puppet(self, name, len(self.puppets) + 1, spec.grace)
        self.puppets.append(puppet)
        puppet.greet()
        try:
            yield puppet
        finally:
            await puppet.stop()


class StageLoop(VirtualLoop):
    """Counts its steps, and does something of a test's choice right before one of them. Has no threads.

    A step is whatever the loop runs at a time: the part of a task between two awaits, or a callback.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.recent: deque[Callable[..., object]] = deque(maxlen=8)
        """What was run last, for whoever looks for the reason of a failure."""
        self.faults: list[str] = []
        """What nobody caught."""
        self._interruption: tuple[int, Callable[[], object]] = (0, lambda: None)
        self.interrupted = False
        self.set_exception_handler(lambda _, context: self.faults.append(repr(context)))

    def before_step(self, step: int, do: Callable[[], object]) -> None:
        self._interruption = (step, do)

    # Any callback with any arguments, which is less than the declarations there say.

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        return super().call_soon(self._step, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._step, callback, *args, context=context)

    def _step(self, callback: Callable[..., object], *args: Any) -> None:
        self.steps += 1
        self.recent.append(callback)
        if self.steps == self._interruption[0]:
            self.interrupted = True
            self._interruption[1]()
        callback(*args)

    def run_in_executor(  # type: ignore[override]  # the declaration there knows fewer kinds of arguments
        self, executor: Executor | None, func: Callable[..., _Result], *args: Any
    ) -> "asyncio.Future[_Result]":
        """What a thread would do, between two steps: a clock that jumps waits for no thread."""
        future: asyncio.Future[_Result] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except HiltError as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_soon(work)
        return future


async def quiet() -> None:
    """Let everything happen that can happen now. The clock moves only when nothing can, so a bit of time is enough."""
    await asyncio.sleep(1e-6)


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
        """Quit, without waiting for the end."""
        self._leave.set()

    def finish(self) -> None:
        async def end() -> None:
            await self.main

        self.leave()
        self.run(end())

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
        frames = self.stage.manner(name).dialect == "frames"
        program = {"exec": "./run"} if frames else {"runtime": "./run", "pipes": "fd"}
        file = directory / (MANIFEST if frames else YAML_MANIFEST)
        file.write_text(json.dumps({"name": name, **program, **manifest} if manifest else []))
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
            if steps[0] == steps[-1]:
                recent = list(self.loop.recent)
        assert steps[0] == steps[1], f"a timer was left: {recent}"
