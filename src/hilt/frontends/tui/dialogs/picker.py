"""A list to pick one from, which gets shorter as you type. Owns the matching and the rows; what follows from what was
picked is up to whoever asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Key
from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.dialogs.field import Field
from hilt.frontends.tui.dialogs.matching import Matched, matches
from hilt.frontends.tui.drawing.wrapping import clip, pad
from hilt.frontends.tui.look import Look

T = TypeVar("T")

_ROWS = 14
_LABEL = 200
_MARK = 3
_WIDEST = 0.55
"""Of the width, for the labels."""


@dataclass(frozen=True)
class Item:
    id: str
    label: str
    description: str = ""
    mark: str = ""
    """A sign in front of it, one or two cells wide."""
    group: str = ""
    """Items with the same one that follow each other stand under it, as long as nothing is typed."""


@dataclass(frozen=True)
class Chosen:
    id: str
    key: str
    """`enter`, or one of the keys that the list has beside it."""


@dataclass(frozen=True)
class _Row:
    item: int
    """Which one; -1 for a heading."""
    text: str = ""


class Listing(Dialog[T]):
    """What lists have in common. `taken` says what the dialog is closed with."""

    def __init__(
        self,
        title: str,
        items: Sequence[Item],
        look: Look,
        *,
        owner: str = "",
        hint: str = "",
        current: str = "",
        keys: Mapping[str, str] | None = None,
        deaf: float = 0.0,
    ) -> None:
        """`hint` is said beside the keys. `current` is the id to begin at. `keys` are those that do something else than
        Enter does, with a word for each; one that could be typed counts only while nothing is."""
        super().__init__(title, look, owner=owner, deaf=deaf)
        self._extra = dict(keys or {})
        self._said = hint
        self._filter = Field()
        self._take_in(items)
        self._select(current)

    def taken(self, id_: str, key: str, /) -> T | None:
        raise NotImplementedError

    def replace(self, items: Sequence[Item]) -> None:
        """Other items, with the same filter, at the same one if it is still there."""
        current = self.current
        self._take_in(items)
        self._select(current)
        self.changed()

    @property
    def current(self) -> str:
        """The id of what Enter would take; empty when there is nothing."""
        return self._items[self._rows[self._at].item].id if self._rows else ""

    # What there is

    def _take_in(self, items: Sequence[Item]) -> None:
        self._items = tuple(items)
        self._texts = [Matched.of(item.label, f"{item.description} {item.group}") for item in items]
        self._labels = [one_line(item.label, _LABEL) for item in items]
        self._widest = max(map(cell_len, self._labels), default=0)
        self._marked = any(item.mark for item in items)
        groups = sum(bool(one.group) and one.group != before.group for before, one in pairwise(items))
        self._most = len(items) + groups + any(item.group for item in items[:1])
        self._narrow()

    def _narrow(self) -> None:
        """Only what fits the filter, the best first."""
        if self._filter.text.strip():
            self._rows = [_Row(at) for at in matches(self._filter.text, self._texts)]
        else:
            self._rows = []
            group = ""
            for at, item in enumerate(self._items):
                if item.group and item.group != group:
                    self._rows.append(_Row(-1, one_line(item.group, _LABEL)))
                group = item.group
                self._rows.append(_Row(at))
        self._at = next((at for at, row in enumerate(self._rows) if row.item >= 0), 0)

    def _select(self, id_: str) -> None:
        for at, row in enumerate(self._rows):
            if row.item >= 0 and self._items[row.item].id == id_:
                self._at = at

    # Keys

    def pressed(self, key: Key, /) -> bool:
        match key.key:
            case "up" | "ctrl+p":
                self._move(-1)
            case "down" | "ctrl+n" | "tab":
                self._move(1)
            case "pageup" | "pagedown":
                self._move((-1 if key.key == "pageup" else 1) * max(1, self.window - 1))
            case "home":
                self._move(-len(self._rows))
            case "end":
                self._move(len(self._rows))
            case "enter":
                self._take("enter")
            case name if name in self._extra and not (key.is_printable and self._filter.text):
                self._take(name)
            case _:
                if not self._filter.pressed(key):
                    return False
                self._filtered()
        return True

    def pasted(self, text: str) -> None:
        self._filter.add(text)
        self._filtered()

    def clicked(self, part: str, at: int) -> None:
        if part == "page" and self._rows and self._rows[at].item >= 0:
            self._at = at
            self._take("enter")

    def _filtered(self) -> None:
        self._narrow()
        self.changed()
        self.reveal(0)

    def _move(self, by: int) -> None:
        """Over headings, and not beyond either end."""
        places = [at for at, row in enumerate(self._rows) if row.item >= 0]
        if places:
            place = min(max(0, places.index(self._at) + by), len(places) - 1)
            self._at = places[place]
            self.changed(redraw=False)
            self.reveal(self._at if place else 0)

    def _take(self, key: str) -> None:
        if self._rows:
            self.close(self.taken(self.current, key))

    def placed(self) -> None:
        self.reveal(self._at)

    # Drawing

    def hint(self) -> str:
        extra = [f"{_named(key)} {word}" for key, word in self._extra.items()]
        return " · ".join(filter(None, ("↑↓ move", "Enter take", *extra, "Esc close", self._said)))

    def head(self, width: int, /) -> list[Strip]:
        found = sum(row.item >= 0 for row in self._rows)
        count = f"{found}/{len(self._items)}" if self._filter.text else f"{len(self._items)}"
        row = self._filter.row("/ ", width - len(count) - 1, self.look.text, self.look.dim, empty="type to filter")
        filled = pad(clip(row, width - len(count)), width - len(count), self.look.text)
        return [Strip([*filled, Segment(count, self.look.dim)])]

    def height(self, _width: int, /) -> int:
        return min(_ROWS, max(1, self._most))

    def length(self, _width: int, /) -> int:
        return max(1, len(self._rows))

    def row(self, at: int, width: int, /) -> Strip:
        if not self._rows:
            return Strip([Segment("nothing matches" if self._items else "there is nothing here", self.look.dim)])
        row = self._rows[at]
        if row.item < 0:
            return clip(Strip([Segment(row.text, self.look.heading)]), width)
        return self._item(row.item, width, selected=at == self._at)

    def _item(self, at: int, width: int, *, selected: bool) -> Strip:
        item, look = self._items[at], self.look
        strong, dim = (look.selected, look.selected) if selected else (look.text, look.dim)
        front = Strip([Segment("› " if selected else "  ", strong)])
        if self._marked:
            front = Strip([*front, *pad(Strip([Segment(one_line(item.mark, 2), strong)]), _MARK, strong)])
        label = pad(Strip([Segment(self._labels[at], strong)]), self._widest, strong)
        if item.description:
            label = clip(label, max(self._widest_label(width), cell_len(self._labels[at])))
        parts = [*front, *label]
        if item.description:
            room = width - sum(part.cell_length for part in parts) - 2
            parts.append(Segment(f"  {one_line(item.description, max(1, room))}", dim))
        row = clip(Strip(parts), width)
        return pad(row, width, strong) if selected else row

    def _widest_label(self, width: int) -> int:
        """Descriptions stand below each other, unless a label is much longer than the rest."""
        return min(self._widest, int(width * _WIDEST))


class Picker(Listing[str]):
    """Closes with the id of what was picked."""

    def taken(self, id_: str, _key: str, /) -> str:
        return id_


class KeyedPicker(Listing[Chosen]):
    """Closes with the id and the key that was pressed there."""

    def taken(self, id_: str, key: str, /) -> Chosen:
        return Chosen(id_, key)


def _named(key: str) -> str:
    """As it is written on the key."""
    return key.replace("ctrl+", "Ctrl-").replace("delete", "Del") if len(key) > 1 else key
