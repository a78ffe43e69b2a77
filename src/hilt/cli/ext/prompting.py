"""The agent with one extension: with which flags hilt is run by the verbs that need a model to talk to it."""

import argparse
import os

from hilt.cli.flags import parse
from hilt.packages.discovery import Found
from hilt.packages.finder import ONLY


def flags_with(
    found: Found, *more: str, provider: str = "", script: str = "", others: bool = False
) -> argparse.Namespace:
    """Those that run it without a session, with the demo model or the replies in the file `script`.

    `others`: with what else is installed, too. Otherwise this process runs no other installed one from here on.
    """
    model = ["--provider", provider or ("script" if script else "demo")]
    if script:
        model += ["--script", script]
    which: list[str] = []
    if found.source == "flag":
        which = ["--ext", str(found.where), *([] if others else ["--no-ext"])]
    elif not others:
        # One that is installed runs as it is installed, with what was granted to it.
        os.environ[ONLY] = found.name
    return parse(["--no-session", *model, *which, *more])
