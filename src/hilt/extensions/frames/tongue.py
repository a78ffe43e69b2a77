"""How the frames dialect is read, and how its questions are numbered."""

import os
from collections.abc import Mapping
from types import MappingProxyType

from hilt.extensions.peer import Purpose
from hilt.wire.frames import decode, peek
from hilt.wire.frames_types import (
    ANSWERS,
    CommandResponse,
    EventInterceptResponse,
    ExtensionFrame,
    ExtResponse,
    ToolResult,
)
from hilt.wire.line import Malformed, Unknown

_EXPECTED: Mapping[Purpose, type] = MappingProxyType(
    {"call": ToolResult, "command": CommandResponse, "verdict": EventInterceptResponse, "method": ExtResponse}
)


class FramesTongue:
    answers = ANSWERS
    expected = _EXPECTED

    def __init__(self) -> None:
        # Random, so that no extension can guess what another is asked; the rest only has to differ.
        self._prefix = os.urandom(8).hex()
        self._asked = 0

    def new_id(self) -> str:
        self._asked += 1
        return f"{self._prefix}{self._asked}"

    def decode(self, line: bytes) -> ExtensionFrame | Unknown | Malformed:
        return decode(line)

    def peek(self, head: bytes) -> tuple[str, str]:
        return peek(head)
