"""What a long session costs: opening 100,000 records, and appending to them.

python benchmarks/session_log.py
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, Usage, now, user_text
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, new_meta

RECORDS = 100_000
RECORD_BYTES = 5_000
APPENDS = 2_000


def run() -> list[tuple[str, float, float, str]]:
    """Each goal as its name, what was measured, what is allowed, and the unit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "long.jsonl")
        short, long = _append_cost(path)
        opened = _timed(lambda: SessionLog.open(path, writable=False).close())
    return [
        ("session: open 100,000 records (500 MB)", opened, 2.0, "s"),
        ("session: append at 100,000 records / at 0", long / short, 1.5, "ratio"),
        ("session: append", long * 1e6, 100.0, "µs"),
    ]


def _append_cost(path: Path) -> tuple[float, float]:
    """Seconds for one append to a short session and to a long one, taken in turns so that noise falls on both."""
    records = [MessageRecord(user_text("x" * RECORD_BYTES)), MessageRecord(_answer())]
    meta = new_meta("/", "demo", "demo")
    with (
        SessionLog.create(path, meta, durability="os") as long,
        SessionLog.create(path.with_name("short.jsonl"), meta, durability="os") as short,
    ):
        for number in range(RECORDS):
            long.append(records[number % 2])
        times: dict[SessionLog, list[float]] = {short: [], long: []}
        for number in range(APPENDS):
            for log, taken in times.items():
                taken.append(_timed(partial(log.append, records[number % 2])))
        return median(times[short]), median(times[long])


def _answer() -> AssistantMessage:
    return AssistantMessage((Text("y" * RECORD_BYTES),), now(), "demo", "demo", Usage(1_000, 100))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    missed = False
    for name, measured, goal, unit in run():
        missed |= measured > goal
        print(f"{name}: {measured:.2f} {unit} (goal {goal:g}) {'miss' if measured > goal else 'ok'}")
    sys.exit(missed)
