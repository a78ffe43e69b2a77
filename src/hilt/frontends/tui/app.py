"""The application: which widgets there are, which keys do what, and when things are drawn. It decides nothing else.

It is on the screen before there is a session: what is typed until then waits. Whatever happens is drawn at most 30
times a second.
"""

import asyncio
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import Monochrome, NoColor
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import Widget

from hilt.errors import HiltError
from hilt.frontends.tui.editor.completion import Completion
from hilt.frontends.tui.editor.editor import Editor
from hilt.frontends.tui.look import DARK, Look, Palette
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.status import Status
from hilt.frontends.tui.surfaces.activity import Activity
from hilt.frontends.tui.terminal_driver import Terminal
from hilt.frontends.tui.transcript.view import Transcript

if TYPE_CHECKING:  # on the way to the first frame nothing of the agent is imported: 80 ms
    from pathlib import Path

    from hilt.frontends.tui.client import Client
    from hilt.frontends.tui.dialogs.asking import Inquiries
    from hilt.frontends.tui.presenter import Asking, Presenter
    from hilt.frontends.tui.surfaces.around import Around
    from hilt.frontends.tui.transcript.gallery import Gallery

_EVERY = 1 / 30
_TICK = 0.25
_ALWAYS = ("suspend_process", "redraw")
_ARMED = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class HiltApp(App[None]):
    TITLE = "hilt"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; layers: default overlays; overflow: hidden; }
    Screen { background: $background; color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("ctrl+d", "leave_if_empty", show=False),
        Binding("ctrl+l", "redraw", show=False, priority=True),
        Binding("ctrl+o", "toggle_folds", show=False, priority=True),
        Binding("shift+tab", "cycle_permissions", show=False, priority=True),
        Binding("escape", "cancel", show=False),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("ctrl+home", "to_start", show=False, priority=True),
        Binding("ctrl+end", "follow", show=False, priority=True),
        Binding("f6", "step", show=False, priority=True),
        Binding("ctrl+n", "unfold_notes", show=False, priority=True),
    ]

    def __init__(self, *, typed: str = "", palette: Palette = DARK) -> None:
        """`typed` stands in the input from the beginning."""
        self.look = Look.of(palette)
        super().__init__(driver_class=Terminal)
        if self.no_color:
            # Textual would turn colours into greys, and fails at text that has no style at all.
            self._filters = [NoColor() if isinstance(one, Monochrome) else one for one in self._filters]
        self._wear(palette)
        self.scene = Scene(changed=self._changed)
        self.painted = asyncio.Event()
        """There is something to see."""
        self.fault: BaseException | None = None
        """What ended it, when nobody wanted it to end."""
        self.elsewhere: Path | None = None
        """Where to begin again, when the user wants that."""
        self.client: Client | None = None
        self.presenter: Presenter | None = None
        self.around: Around | None = None
        self._inquiries: Inquiries | None = None
        self._gallery: Gallery | None = None
        self._typed = typed
        self._waiting: list[str] = []
        """What was sent before there was anybody to send it to."""
        self._told: list[str] = []
        self._drawing: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._interrupted = 0.0
        self._folded = True

    def compose(self) -> Iterable[Widget]:
        yield Transcript(self.look)
        yield Activity(self.look)
        popup = Completion(self.look)
        yield popup
        yield Editor(self.look, popup, self._typed)
        yield Status(self.look)

    def on_mount(self) -> None:
        self.editor.focus()
        # The shell has drawn over everything meanwhile, and Textual does not know.
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.call_after_refresh(self.painted.set)

    @property
    def editor(self) -> Editor:
        """Where the user types, also while something else is in front of it."""
        return self.screen_stack[0].query_one(Editor)

    def on_stage(self) -> AbstractContextManager[None]:
        """For the life of the block, this is the app that widgets made in it belong to."""
        return self._context()

    # The session

    def attach(self, client: "Client", presenter: "Presenter") -> None:
        """From now on there is a session to talk to."""
        from hilt.frontends.tui.dialogs.asking import Inquiries  # not needed for the first frame
        from hilt.frontends.tui.editor.surroundings import Surroundings
        from hilt.frontends.tui.surfaces.around import Around
        from hilt.frontends.tui.transcript.gallery import Gallery

        self._gallery = Gallery.here(self._send, lambda: self.scene.mark(Part.TRANSCRIPT))
        self.around = Around(self.screen_stack[0], client, lambda: self.look, presenter.tell)
        self.client, self.presenter, self._inquiries = client, presenter, Inquiries(self, client, presenter)
        presenter.begin()
        self.editor.attach(Surroundings.of(client))
        for notice in self._told:
            presenter.tell("info", notice)
        self.set_interval(_TICK, presenter.tick)
        for text in self._waiting:
            client.submit(text)
        self._waiting.clear()

    def ask(self, asking: "Asking") -> None:
        """Put a question before the user."""
        if self._inquiries:
            self._inquiries.ask(asking)

    def withdraw(self, id_: str) -> None:
        """Nobody waits for the answer any more."""
        if self._inquiries:
            self._inquiries.withdraw(id_)

    def go_to(self, block: int) -> None:
        """Have this one of the conversation's blocks in sight."""
        self.query_one(Transcript).go_to(block)

    def reopen(self, folder: "Path") -> None:
        """Leave, to begin again in another directory."""
        self.elsewhere = folder
        self.exit()

    def leave(self, _extension: str = "") -> None:
        self.exit()

    def tell(self, *notices: str) -> None:
        """Something that the user should know, also before there is a session."""
        for notice in filter(None, notices):
            if self.presenter:
                self.presenter.tell("info", notice)
            else:
                self._told.append(notice)

    def complain(self, error: HiltError) -> None:
        if self.presenter:
            self.presenter.tell("error", error.message, hint=error.hint)

    def restyle(self, palette: Palette) -> None:
        """Have everything look otherwise from now on."""
        self.look = Look.of(palette)
        self._wear(palette)
        self.call_next(self._restyled)  # after Textual's own rules have been made anew

    def _restyled(self) -> None:
        for screen in self.screen_stack:
            for widget in (screen, *screen.query("*").results(Widget)):
                if restyle := getattr(widget, "restyle", None):
                    restyle(self.look)
                widget.refresh()  # what is below a dialog would otherwise keep its ground

    def _wear(self, palette: Palette) -> None:
        # Under a name of its own, or Textual would see no change.
        name = f"hilt-{abs(hash(palette)):x}"
        self.register_theme(_theme(name, palette))
        self.theme = name

    def _hint(self, text: str, seconds: float) -> None:
        """Say something for a moment."""
        self.scene.hint = text
        self.scene.mark(Part.ACTIVITY)
        if text:
            self.set_timer(seconds, lambda: self._unhint(text))

    def _unhint(self, text: str) -> None:
        if self.scene.hint == text:
            self._hint("", 0)

    # Drawing

    def _changed(self) -> None:
        if self._drawing is None and self._running:
            loop = asyncio.get_running_loop()
            # By way of our own messages: what goes wrong in drawing is then dealt with like everything else.
            when = max(self._drawn + _EVERY, loop.time())
            self._drawing = loop.call_at(when, lambda: self.call_later(self._draw))

    def _draw(self) -> None:
        self._drawing = None
        self._drawn = asyncio.get_running_loop().time()
        if not self._running:
            return
        dirty = self.scene.taken()
        with self.batch_update():
            if Part.TRANSCRIPT in dirty:
                self.query_one(Transcript).show(self.scene.blocks)
            if Part.STATUS in dirty:
                self.query_one(Status).show(self.scene)
                self.editor.reconsider()
            if Part.ACTIVITY in dirty:
                self.query_one(Activity).show(self.scene)
            if self.around:
                self.around.draw(self.scene, dirty)

    def on_transcript_unready(self, message: Transcript.Unready) -> None:
        if self.client and self._gallery:
            self.client.do(self._gallery.prepare(message.blocks, self.look.palette.background), "laying out")

    def _send(self, text: str) -> None:
        if self._driver:
            self._driver.write(text)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a dialog or a panel has the keys, it has all but those that are about the terminal."""
        if self.screen.is_modal:
            return action in _ALWAYS
        if self.around and self.around.panels.has_keys:
            return action in (*_ALWAYS, "step")
        return super().check_action(action, parameters)

    def on_key(self, event: events.Key) -> None:
        if self.around and not self.screen.is_modal and self.around.shortcuts.press(event.key):
            event.stop()

    def on_text_area_changed(self, message: Editor.Changed) -> None:
        if not message.text_area.text:
            self.scene.written_by = ""
        else:
            self._interrupted = 0.0  # whoever types again does not mean to leave
        self.scene.mark(Part.INPUT)

    def on_editor_submitted(self, message: Editor.Submitted) -> None:
        self.query_one(Transcript).follow()
        self._interrupted = 0.0
        if self._inquiries:
            self._inquiries.relent()
        if self.client:
            self.client.submit(message.text)
        else:
            self._waiting.append(message.text)

    def on_status_selected(self) -> None:
        if self.client:
            self.client.here("/ext")

    def action_interrupt(self) -> None:
        if text := self.screen.get_selected_text():
            self.copy_to_clipboard(text)
            self.screen.clear_selection()
            return
        now = asyncio.get_running_loop().time()
        if now - self._interrupted < _ARMED:
            self.leave()
            return
        self._interrupted = now
        self.editor.discard()
        self._hint("ctrl+c again to leave", _ARMED)

    def action_leave_if_empty(self) -> None:
        if not self.editor.text:
            self.leave()

    def action_step(self) -> None:
        if self.around:
            self.around.panels.step()

    def action_unfold_notes(self) -> None:
        if self.around:
            self.around.notes.unfold()

    def action_cancel(self) -> None:
        if self.around and self.around.escape():
            return
        if not (self.client and self.client.cancel()):
            self.editor.discard()

    def action_cycle_permissions(self) -> None:
        if self.client:
            self.client.cycle_permissions()

    def action_redraw(self) -> None:
        self.refresh(layout=True)

    def action_toggle_folds(self) -> None:
        self._folded = not self._folded
        self.query_one(Transcript).fold_all(folded=self._folded)

    def action_page(self, direction: int) -> None:
        self.query_one(Transcript).page(direction)

    def action_to_start(self) -> None:
        self.query_one(Transcript).to_start()

    def action_follow(self) -> None:
        self.query_one(Transcript).follow()

    # The end

    @property
    def ending(self) -> bool:
        """Whether it is on its way out: then nothing can be put on the screen any more."""
        return self._exit or self.fault is not None

    def on_exit_app(self) -> None:
        if self._gallery:
            self._gallery.close()

    def give_back(self) -> None:
        """Have the terminal as it was, at once and whatever else is going on."""
        if isinstance(self._driver, Terminal):
            self._driver.give_back()

    def _fatal_error(self) -> None:
        """Textual would print a traceback with the values of all variables. Whoever runs this says what happened."""
        import sys

        self.fault = sys.exc_info()[1]
        self._close_messages_no_wait()


def _theme(name: str, palette: Palette) -> Theme:
    ansi = palette.background == "default"
    return Theme(
        name,
        primary=_colour(palette.accent),
        accent=_colour(palette.accent),
        foreground=_colour(palette.text),
        background=_colour(palette.background),
        surface=_colour(palette.surface),
        panel=_colour(palette.surface),
        error=_colour(palette.error),
        warning=_colour(palette.warn),
        success=_colour(palette.success),
        dark=palette.dark,
        ansi=ansi,
        # A theme of the terminal's own colours must say more than others: Textual's rules refer to it.
        variables=dict(BUILTIN_THEMES["ansi-dark"].variables) if ansi else {},
    )


def _colour(name: str) -> str:
    return name if name.startswith("#") else f"ansi_{name}"
