"""What extensions may read of the user's configuration: their own settings, and what of hilt's is no secret."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from hilt.cli.config import Config, checked
from hilt.errors import UsageError
from hilt.home import Home, read_settings
from hilt.packages.members import read_file, shown

_SECRET = ("key", "token", "secret", "password", "credential", "auth")
_LARGEST = 1024 * 1024


class Settings:
    """The port `Settings` of the services. The file is read anew each time: it may be edited while hilt runs."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def get(self, keys: Sequence[str], source: str) -> dict[str, Any]:
        settings = read_settings(self._home.config)
        config = checked(self._home.config, settings)
        own = config.extensions[source].settings if source in config.extensions else {}
        places = (own, _usual(config), _public(settings))
        values: dict[str, Any] = {}
        for key in keys:
            found = [value for place in places if (value := _at(place, key)) is not None]
            if found:
                values[key] = found[0]
        return values

    def read(self, name: str) -> str:
        if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
            raise UsageError(f'invalid extension name: "{shown(name)}"')
        path = self._home.data / name / f"{name}.md"
        if not os.path.lexists(path):
            return ""
        # The extension may write in this directory, and must not see through a link what is hidden from it.
        text = read_file(path, _LARGEST, "what you want the extension to know", links=False)
        return text.decode(errors="replace").strip()

    def directory(self) -> str:
        return str(self._home.extensions)


def small_model(config: Config, environment: Mapping[str, str] = os.environ) -> str:
    """Which one small tasks are for; empty when that is the one in use."""
    named = (environment.get(variable, "").strip() for variable in ("HILT_SMALL_MODEL", "PIGLET_SMALL_MODEL"))
    return config.small_model or next(filter(None, named), "")


def _usual(config: Config) -> dict[str, Any]:
    """What every host of these extensions knows, under the names that they ask for."""
    model = f"{config.provider}/{config.model}" if config.provider and config.model else config.model
    return {
        "defaultModel": model,
        "smallModel": small_model(config),
        "agent.compactAt": config.compact_at,
        "agent.maxTurns": config.max_steps,
    }


def _public(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The user's file without secrets, and without what is between the user and other extensions."""
    return {name: value for name, value in _open(settings).items() if name != "extensions"}


def _open(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _open(value) if isinstance(value, dict) else value
        for name, value in table.items()
        if not _secret(name, value)
    }


def _secret(name: str, value: Any) -> bool:
    words = name.lower().replace("-", "_").split("_")
    # `extension_tokens` is a number of them.
    telling = isinstance(value, str) and any(part in name.lower() for part in _SECRET)
    return telling or "key" in words or (isinstance(value, str) and _has_login(value))


def _has_login(value: str) -> bool:
    try:
        return "@" in urlsplit(value).netloc
    except ValueError:
        return "@" in value


def _at(table: Mapping[str, Any], key: str) -> Any:
    """By its whole name, or by the way to it; None when it is not set."""
    if key in table:
        return table[key]
    head, dot, rest = key.partition(".")
    inner = table.get(head)
    return _at(inner, rest) if dot and isinstance(inner, dict) else None
