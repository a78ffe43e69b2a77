"""`config.toml`: the user's standing choices. Flags win over it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from hilt.agent.retry import RetryPolicy
from hilt.errors import ConfigError
from hilt.home import SETTINGS_HINT, read_settings
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


class Background(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Agents that extensions have work beside the conversation."""

    max_turns: Annotated[int, msgspec.Meta(ge=1)] = 5


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: str = ""
    model: str = ""
    base_url: str = ""
    small_model: str = ""
    """As `--model`, for small tasks of extensions; empty leaves them to the model in use."""
    reasoning: Reasoning = ""
    theme: str = ""
    """How the terminal interface looks: `dark`, `light`, `system`, or one of the user's; see `frontends.tui.themes`."""
    permissions: PermissionMode | None = None
    jail: bool = False
    """Whether the file tools are confined to the working directory."""
    max_steps: Annotated[int, msgspec.Meta(ge=1)] = 50
    compact_at: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens from which on the conversation is made short by itself; 0 leaves it to the model's window."""
    durability: Durability = "turn"
    extension_tokens: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    """How many each extension may have models use beside the conversation, in a session."""
    retry: Retry = Retry()
    guards: Guards = Guards()
    background: Background = Background()
    extensions: dict[str, Any] = {}
    """`Choices` by name; `project:NAME` for those that come with a project."""


def load_config(path: Path) -> Config:
    return checked(path, read_settings(path))


def checked(path: Path, settings: dict[str, Any]) -> Config:
    """What was read of the file, if it may stand there. Raises `ConfigError`."""
    try:
        config = msgspec.convert(settings, Config)
        if config.extensions:
            config = msgspec.structs.replace(config, extensions=_choices(config.extensions))
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}", hint=SETTINGS_HINT) from error
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
    from hilt.packages.choices import choices_in  # 4 ms, and few have any

    return choices_in(extensions)
