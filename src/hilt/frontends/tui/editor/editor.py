"""The input: what is typed, completed, remembered and sent. Nothing typed is lost: what is cleared is in the history.

Owns when what is offered, and what Enter means. What it needs of the session comes with `attach`; until then one can
type and send, and whoever listens keeps it.
"""

import asyncio
from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING

from textual import events
from textual.document._document import Selection
from textual.message import Message

from hilt.frontends.terminal import clean, one_line
from hilt.frontends.tui.editor.area import Area
from hilt.frontends.tui.editor.completion import Completion
from hilt.frontends.tui.editor.files import begun, for_files
from hilt.frontends.tui.editor.history import History, Walk
from hilt.frontends.tui.editor.offers import Choice, Offer, for_commands
from hilt.frontends.tui.look import Look

if TYPE_CHECKING:
    from hilt.frontends.tui.editor.surroundings import Surroundings

HINT = "Ask anything · / for commands · @ for files · ! for the shell"
_LISTED = 200
"""Characters of a text in a list of them."""
_FRESH = 10.0
"""Seconds for which the list of files is taken to be right."""
_EDITED = 10_000
"""Characters that are put in at once as they are: with more of them, every key takes its time."""
_DEAF = 0.5
"""Seconds after somebody else wrote into it in which Enter does not count: it was meant for another text."""
_TYPING = 1.0
"""Seconds after a key for which the user is taken to be typing."""
_NEWLINE = ("ctrl+j", "shift+enter", "alt+enter")
_CLEAR = ("ctrl+u", "super+backspace")
_KEYS = frozenset(("enter", *_NEWLINE, *_CLEAR, "ctrl+r", "ctrl+x", "ctrl+d", "up", "down", "tab"))


class Editor(Area):
    class Submitted(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, look: Look, popup: Completion, text: str = "") -> None:
        """`popup` is where completions are shown."""
        self._popup = popup
        self._around: Surroundings | None = None
        self._walk: Walk | None = None
        self._recalled = ""
        """What the walk came to last: as long as it stands there, nothing is offered for it and the walk goes on."""
        self._unwanted: tuple[str, int, int] | None = None
        """The offer that the user did not want, by its kind and place."""
        self._chord = False
        """Ctrl-X was pressed: the next key means something else."""
        self._listed = -_FRESH
        """When the files were last looked for, by the loop's clock."""
        self._touched = 0.0
        """When a key was last pressed here."""
        self._dictated = ("", 0.0)
        """What somebody else wrote, and when, or when a key last came too early after that."""
        self.past = History()
        popup.picked = self._put_choice
        super().__init__(look, HINT)
        self.put(text, replace=False)

    def attach(self, around: "Surroundings") -> None:
        """From now on there is a session."""
        self._around = around
        self._consider()

    # Sending

    def _submit(self) -> None:
        text = self._chips.expand(self.text).rstrip()
        if not text.strip():
            return
        self._keep_left()
        self.past.add(text)
        self._reset()
        self._touched = 0.0
        self.post_message(self.Submitted(text))

    def discard(self) -> None:
        """Clear it; it can be had back from the history."""
        self._keep_left()
        if self.text != self._dictated[0]:
            self.past.add(self._chips.expand(self.text).rstrip())
        self._reset()

    def put(self, text: str, *, replace: bool) -> None:
        """Write something that was not typed, in place of what stands here if that is said."""
        if replace:
            self.discard()
        self.put_in(self._shown(clean(text)))

    def dictate(self, text: str, *, replace: bool) -> None:
        """The same for somebody who is not the user: nothing of it is sent before there was time to see it."""
        self.put(text, replace=replace)
        self._dictated = self.text, monotonic()
        self._consider()

    @property
    def listening(self) -> bool:
        """Whether Enter would count now."""
        return monotonic() - self._dictated[1] >= _DEAF

    @property
    def typing(self) -> float:
        """For how many seconds the user is still taken to be typing."""
        return max(0.0, self._touched + _TYPING - monotonic())

    def _shown(self, text: str) -> str:
        """As much as can be edited at once; a longer text as a chip."""
        return text if len(text) <= _EDITED else self._chips.text(text, beside=self.text)

    def _keep_left(self) -> None:
        """What was written elsewhere on a walk would be gone with it."""
        for text, before in self._walk.left if self._walk else ():
            if (meant := self._chips.expand(text)) != before:
                self.past.add(meant.rstrip())

    def _reset(self) -> None:
        self._walk, self._dictated = None, ("", 0.0)
        self._chips.clear()
        self.load_text("")
        self._consider()

    # Keys

    @property
    def keys(self) -> Iterable[str]:
        """Those that mean something here."""
        return {*_KEYS, *super().keys}

    async def _on_key(self, event: events.Key) -> None:
        """Before it does what it stands for. Whoever types on has not seen what was written: only a pause helps."""
        text, when = self._dictated
        self._touched = event.time
        if event.time - when < _DEAF:
            self._dictated = text, max(when, event.time)
            if event.key == "enter":
                event.stop()
                event.prevent_default()

    def takes(self, key: str) -> bool:
        if self._completes(key):
            return True
        chord, self._chord = self._chord, False
        match key:
            case "enter":
                self._enter()
            case _ if key in _NEWLINE:
                self.put_in("\n")
            case _ if key in _CLEAR:
                self.discard()
            case "ctrl+x":
                self._chord = True
            case "ctrl+e" if chord and self._around:
                self._around.do(self._edit_outside(), "another editor")
            case "ctrl+r":
                self._search()
            case "ctrl+d" if self.text:
                self.action_delete_right()
            case "up" if self._around and not self.text and self._around.waiting():
                self._around.do(self._take_back(self._around), "taking back")
            case "up" if self._first_row:
                self._go(-1)
            case "down" if self._walk and self._last_row:
                self._go(1)
            case "tab":
                pass  # nothing to complete
            case _:
                return super().takes(key)
        return True

    def _enter(self) -> None:
        row, column = self.cursor_location
        if self.document.get_line(row)[:column].endswith("\\"):
            self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
        else:
            self._submit()

    def _completes(self, key: str) -> bool:
        """What the list of completions does with a key, if it is there."""
        offer, chosen = self._popup.offer, self._popup.chosen
        if offer is None or chosen is None:
            return False
        match key:
            case "up" | "down":
                self._popup.move(1 if key == "down" else -1)
            case "escape":
                self._unwanted = self._place(offer)
                self._popup.show(None)
            case "tab":
                self._put_choice(offer, chosen)
            case "enter":
                self._put_choice(offer, chosen)
                if chosen.runs:
                    self._submit()
            case _:
                return False
        return True

    def _put_choice(self, offer: Offer, chosen: Choice) -> None:
        row, column = self.cursor_location
        self.replace(chosen.text, (row, offer.start), (row, column), maintain_selection_offset=False)

    # The history

    @property
    def _first_row(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def _last_row(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y == self.wrapped_document.height - 1

    def _go(self, step: int) -> None:
        walk = self._walk = self._walk or self.past.walk(self.text)
        text = walk.go(step, self.text)
        if text is None:
            return
        self._recalled = self._shown(text)
        self.load_text(self._recalled)
        # At the edge towards which one goes, so that the next step goes on from there.
        self.move_cursor(self.document.end)
        if step < 0:
            self.move_cursor(self.navigator.get_location_end((0, 0)))

    def _search(self) -> None:
        """Pick one of those that were sent before."""
        from hilt.frontends.tui.dialogs.picker import Item, Picker  # not needed for the first frame

        texts = list(dict.fromkeys(reversed(self.past.entries)))

        def found(id_: str | None) -> None:
            if id_ is not None:
                self.put(texts[int(id_)], replace=True)

        items = [Item(str(at), one_line(text, _LISTED)) for at, text in enumerate(texts)]
        self.app.push_screen(Picker("what you sent before", items, self._look), found)

    async def _take_back(self, around: "Surroundings") -> None:
        texts = await around.take_back()
        self.move_cursor((0, 0))
        gap = "\n\n" if self.text and texts else ""
        self.put_in(self._shown(clean("\n\n".join(texts))) + gap)

    async def _edit_outside(self) -> None:
        """Go on with what stands here in the user's own editor."""
        from hilt.frontends.tui.editor.outside import edited  # not needed for the first frame

        self.put(await edited(self.app, self._chips.expand(self.text)), replace=True)

    # Completions

    def update_suggestion(self) -> None:
        """Called after every change."""
        self._consider()

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        super()._watch_selection(previous_selection, selection)
        self._consider()

    def reconsider(self) -> None:
        """There may be other commands now."""
        if self.text.startswith("/"):
            self._consider()

    def _consider(self) -> None:
        """Offer what fits where the cursor is, as soon as it does: a key that follows at once already counts on it."""
        offer = self._offer()
        if offer is None or (self._unwanted and self._unwanted != self._place(offer)):
            self._unwanted = None
        self._popup.show(offer if self._unwanted is None else None)

    def _offer(self) -> Offer | None:
        if self._around is None or not self.is_mounted or not self.selection.is_empty:
            return None
        if self._walk and self.text == self._recalled:
            return None
        if self.text and self.text == self._dictated[0]:
            return None  # it would cover who wrote it
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if line.startswith("/") and self.document.line_count == 1 and column == len(line):
            return for_commands(line, self._around.commands(), self._around.opening)
        if begun(line[:column]) is None:
            return None
        self._look_for_files(self._around)
        return for_files(line[:column], self._around.files)

    def _place(self, offer: Offer) -> tuple[str, int, int]:
        return offer.kind, self.cursor_location[0], offer.start

    def _look_for_files(self, around: "Surroundings") -> None:
        now = asyncio.get_running_loop().time()
        if now - self._listed > _FRESH:
            self._listed = now
            around.do(self._list_files(around), "looking for files")

    async def _list_files(self, around: "Surroundings") -> None:
        await around.files.refresh()
        self._consider()
