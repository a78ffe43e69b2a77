"""What a program is to be held to, and what became of it: the values that the sandboxes share."""

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

Level: TypeAlias = Literal["standard", "strict"]
Means: TypeAlias = Literal["bubblewrap", "landlock", "seatbelt"]


class Policy(Struct, frozen=True):
    level: Level
    """Of what nobody named: `standard` leaves all readable but the home directory, `strict` nothing but the system."""
    code: Path
    """The program's own directory: readable, and not writable unless it is `data` or in `writable`."""
    data: Path
    """Its data directory: always writable. Exists already."""
    readable: tuple[Path, ...] | None
    """None: everything that is not hidden. A path that does not exist yet will not exist for the program either."""
    writable: tuple[Path, ...] | None
    """None: everything that is not hidden. Readable, too."""
    hidden: tuple[Path, ...]
    """Neither readable nor writable wherever they lie, now or once they exist, but for what is the program's own."""
    home: Path
    """The user's home directory."""
    network: bool
    programs: bool
    """Whether it may execute programs other than the one it is started as."""
    closed: tuple[Path, ...] = ()
    """Like the home directory: of what lies there, only what was named is readable."""
    own: tuple[Path, ...] = ()
    """What else belongs to it: readable, also where that is hidden."""
    astray: tuple[Path, ...] = ()
    """What it was to have and does not, because a link leads elsewhere; for its log."""


class Confined(Struct, frozen=True):
    argv: tuple[str, ...]
    by: Means
    gaps: tuple[str, ...] = ()
    """What of the policy this machine's means cannot hold it to, in words for a user."""
