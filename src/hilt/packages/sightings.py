"""How each extension was when it last ran, so that it can be told without starting it: `seen.json` in hilt's home."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hilt.errors import HiltError
from hilt.model.extensions import ExtensionStatus
from hilt.packages import keeping

_LARGEST = 8 * 1024 * 1024
_MOST = 500
"""Extensions; the longest unseen are forgotten."""


class Sighting(Struct, frozen=True):
    version: str = ""
    state: str = ""
    reason: str = ""
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    mistakes: int = 0
    restarts: int = 0
    start_ms: int | None = None
    time: str = ""
    tokens_used: int = 0
    also: tuple[str, ...] = ()


def sightings(path: Path) -> Mapping[str, Sighting]:
    """By `known_as`. A file that cannot be read tells nothing: it holds nothing that could not be seen again."""
    try:
        return msgspec.json.decode(keeping.read(path, _LARGEST) or b"{}", type=dict[str, Sighting])
    except (HiltError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def remember(path: Path, statuses: Iterable[ExtensionStatus]) -> None:
    """Raises `PackageError`."""
    running = [status for status in statuses if status.state not in ("disabled", "untrusted")]
    seen = {known_as(status.name, status.source, status.directory): _sighting(status) for status in running}
    if not seen:
        return
    with keeping.alone(path):
        known = dict(sightings(path))
        if all(_same(known.get(name), one) for name, one in seen.items()):
            return  # nothing new: most runs end here
        merged = sorted((known | seen).items(), key=lambda item: item[1].time, reverse=True)
        keeping.replace(path, msgspec.json.encode(dict(merged[:_MOST])))


def known_as(name: str, source: str, directory: str) -> str:
    """Two of one name that came with different projects are not the same."""
    return f"{name} {directory}" if source == "project" else name


def _sighting(status: ExtensionStatus) -> Sighting:
    # Stopped by us at the end of a run that went well.
    state = "ready" if status.state == "stopped" else status.state
    return Sighting(
        status.version,
        state,
        status.reason,
        status.tools,
        status.commands,
        status.guards,
        status.mistakes,
        status.restarts,
        status.start_ms,
        datetime.now(UTC).isoformat(timespec="seconds"),
        status.tokens_used,
        status.also,
    )


def _same(before: Sighting | None, now: Sighting) -> bool:
    """But for when it was, and how long it took to start, unless that is quite another time."""
    if before is None:
        return False
    close = abs((before.start_ms or 0) - (now.start_ms or 0)) < max(100, (before.start_ms or 0) // 2)
    steady = msgspec.structs.replace(now, time=before.time, start_ms=before.start_ms)
    return close and steady == before
