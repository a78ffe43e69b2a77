"""Shell commands: those that the user runs, and what of a command's report is its output."""

from collections.abc import Mapping
from typing import Any

from rich.style import Style
from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.wrapping import Span, clip, wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.copying import DECORATION
from hilt.frontends.tui.transcript.excerpt import behind
from hilt.frontends.tui.transcript.output import Output
from hilt.frontends.tui.transcript.summary import elapsed
from hilt.model.content import Args, text_of
from hilt.model.contributions import ToolOutput


def program_output(report: str, args: Args, details: Mapping[str, Any]) -> tuple[str, int | None]:
    """What the command wrote, without what the report says around it, and its exit code if it has one.

    A report that somebody has changed is left as it is.
    """
    code = details.get("exit_code")
    exit_code = code if isinstance(code, int) else None
    echo = f"$ {args.get('command')}\n\n"
    body, gap, verdict = report.rpartition("\n\n")
    if not gap or not verdict.startswith("[") or not f"{body}\n\n".startswith(echo):
        return report, exit_code
    written = body[len(echo) :].rstrip()
    plain_end = exit_code is not None and verdict.startswith(f"[exit {exit_code}]  Took ") and "\n" not in verdict
    return (written if plain_end else f"{written}\n{verdict}".lstrip("\n")), exit_code


class Shelled(Block):
    """A command that the user ran."""

    def __init__(self, command: str, now: float = 0.0, *, private: bool = False) -> None:
        """`private`: the model does not come to know of it."""
        self.command = command
        self.folded = True
        self._private = private
        self._output = Output(from_end=True)
        self._since = now
        self._seconds = 0.0
        self._ending = ""
        self._failed = False

    def progress(self, text: str) -> None:
        self._output.add(text)
        self.touch()

    def tick(self, now: float) -> None:
        if not self._ending and elapsed(now - self._since) != elapsed(self._seconds):
            self._seconds = now - self._since
            self.touch()

    def finished(self, output: ToolOutput, now: float = 0.0) -> None:
        text, code = program_output(text_of(output.content), {"command": self.command}, output.details)
        if output.details.get("ending") == "cancelled":
            self._ending = "stopped"
        else:
            self._ending = "killed" if code is None else f"exit {code}"
        self._failed = output.is_error
        self._seconds = now - self._since if now else self._seconds
        self._output.end(text)
        self.touch()

    def failed(self, why: str) -> None:
        """It could not be run."""
        self._ending, self._failed = "not run", True
        self._output.end(why)
        self.touch()

    @property
    def heading(self) -> str:
        return f"! {one_line(self.command, 200)}"

    def rows(self, width: int, look: Look) -> list[Strip]:
        style: Style = look.error if self._failed else look.success if self._ending else look.accent
        state = " ".join(filter(None, (self._ending or "running", elapsed(self._seconds))))
        state = f" · {state}" + (" · the model does not see it" if self._private else "")
        room = width - len(state) - 3
        about = one_line(self.command, room) if room > 3 else ""
        mark: Span = ("! ", style + DECORATION)
        head = wrap([mark, (about, look.strong), (state, style if self._failed else look.dim)], width + 4096)[0]
        body = self._output.rows(max(width - 2, 1), look, folded=bool(self.folded), failed=self._failed)
        return [clip(head, width), *behind("  ", body, look.text)]

    def guess(self, width: int) -> int:
        return 1 + self._output.guess(width, folded=bool(self.folded))
