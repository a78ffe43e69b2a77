"""What the answer to an event or a shortcut asks the agent to do."""

from hilt.errors import FrameError
from hilt.model.actions import Action, AttachImage, DetachImage, Display, Notify, Quit, Rename, SendMessage, SetStatus
from hilt.model.content import Text
from hilt.model.extensions import NoteLevel
from hilt.wire import jsonrpc_types as t
from hilt.wire.jsonrpc_reading import shaped
from hilt.wire.results import image_of

_LEVELS: dict[str, NoteLevel] = {"": "info", "info": "info", "success": "success", "warn": "warn", "error": "error"}


class _Title(t.Part, frozen=True):
    title: str = ""


class _Picture(t.Part, frozen=True):
    data: str = ""
    mime_type: str = ""


def note_level(said: str) -> NoteLevel:
    """A level nobody knows is worth no more than an empty one."""
    return _LEVELS.get(said.casefold(), "info")


def action(asked: t.Action | None) -> Action | None:
    """None for nothing, and for a kind nobody knows. Raises `FrameError` for a payload that cannot be used."""
    if asked is None:
        return None
    try:
        return _action(asked)
    except FrameError as error:
        raise FrameError(f"action {asked.type}: {error.message}") from None


def _action(asked: t.Action) -> Action | None:
    match asked.type:
        case "notify":
            note = shaped(asked.payload, t.Notify)
            return Notify(note_level(note.level), note.message)
        case "showMessage":
            text = shaped(asked.payload, t.ShowMessage).text
            return Display(text) if text else None
        case "setSessionTitle":
            title = shaped(asked.payload, _Title).title
            return Rename(title) if title else None
        case "setStatus":
            status = shaped(asked.payload, t.SetStatus)
            return SetStatus(status.key, status.text)
        case "sendMessage":
            text = shaped(asked.payload, t.SendMessage).content
            return SendMessage(text) if text else None
        case "attachImage":
            return _attached(shaped(asked.payload, _Picture))
        case "detachImage":
            return DetachImage()
        case "quit":
            return Quit()
    return None


def _attached(picture: _Picture) -> AttachImage:
    image = image_of(picture.mime_type, picture.data, "it")
    if isinstance(image, Text):
        raise FrameError(image.text)
    return AttachImage(image.data, image.mime_type)
