"""The README's programs run as they stand, and the benchmark measures its goals."""

import subprocess
import sys
from pathlib import Path

import pytest
import sdk_python

SDK = Path(__file__).resolve().parents[1]
PROGRAMS = [part.split("```")[0] for part in (SDK / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_readme_runs(program: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SDK / "src")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_benchmark_measures_every_goal() -> None:
    measured = sdk_python.run(rounds=2, calls=20)
    assert [len(goal.values) for goal in measured] == [2, 2, 2]
