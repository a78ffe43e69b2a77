"""One line per goal: its name, what was measured, the goal, and whether it is met."""

from dataclasses import dataclass
from statistics import quantiles

SPREAD = 1.15
"""How far the upper quartile may lie above a goal that the median meets."""


@dataclass(frozen=True)
class Measured:
    name: str
    values: list[float]
    """One per round, as ratios or in the unit named."""
    goal: float
    unit: str = "×"

    def line(self) -> str:
        low, median, high = quantiles(self.values, n=4) if len(self.values) > 1 else [self.values[0]] * 3
        met = median <= self.goal and high <= self.goal * SPREAD
        return (
            f"{self.name:<58} {median:8.2f} {self.unit:<2} [{low:.2f}–{high:.2f}]"
            f"  goal ≤ {self.goal:g} {self.unit:<2}  {'ok' if met else 'miss'}"
        )
