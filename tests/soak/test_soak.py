"""The soak itself, short: all of it happens at least once, and what it computes is right."""

import subprocess
import sys
from pathlib import Path

import pytest

from soak.looking import Sample, longest_life, rise

TESTS = Path(__file__).parent.parent
SHORT = {
    "--turns": 60,
    "--rate": 240,
    "--extensions": 8,
    "--restarts": 3,
    "--rest": 15,
    "--crash-every": 1,
    "--reload-every": 2,
    "--fault-every": 2,
    "--patience": 5,  # other tests run beside it
}


@pytest.mark.timeout(180)
@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_a_few_minutes_of_a_day_leave_nothing_behind_and_lose_nothing() -> None:
    arguments = [str(word) for pair in SHORT.items() for word in pair]
    command = [sys.executable, "-m", "soak.soak", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n") and "turns 60  lives 4" in done.stdout
    for kind in ("crash", "reload", "hang", "flood", "bigline", "daemon"):
        assert f"'{kind}'" in done.stdout


def sample(turn: int, rss: float, life: int = 1) -> Sample:
    return Sample(turn, life, rss, rss, fds=1, threads=1, children=0, zombies=0, log=0.0)


def test_a_rise_is_measured_after_the_first_fifth_and_no_single_leap_moves_it() -> None:
    warming = [sample(turn, 10 + turn) for turn in range(20)]
    steady = [sample(turn, 100 + turn * 0.003) for turn in range(20, 100)]
    assert rise([*warming, *steady]) == pytest.approx(3.0)
    leaping = [sample(turn, 50.0 + 8 * (turn > 80)) for turn in range(100)]
    assert rise(leaping) == 0
    assert rise([sample(0, 50.0)]) == 0


def test_the_longest_life_counts() -> None:
    lives = [sample(turn, 1.0, life) for life, turns in ((1, 3), (2, 9), (3, 5)) for turn in range(turns)]
    assert {one.life for one in longest_life(lives)} == {2}
    assert longest_life([]) == []
