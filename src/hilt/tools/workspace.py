"""Where the built-in tools work: the folder, its jail, and what must be told before a file changes.

Owns the value that every built-in tool is given. Which paths are allowed is `jail`'s business,
how files are opened and replaced is `files`'s.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from hilt.tools.jail import Jail


def _keep_no_history(_call_id: str, _path: Path) -> None:
    """The `remember` of a workspace without undo."""


def _hide_nothing(_path: Path) -> None:
    """The `conceal` of a workspace that knows no keys."""


class Workspace(Struct, frozen=True):
    cwd: Path
    """Absolute; relative paths start here, and commands run here."""
    jail: Jail
    outputs: Path
    """Where the whole output of commands is kept; made on demand, readable even in the jail."""
    remember: Callable[[str, Path], None] = _keep_no_history
    """Told the call's id and the real path before a file is changed, on the loop's own thread.
    A `ToolError` from it stops the change."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of every command."""
    conceal: Callable[[Path], None] = _hide_nothing
    """Given the file with a command's whole output before it is kept, to blank the keys in it."""

    def permit_reading(self, real: Path) -> None:
        """Raise unless this resolved path may be read."""
        if not real.is_relative_to(self.outputs.resolve()):
            self.jail.check(real)
