"""Checks a host: plays the golden conversations to it, one after the other, as the extension."""

import json
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from hilt.authoring.player import Opener, play
from hilt.authoring.transcripts import Conversation, folder, paths, read
from hilt.errors import HiltError


class Heard(Struct, frozen=True):
    """One conversation, and how the host took it."""

    name: str
    about: str
    needs: tuple[str, ...]
    state: str
    """`passed`, `failed`, or `left out` for what the host does not have."""
    seconds: float = 0.0
    message: str = ""


async def check_host(open_host: Opener, without: Collection[str], only: Collection[str] = ()) -> AsyncIterator[Heard]:
    """Each as it is done. `without` are needs that the host does not have."""
    for path in paths():
        name = str(path.relative_to(folder()).with_suffix(""))
        if only and not any(word in name for word in only):
            continue
        conversation = read(path)
        if lacking := set(conversation.needs) & set(without):
            reason = f"needs {', '.join(sorted(lacking))}"
            yield Heard(name, conversation.about, conversation.needs, "left out", 0.0, reason)
        else:
            yield await _play(name, conversation, open_host)


def needs() -> set[str]:
    """All that some conversation needs; the first line of each says it."""
    return {need for path in paths() for need in json.loads(path.read_bytes().partition(b"\n")[0])["needs"]}


async def _play(name: str, conversation: Conversation, open_host: Opener) -> Heard:
    began, message = time.monotonic(), ""
    with (
        TemporaryDirectory(prefix="hilt-host-", ignore_cleanup_errors=True) as scratch,
        TemporaryDirectory(prefix="p-") as sockets,
    ):
        try:
            await play(conversation, Path(scratch), open_host, Path(sockets))
        except HiltError as error:
            message = error.message
    seconds, state = time.monotonic() - began, "failed" if message else "passed"
    return Heard(name, conversation.about, conversation.needs, state, seconds, message)
