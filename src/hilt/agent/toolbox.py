"""The tools there are, for whoever asks: what each is, and what the model is to see of them."""

from collections.abc import Iterable

from hilt.agent.activation import Activation
from hilt.agent.words import SELF
from hilt.model.contributions import Effect
from hilt.model.services import ToolListing
from hilt.registry.registry import Registry
from hilt.registry.snapshot import OwnedTool, Snapshot


class Toolbox:
    """The port `Tools` of the services."""

    def __init__(self, registry: Registry, activation: Activation) -> None:
        self._registry = registry
        self._activation = activation

    def list(self) -> tuple[ToolListing, ...]:
        """All of them, by name."""
        tools = self._registry.snapshot().tools.values()
        return tuple(sorted(map(self._listing, tools), key=lambda listing: listing.name))

    def activate(self, name: str) -> bool:
        """Show a deferred tool whole to the model. False when there is none of that name that is deferred."""
        tool = self._registry.snapshot().tool(name)
        if tool is None or tool.exposure != "deferred":
            return False
        self._activation.show(name)
        return True

    def narrow(self, names: Iterable[str], source: str) -> None:
        """Let the model have these only; none lifts it. Ends with whoever asked for it."""
        self._activation.narrow(names, source)

    def _listing(self, owned: OwnedTool) -> ToolListing:
        tool = owned.tool
        return ToolListing(
            tool.name,
            tool.description,
            tool.schema,
            deferred=self._activation.waits(tool),
            background_safe=_safe(owned),
        )


def background_safe(snapshot: Snapshot) -> set[str]:
    """The tools that may be used where nobody watches."""
    return {owned.tool.name for owned in snapshot.tools.values() if _safe(owned)}


def _safe(owned: OwnedTool) -> bool:
    """Those of our own that only read: of others it is not known that they do what they say."""
    return owned.owner == SELF and owned.tool.effect is Effect.READ
