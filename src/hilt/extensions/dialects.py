"""Which dialect an extension speaks: the one place that asks."""

from typing import TYPE_CHECKING

from hilt.packages.discovery import Found

if TYPE_CHECKING:
    from hilt.extensions.frames.extension import FramesExtension
    from hilt.extensions.jsonrpc.extension import JsonRpcExtension


def dialect(found: Found) -> "type[FramesExtension] | type[JsonRpcExtension]":
    """Imported when there is one that speaks it: most have extensions of one dialect only."""
    if found.manifest.dialect == "jsonrpc":
        from hilt.extensions.jsonrpc.extension import JsonRpcExtension

        return JsonRpcExtension
    from hilt.extensions.frames.extension import FramesExtension

    return FramesExtension
