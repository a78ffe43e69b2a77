"""What a run stands on before there is a session: flags, places, standing choices, keys; how trouble is told."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from hilt.cli.config import PROJECT_CONFIG, Config, load_config
from hilt.cli.logfile import log_to
from hilt.errors import ConfigError
from hilt.frontends.terminal import clean, hanging
from hilt.home import Home
from hilt.model.masking import Mask
from hilt.providers.catalogue import Catalogue
from hilt.providers.credentials import Credentials
from hilt.sessions.store import SessionStore


class Ground(Struct, frozen=True):
    options: argparse.Namespace
    home: Home
    cwd: Path
    config: Config
    credentials: Credentials
    catalogue: Catalogue
    store: SessionStore
    mask: Mask
    tell: Callable[..., None]
    """Says something that the user should know where this face says such things; empty texts are left out."""

    @classmethod
    def survey(cls, options: argparse.Namespace, say: Callable[..., None] | None = None) -> "Ground":
        home, say = Home.find(), say or tell
        try:
            home.prepare()
        except ConfigError as error:
            say(f"{error.message}: nothing of this run will be saved ({error.hint})")
        credentials = Credentials(home.auth)
        mask = Mask((*credentials.all_secrets(), options.api_key.strip()))
        log_to(home.log, mask)
        return cls(
            options,
            home,
            Path.cwd(),
            _config(home, Path.cwd(), say),
            credentials,
            Catalogue.load(home.models),
            SessionStore(home.sessions),
            mask,
            say,
        )


def _config(home: Home, cwd: Path, say: Callable[..., None]) -> Config:
    config = load_config(home.config)
    if not (cwd / PROJECT_CONFIG).exists():
        return config
    from hilt.cli.narrowing import narrowed  # 5 ms, and few projects have such a file

    return narrowed(config, cwd / PROJECT_CONFIG, say)


def tell(*notices: str) -> None:
    for notice in filter(None, notices):
        sys.stderr.write(clean(f"hilt: {hanging(notice)}\n"))
