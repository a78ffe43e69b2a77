"""Panels: a small class that draws lines and hears keys.

    class Todo(Panel):
        title = "To do"

        def render(self, width, height):
            return self.items

        def on_key(self, key, text):
            ...

It is drawn anew after each key, if that changed anything, and whenever `update` is called.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hilt_sdk.link import Link

_made = 0


class Panel:
    id = ""
    """By which the host knows it. Made up, unless the class has one: then a new process goes on with the old panel."""
    title = ""
    footer = ""
    _link: Link | None = None
    _shown: dict[str, Any] | None = None
    _width = 80
    _height = 24

    def render(self, width: int, height: int) -> Sequence[str] | str:  # noqa: ARG002  # for those who extend it
        """The lines to be shown. The size is 80 × 24 until the host has told it."""
        return ()

    def on_key(self, key: str, text: str) -> object:
        """A key was pressed: `up`, `enter`…, or `rune` with the character in `text`."""

    def on_resize(self, width: int, height: int) -> object:
        """There is this much room now."""

    def on_close(self) -> object:
        """The user has closed it."""

    def update(self) -> None:
        """Draw it anew, if that changes anything. One that is not open is left alone."""
        link = self._link
        if link is None:
            return
        content = self._content()
        before = self._shown or {}
        if content == before:
            return
        self._shown = content
        told = {name: value for name, value in content.items() if name != "title" or value != before.get("title")}
        link.render_panel(self, told)

    def close(self) -> None:
        """Close it. One that is not open is left alone."""
        link, self._link = self._link, None
        if link is not None:
            link.close_panel(self)

    @property
    def is_open(self) -> bool:
        return self._link is not None

    # What the link does with it

    def bind(self, link: Link) -> dict[str, Any]:
        """It is about to be opened: what shall be shown."""
        if not self.id:
            global _made
            _made += 1
            self.id = f"panel-{_made}"
        self._link = link
        self._shown = self._content()
        return self._shown

    def pressed(self, key: str, text: str) -> None:
        link = self._link
        if link is not None:
            link.value_of(self.on_key, key, text)
            self.update()

    def resized(self, width: int, height: int) -> None:
        link = self._link
        self._width, self._height = width, height
        if link is not None:
            link.value_of(self.on_resize, width, height)
            self.update()

    def closed(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.value_of(self.on_close)

    def in_words(self) -> str:
        """For where it cannot be opened."""
        content = self._content()
        return "\n".join([content["title"], *content["lines"], content["footer"]]).strip("\n")

    def _content(self) -> dict[str, Any]:
        lines = self.render(self._width, self._height)
        shown = lines.split("\n") if isinstance(lines, str) else [str(line) for line in lines]
        return {"title": self.title, "lines": shown, "footer": self.footer}
