"""`models.json`: the models a user adds, or knows better.

    {"providers": {"ollama": {"models": [{"id": "qwen3", "contextWindow": 40960}]}}}

Owns reading that file, and changing what it says about single models. What it says is laid over the
built-in facts by `catalogue`, so a field that is left out keeps its built-in value.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from hilt.errors import ConfigError, PackageError, UsageError
from hilt.model.models import ModelInfo, Price
from hilt.providers.vendors import canonical

if TYPE_CHECKING:
    from hilt.model.services import ModelOverride

_HINT = 'the file looks like {"providers": {"ollama": {"models": [{"id": "qwen3", "contextWindow": 40960}]}}}'
_LARGEST_FILE = 4 * 1024 * 1024

_Tokens: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)] | UnsetType
_Dollars: TypeAlias = Annotated[float, Meta(ge=0)] | UnsetType


class UserModel(Struct, frozen=True, rename="camel"):
    id: Annotated[str, Meta(min_length=1)]
    name: str | UnsetType = UNSET
    reasoning: bool | UnsetType = UNSET
    context_window: _Tokens = UNSET
    max_tokens: _Tokens = UNSET
    base_url: str | UnsetType = UNSET
    price_input: _Dollars = UNSET
    """US dollars per million tokens, as are the others."""
    price_output: _Dollars = UNSET
    price_cache_read: _Dollars = UNSET
    price_cache_write: _Dollars = UNSET

    def over(self, info: ModelInfo) -> ModelInfo:
        """What is known, with what the user says in its place."""
        said: dict[str, Any] = {
            "name": self.name,
            "reasoning": self.reasoning,
            "context_window": self.context_window,
            "max_output": self.max_tokens,
            "base_url": self.base_url,
            "price": self._price(info.price),
        }
        return structs.replace(info, **{field: value for field, value in said.items() if value is not UNSET})

    def _price(self, known: Price | None) -> Price | UnsetType:
        said = {
            "input": self.price_input,
            "output": self.price_output,
            "cache_read": self.price_cache_read,
            "cache_write": self.price_cache_write,
        }
        given = {field: value for field, value in said.items() if not isinstance(value, UnsetType)}
        return structs.replace(known or Price(), **given) if given else UNSET


class _File(Struct, frozen=True):
    providers: dict[str, msgspec.Raw] = {}


class _Provider(Struct, frozen=True):
    models: tuple[UserModel, ...] = ()


def read_user_models(path: Path) -> dict[str, tuple[UserModel, ...]]:
    """By provider. A file that is not there says nothing; one that is wrong says where."""
    try:
        if path.stat().st_size > _LARGEST_FILE or not path.is_file():
            raise ConfigError(f"{path} is not a file of models", hint=_HINT)
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint=f"make {path.name} readable") from error
    return _parsed(path, data)


def _parsed(path: Path, data: bytes) -> dict[str, tuple[UserModel, ...]]:
    models: dict[str, tuple[UserModel, ...]] = {}
    where = "$"
    try:
        for provider, raw in msgspec.json.decode(data, type=_File).providers.items():
            where = f"$.providers.{provider}"
            name = canonical(provider)
            models[name] = models.get(name, ()) + msgspec.json.decode(raw, type=_Provider).models
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {_located(str(error), where)}", hint=_HINT) from error
    return models


def write_user_models(path: Path, overrides: "Mapping[str, ModelOverride]") -> int:
    """Have the file say this of models, by `provider/id`, and leave the rest of it as it is. How many it then has."""
    from hilt.packages import keeping  # few ever change the file

    try:
        with keeping.alone(path):
            read_user_models(path)  # what is wrong already is told as such
            target = path.resolve()  # people keep such files elsewhere and link them
            said = msgspec.json.decode(keeping.read(target, _LARGEST_FILE) or b"{}", type=dict[str, Any])
            for name, override in overrides.items():
                _put(said, name, override)
            data = msgspec.json.format(msgspec.json.encode(said), indent=2) + b"\n"
            count = sum(map(len, _parsed(path, data).values()))  # before it is there for good
            keeping.replace(target, data)
            return count
    except PackageError as error:
        raise ConfigError(error.message, hint=error.hint) from error


def _put(said: dict[str, Any], name: str, override: "ModelOverride") -> None:
    provider, _, model = name.partition("/")
    if not provider.strip() or not model.strip():
        raise UsageError(f"{name!r:.100} is not the name of a model", hint="models are named provider/id")
    wanted = {"name": override.name, "contextWindow": override.context_window, "maxTokens": override.max_tokens}
    providers = said.setdefault("providers", {})
    same = [one for one in providers if canonical(one) == canonical(provider)]
    entries = [entry for one in same for entry in providers[one].get("models", ()) if entry["id"] == model]
    if not entries:
        entries = [{"id": model}]
        providers.setdefault(same[0] if same else canonical(provider), {}).setdefault("models", []).extend(entries)
    for entry in entries:
        entry |= {field: value for field, value in wanted.items() if value is not None}


def _located(problem: str, where: str) -> str:
    """Each decoder calls its own top `$`; the user sees one path from the top of the file."""
    return problem.replace("`$", f"`{where}") if "`$" in problem else f"{problem} - at `{where}`"
