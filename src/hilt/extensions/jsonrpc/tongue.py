"""How the jsonrpc dialect is read, and how its questions are numbered."""

from collections.abc import Mapping
from types import MappingProxyType

from hilt.extensions.peer import Purpose
from hilt.wire.jsonrpc import Malformed as BadLine
from hilt.wire.jsonrpc import Notice, Reply, Request, decode, peek
from hilt.wire.line import Malformed

_EXPECTED: Mapping[Purpose, type] = MappingProxyType(
    {"call": Reply, "command": Reply, "verdict": Reply, "method": Reply}
)


class JsonRpcTongue:
    answers = (Reply,)
    expected = _EXPECTED

    def __init__(self) -> None:
        self._count = 0

    def new_id(self) -> int:
        """From one count for all that is numbered: questions, subscriptions, streams. The first is 1."""
        self._count += 1
        return self._count

    def decode(self, line: bytes) -> Request | Notice | Reply | BadLine | Malformed:
        heard = decode(line)
        if type(heard) is not BadLine or heard.method:
            return heard  # a bad request is for whoever takes requests: there is somebody to be told
        return Malformed(heard.reason, "", -1 if heard.id is None else heard.id)

    def peek(self, head: bytes) -> tuple[str, int]:
        method, id_ = peek(head)
        return method, -1 if id_ is None or method else id_
