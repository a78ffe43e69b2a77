"""Who asks the host for something, what stands behind the answers, and what a service is."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from hilt.errors import ServiceFault
from hilt.extensions.agent import Agent
from hilt.extensions.capabilities import Capabilities
from hilt.extensions.services.ports import Facilities, Neighbours
from hilt.registry.snapshot import Snapshot
from hilt.wire.faults import INTERNAL, INVALID_PARAMS, NOT_FOUND

USUAL = 30.0
LONG = 300.0
"""Seconds for what a model, or a tool, is at work on."""

PUBLISHED = 256 * 1024
"""Bytes of what is published at once: it is written once for each subscription."""
SUBSCRIPTIONS = 64
"""Of one asker."""

Deliver: TypeAlias = Callable[[str, int, Any], None]
"""Tells of something that was published: topic, subscription, data. Must neither block nor raise."""


class Asker:
    """One process of an extension, or one client, for as long as it is there."""

    def __init__(
        self,
        name: str,
        capabilities: Capabilities,
        *,
        deliver: Deliver,
        new_id: Callable[[], int],
        chain: Callable[[], tuple[str, ...]] = tuple,
        denied: Callable[[str], None] | None = None,
    ) -> None:
        """`new_id` numbers subscriptions. `chain` says which tools led to a call that it makes now, outermost first.
        `denied` is told what it was refused for want of a permission: whoever can grant it should know."""
        self.name = name
        self.capabilities = capabilities
        self.deliver = deliver
        self.new_id = new_id
        self.chain = chain
        self._denied = denied
        self._subscriptions: dict[int, Callable[[], None]] = {}
        self._left = False

    def require(self, *permissions: str) -> None:
        """Raises `ServiceFault` for the first that it lacks."""
        if refusal := self.capabilities.refusal(*permissions, asking=True):
            if self._denied:
                self._denied(refusal)
            raise ServiceFault(INTERNAL, refusal)

    @property
    def subscriptions(self) -> int:
        return len(self._subscriptions)

    def keep(self, subscription: int, end: Callable[[], None]) -> None:
        if self._left:
            end()
        else:
            self._subscriptions[subscription] = end

    def unsubscribe(self, subscription: int) -> bool:
        """False when there is none of that number."""
        end = self._subscriptions.pop(subscription, None)
        if end is None:
            return False
        end()
        return True

    def leave(self) -> None:
        """It is gone, and so is what it subscribed to."""
        self._left = True
        for subscription in tuple(self._subscriptions):
            self.unsubscribe(subscription)


class Backing(Struct, frozen=True):
    """What stands behind the services."""

    facilities: Facilities
    agent: Agent
    snapshot: Callable[[], Snapshot]
    """What is registered at present."""
    neighbours: Neighbours


class Service(Struct, frozen=True):
    """One thing that can be asked for."""

    do: Callable[[Backing, Any, Asker], Awaitable[Any]]
    """Given the params of the method, as its type; gives its result, likewise. Raises `HiltError`."""
    needs: tuple[str, ...] = ()
    """Permissions, beyond those that depend on the params."""
    seconds: float | None = USUAL
    """How long it may take; None where it waits for a person, or for the agent."""
    failing: str = ""
    """What could not be done, in front of the reason why."""
    unreadable: int = INVALID_PARAMS
    """The code of params that cannot be read."""


Table: TypeAlias = Mapping[str, Service]
"""By method."""


def invalid(message: str) -> ServiceFault:
    return ServiceFault(INVALID_PARAMS, message)


def missing(message: str) -> ServiceFault:
    return ServiceFault(NOT_FOUND, message)


def given(member: str, text: str) -> str:
    """What cannot be left out. Raises `ServiceFault`."""
    if not text:
        raise invalid(f"{member} is required")
    if "\0" in text:
        raise invalid(f"{member} must not hold a NUL")
    return text
