"""Where things live, `HILT_HOME` or the platform's state directory, and what the user's own file there says.

What may stand in that file is for whoever reads it: `cli.config`, and `packages.choices` for extensions.
"""

import os
import sys
from pathlib import Path
from typing import Any

from hilt.errors import ConfigError, UsageError

SETTINGS_HINT = "docs/reference/configuration.md lists what may stand there"


def working_directory() -> Path:
    """Raises `UsageError` when it was removed, or can no longer be reached."""
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(f"the working directory is gone: {error.strerror}", hint="cd to one that exists") from error


class Home:
    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def find(cls) -> "Home":
        if explicit := os.environ.get("HILT_HOME"):
            return cls(Path(explicit).expanduser().absolute())
        if state := os.environ.get("XDG_STATE_HOME"):
            return cls(Path(state, "hilt").absolute())
        if sys.platform == "darwin":
            return cls(Path.home() / "Library" / "Application Support" / "hilt")
        return cls(Path.home() / ".local" / "state" / "hilt")

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def auth(self) -> Path:
        return self.root / "auth.json"

    @property
    def models(self) -> Path:
        return self.root / "models.json"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def snapshots(self) -> Path:
        """Files as they were before a tool changed them."""
        return self.root / "snapshots"

    @property
    def outputs(self) -> Path:
        """The whole output of commands whose result had to be cut."""
        return self.root / "outputs"

    @property
    def extensions(self) -> Path:
        """The user's own extensions, a directory each. All that others may read or run is in here."""
        return self.root / "extensions"

    @property
    def lock(self) -> Path:
        """What hilt installed there, from where, and how it was then."""
        return self.root / "extensions.lock"

    @property
    def trust(self) -> Path:
        """Which folders' own extensions may run."""
        return self.root / "trust.json"

    @property
    def trusted(self) -> Path:
        """Copies of those, as they were when that was said."""
        return self.extensions / ".trusted"

    @property
    def seen(self) -> Path:
        """How extensions were when they last ran."""
        return self.root / "seen.json"

    @property
    def descriptions(self) -> Path:
        """What each extension told the model about its tools."""
        return self.root / "descriptions.json"

    @property
    def environments(self) -> Path:
        """What extensions in one file need of Python, an environment each."""
        return self.extensions / ".environments"

    @property
    def data(self) -> Path:
        """What extensions keep, where they keep it apart from their code."""
        return self.root / "data"

    @property
    def themes(self) -> Path:
        """How the user wants the terminal interface to look, a file each."""
        return self.root / "themes"

    @property
    def history(self) -> Path:
        """What was typed in the terminal interface."""
        return self.root / "history.jsonl"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def log(self) -> Path:
        return self.logs / "hilt.log"

    def prepare(self) -> None:
        """Make the directory, private from the start."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self.root} cannot be made: {error.strerror}", hint="set HILT_HOME to a directory of your own"
            ) from error


def read_settings(path: Path) -> dict[str, Any]:
    """All that the file says, as it says it; nothing when there is none. Raises `ConfigError`."""
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise ConfigError(f"{path}: it is not a regular file", hint="put a file there, or remove it")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    import tomllib  # 4 ms, and most people have no config file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", hint=SETTINGS_HINT) from error
