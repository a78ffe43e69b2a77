"""`hilt ext why`: who had a say in a tool call, in what order, what each changed, and how long it took."""

import argparse
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from hilt.authoring.differences import differences, told
from hilt.authoring.values import brief
from hilt.cli.ext.site import Site, Told
from hilt.errors import UsageError
from hilt.frontends.terminal import one_line
from hilt.model.events import Decided
from hilt.sessions.calls import Call, calls_of
from hilt.sessions.log import SessionLog
from hilt.sessions.store import SessionStore

_LISTED = 20
_WIDTH = 100
_CANDIDATES = 5
_BEFORE = {
    "allow": "allowed it",
    "block": "refused it",
    "suppress": "refused it",
    "rewrite": "changed the arguments",
    "replace": "changed it",
    "fail": "gave no verdict",
}
_AFTER = {"allow": "left the result as it was", "replace": "changed the result", "fail": "had no say"}
_INSTEAD = {"allow": "the call went on unchecked", "ask": "the user was asked instead", "block": "the call was refused"}
_GRANTED = {
    "user": "the user",
    "remembered": "an answer the user gave before",
    "policy": "the permission mode",
    "yolo": "the permission mode",
}


def explain(site: Site, options: argparse.Namespace) -> Told:
    store = SessionStore(site.home.sessions)
    paths = [store.find(options.session)] if options.session else list(_paths(store, site))
    if not options.call:
        return _listed(paths, site)
    for path in paths:
        if options.session or _mentions(path, options.call):
            session, calls = _read(path)
            if matching := _matching(calls, options.call, session):
                return _shown(matching, session, path)
    where = f"the session {options.session}" if options.session else "any session"
    raise UsageError(
        f'there is no call "{one_line(options.call, 60)}" in {where}',
        hint="`hilt ext why` lists the last calls; the beginning of an id is enough",
    )


def _paths(store: SessionStore, site: Site) -> Iterator[Path]:
    """The newest of this folder first, then all others."""
    latest = store.latest(str(site.cwd))
    if latest:
        yield latest
    for summary in sorted(store.list(), key=lambda one: one.cwd != str(site.cwd)):
        if summary.path != latest:
            yield summary.path


def _mentions(path: Path, call: str) -> bool:
    """Most sessions are ruled out by their bytes alone."""
    try:
        return os.fsencode(call) in path.read_bytes()
    except OSError:
        return False


def _read(path: Path) -> tuple[str, list[Call]]:
    with SessionLog.open(path, writable=False) as log:
        return log.meta.id, calls_of(log)


def _matching(calls: list[Call], wanted: str, session: str) -> Call | None:
    """The last one of this id, or the one whose id begins with it. Raises `UsageError` when there are several."""
    begun = {call.id: call for call in calls if call.id.startswith(wanted)}
    if wanted in begun or not begun:
        return begun.get(wanted)
    if len(begun) == 1:
        return next(iter(begun.values()))
    few = ", ".join(list(begun)[:_CANDIDATES])
    more = f" and {len(begun) - _CANDIDATES} more" if len(begun) > _CANDIDATES else ""
    message = f'{len(begun)} calls of session {session[:8]} begin with "{one_line(wanted, 60)}": {few}{more}'
    raise UsageError(message, hint="give more of the id")


# The last calls of a session


def _listed(paths: list[Path], site: Site) -> Told:
    if not paths:
        raise UsageError(f"there is no session of {site.cwd}", hint="`hilt sessions list` shows all")
    session, calls = _read(paths[0])
    last = calls[-_LISTED:][::-1]
    rows = [f"{call.id}  {_when(call.time)}  {call.name:<12}  {_summary(call)}" for call in last]
    head = f"session {session[:8]}, the newest call first (`hilt ext why ID` tells more)"
    text = "\n".join([head, *rows]) if rows else f"session {session[:8]} has no tool calls"
    return Told({"session": session, "path": str(paths[0]), "calls": [_plain(call) for call in last]}, text)


def _summary(call: Call) -> str:
    said: list[str] = [call.status or "no result yet"]
    if call.guards:
        said.append(f"asked: {', '.join(dict.fromkeys(one.extension for one in call.guards))}")
    changers = [*(one.extension for one in call.guards if one.decision == "rewrite"), *call.changed_by]
    if changers:
        said.append(f"changed by {', '.join(dict.fromkeys(changers))}")
    return "; ".join(said)


# One call


def _shown(call: Call, session: str, path: Path) -> Told:
    made = f"made for extension {call.by}" if call.by else "made by the model"
    lines = [f"{call.id}: {call.name}, {made}, {_when(call.time)}, session {session[:8]}"]
    if call.args is not None:
        lines.append(f"  arguments: {brief(call.args, _WIDTH)}")
    lines += _guards(call)
    lines.append(f"  permission: {_permission(call)}")
    lines += _result(call)
    return Told({"session": session, "path": str(path), **_plain(call)}, "\n".join(lines))


def _guards(call: Call) -> list[str]:
    if not call.guards:
        return ["  before: no extension was asked"]
    lines = [f"  before: {call.outcome}"]
    for number, (decided, changes) in enumerate(_steps(call), 1):
        lines.append(f"    {number}. {_decision(decided, _BEFORE)}")
        lines += [f"         {line}" for line in changes]
    return lines


def _steps(call: Call) -> Iterator[tuple[Decided, list[str]]]:
    """Each with what it changed of what the one before had left."""
    args: Any = None if call.by else call.args  # of the others' calls only the last arguments are on record
    for decided in call.guards:
        changes: list[str] = []
        if decided.decision == "rewrite":
            before = {} if args is None else args
            changes = [line for one in differences(before, decided.changed) for line in told(one)]
            args = decided.changed
        yield decided, changes


def _decision(decided: Decided, words: dict[str, str]) -> str:
    said = f"{decided.extension} {words.get(decided.decision, decided.decision)} ({decided.ms:.3g} ms)"
    if decided.reason:
        said += f": {one_line(decided.reason, 300)}"
    return f"{said}; {_INSTEAD[decided.applied]}" if decided.applied else said


def _permission(call: Call) -> str:
    decided = call.permission
    if decided is None:
        return "not a question: it was refused before" if call.outcome == "blocked" else "not asked for"
    verb = "given" if decided.approved else "refused"
    return f"{verb} by {_GRANTED[decided.source]}" + (f": {one_line(decided.reason, 300)}" if decided.reason else "")


def _result(call: Call) -> list[str]:
    if call.result is None:
        return ["  result: there is none"]
    lines = []
    if call.reviews:
        lines = ["  after:", *(f"    {n}. {_decision(one, _AFTER)}" for n, one in enumerate(call.reviews, 1))]
    elif call.changed_by:  # recorded by an older version
        lines = [f"  after: changed by {', '.join(call.changed_by)}"]
    if call.original is not None:
        changed = differences(call.original, call.result)
        lines += [f"         {line}" for one in changed for line in told(one)]
    return [*lines, f"  result: {call.status or 'unknown'}: {one_line(call.result, _WIDTH) or '(empty)'}"]


def _plain(call: Call) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(call)
    return plain


def _when(time: str) -> str:
    try:
        return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return "at an unknown time"
