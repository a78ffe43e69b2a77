"""What extensions have on screen beside panels and notes: widgets, overlays, words in the status line, and the image
that goes with the next message.

Owns what is there now, for faces that come later, and takes it away with its owner. Faces are told of it at the pace
of `pacing`. How it looks is up to them.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, TypeVar, assert_never

from hilt.agent.bus import Bus
from hilt.agent.pacing import Pacing
from hilt.errors import HiltError, UsageError
from hilt.model.actions import AttachImage, CloseOverlay, DetachImage, SetStatus, SetWidget, ShowOverlay
from hilt.model.content import Image
from hilt.model.events import ImageAttached, OverlayClosed, OverlayShown, StatusShown, WidgetShown

ScreenAction: TypeAlias = SetWidget | ShowOverlay | CloseOverlay | SetStatus | AttachImage | DetachImage

_Shown = TypeVar("_Shown")
_WIDGETS, _OVERLAYS, _STATUSES = 32, 16, 32
"""Of one owner."""
_WORDS = 1000
"""Characters of a key, a title or a word."""
_CONTENT = 64 * 1024
_IMAGE = 8 * 1024 * 1024
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Screen:
    def __init__(self, bus: Bus) -> None:
        self._pacing = Pacing(bus.emit)
        self._widgets: dict[tuple[str, str], WidgetShown] = {}
        self._overlays: dict[tuple[str, str], OverlayShown] = {}
        self._statuses: dict[tuple[str, str], StatusShown] = {}
        self._image: tuple[str, Image] | None = None

    def running(self) -> AbstractAsyncContextManager[None]:
        """For the life of the block, faces are also told what had to wait because it changes too often."""
        return self._pacing.running()

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
    def attached(self) -> ImageAttached | None:
        """What the next message will carry."""
        return _attached(*self._image) if self._image else None

    async def do(self, action: ScreenAction, source: str) -> None:
        match action:
            case SetWidget(key=key, placement=placement, content=content):
                widget = WidgetShown(source, _brief(key), placement, _whole(content))
                _keep(self._widgets, source, key, widget if content else None, _WIDGETS)
                await self._pacing.tell(("widget", source, key), widget, gone=not content)
            case ShowOverlay(overlay=overlay):
                _brief(overlay.key, overlay.title, overlay.anchor, overlay.width)
                on_top = OverlayShown.of(source, overlay)
                _room(self._overlays, source, overlay.key, _OVERLAYS)
                _whole(overlay.content)
                self._overlays.pop((source, overlay.key), None)  # to come on top
                self._overlays[source, overlay.key] = on_top
                await self._pacing.tell(("overlay", source, overlay.key), on_top, gone=False)
            case CloseOverlay(key=key):
                await self._close(source, key)
            case SetStatus(key=key, text=text):
                word = StatusShown(source, _brief(key), _brief(text))
                _keep(self._statuses, source, key, word if text else None, _STATUSES)
                await self._pacing.tell(("status", source, key), word, gone=not text)
            case AttachImage(data=data, mime_type=mime_type):
                await self._attach(Image(mime_type, data), source)
            case DetachImage():
                await self._detach(source)
            case never:
                assert_never(never)

    async def close_overlay(self, source: str, key: str) -> None:
        """By the user."""
        if (source, key) not in self._overlays:
            raise UsageError(f"{source[:80]!r} has no overlay {key[:80]!r} open")
        await self._close(source, key)

    async def take_image(self) -> tuple[Image, ...]:
        """A message is being sent: what was attached goes with it."""
        if self._image is None:
            return ()
        source, image = self._image
        await self._detach(source)
        return (image,)

    async def bereave(self, source: str) -> None:
        """The owner is gone, and so is what it showed. An image stays: it is the user's by now."""
        for owner, key in [one for one in self._overlays if one[0] == source]:
            await self._close(owner, key)
        for widget in [one for one in self._widgets.values() if one.extension == source]:
            await self.do(SetWidget(widget.key, widget.placement, ""), source)
        for status in [one for one in self._statuses.values() if one.extension == source]:
            await self.do(SetStatus(status.key, ""), source)

    async def _close(self, source: str, key: str) -> None:
        if self._overlays.pop((source, key), None):
            await self._pacing.tell(("overlay", source, key), OverlayClosed(source, key), gone=True)

    async def _attach(self, image: Image, source: str) -> None:
        if self._image:
            await self._detach(source)  # the same key that attaches takes away again
            return
        if len(image.data) > _IMAGE:
            raise HiltError(f"an image of {len(image.data):,} bytes is too large to attach", hint="scale it down")
        if image.mime_type not in _PICTURES:
            raise HiltError(f"no image of the type {image.mime_type[:80]!r} can be sent", hint=", ".join(_PICTURES))
        self._image = (source, image)
        await self._pacing.tell(("image",), _attached(source, image), gone=False)

    async def _detach(self, source: str) -> None:
        if self._image:
            self._image = None
            await self._pacing.tell(("image",), ImageAttached(source), gone=True)


def _attached(source: str, image: Image) -> ImageAttached:
    return ImageAttached(source, image.mime_type, len(image.data))


def _keep(kept: dict[tuple[str, str], _Shown], source: str, key: str, shown: _Shown | None, most: int) -> None:
    if shown is None:
        kept.pop((source, key), None)
    else:
        _room(kept, source, key, most)
        kept[source, key] = shown


def _room(kept: Mapping[tuple[str, str], object], source: str, key: str, most: int) -> None:
    if (source, key) not in kept and sum(owner == source for owner, _ in kept) >= most:
        raise HiltError(f"{source} shows {most} of these already", hint="take one away first, or use its key again")


def _brief(text: str, *more: str) -> str:
    for one in (text, *more):
        _limited(one, _WORDS)
    return text


def _whole(content: str) -> str:
    return _limited(content, _CONTENT)


def _limited(text: str, most: int) -> str:
    if len(text) > most:
        raise HiltError(f"{len(text):,} characters are too many for this place on the screen; {most:,} are the limit")
    return text
