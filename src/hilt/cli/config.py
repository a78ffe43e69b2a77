"""`config.toml`: the user's standing choices. Flags win over it."""

from pathlib import Path
from typing import Annotated

import msgspec

from hilt.agent.retry import RetryPolicy
from hilt.errors import ConfigError
from hilt.model.actions import PermissionMode
from hilt.model.models import Reasoning
from hilt.model.verdicts import OnFailure
from hilt.sessions.disk import Durability


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    attempts: int = RetryPolicy().attempts
    base_delay: float = RetryPolicy().base


class Guards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens when a guard gives no verdict, where that is stricter than the guard's own wish."""

    on_failure: OnFailure | None = None
    by_name: dict[str, OnFailure] = {}


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: str = ""
    model: str = ""
    base_url: str = ""
    reasoning: Reasoning = ""
    permissions: PermissionMode | None = None
    max_steps: Annotated[int, msgspec.Meta(ge=1)] = 50
    durability: Durability = "turn"
    retry: Retry = Retry()
    guards: Guards = Guards()


def load_config(path: Path) -> Config:
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise ConfigError(f"{path}: it is not a regular file", hint="put a file there, or remove it")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    import tomllib  # 4 ms, and most people have no config file

    try:
        config = msgspec.convert(tomllib.loads(text), Config)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"{path}: {error}", hint="docs/reference/configuration.md lists what may stand there"
        ) from error
    if config.base_url and not config.provider:
        raise ConfigError(
            f"{path}: base_url without provider",
            hint="say whose address it is: another provider's key must not be sent there",
        )
    return config
