"""The lines a client of `hilt rpc` may send, as typed values."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from hilt.agent.questions import Reply
from hilt.model.content import Image


class Envelope(Struct, frozen=True):
    """What every line has."""

    type: str
    id: str | None = None


class Nothing(Struct, frozen=True):
    """For commands without fields."""


class Hello(Struct, frozen=True):
    token: str = ""


class ImageData(Struct, frozen=True):
    mime_type: str
    data: bytes


class PromptRequest(Struct, frozen=True):
    message: str
    images: list[ImageData] = field(default_factory=list)

    def blocks(self) -> tuple[Image, ...]:
        return tuple(Image(image.mime_type, image.data) for image in self.images)


class InputRequest(Struct, frozen=True):
    text: str
    deliver: Literal["queue", "steer"] = "queue"


class SetModel(Struct, frozen=True):
    model: str


class CommandRequest(Struct, frozen=True):
    name: str
    args: str = ""


class ShortcutRequest(Struct, frozen=True):
    key: str


class ReloadRequest(Struct, frozen=True):
    name: str = ""
    """All of them when empty."""


class PanelRequest(Struct, frozen=True, kw_only=True):
    panel_id: str
    extension: str = ""
    """Whose it is; without it, that panel of this id which last had the focus."""


class PanelKeyRequest(PanelRequest, frozen=True, kw_only=True):
    key: str
    text: str = ""


class PanelResizeRequest(PanelRequest, frozen=True, kw_only=True):
    width: Annotated[int, Meta(ge=1, le=10_000)]
    height: Annotated[int, Meta(ge=1, le=10_000)]


class SessionsRequest(Struct, frozen=True):
    all: bool = False
    """Those of every directory, not only of this one."""


class OverlayRequest(Struct, frozen=True):
    extension: str
    key: str


class HostRequest(Struct, frozen=True):
    method: str
    params: Raw = Raw(b"{}")


class UiResponse(Reply, frozen=True, kw_only=True):
    id: str
