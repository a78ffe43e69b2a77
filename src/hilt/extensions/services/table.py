"""All that can be asked for, by method. What each carries is in `wire.jsonrpc_methods`."""

from collections.abc import Mapping
from types import MappingProxyType

from hilt.extensions.services import (
    bus,
    configuration,
    conversation,
    dialogs,
    minds,
    models,
    registered,
    sessions,
    tools,
    undo,
)
from hilt.extensions.services.asking import Service

SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        **tools.SERVICES,
        **configuration.SERVICES,
        **minds.SERVICES,
        **conversation.SERVICES,
        **sessions.SERVICES,
        **models.SERVICES,
        **dialogs.SERVICES,
        **registered.SERVICES,
        **undo.SERVICES,
        **bus.SERVICES,
    }
)
