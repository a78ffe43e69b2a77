"""`hilt ext bisect`: which extension causes a problem, by running with ever fewer of them.

Nothing about them is changed: each run is told by a variable of its environment which may run.
"""

import argparse
import os
import shlex
import subprocess
import sys
from typing import Any

import msgspec

from hilt.authoring.bisect import Bisected, Names, Outcome, Run, bisect
from hilt.cli.ext.site import Site, Told
from hilt.errors import UsageError
from hilt.frontends.terminal import clean
from hilt.packages.finder import ONLY

_SKIP = 125
_INTERRUPTED = 130
_WORDS: dict[str, Outcome] = {
    "y": "bad",
    "yes": "bad",
    "bad": "bad",
    "n": "good",
    "no": "good",
    "good": "good",
    "s": "skip",
    "skip": "skip",
}


def bisect_enabled(site: Site, options: argparse.Namespace) -> Told:
    names = tuple(one.name for one in site.finder().all().found)
    if not names:
        raise UsageError("no extension is enabled here", hint="`hilt ext list` shows why; --ext is not looked at")
    if not options.command and not sys.stdin.isatty():
        raise UsageError(
            "there is nobody to ask whether it is bad",
            hint="give a command that tells: `hilt ext bisect -- COMMAND`",
        )
    attempt = _Command(options.command, len(names)) if options.command else _Person(len(names))
    try:
        found = bisect(names, attempt)
    except _Left:
        value: dict[str, Any] = {"verdict": "stopped", "culprits": [], "extensions": names, "runs": attempt.runs}
        return Told(msgspec.to_builtins(value), "stopped; nothing was changed", _INTERRUPTED)
    value = {"verdict": found.verdict, "culprits": found.culprits, "extensions": names, "runs": found.runs}
    return Told(msgspec.to_builtins(value), _text(found), 0 if found.culprits else 1)


class _Left(Exception):
    """Somebody does not want to go on."""


class _Attempt:
    def __init__(self, all_: int) -> None:
        self._all = all_
        self.runs: list[Run] = []

    def __call__(self, names: Names) -> Outcome:
        _say(f"{len(self.runs) + 1}. with {_few(names)} ({len(names)} of {self._all})")
        outcome = self.outcome(names)
        self.runs.append(Run(names, outcome))
        _say(f"   {outcome}")
        return outcome

    def outcome(self, names: Names) -> Outcome:
        raise NotImplementedError


class _Command(_Attempt):
    def __init__(self, command: list[str], all_: int) -> None:
        super().__init__(all_)
        self._command = command

    def outcome(self, names: Names) -> Outcome:
        """What it prints goes to stderr, where the rest of the progress is."""
        try:
            done = subprocess.run(
                self._command, env={**os.environ, ONLY: ",".join(names)}, stdout=sys.stderr.fileno(), check=False
            )
        except OSError as error:
            message = f"{self._command[0]}: {error.strerror}"
            raise UsageError(message, hint="name a program, its arguments behind it; quote no whole line") from error
        if done.returncode in (_INTERRUPTED, -2):
            raise _Left
        return "good" if done.returncode == 0 else "skip" if done.returncode == _SKIP else "bad"


class _Person(_Attempt):
    def outcome(self, names: Names) -> Outcome:
        _say(f"   try in another terminal: {ONLY}={shlex.quote(','.join(names))} hilt")
        while True:
            sys.stderr.write("   is it still bad? yes, no, skip or quit: ")
            sys.stderr.flush()
            word = sys.stdin.readline()
            if not word or word.strip().lower() in ("q", "quit"):
                raise _Left
            if outcome := _WORDS.get(word.strip().lower()):
                return outcome


def _text(found: Bisected) -> str:
    match found.verdict:
        case "not_bad":
            return "it is not bad with all extensions that are enabled, so none of them can be found to cause it"
        case "always_bad":
            return "it is bad without any extension, too: the cause is elsewhere"
        case "unclear":
            return "with all extensions, or with none, it could not be told whether it is bad"
    if found.verdict == "found":
        [name] = found.culprits
        return f"{name} causes it\n`hilt ext disable {name}` switches it off, `hilt ext logs {name}` shows its log"
    if found.skipped:
        return f"it takes no more than {_few(found.culprits)} together; what was skipped may hide that fewer are enough"
    return f"it takes {_few(found.culprits)} together: without any one of them it is good"


def _few(names: Names) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or "none"


def _say(text: str) -> None:
    sys.stderr.write(clean(f"{text}\n"))
    sys.stderr.flush()
