"""What hilt knows about models: the built-in table with the user's own laid over it.

The table is `catalogue.json`, made by `scripts/build_catalogue.py`. It is read when somebody
first asks for a model it may hold; `demo` and `script` are constants and need no file.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from hilt.model.models import ModelInfo, Price
from hilt.providers.usermodels import UserModel, read_user_models
from hilt.providers.vendors import LOCAL, PROVIDERS, canonical

DEMO = ModelInfo("demo", "demo", name="Demo", context_window=32768, max_output=8192, price=Price())
SCRIPT = ModelInfo("script", "script", name="Script", context_window=200_000, max_output=64_000, price=Price())
_CONSTANTS = {DEMO.provider: DEMO, SCRIPT.provider: SCRIPT}
_TABLE = Path(__file__).with_name("catalogue.json")


class _Row(Struct, frozen=True):
    context: int
    output: int
    reasoning: bool
    price: tuple[float, float, float, float]


class _Table(Struct, frozen=True):
    models: dict[str, dict[str, _Row]]


class Catalogue:
    def __init__(self, user_models: Path | None) -> None:
        self._user_file = user_models
        self._user: dict[str, tuple[UserModel, ...]] | None = None
        self._built_in: dict[str, dict[str, ModelInfo]] | None = None

    @classmethod
    def load(cls, user_models: Path | None = None) -> "Catalogue":
        """Reads nothing yet: a bad `models.json` is reported by the first question."""
        return cls(user_models)

    def reload(self) -> None:
        """Read the user's own again. Raises `ConfigError`, and what was known stays."""
        self._user = read_user_models(self._user_file) if self._user_file else {}

    def find(self, provider: str, model: str) -> ModelInfo:
        """All that is known; for a model nobody knows, that is its id and no price."""
        provider = canonical(provider)
        return self.amended(self._known(provider, model) or _unknown(provider, model))

    def amended(self, info: ModelInfo) -> ModelInfo:
        """What anybody knows of a model, with what the user says of it in its place."""
        for said in self._user_by_provider().get(canonical(info.provider), ()):
            if said.id == info.id:
                info = said.over(info)
        return info

    def all(self, provider: str | None = None) -> list[ModelInfo]:
        wanted = canonical(provider) if provider else None
        return [info for info in self._every() if wanted in (None, info.provider)]

    def providers_of(self, model: str) -> list[str]:
        """Who serves a model of this id."""
        if model in _CONSTANTS:
            return [model]
        return [info.provider for info in self._every() if info.id == model]

    def _every(self) -> Iterator[ModelInfo]:
        built_in = self._table()
        user = self._user_by_provider()
        for provider in dict.fromkeys([*PROVIDERS, *built_in, *user]):
            known = built_in.get(provider, {})
            constant = _CONSTANTS.get(provider)
            ids = [constant.id] if constant else sorted(known)
            ids += [model.id for model in user.get(provider, ()) if model.id not in ids]
            yield from (self.find(provider, each) for each in dict.fromkeys(ids))

    def _known(self, provider: str, model: str) -> ModelInfo | None:
        constant = _CONSTANTS.get(provider)
        if constant is None:
            return self._table().get(provider, {}).get(model)
        if model == constant.id:
            return constant
        if provider == SCRIPT.provider:
            # A script may play the part of any model, so that costs and limits can be tried out.
            played = [known[model] for known in self._table().values() if model in known]
            return structs.replace(played[0], provider=provider, api="") if len(played) == 1 else None
        return None

    def _user_by_provider(self) -> dict[str, tuple[UserModel, ...]]:
        if self._user is None:
            self._user = read_user_models(self._user_file) if self._user_file else {}
        return self._user

    def _table(self) -> dict[str, dict[str, ModelInfo]]:
        if self._built_in is None:
            table = msgspec.json.decode(_TABLE.read_bytes(), type=_Table)
            self._built_in = {
                provider: {model: _info(provider, model, row) for model, row in rows.items()}
                for provider, rows in table.models.items()
            }
        return self._built_in


def _info(provider: str, model: str, row: _Row) -> ModelInfo:
    return ModelInfo(
        model,
        provider,
        context_window=row.context,
        max_output=row.output,
        reasoning=row.reasoning,
        price=Price(*row.price),
        api=_api(provider),
    )


def _unknown(provider: str, model: str) -> ModelInfo:
    if provider in LOCAL:
        return structs.replace(_CONSTANTS[provider], id=model, name="", price=None)
    vendor = PROVIDERS.get(provider)
    if vendor is None:
        return ModelInfo(model, provider)
    return ModelInfo(
        model, provider, context_window=vendor.context_window, max_output=vendor.max_output, api=vendor.api
    )


def _api(provider: str) -> str:
    vendor = PROVIDERS.get(provider)
    return vendor.api if vendor else ""
