"""What the system says of a process and its children, and whether that adds up over time."""

import itertools
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_PAIRED = 400


@dataclass(frozen=True)
class Sample:
    turn: int
    life: int
    """Which process of hilt."""
    rss: float
    peak: float
    """Megabytes."""
    fds: int
    threads: int
    children: int
    zombies: int
    log: float

    HEAD = "  turn life   rss MB  peak MB   fds threads children zombies  log MB"

    def __str__(self) -> str:
        memory = f"{self.turn:>6} {self.life:>4} {self.rss:>8.1f} {self.peak:>8.1f}"
        return f"{memory} {self.fds:>5} {self.threads:>7} {self.children:>8} {self.zombies:>7} {self.log:>7.1f}"


def look(process: int, turn: int, life: int, logs: Path) -> Sample:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    states = [state for _, _, state in children(process)]
    return Sample(
        turn,
        life,
        int(status["VmRSS"].split()[0]) / 1024,
        int(status["VmHWM"].split()[0]) / 1024,
        len(os.listdir(f"/proc/{process}/fd")),
        int(status["Threads"]),
        len(states),
        states.count("Z"),
        sum(file.stat().st_size for file in logs.glob("*")) / 2**20,
    )


def children(process: int) -> list[tuple[int, str, str]]:
    """Pid, time of birth and state of each."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process:
                found.append((int(entry), fields[19], fields[0]))
    return found


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def longest_life(samples: Sequence[Sample]) -> list[Sample]:
    lives = [list(group) for _, group in itertools.groupby(samples, key=lambda sample: sample.life)]
    return max(lives, key=len, default=[])


def rise(samples: Sequence[Sample]) -> float:
    """Megabytes per thousand turns, the first fifth left out: the median of what any two samples say.

    A least-squares line would follow every leap of the allocator; this one follows what happens all the time.
    """
    steady = samples[len(samples) // 5 :: len(samples) // _MOST_PAIRED + 1]
    slopes = [(b.rss - a.rss) / (b.turn - a.turn) for a, b in itertools.combinations(steady, 2) if b.turn > a.turn]
    return 1000 * statistics.median(slopes) if slopes else 0.0
