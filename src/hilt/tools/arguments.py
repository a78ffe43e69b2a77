"""A tool call's arguments as a typed value.

The agent has checked them against the tool's JSON Schema before; this turns the free-form object
into the frozen struct the tool works with, and still refuses what does not fit.
"""

from typing import TypeVar

import msgspec

from hilt.errors import ToolError
from hilt.model.content import Args

T = TypeVar("T")


def parse(args: Args, kind: type[T]) -> T:
    try:
        # Not strict: JSON Schema counts 30.0 as an integer, and some models write it so.
        return msgspec.convert(args, kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ToolError(f"wrong arguments: {error}", hint="follow the tool's schema") from None
