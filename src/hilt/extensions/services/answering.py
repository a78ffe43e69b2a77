"""Method and params to a result: what every service has in common.

Knows neither the dialect nor how many may be under way: whoever reads a request runs `answer` in a task of its own,
which it cancels with the asker, and writes down the outcome.
"""

import asyncio
import logging
from typing import Any

from msgspec import Raw, UnsetType

from hilt.errors import FrameError, HiltError, ServiceFault
from hilt.extensions.services.asking import Asker, Backing, Service
from hilt.packages.members import quoted
from hilt.wire.faults import INTERNAL, METHOD_NOT_FOUND

log = logging.getLogger(__name__)


class Services:
    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def knows(self, method: str) -> bool:
        from hilt.extensions.services.table import SERVICES  # see `answer`

        return method in SERVICES

    async def answer(self, method: str, params: Raw | UnsetType, asker: Asker) -> Any:
        """The result, ready to be encoded. Raises `ServiceFault`, and nothing else that is anyone's fault."""
        # Nobody may ever ask, and what all the methods carry takes a while to be defined.
        from hilt.extensions.services.table import SERVICES
        from hilt.wire.jsonrpc_methods import METHODS
        from hilt.wire.jsonrpc_reading import read

        service = SERVICES.get(method)
        if service is None:
            raise ServiceFault(METHOD_NOT_FOUND, f"method not found: {quoted(method)}")
        asker.require(*service.needs)
        try:
            given = read(params, METHODS[method].params)
        except FrameError as error:
            raise ServiceFault(service.unreadable, f"{method}: {error.message}") from error
        return await self._do(service, method, given, asker)

    async def _do(self, service: Service, method: str, params: Any, asker: Asker) -> Any:
        limit = asyncio.timeout(service.seconds)
        try:
            async with limit:
                return await service.do(self._backing, params, asker)
        except ServiceFault:
            raise
        except HiltError as error:
            about = f"{service.failing}: " if service.failing else ""
            raise ServiceFault(INTERNAL, f"{about}{error.message}", hint=error.hint) from error
        except Exception as error:
            if limit.expired():
                raise ServiceFault(INTERNAL, f"{method} did not end within {service.seconds:g} s") from None
            # A mistake of ours costs whoever asked this answer, and not its life.
            log.exception("%s failed for %s", method, asker.name)
            hint = "this is a bug in hilt; the log has the details"
            raise ServiceFault(INTERNAL, f"internal error: {type(error).__name__}: {error}", hint=hint) from error
