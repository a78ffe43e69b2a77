"""Leaving alone, for a while, what has failed several times in a row."""

import time
from collections.abc import Callable


class Breaker:
    def __init__(self, failures: int = 3, rest: float = 300.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = failures
        self.rest = rest
        self._clock = clock
        self._failed = 0
        self._until = 0.0

    @property
    def open(self) -> bool:
        """Whether it is to be left alone now."""
        return self._clock() < self._until

    def failed(self) -> bool:
        """True when this failure was one too many."""
        self._failed += 1
        if self._failed < self.failures:
            return False
        self._failed = 0
        self._until = self._clock() + self.rest
        return True

    def succeeded(self) -> None:
        self._failed = 0
        self._until = 0.0
