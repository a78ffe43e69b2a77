"""The jail: a switch that keeps the file tools inside one folder.

For read, write and edit it holds: they check the path they really opened. For shell commands it
refuses those that plainly leave the folder, to stop accidents. A command has countless other
ways out, so for the shell the jail is not a security boundary.
"""

from pathlib import Path

from hilt.errors import ToolError


class Jail:
    def __init__(self, root: Path, *, on: bool = False) -> None:
        self.root = root.resolve()
        self.on = on

    def check(self, real: Path) -> None:
        """Raise when the jail is on and this resolved path is not inside it."""
        if self.on and not real.is_relative_to(self.root):
            raise ToolError(
                f'jailed: path "{real}" is outside sandbox root "{self.root}" (use /unjail to disable)',
                hint="work on files below the sandbox root",
            )

    def check_command(self, command: str, cwd: Path) -> None:
        """Raise when the jail is on and the command plainly leaves it."""
        if not self.on:
            return
        from hilt.tools.leaving import leaves  # costs shlex, and only a jailed command needs it

        if reason := leaves(command, cwd, self.root):
            raise ToolError(
                f'jailed: {reason}; sandbox root is "{self.root}" (use /unjail to disable). '
                "This check catches plain cases and is not a security boundary.",
                hint="stay below the sandbox root, with relative paths",
            )
