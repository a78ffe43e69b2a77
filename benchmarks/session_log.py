"""What a long session costs: opening 100,000 records, resuming from them, and appending to them."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from report import Measured

from hilt.agent.transcript import Transcript
from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, Usage, now, user_text
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, new_meta

RECORDS = 100_000
ROUNDS = 7
APPENDS = 500
META = new_meta("/", "demo", "demo")


def run(rounds: int = ROUNDS, records: int = RECORDS) -> list[Measured]:
    with tempfile.TemporaryDirectory() as folder:
        usual, large = Path(folder, "usual.jsonl"), Path(folder, "large.jsonl")
        _fill(usual, records, 600)
        _fill(large, records, 5_000)
        opened = _times(rounds, lambda: _open(large))
        resumed = _times(rounds, lambda: _resume(usual, records))
        return [
            Measured(f"session: open {records:,} records of 5 KB", opened, 2.0, "s"),
            Measured(f"session: resume from {records:,} records of 0.6 KB", resumed, 2.0, "s"),
            Measured(f"session: append at {records:,} records / at none", _append_ratios(usual, rounds), 1.5),
        ]


def _open(path: Path) -> None:
    SessionLog.open(path, writable=False).close()


def _resume(path: Path, records: int) -> None:
    """All that happens to a session before its next prompt: open, read the conversation, sum the cost."""
    with SessionLog.open(path) as log:
        assert len(Transcript(Journal(log)).messages) == records


def _append_ratios(path: Path, rounds: int) -> list[float]:
    """One append to a long session over one to a short session, taken in turns so that noise falls on both."""
    with (
        SessionLog.open(path, durability="os") as long,
        SessionLog.create(path.with_name("short.jsonl"), META, durability="os") as short,
    ):
        ratios = []
        for _ in range(rounds):
            taken = {id(log): 0.0 for log in (long, short)}
            for number in range(APPENDS):
                for log in (long, short):
                    taken[id(log)] += _timed(partial(log.append, _record(number, 600)))
            ratios.append(taken[id(long)] / taken[id(short)])
        return ratios


def _fill(path: Path, records: int, size: int) -> None:
    with SessionLog.create(path, META, durability="os") as log:
        for number in range(records):
            log.append(_record(number, size))


def _record(number: int, size: int) -> MessageRecord:
    if number % 2 == 0:
        return MessageRecord(user_text("x" * size))
    return MessageRecord(AssistantMessage((Text("y" * size),), now(), "demo", "demo", Usage(1_000, 100)))


def _times(rounds: int, work: Callable[[], object]) -> list[float]:
    return [_timed(work) for _ in range(rounds)]


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
