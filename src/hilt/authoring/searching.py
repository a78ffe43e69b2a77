"""A search for a regular expression that ends: one that tries ever more ways is broken off.

The expressions are an author's, and the texts come from an extension. Together they may take longer than anyone lives.
"""

import re
import signal
import threading
from functools import lru_cache
from typing import NoReturn

from hilt.authoring.values import clipped
from hilt.errors import Departure

_PATIENCE = 2.0
"""Seconds for one search; a healthy one takes a fraction of one."""


@lru_cache(maxsize=256)
def compiled(expression: str) -> re.Pattern[str]:
    """Raises `re.error`."""
    return re.compile(expression)


def found(expression: str, text: str) -> bool:
    """Whether it is in the text. Raises `Departure` when that does not come out in time."""
    if threading.current_thread() is not threading.main_thread():
        return compiled(expression).search(text) is not None  # no signal comes here that could break it off
    handler = signal.signal(signal.SIGALRM, _break_off)
    timer = signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        return compiled(expression).search(text) is not None
    except _BrokenOff:
        what = f"$regex {clipped(repr(expression))} was not through with {clipped(repr(text))} after {_PATIENCE:g} s"
        raise Departure(what, hint="write it without a repetition of repetitions, such as (a+)+") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


class _BrokenOff(Exception):
    pass


def _break_off(*_: object) -> NoReturn:
    raise _BrokenOff
