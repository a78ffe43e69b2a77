"""The host's services for a client of `hilt rpc`: one more who asks, in the user's own name, so nothing is refused."""

from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from hilt.extensions.capabilities import Capabilities
from hilt.extensions.services.asking import Asker, Deliver
from hilt.packages.permissions import Permissions

if TYPE_CHECKING:
    from hilt.extensions.services.answering import Services

NAME = "rpc"


class Client:
    def __init__(self, services: "Services", deliver: Deliver) -> None:
        everything = Capabilities(Permissions(consented=True), NAME)
        self._services = services
        self._asker = Asker(NAME, everything, deliver=deliver, new_id=count(1).__next__)

    async def answer(self, method: str, params: Raw) -> Any:
        return await self._services.answer(method, params, self._asker)

    def leave(self) -> None:
        self._asker.leave()
