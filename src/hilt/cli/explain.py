"""Turning what went wrong into words for a person, and an exit code."""

import sys

from hilt.errors import HiltError, UsageError


def explain(error: Exception) -> int:
    while isinstance(error, ExceptionGroup):  # a task group wraps what happened inside it
        error = error.exceptions[0]
    if isinstance(error, HiltError):
        _say("hilt: error: ", error.message, error.hint)
        return 2 if isinstance(error, UsageError) else 1
    admit("internal error", error)
    return 1


def admit(what: str, error: BaseException) -> None:
    """A mistake of ours: say so, and keep what is needed to find it."""
    import logging

    if not logging.getLogger().handlers:  # it failed before there was a log, or in a verb that needs none
        from hilt.cli.logfile import log_to
        from hilt.home import Home
        from hilt.model.masking import Mask

        log_to(Home.find().log, Mask())
    logging.getLogger("hilt").error("%s", what, exc_info=error)
    _say(
        f"hilt: {what}: ",
        f"{type(error).__name__}: {error}",
        "this is a bug in hilt; the details are in logs/hilt.log in its home directory",
    )


def _say(what: str, message: str, hint: str) -> None:
    from hilt.frontends.terminal import clean, hanging  # re, which most successful runs never need here

    text = f"{what}{hanging(message)}\n" + (f"hint: {hanging(hint)}\n" if hint else "")
    try:
        sys.stderr.write(clean(text))
    except OSError:
        pass  # nobody reads: the exit code still tells
