"""Which extensions an embedding program gets: those it names, or those that the user installed."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from hilt.errors import ConfigError, ManifestError
from hilt.home import SETTINGS_HINT, Home, read_settings
from hilt.packages.choices import Choices, choices_in
from hilt.packages.discovery import Discovery
from hilt.packages.finder import Finder
from hilt.packages.trust.screening import Gate
from hilt.packages.trust.store import TrustStore


def places_of(cwd: str | os.PathLike[str], home: str | os.PathLike[str] | None) -> tuple[Path, Home]:
    """Where the program works, and where extensions keep what they keep. Raises `ConfigError`."""
    root = Home(Path(home).expanduser().absolute()) if home is not None else Home.find()
    root.prepare()
    return Path(cwd).absolute(), root


def choices_of(home: Home) -> dict[str, Choices]:
    """What the user decided about single extensions. Raises `ConfigError`."""
    try:
        return choices_in(read_settings(home.config).get("extensions", {}))
    except msgspec.ValidationError as error:
        raise ConfigError(f"{home.config}: {error}", hint=SETTINGS_HINT) from error


def finder(named: Iterable[str] | None, home: Home, cwd: Path, choices: Mapping[str, Choices]) -> Finder:
    """Those alone that are named; without names all that are installed. None that merely lie in the folder `cwd`:
    whoever embeds them has nobody to ask whether they may run."""
    path = os.environ.get("PATH", os.defpath)
    return Finder(
        flags=tuple(named or ()),
        user=home.extensions,
        projects=(),
        only_flags=named is not None,
        path=path,
        cwd=cwd,
        choices=choices,
        lock=home.lock,
        gate=Gate(TrustStore(home.trust), cwd, home.trusted, path),
    )


def insist(discovery: Discovery) -> None:
    """What was named must be there. Raises `ManifestError` for the first that cannot run."""
    for problem in discovery.problems:
        raise ManifestError(problem.message.removeprefix("--ext "), hint=problem.hint, extension=problem.name)
