"""The benchmark of the terminal interface runs, in little; figures are not judged."""

import tui


def test_the_benchmark_of_the_interface_measures_every_goal() -> None:
    measured = tui.run(starts=1, rounds=1, reply=4_000, messages=40, floods=["panels"], times=20_000)
    *others, _pressed = measured
    assert [len(goal.values) for goal in others] == [1] * 10
    assert all(goal.values for goal in measured)
    assert all(value >= 0 for goal in measured if "memory" not in goal.name for value in goal.values)
