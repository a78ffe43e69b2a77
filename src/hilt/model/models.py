"""What is known about a model: its window, its prices, where it is served."""

from typing import Literal, TypeAlias

from msgspec import Struct, structs

from hilt.model.conversation import Usage

Reasoning: TypeAlias = Literal["", "low", "medium", "high"]


class Price(Struct, frozen=True):
    """US dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


class ModelInfo(Struct, frozen=True):
    id: str
    provider: str
    name: str = ""
    context_window: int = 0
    """0 when nobody knows: compaction is then manual."""
    max_output: int = 0
    reasoning: bool = False
    price: Price | None = None
    """None when nobody knows: such a model costs 0 and hilt says so once."""
    base_url: str = ""
    api: str = ""
    """The language in which it is spoken to; empty where that is its provider's own."""
    extension: str = ""
    """Who answers for it; empty for the built-in adapters."""

    @property
    def spoken(self) -> str:
        """The API by which an extension claims it."""
        return self.api or self.provider


def priced(usage: Usage, model: ModelInfo) -> Usage:
    """The same usage with its cost filled in from the model's prices, unless whoever answered says what it was."""
    if usage.cost_usd or model.price is None:
        return usage
    cost = (
        usage.input * model.price.input
        + usage.output * model.price.output
        + usage.cache_read * model.price.cache_read
        + usage.cache_write * model.price.cache_write
    ) / 1_000_000
    return structs.replace(usage, cost_usd=cost)
