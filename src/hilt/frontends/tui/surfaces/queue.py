"""What goes with, or after, what is typed: messages that wait for the turn to end, an attached image, and who wrote
into the input."""

from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.wrapping import clip, wrap
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.surface import Surface
from hilt.model.events import ImageAttached

_WAITING = 3
"""Messages that are shown."""
_NAME = 24


class Queue(Surface):
    part = Part.QUEUE | Part.INPUT

    _waiting: tuple[str, ...] = ()
    _image: ImageAttached | None = None
    _writer = ""

    def show(self, scene: Scene) -> None:
        now = (tuple(scene.queue), scene.image, scene.written_by)
        if now != (self._waiting, self._image, self._writer):
            self._waiting, self._image, self._writer = now
            self.redraw()

    @property
    def empty(self) -> bool:
        return not (self._waiting or self._image or self._writer)

    def rows(self, width: int) -> list[Strip]:
        look = self.look
        lines = [[("waiting: ", look.dim), (one_line(text, width), look.text)] for text in self._waiting[:_WAITING]]
        if self._waiting:
            hidden = len(self._waiting) - len(lines)
            lines.append([("↑ takes " + (f"them all back (+{hidden} more)" if hidden else "it back"), look.dim)])
        if image := self._image:
            kind, size = one_line(image.mime_type.removeprefix("image/"), 12), max(image.bytes // 1024, 1)
            said = [(f"[image: {kind}, {size} KB]", look.accent), (" goes with the next message, from ", look.dim)]
            lines.append([*said, (one_line(image.extension, _NAME), look.badge)])
        if self._writer:
            lines.append([(one_line(self._writer, _NAME), look.badge), (" wrote into the input", look.dim)])
        return [clip(wrap(line, 1 << 20)[0], width) for line in lines]
