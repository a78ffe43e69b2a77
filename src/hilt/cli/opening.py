"""Which session a run goes on with: a new one, the last one, a picked one, or none on disk."""

import argparse
import sys
from pathlib import Path

from hilt.errors import UsageError
from hilt.frontends.terminal import clean, one_line
from hilt.model.masking import Mask
from hilt.model.models import ModelInfo
from hilt.sessions.disk import Durability
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta
from hilt.sessions.store import SessionStore

_LISTED = 20


def existing_log(
    options: argparse.Namespace, store: SessionStore, cwd: Path, mask: Mask, durability: Durability
) -> SessionLog | None:
    """The session the flags ask for, or None when this run begins one."""
    path = _existing(options, store, cwd)
    return SessionLog.open(path, mask=mask, durability=durability) if path else None


def new_log(
    options: argparse.Namespace, store: SessionStore, cwd: Path, model: ModelInfo, mask: Mask, durability: Durability
) -> SessionLog:
    meta = new_meta(str(cwd), model.provider, model.id)
    if options.no_session:
        return SessionLog.in_memory(meta, mask=mask)
    return SessionLog.create(store.new_path(cwd, meta.id), meta, mask=mask, durability=durability)


def _existing(options: argparse.Namespace, store: SessionStore, cwd: Path) -> Path | None:
    if options.session:
        return store.find(options.session)
    if options.continue_:
        latest = store.latest(str(cwd))
        if latest is None:
            sys.stderr.write("hilt: there is no session of this directory yet; this is the first\n")
        return latest
    return None


def pick(store: SessionStore, cwd: Path) -> Path:
    """Let the user choose from a list. Blocks on stdin, so it is done before the event loop owns Ctrl-C."""
    every = store.list(str(cwd))
    found = every[:_LISTED]
    if not found:
        raise UsageError("there is no session of this directory to resume", hint="leave out -r to begin one")
    for number, summary in enumerate(found, 1):
        title = one_line(summary.title, 80)
        sys.stderr.write(clean(f"{number:3}  {summary.updated.astimezone():%Y-%m-%d %H:%M}  {title}\n"))
    if len(every) > len(found):
        sys.stderr.write(clean(f"     … and {len(every) - len(found)} older ones: hilt sessions list --here\n"))
    sys.stderr.write("pick #: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not answer.isdigit() or not 1 <= int(answer) <= len(found):
        raise UsageError(
            f"{answer!r} is not a number from 1 to {len(found)}", hint="or name a session with --session ID"
        )
    return found[int(answer) - 1].path
