"""What extensions have on screen beside panels and notes: widgets, overlays, words in the status line, and the image
that goes with the next message.

Owns what is there now, for faces that come later, and takes it away with its owner. How it looks is up to the faces.
"""

from typing import TypeAlias, TypeVar, assert_never

from hilt.agent.bus import Bus
from hilt.errors import HiltError
from hilt.model.actions import AttachImage, CloseOverlay, DetachImage, SetStatus, SetWidget, ShowOverlay
from hilt.model.content import Image
from hilt.model.events import ImageAttached, OverlayClosed, OverlayShown, StatusShown, WidgetShown

ScreenAction: TypeAlias = SetWidget | ShowOverlay | CloseOverlay | SetStatus | AttachImage | DetachImage

_Shown = TypeVar("_Shown")
_WIDGETS, _OVERLAYS, _STATUSES = 32, 16, 32
"""Of one owner."""
_CONTENT = 64 * 1024
_IMAGE = 8 * 1024 * 1024


class Screen:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._widgets: dict[tuple[str, str], WidgetShown] = {}
        self._overlays: dict[tuple[str, str], OverlayShown] = {}
        self._statuses: dict[tuple[str, str], StatusShown] = {}
        self._image: tuple[str, Image] | None = None

    @property
    def widgets(self) -> tuple[WidgetShown, ...]:
        """In the order in which they were first shown."""
        return tuple(self._widgets.values())

    @property
    def overlays(self) -> tuple[OverlayShown, ...]:
        """The one on top last."""
        return tuple(self._overlays.values())

    @property
    def statuses(self) -> tuple[StatusShown, ...]:
        return tuple(self._statuses.values())

    @property
    def image(self) -> Image | None:
        """What the next message will carry."""
        return self._image[1] if self._image else None

    async def do(self, action: ScreenAction, source: str) -> None:
        match action:
            case SetWidget(key=key, placement=placement, content=content):
                shown = WidgetShown(source, key, placement, _whole(content))
                _keep(self._widgets, source, key, shown if content else None, _WIDGETS)
                await self._bus.emit(shown)
            case ShowOverlay(overlay=overlay):
                _whole(overlay.content)
                self._overlays.pop((source, overlay.key), None)  # to come on top
                on_top = OverlayShown.of(source, overlay)
                _keep(self._overlays, source, overlay.key, on_top, _OVERLAYS)
                await self._bus.emit(on_top)
            case CloseOverlay(key=key):
                await self.close_overlay(source, key)
            case SetStatus(key=key, text=text):
                word = StatusShown(source, key, _whole(text))
                _keep(self._statuses, source, key, word if text else None, _STATUSES)
                await self._bus.emit(word)
            case AttachImage(data=data, mime_type=mime_type):
                await self._attach(Image(mime_type, data), source)
            case DetachImage():
                await self._detach(source)
            case never:
                assert_never(never)

    async def close_overlay(self, source: str, key: str) -> None:
        """By its owner, or by the user."""
        if self._overlays.pop((source, key), None):
            await self._bus.emit(OverlayClosed(source, key))

    async def take_image(self) -> tuple[Image, ...]:
        """A message is being sent: what was attached goes with it."""
        if self._image is None:
            return ()
        source, image = self._image
        await self._detach(source)
        return (image,)

    async def bereave(self, source: str) -> None:
        """The owner is gone, and so is what it showed."""
        for owner, key in [one for one in self._overlays if one[0] == source]:
            await self.close_overlay(owner, key)
        for widget in [one for one in self._widgets.values() if one.extension == source]:
            await self.do(SetWidget(widget.key, widget.placement, ""), source)
        for status in [one for one in self._statuses.values() if one.extension == source]:
            await self.do(SetStatus(status.key, ""), source)

    async def _attach(self, image: Image, source: str) -> None:
        if self._image:
            await self._detach(source)  # the same key that attaches takes away again
            return
        if len(image.data) > _IMAGE:
            raise HiltError(f"an image of {len(image.data):,} bytes is too large to attach", hint="scale it down")
        self._image = (source, image)
        await self._bus.emit(ImageAttached(source, image.mime_type, len(image.data)))

    async def _detach(self, source: str) -> None:
        if self._image:
            self._image = None
            await self._bus.emit(ImageAttached(source))


def _keep(kept: dict[tuple[str, str], _Shown], source: str, key: str, shown: _Shown | None, most: int) -> None:
    if shown is None:
        kept.pop((source, key), None)
    elif (source, key) not in kept and sum(owner == source for owner, _ in kept) >= most:
        raise HiltError(f"{source} shows {most} of these already", hint="take one away first, or use its key again")
    else:
        kept[source, key] = shown


def _whole(content: str) -> str:
    if len(content) > _CONTENT:
        raise HiltError(f"{len(content):,} characters are too many for the screen; {_CONTENT:,} are the limit")
    return content
