"""One extension by itself, in a real host without a model: what a verb needs to try one thing with it."""

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from hilt.cli.ext.picking import Only
from hilt.cli.ext.site import Site
from hilt.embedding.host import ExtensionHost
from hilt.errors import ExtensionStartError
from hilt.frontends.asides import aside, signed
from hilt.frontends.terminal import clean
from hilt.model.content import text_of
from hilt.model.events import (
    Displayed,
    Event,
    Inserted,
    OverlayShown,
    PanelShown,
    PromptSubmitted,
    StatusShown,
    WidgetShown,
)
from hilt.model.extensions import ExtensionStatus
from hilt.model.masking import Mask
from hilt.packages.discovery import log_name
from hilt.packages.members import read_file
from hilt.providers.credentials import Credentials

PATIENCE = 130.0
"""Seconds; a manifest may ask for 120 to start in."""
_TAIL = 10
_KEPT = 1000
_LARGEST = 16 * 1024 * 1024


class Alone(Struct, frozen=True):
    host: ExtensionHost
    name: str
    mask: Mask
    events: deque[Event]
    """What it wanted shown, or said, so far; the latest of very many."""

    def say(self, text: str) -> None:
        """Beside the answer, as it comes."""
        sys.stderr.write(self.mask.text(clean(text)) + "\n")
        sys.stderr.flush()


@asynccontextmanager
async def alone(site: Site, one: Only, show: Callable[[Event], bool]) -> AsyncIterator[Alone]:
    """It is ready when the block begins. What `show` does not want for itself is said on stderr.

    Raises `ExtensionStartError` when it does not start.
    """
    mask = Mask(Credentials(site.home.auth).all_secrets())
    it: Alone | None = None
    events: deque[Event] = deque(maxlen=_KEPT)

    def listen(event: Event) -> None:
        if shown(event) is not None:
            events.append(event)
        if it and not show(event) and (text := shown(event)):
            it.say(text)

    async with ExtensionHost.open(finds=one, cwd=site.cwd, home=site.home.root, on_event=listen, wait=PATIENCE) as host:
        it = Alone(host, one.found.name, mask, events)
        for status in host.statuses():
            if status.state != "ready":
                raise ExtensionStartError(status.name, _why(status), hint=_tail(site, status.name))
        for event in tuple(events):
            if not show(event) and (text := shown(event)):
                it.say(text)  # what came while it started
        yield it


def shown(event: Event) -> str | None:
    """What an extension wants people to see, as text; None when it is nothing of the kind."""
    match event:
        case Displayed(extension=extension, text=text):
            return signed(f"[{extension}]", text)
        case PanelShown(extension=extension):
            return signed(f"[{extension}]", panel_text(event))
        case OverlayShown(extension=extension, title=title, content=content):
            return signed(f"[{extension}]", "\n".join(filter(None, (title, content))))
        case WidgetShown(extension=extension, content=text) | StatusShown(extension=extension, text=text):
            return signed(f"[{extension}]", text) if text else ""
        case Inserted(extension=extension, text=text):
            return signed(f"[{extension}] for your input:", text)
        case PromptSubmitted(extension=extension, content=content):
            return signed(f"[{extension}] for the model:", text_of(content))
    return aside(event) or None


def panel_text(event: PanelShown) -> str:
    """There are no keys to press, but its lines can be read."""
    return "\n".join(filter(None, (event.title, *event.lines, event.footer)))


def _why(status: ExtensionStatus) -> str:
    return f"{status.name} is {status.state}: {status.reason}" if status.reason else f"{status.name} is {status.state}"


def _tail(site: Site, name: str) -> str:
    path = site.home.logs / log_name(name)
    if not path.is_file():
        return ""
    lines = read_file(path, _LARGEST, "a log").decode("utf-8", "replace").rstrip("\n").split("\n")[-_TAIL:]
    return "\n".join((f"the end of its log, {path}:", *lines))
