"""`config.toml`: the user's standing choices. Flags win over it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from hilt.agent.retry import RetryPolicy
from hilt.errors import ConfigError
from hilt.model.actions import PermissionMode
from hilt.model.models import Reasoning
from hilt.model.verdicts import OnFailure
from hilt.sessions.disk import Durability

if TYPE_CHECKING:
    from hilt.packages.choices import Choices


PROJECT_CONFIG = ".hilt/config.toml"
"""What a project may ask for, in its directory; see `narrowing`."""


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
    jail: bool = False
    """Whether the file tools are confined to the working directory."""
    max_steps: Annotated[int, msgspec.Meta(ge=1)] = 50
    durability: Durability = "turn"
    retry: Retry = Retry()
    guards: Guards = Guards()
    extensions: dict[str, Any] = {}
    """`Choices` by name; `project:NAME` for those that come with a project."""


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
        if config.extensions:
            config = msgspec.structs.replace(config, extensions=_choices(config.extensions))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"{path}: {error}", hint="docs/reference/configuration.md lists what may stand there"
        ) from error
    if config.base_url and not config.provider:
        raise ConfigError(
            f"{path}: base_url without provider",
            hint="say whose address it is: another provider's key must not be sent there",
        )
    for name, choices in config.extensions.items():
        if name.startswith("project:") and choices.grants:
            # It would hold for any project that has one of this name.
            hint = "`hilt ext grant` in its folder gives it to that one alone"
            raise ConfigError(f'{path}: extensions."{name}": grants cannot be given here', hint=hint)
    return config


def _choices(extensions: dict[str, Any]) -> "dict[str, Choices]":
    from hilt.packages.choices import Choices  # 4 ms, and few have any

    # In an object of the same name, so that a complaint names the whole way to what is wrong.
    named: dict[str, dict[str, Choices]] = msgspec.convert(
        {"extensions": extensions}, dict[Literal["extensions"], dict[str, Choices]]
    )
    return named["extensions"]
