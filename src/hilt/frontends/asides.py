"""What a person should read beside the answer: notes and warnings, as lines for stderr."""

import sys

from hilt.frontends.terminal import clean, hanging
from hilt.model.events import Event, ExtensionChanged, Noticed, Notified, QuitAsked
from hilt.model.masking import Mask


def aside(event: Event) -> str:
    """The lines, or nothing when the event is part of what the face shows anyway."""
    match event:
        case Noticed(message=message):
            return f"hilt: {hanging(message)}"
        case Notified(extension=extension, level=level, message=message):
            return signed(f"[{extension}] {level}:", message)
        case QuitAsked(extension=extension):
            return hanging(f"hilt: extension {extension} wants hilt to end; a single prompt is answered first")
        case ExtensionChanged(extension=extension, state="failed", reason=reason):
            return f"hilt: extension {extension} is not running: {hanging(reason)}"
        case ExtensionChanged(extension=extension, state="restarting", reason=reason):
            return f"hilt: extension {extension} {hanging(reason)} and is being restarted"
    return ""


def signed(owner: str, text: str) -> str:
    """Each line with the name of whose words they are."""
    return "\n".join(f"{owner} {line}" for line in text.split("\n"))


class Asides:
    """A sink that writes them to stderr. `notes`, and what extensions want of the face, are left out where somebody
    else shows or decides it."""

    def __init__(self, mask: Mask, *, notes: bool) -> None:
        self._mask = mask
        self._notes = notes

    async def __call__(self, event: Event) -> None:
        if isinstance(event, Notified | QuitAsked) and not self._notes:
            return
        if isinstance(event, Noticed) and event.level == "info":
            return
        if text := aside(event):
            try:
                sys.stderr.write(self._mask.text(clean(text)) + "\n")
                sys.stderr.flush()
            except OSError:
                pass  # nobody reads: it is on stdout too
