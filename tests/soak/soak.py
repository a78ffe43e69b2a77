"""A day of use in a quarter of an hour: the real `hilt rpc`, thirty extensions, and everything that goes wrong.

    make soak                                       3,000 turns at 200 a minute
    make soak SOAK="--minutes 2 --extensions 10"    less of it

Turns are driven at a fixed rate. Meanwhile a process of an extension is killed every 2 s, one is reloaded every 10 s,
and every 15 s one hangs, floods, writes a line too long or leaves a daemon behind; one call in ten is cancelled, and
hilt itself is ended and started again five times, once in a while with SIGKILL in the middle of a turn. Every second
the process is looked at from outside. From time to time everything comes to rest, and the same numbers must come back.
"""

import argparse
import ctypes
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilt.model.conversation import ToolMessage, now
from hilt.model.extensions import Dialect
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, ResultRecord
from soak.client import DEADLINE, Client, Failure
from soak.looking import Sample, children, command_line, longest_life, look, rise
from support.extending import Made, chaos
from support.killing import Ended, Said, recorded

STILL = 3
"""Looks in a row with as many descriptors, until the first of a life counts."""
PR_SET_CHILD_SUBREAPER = 36
LONGEST_ZOMBIE = 1.5
"""A second, and the half of one that may pass before it is seen at all."""
SLOWEST_ESCAPE = 1.0
RISE = 1.0
"""Megabytes that a thousand turns may add to what the session itself keeps in memory."""
PER_RECORD = 350
"""Bytes of that for each record of the session."""
ENOUGH = 1000
"""Turns of one life without which a rise says nothing."""
WARMING = 15
"""Rounds in which all are started anew before a rise is measured: the allocator takes hundreds of starts to settle."""


# The extensions


def made(name: str, guard: bool, dialect: Dialect) -> Made:
    def on(tool: str, *do: str) -> dict[str, Any]:
        return {"on": "tool_call", "match": {"name": f"{name}_{tool}"}, "do": list(do)}

    tools = {
        "echo": ("answer:$PID",),
        "slow": ("sleep:2", "answer"),
        "hang": ("hang",),
        "flood": ("flood:2000", "notify:flood", "answer"),
        "bigline": ("big_line:5000000", "answer"),
        "daemon": ("daemonize:daemons", "answer"),
    }
    intercepts = ["intercept:tool_call"] if guard else []
    manifest: dict[str, Any] = {"tool_timeout_ms": 1000, "stop_grace_ms": 500}
    if guard:
        manifest["guard"] = {"on_failure": "allow", "timeout_ms": 500}
    return chaos(
        name,
        "hello",
        *(f"register_tool:{name}_{tool}" for tool in tools),
        "subscribe:turn_start,tool_call,tool_result,turn_end",
        *intercepts,
        *(on(tool, *do) for tool, do in tools.items()),
        "ready",
        dialect=dialect,
        **manifest,
    )


# The whole


@dataclass
class Soak:
    options: argparse.Namespace
    folder: Path
    samples: list[Sample] = field(default_factory=list)
    idle: list[Sample] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    observed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    escapes: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    """Seconds until a death was told."""
    acknowledged: list[bytes] = field(default_factory=list)
    turns: int = 0
    life: int = 0
    answered: int = 0
    warm: int = 0
    """From which sample on a rise is measured."""
    growth: float | None = None
    """Megabytes per thousand turns, if there were enough of them."""
    allowed: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.options.seed)
        self.names = [f"s{number:02}" for number in range(self.options.extensions)]
        self.home, self.project = self.folder / "home", self.folder / "project"
        self.project.mkdir()
        for number, name in enumerate(self.names):
            spoken: Dialect = "jsonrpc" if number % 2 else "frames"
            made(name, number % 10 < 2, spoken).write(self.home / "extensions")
        self.crashes: Counter[str] = Counter()
        """Since it was last reloaded."""
        self.wanted: list[str] = []
        """Faults that are to be called for."""
        self.calm = threading.Lock()
        self.over = threading.Event()
        self.client = self.start()

    def start(self) -> Client:
        self.life += 1
        command = [sys.executable, "-m", "hilt", "rpc", "--provider", "demo", *(["-c"] if self.life > 1 else [])]
        keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
        client = Client(command, self.project, {**keep, "HILT_HOME": str(self.home), "HOME": str(self.folder)})
        client.until(lambda: len(client.states) == len(self.names), "every extension")
        client.until(lambda: set(client.states.values()) == {"ready"}, "all of them ready")
        return client

    # Turns

    def drive(self) -> None:
        last_early = max((turn for turn in self.restarts() if turn <= self.options.turns / 5), default=0)
        began = time.monotonic()
        for number in range(1, self.options.turns + 1):
            self.pause(began + number * 60 / self.options.rate - time.monotonic())
            if self.problems:
                return
            self.turns = number
            self.take_turn()
            if number % self.options.rest == 0:
                self.rest()
            if number in self.restarts():
                self.restart()
            if number == max(1, last_early) and self.options.turns >= ENOUGH:
                began += self.warm_up()

    def warm_up(self) -> float:
        """The seconds it took."""
        began = time.monotonic()
        with self.calm:
            for _ in range(WARMING):
                self.client.ask("reload_ext")
        self.warm = len(self.samples)
        return time.monotonic() - began

    def pause(self, seconds: float) -> None:
        if seconds > 0:
            self.over.wait(seconds)

    def restarts(self) -> set[int]:
        """In the first fifth and in the last, so that one life in between is long."""
        early = (self.options.restarts + 1) // 2
        late = self.options.restarts - early
        fifth = self.options.turns / 5
        first = {round(fifth * (part + 1) / early) for part in range(early)}
        return first | {round(fifth * (4 + part / late)) for part in range(late)}

    def take_turn(self) -> None:
        ready = [name for name in self.names if self.client.states[name] == "ready"]
        name = self.random.choice(ready or self.names)
        if self.wanted:
            self.fault(self.wanted.pop(0), name)
        elif self.random.random() < 0.1:
            turn = self.client.turn(f"call `{name}_slow`", cancel=True)
            assert turn.cancelled_in is not None
            self.escapes.append(turn.cancelled_in)
            if turn.cancelled_in > SLOWEST_ESCAPE * self.options.patience:
                self.problems.append(f"cancelling took {turn.cancelled_in:.2f} s")
        else:
            turn = self.client.turn(f"call `{name}_echo`")
            self.answered += turn.result.isdecimal()

    def fault(self, kind: str, name: str) -> None:
        """Ask for one, and make sure that it is told for what it is."""
        notes = self.client.notes
        turn = self.client.turn(f"call `{name}_{kind}`")
        if not turn.result or any(words in turn.result for words in ("SIGKILL", "unknown tool", "was not run")):
            self.wanted.append(kind)  # it was killed or replaced just then: another time
            return
        self.injected[kind] += 1
        shows = {
            "hang": "timeout waiting" in turn.result,
            "bigline": "too long" in turn.result,
            "flood": turn.result == "ok" and self.client.notes > notes,
            "daemon": turn.result == "ok",
        }
        self.observed[kind] += shows[kind]
        if not shows[kind]:
            self.problems.append(f"{kind} of {name} shows as {turn.result[:200]!r}")

    # The weather

    def weather(self) -> None:
        due = {
            "crash": self.options.crash_every,
            "reload": self.options.reload_every,
            "fault": self.options.fault_every,
        }
        began = time.monotonic()
        times = {kind: began + every for kind, every in due.items()}
        kinds = itertools.cycle(("hang", "flood", "bigline", "daemon"))
        while not self.over.wait(max(0.0, min(times.values()) - time.monotonic())):
            kind = min(times, key=lambda kind: times[kind])
            times[kind] += due[kind]
            with self.guarded("the weather"), self.calm:
                match kind:
                    case "crash":
                        self.crash()
                    case "reload":
                        self.reload()
                    case "fault":
                        self.wanted.append(next(kinds))

    def crash(self) -> None:
        ready = [one for one in self.client.extensions() if one["state"] == "ready" and one["pid"]]
        if not ready:
            return
        victim = min(ready, key=lambda one: (self.crashes[one["name"]], self.random.random()))
        name, before = victim["name"], self.client.ends[victim["name"]]
        try:
            os.kill(victim["pid"], signal.SIGKILL)
        except ProcessLookupError:
            return
        self.injected["crash"] += 1
        self.crashes[name] += 1
        began = time.monotonic()
        self.client.until(lambda: self.client.ends[name] > before, f"the death of {name}")
        self.told.append(time.monotonic() - began)
        self.observed["crash"] += 1

    def reload(self) -> None:
        failed = [name for name, state in self.client.states.items() if state == "failed"]
        name = failed[0] if failed else max(self.names, key=lambda name: (self.crashes[name], self.random.random()))
        self.injected["reload"] += 1
        answer = self.client.ask("reload_ext", name=name)
        self.crashes[name] = 0
        if answer["success"]:
            self.observed["reload"] += 1
        else:
            self.problems.append(f"reload of {name}: {answer['error']}")

    # Rest

    def rest(self) -> None:
        """Let everything come to an end, and see that nothing has added up."""
        with self.calm:
            self.settle()
            first = next((sample for sample in self.idle if sample.life == self.life), None)
            deadline = time.monotonic() + DEADLINE / 2
            alike, before = 0, -1
            while True:
                sample = look(self.client.process.pid, self.turns, self.life, self.home / "logs")
                daemons = sum("sleep" in command_line(pid) for pid, _, _ in children(self.client.process.pid))
                calm = sample.children - daemons == len(self.names) and not sample.zombies
                alike, before = (alike + 1 if sample.fds == before else 1), sample.fds
                # What all others are compared with must not be seen while something is being opened or closed.
                if calm and (alike >= STILL if first is None else sample.fds == first.fds):
                    break
                if time.monotonic() > deadline:
                    at_first = first.fds if first else "-"
                    self.problems.append(f"at rest it has {sample.fds} descriptors, at first {at_first}: {sample}")
                    break
                time.sleep(0.1)
            self.idle.append(sample)
            state = self.client.ask("get_state")["data"]
            if state["busy"] or state["queue"]:
                self.problems.append(f"at rest it is busy: {state['queue']}")
            self.compact()

    def compact(self) -> None:
        """As people do now and then: the conversation is kept in memory, and would look like a leak."""
        self.client.ask("compact")
        deadline = time.monotonic() + DEADLINE
        while self.client.ask("get_state")["data"]["busy"]:
            if time.monotonic() > deadline:
                raise Failure("compaction never ended")
            time.sleep(0.01)

    def settle(self) -> None:
        for name, state in self.client.states.items():
            if state == "failed":
                self.client.ask("reload_ext", name=name)
                self.crashes[name] = 0
        self.client.until(lambda: set(self.client.states.values()) == {"ready"}, "all extensions ready")

    # The end of hilt, and its return

    def restart(self) -> None:
        with self.calm:
            how = ("eof", "SIGKILL", "SIGTERM")[self.life % 3]
            if how == "SIGKILL":
                self.client.send(type="prompt", message=f"call `{self.names[0]}_slow`")
                self.client.until(lambda: self.client.acknowledged[-1:], "some of a turn")
            self.finish(how)
            self.client = self.start()
            self.crashes.clear()

    def finish(self, how: str) -> None:
        code = self.client.end(how)
        self.acknowledged += self.client.acknowledged
        expected = {"eof": 0, "SIGKILL": -9, "SIGTERM": 143}[how]
        if code != expected:
            self.problems.append(f"{how} ended it with {code}: {self.client.errors.decode()[-500:]}")
        self.no_survivors(how)

    def no_survivors(self, how: str) -> None:
        """What outlives hilt is ours by now. Only daemons may, and only when hilt had no time to end them."""
        deadline = time.monotonic() + 3 * self.options.patience
        while True:
            reap()
            left = [pid for pid, _, _ in children(os.getpid())]
            if not left or time.monotonic() > deadline:
                break
            if how == "SIGKILL" and all("sleep" in command_line(pid) for pid in left):
                break
            time.sleep(0.02)
        for pid in left:
            if not (how == "SIGKILL" and "sleep" in command_line(pid)):
                self.problems.append(f"after {how} it was outlived by {pid}: {command_line(pid)}")
            os.kill(pid, signal.SIGKILL)

    # Looking

    def watch(self) -> None:
        since: dict[tuple[int, str], float] = {}
        while not self.over.wait(1.0):
            process, life = self.client.process.pid, self.life
            try:
                self.samples.append(look(process, self.turns, life, self.home / "logs"))
                zombies = {(pid, born) for pid, born, state in children(process) if state == "Z"}
            except (OSError, KeyError):
                continue  # it is being restarted
            now_ = time.monotonic()
            since = {zombie: since.get(zombie, now_) for zombie in zombies}
            old = [
                zombie[0] for zombie, first in since.items() if now_ - first > LONGEST_ZOMBIE * self.options.patience
            ]
            if old:
                self.problems.append(f"zombies for more than a second: {old}")

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        try:
            yield
        except (Failure, OSError, ValueError) as error:
            if not self.over.is_set():
                self.problems.append(f"{what}: {error}")

    def run(self) -> None:
        threads = [threading.Thread(target=work, daemon=True) for work in (self.weather, self.watch)]
        for thread in threads:
            thread.start()
        try:
            with self.guarded("the turns"):
                self.drive()
                if not self.problems:
                    self.rest()
        finally:
            self.over.set()
            for thread in threads:
                thread.join(DEADLINE)
        with self.guarded("the end"):
            self.finish("eof")
            records = self.replay()
            self.judge(records / self.turns)

    # The verdict

    def judge(self, records: float) -> None:
        """Given how many records the session has for each turn."""
        for kind in self.injected:
            if self.injected[kind] != self.observed[kind]:
                self.problems.append(f"{kind}: {self.injected[kind]} injected, {self.observed[kind]} observed")
        if not self.answered:
            self.problems.append("no call was ever answered")
        threads = {life: [s.threads for s in group] for life, group in itertools.groupby(self.idle, lambda s: s.life)}
        for life, counts in threads.items():
            steady = counts[len(counts) // 5 :]
            if len(steady) > 2 and steady[-1] > steady[0]:
                self.problems.append(f"threads add up in life {life}: {counts}")
        self.allowed = RISE + records * 1000 * PER_RECORD / 2**20
        if (longest := longest_life(self.samples[self.warm :])) and longest[-1].turn - longest[0].turn >= ENOUGH:
            self.growth = rise(longest)
            if self.growth > self.allowed:
                told = f"{self.growth:.2f} MB in a thousand turns, {self.allowed:.2f} are allowed"
                self.problems.append(f"memory rises by {told}")

    def replay(self) -> int:
        """All that was said to be on disk is there, in order; and little more, for only SIGKILL cuts us short."""
        [path] = self.home.glob("sessions/*/*.jsonl")
        with SessionLog.open(path) as log:
            kept = list(spoken(log))
            records = len(log.entries())
        told = Ended(0, b"".join(self.acknowledged), "", 0).acknowledged
        rest = iter(kept)
        missing = [said for said in told if said not in rest]
        if missing:
            self.problems.append(f"{len(missing)} acknowledged messages are not in the session, as {missing[0]}")
        if len(kept) - len(told) > 6 * self.options.restarts:
            self.problems.append(f"the session has {len(kept)} messages, {len(told)} were told")
        return records

    def report(self) -> str:
        growth = "too few turns to tell" if self.growth is None else f"{self.growth:+.2f} MB per 1,000 turns"
        peak = max((sample.peak for sample in self.samples), default=0)
        lines = [
            f"turns {self.turns}  lives {self.life}  answered calls {self.answered}  cancelled {len(self.escapes)}",
            f"injected {dict(self.injected)}  observed {dict(self.observed)}",
            f"memory {growth} ({self.allowed:.2f} allowed)  peak {peak:.0f} MB",
            f"descriptors at rest {[sample.fds for sample in self.idle]}",
            f"threads at rest {[sample.threads for sample in self.idle]}",
            f"Esc to control back: {spread(self.escapes)}  death to being told: {spread(self.told)}",
        ]
        if self.problems:
            lines += ["", Sample.HEAD, *map(str, self.samples[-60:]), ""]
            lines += ["at rest:", *map(str, self.idle[-20:]), ""]
            lines += [f"FAILED: {problem}" for problem in self.problems[:20]]
        else:
            lines.append("ok")
        return "\n".join(lines)


def spoken(log: SessionLog) -> Iterator[Said]:
    for entry in log.branch():
        match log.read(entry):
            case MessageRecord(message=message):
                yield from recorded([message])
            case ResultRecord(result=result):
                yield from recorded([ToolMessage((result,), now())])


def spread(seconds: list[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return f"p50 {ordered[len(ordered) // 2] * 1000:.0f} ms, worst {ordered[-1] * 1000:.0f} ms"


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3000)
    parser.add_argument("--minutes", type=float, help="as many turns as fit")
    parser.add_argument("--rate", type=float, default=200.0, help="turns a minute")
    parser.add_argument("--extensions", type=int, default=30)
    parser.add_argument("--restarts", type=int, default=5, help="of hilt itself")
    parser.add_argument("--crash-every", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--reload-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--fault-every", type=float, default=15.0, metavar="SECONDS")
    parser.add_argument("--rest", type=int, default=100, help="turns between two points of rest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=1.0, help="so many times as long as on a quiet machine")
    options = parser.parse_args(arguments)
    if options.minutes:
        options.turns = round(options.minutes * options.rate)
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="hilt-soak-", ignore_cleanup_errors=True) as folder:
        soak = Soak(options, Path(folder))
        try:
            soak.run()
        finally:
            if soak.client.process.poll() is None:
                soak.client.process.kill()
        print(soak.report())
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
