"""Everything that waits for an answer of the user's, in one place: what is shown now, and what comes next.

What hilt itself asks comes before what extensions ask, and on top of whatever is open; extensions wait for each other.
Every question is answered once, or was taken back; those that are open when the interface ends are answered by
whoever closes the `Questions`.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hilt.agent.questions import Reply
from hilt.frontends.tui.client import Client
from hilt.frontends.tui.dialogs.dialog import DEAF, Dialog
from hilt.frontends.tui.dialogs.permission import Permission
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.frontends.tui.dialogs.question import Question
from hilt.frontends.tui.dialogs.trust import Trust
from hilt.frontends.tui.presenter import Asking, Presenter
from hilt.model.events import PermissionAsked, PickerAsked, QuestionAsked, TrustAsked

if TYPE_CHECKING:
    from hilt.frontends.tui.app import HiltApp


_LATER = 0.3
_PATIENCE = 3
"""Questions in a row that the user may have to dismiss until an extension is no longer listened to."""


@dataclass(frozen=True)
class _Open:
    asked: Asking
    dialog: Dialog[Any]
    process: int | None
    """Of the extension that asks."""

    @property
    def own(self) -> bool:
        return _own(self.asked)


class Inquiries:
    """At most one question of an extension's is on screen, and at most one of hilt's own, above it."""

    def __init__(self, app: "HiltApp", client: Client, presenter: Presenter) -> None:
        self._app = app
        self._client = client
        self._presenter = presenter
        self._waiting: list[Asking] = []
        self._open: list[_Open] = []
        self._dismissed: Counter[str] = Counter()
        """Questions in a row that the user did not want to answer, by extension."""

    def relent(self) -> None:
        """The user does something else: extensions may ask again."""
        self._dismissed.clear()

    def ask(self, asked: Asking) -> None:
        # Screens are put up by the app's own task: whoever asks may be in another.
        self._app.call_later(self._take_in, asked)

    def withdraw(self, id_: str) -> None:
        self._app.call_later(self._take_back, id_)

    # One after the other

    def _take_in(self, asked: Asking) -> None:
        if self._unwelcome(asked):
            self._client.answer(asked.id, Reply(cancelled=True))
        else:
            self._waiting.append(asked)
            self._proceed()

    def _unwelcome(self, asked: Asking) -> bool:
        """Whoever asks again and again what nobody wants to answer would hold the user captive."""
        return not _own(asked) and self._dismissed[_extension(asked)] >= _PATIENCE

    def _take_back(self, id_: str) -> None:
        """Also when it is on screen, and also when something is on top of it."""
        self._waiting = [one for one in self._waiting if one.id != id_]
        for one in [one for one in self._open if one.asked.id == id_]:
            self._open.remove(one)
            one.dialog.close()
            # That a program has ended is known a little later than that it no longer asks.
            self._app.set_timer(_LATER, partial(self._tell_why, one))
        self._proceed()

    def _proceed(self) -> None:
        """Put up what may be put up now."""
        if following := self._following():
            self._waiting.remove(following)
            shown = _Open(following, self._dialog(following), self._process(following))
            self._open.append(shown)
            if shown.own:
                shown.dialog.covered = lambda: self._covered(shown)
            self._app.push_screen(shown.dialog, lambda result: self._answered(shown, result))
        if self._open:
            count = len(self._open) + len(self._waiting)
            self._open[-1].dialog.beside(f"1 of {count}" if count > 1 else "")

    def _following(self) -> Asking | None:
        if any(one.own for one in self._open):
            return None
        own = [one for one in self._waiting if _own(one)]
        return next(iter(own or (self._waiting if not self._open else ())), None)

    def _answered(self, shown: _Open, result: Any) -> None:
        if shown in self._open:  # or it was taken back
            self._open.remove(shown)
            self._client.answer(shown.asked.id, _reply(result))
            if not shown.own:
                self._count(_extension(shown.asked), dismissed=result is None)
            self._proceed()

    def _count(self, extension: str, *, dismissed: bool) -> None:
        self._dismissed[extension] = self._dismissed[extension] + 1 if dismissed else 0
        if self._dismissed[extension] < _PATIENCE:
            return
        unseen = [one for one in self._waiting if self._unwelcome(one)]
        self._waiting = [one for one in self._waiting if one not in unseen]
        for one in unseen:
            self._client.answer(one.id, Reply(cancelled=True))
        why = "asks again and again: what it asks is dismissed until you say something; /ext switches it off"
        self._presenter.tell("warn", why, extension)

    def _covered(self, shown: _Open) -> None:
        self._app.call_later(self._raise, shown)

    def _raise(self, shown: _Open) -> None:
        """Whatever was put on top of hilt's own question goes below it: it is asked anew."""
        if shown in self._open:
            self._open.remove(shown)
            shown.dialog.close()
            self._waiting.insert(0, shown.asked)
            self._proceed()

    # What it looks like

    def _dialog(self, asked: Asking) -> Dialog[Any]:
        look = self._app.look
        match asked:
            case PermissionAsked(request=request):
                owner, rewrites = self._owner(request.tool), self._presenter.rewriting.of(request.call_id)
                return Permission(request, look, owner=owner, rewrites=rewrites)
            case TrustAsked():
                return Trust(asked, look)
            case PickerAsked(extension=extension, title=title, items=items):
                offered = [Item(item.id, item.label, item.description) for item in items]
                return Picker(title, offered, look, owner=extension, deaf=DEAF)
            case QuestionAsked():
                return Question(asked, look)

    def _owner(self, tool: str) -> str:
        """The extension whose tool it is; empty for those of hilt."""
        owned = self._client.session.parts.registry.snapshot().tools.get(tool)
        return owned.owner if owned and owned.owner != "hilt" else ""

    def _process(self, asked: Asking) -> int | None:
        """Of the extension that asks."""
        extension = _extension(asked)
        statuses = self._client.session.extensions.statuses()
        return next((one.pid for one in statuses if one.name == extension), None)

    def _tell_why(self, gone: _Open) -> None:
        """Of what the user had before their eyes. What hilt itself asked went with its turn, which they ended."""
        if isinstance(gone.asked, PickerAsked | QuestionAsked):
            ended = gone.process != self._process(gone.asked)
            what = "what it asked you is closed: its program has ended" if ended else "took back what it had asked you"
            self._presenter.tell("warn" if ended else "info", what, gone.asked.extension)


def _extension(asked: Asking) -> str:
    """Who asks; empty when it is hilt."""
    return asked.extension if isinstance(asked, PickerAsked | QuestionAsked) else ""


def _own(asked: Asking) -> bool:
    """Whether hilt itself asks."""
    return isinstance(asked, PermissionAsked | TrustAsked)


def _reply(result: Any) -> Reply:
    if result is None:
        return Reply(cancelled=True)
    return result if isinstance(result, Reply) else Reply(selected=result)
