"""The tools there are, for whoever asks: what each is, and what the model is to see of them."""

from collections.abc import Iterable

from hilt.agent.activation import Activation
from hilt.model.contributions import Effect
from hilt.model.services import ToolListing
from hilt.registry.registry import Registry
from hilt.registry.snapshot import OwnedTool


class Toolbox:
    """The port `Tools` of the services. `builtin` is the owner whose tools may be trusted to do what they say."""

    def __init__(self, registry: Registry, activation: Activation, builtin: str) -> None:
        self._registry = registry
        self._activation = activation
        self._builtin = builtin

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
            background_safe=owned.owner == self._builtin and tool.effect is Effect.READ,
        )
