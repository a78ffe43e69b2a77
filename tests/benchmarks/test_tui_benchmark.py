"""The benchmark of the terminal interface runs, in little; figures are not judged."""

import tui


def test_the_benchmark_of_the_interface_measures_every_goal() -> None:
    measured = tui.run(starts=1, rounds=1, reply=4_000, messages=40, times=20_000)
    held, memory, floods = [1, 1, 1, 1], [1, 1], len(tui.FLOODS)
    assert [len(goal.values) for goal in measured[:7]] == [1, *held, *memory]
    assert len(measured) == 7 + 4 * floods
    assert all(goal.values for goal in measured)
    assert all(value >= 0 for goal in measured if "memory" not in goal.name for value in goal.values)
