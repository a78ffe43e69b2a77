"""Each benchmark runs, in little; figures are never judged here, where other tests compete for the machine."""

import shutil

import channel
import pytest
import session_log
import startup
from report import Measured


def test_the_startup_benchmark_measures_every_goal() -> None:
    measured = startup.run(rounds=2)
    assert [len(goal.values) for goal in measured] == [2, 2, 2]
    assert all(value > 0 for goal in measured for value in goal.values)


def test_the_session_benchmark_measures_every_goal() -> None:
    measured = session_log.run(rounds=2, records=200)
    assert [len(goal.values) for goal in measured] == [2, 2, 2]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for the program at the other end")
def test_the_channel_benchmark_measures_every_goal() -> None:
    measured = channel.run(rounds=2, calls=50)
    assert measured and all(len(goal.values) == 2 for goal in measured)


def test_a_goal_is_met_by_its_median_and_not_far_missed_by_its_upper_quartile() -> None:
    assert Measured("steady", [1.0, 1.1, 1.2, 1.1], 1.2).line().endswith("ok")
    assert Measured("slow", [1.3, 1.4, 1.5, 1.4], 1.2).line().endswith("miss")
    assert Measured("erratic", [1.0, 1.0, 1.0, 9.0, 9.0], 1.2).line().endswith("miss")
