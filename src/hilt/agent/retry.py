"""When to ask a failing service again."""

from msgspec import Struct

from hilt.errors import RateLimited, Unavailable


class RetryPolicy(Struct, frozen=True):
    attempts: int = 6
    """Calls in all, the first one included."""
    base: float = 0.5
    """Seconds before the second call; doubled each time."""
    cap: float = 20.0
    patience: float = 120.0
    """The longest Retry-After worth waiting for; beyond it the failure is reported at once."""

    def delay(self, attempt: int, error: RateLimited | Unavailable) -> float | None:
        """Seconds to wait after the attempt-th failure, or None to give up."""
        if attempt >= self.attempts:
            return None
        import random  # 1 ms, and most runs never fail

        if error.retry_after is not None:
            if error.retry_after > self.patience:
                return None
            # Never sooner than asked; a little later, so that many clients do not return together.
            return error.retry_after + random.uniform(0, 0.1 * self.base)
        return min(self.cap, self.base * 2.0 ** (attempt - 1)) * random.uniform(0.75, 1.0)
