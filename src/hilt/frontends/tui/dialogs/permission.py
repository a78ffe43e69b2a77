"""Asking the user before a tool runs: the whole of what it would do, who had a hand in it, and how far a yes reaches.

It is hilt's own question: it has the mark that nobody else can draw, and is deaf until it has been in sight for a
moment. Nothing is shortened, and nothing in it is hidden.
"""

from collections.abc import Iterator, Sequence

from textual.events import Key
from textual.strip import Strip

from hilt.agent.permissions import remembered
from hilt.agent.questions import Reply
from hilt.frontends.terminal import hanging, visible
from hilt.frontends.tui.dialogs.choosing import Choosing, Option
from hilt.frontends.tui.dialogs.dialog import DEAF
from hilt.frontends.tui.dialogs.field import Field
from hilt.frontends.tui.dialogs.listing import listing
from hilt.frontends.tui.dialogs.rewriting import Rewrite
from hilt.frontends.tui.drawing.diff import flowing
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.changes import marked
from hilt.model.contributions import Effect
from hilt.model.ports import PermissionRequest, Scope

_EFFECTS = {Effect.READ: "It reads", Effect.WRITE: "It changes files", Effect.EXECUTE: "It runs programs"}


class Permission(Choosing[Reply]):
    """Closes with the answer; with None when it was dismissed."""

    def __init__(
        self, request: PermissionRequest, look: Look, *, owner: str = "", rewrites: Sequence[Rewrite] = ()
    ) -> None:
        """`owner` is the extension whose tool it is; empty for those of hilt."""
        self._request = request
        self._tool_of = owner
        self._rewrites = tuple(rewrites)
        self._answers = _answers(request)
        title = f"Allow {visible(request.tool)}? {_EFFECTS[request.effect]}"
        super().__init__(title, [one for one, _ in self._answers], look, deaf=DEAF)
        self.own = True
        self._why: Field | None = None
        """While it is written why not."""

    # Keys

    def chosen(self, at: int, /) -> None:
        answer = self._answers[at][1]
        if answer is None:
            self._why = Field()
            self.changed(redraw=False)
        elif not (answer.approved and self.unreadable):
            self.close(answer)

    def pressed(self, key: Key, /) -> bool:
        if self._why is None:
            return super().pressed(key)
        match key.key:
            case "enter":
                self.close(Reply(approved=False, reason=self._why.text.strip()))
            case "escape":
                self._why = None
            case "ctrl+c" | "pageup" | "pagedown":
                return False
            case _:
                self._why.pressed(key)
        self.changed(redraw=False)
        return True

    def pasted(self, text: str) -> None:
        if self._why:
            self._why.add(text)
            self.changed(redraw=False)

    def clicked(self, part: str, at: int) -> None:
        if self._why is None:
            super().clicked(part, at)

    # Drawing

    def hint(self) -> str:
        return "Enter say no, with this reason · Esc back" if self._why else super().hint()

    def foot(self, width: int, /) -> list[Strip]:
        if self._why is None:
            return super().foot(width)
        asked, look = "No, because: ", self.look
        return [
            Strip.blank(0),
            self._why.row(asked, width, look.text, look.dim, empty="the model reads it"),
        ]

    def page(self, width: int, /) -> Iterator[Strip]:
        remarks = list(self._remarks(width))
        yield from [*remarks, Strip.blank(0)] if remarks else ()
        yield from _whole(self._request, width, self.look)

    def _remarks(self, width: int) -> Iterator[Strip]:
        look, request = self.look, self._request
        if self._tool_of:
            yield from wrap([("A tool of ", look.dim), (visible(self._tool_of), look.badge)], width)
        if request.step:
            yield from wrap([("You look at every call: step mode is on.", look.dim)], width)
        for missing in request.unchecked_by:
            yield from wrap([(f"! Nobody checked it: {hanging(visible(missing))}", look.warn)], width)
        yield from self._rewritten(width)

    def _rewritten(self, width: int) -> Iterator[Strip]:
        known = {one.extension for one in self._rewrites}
        for rewrite in self._rewrites:
            yield from self._changed_by(rewrite.extension, width)
            yield from _marked(rewrite.text(), width, self.look)
        for extension in self._request.rewritten_by:
            if extension not in known:
                yield from self._changed_by(extension, width)

    def _changed_by(self, extension: str, width: int) -> list[Strip]:
        return wrap([("! Changed by ", self.look.warn), (visible(extension), self.look.badge)], width)


def _answers(request: PermissionRequest) -> list[tuple[Option, Reply | None]]:
    """What can be said, and what it means; None where a reason must be written first."""
    scopes: list[tuple[str, str, Scope]] = [("Yes, once", "y", "once")]
    scopes.append((f"Yes, always for {visible(request.tool)}", "t", "tool"))
    if request.preview.kind == "command":
        scopes.append((_prefix(request.preview.text), "p", "prefix"))
    scopes.append(("Yes, everything this session", "s", "session"))
    yes = [(Option(label, letter), Reply(approved=True, scope=scope)) for label, letter, scope in scopes]
    return [*yes, (Option("No", "n"), Reply(approved=False)), (Option("No, and say why", "r"), None)]


def _prefix(command: str) -> str:
    """What exactly will not be asked about again."""
    part = remembered(command)
    if part != remembered(f"{command} x"):  # anything behind it makes it another one
        return "Yes, always exactly this"
    return f"Yes, always for: {visible(part)} …"


def _whole(request: PermissionRequest, width: int, look: Look) -> Iterator[Strip]:
    text = request.preview.text
    if request.preview.kind != "diff":
        yield from listing(text, width, look)
    elif text.startswith("--- "):
        yield from flowing(visible(text), width, look)
    else:  # without the name of the file, and without numbers
        yield from wrap([(visible(str(request.args.get("path", ""))), look.strong)], width)
        yield from _marked(text, width, look)


def _marked(text: str, width: int, look: Look) -> Iterator[Strip]:
    for line in visible(text).split("\n"):
        yield from marked(line, width, look)
