"""What extensions have on the screen at the moment, brought into the scene as they change it.

An event says that something is different; what it is then is taken from the session, where it is bounded. Keys of the
user's are blanked here, for what is taken from there has not been.
"""

from typing import Protocol, TypeVar

from msgspec import Struct

from hilt.agent.panels import OpenPanel
from hilt.agent.session import Session
from hilt.frontends.tui.scene import Part, Scene, Written
from hilt.model import events as happened

_WRITTEN = 100_000
"""Characters that extensions can put into the input at once."""
_Told = TypeVar("_Told", bound=Struct)


class Conceal(Protocol):
    """Blanks what nobody is to see."""

    def __call__(self, told: _Told, /) -> _Told: ...


class Standing:
    def __init__(self, session: Session, scene: Scene, conceal: Conceal) -> None:
        self._session = session
        self._scene = scene
        self._conceal = conceal
        self._panels: dict[tuple[str, str], tuple[OpenPanel, OpenPanel]] = {}
        """Each as it is and as it is shown."""

    def begin(self) -> None:
        """As it all stands now."""
        self._take(Part.NOTES | Part.PANELS | Part.WIDGETS | Part.OVERLAYS | Part.STATUS | Part.INPUT)

    def hear(self, event: happened.Event) -> None:
        match event:
            case happened.Notified() | happened.NotesCleared():
                self._take(Part.NOTES)
            case happened.PanelShown() | happened.PanelClosed():
                self._take(Part.PANELS)
            case happened.WidgetShown():
                self._take(Part.WIDGETS)
            case happened.OverlayShown() | happened.OverlayClosed():
                self._take(Part.OVERLAYS)
            case happened.StatusShown():
                self._take(Part.STATUS)
            case happened.ImageAttached():
                self._take(Part.INPUT)
            case happened.Inserted():
                self._write(event)
            case _:
                pass

    def _take(self, parts: Part) -> None:
        scene, session, screen = self._scene, self._session, self._session.screen
        if Part.NOTES in parts:
            scene.notes = tuple([self._conceal(one) for one in session.notes.shown])
        if Part.PANELS in parts:
            scene.panels = self._shown(session.panels.all)
        if Part.WIDGETS in parts:
            scene.widgets = tuple([self._conceal(one) for one in screen.widgets])
        if Part.OVERLAYS in parts:
            scene.overlays = tuple([self._conceal(one) for one in screen.overlays])
        if Part.STATUS in parts:
            scene.statuses = tuple([self._conceal(one) for one in screen.statuses])
        if Part.INPUT in parts:
            scene.image = screen.attached
        scene.mark(parts)

    def _shown(self, panels: tuple[OpenPanel, ...]) -> tuple[OpenPanel, ...]:
        # They may be large, and only one of them has changed.
        known, self._panels = self._panels, {}
        for one in panels:
            before = known.get(one.key)
            self._panels[one.key] = before if before and before[0] is one else (one, self._conceal(one))
        return tuple([shown for _, shown in self._panels.values()])

    def _write(self, event: happened.Inserted) -> None:
        """Into the input, with whatever else is to be put there and has not been."""
        before = self._scene.written
        if event.replace or before is None:
            self._scene.written = Written(event.text[:_WRITTEN], event.replace)
        else:
            self._scene.written = Written((before.text + event.text)[:_WRITTEN], before.replace)
        self._scene.written_by = event.extension
        self._scene.mark(Part.INPUT)


def as_it_is(told: _Told, /) -> _Told:
    """For where there is nothing to hide."""
    return told
