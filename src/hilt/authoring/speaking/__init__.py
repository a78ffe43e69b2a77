"""What a scripted host says and understands, in each dialect: pure, from values to frames and messages, and back."""

from hilt.authoring.speaking.tongue import Tongue
from hilt.model.extensions import Dialect


def tongue(dialect: Dialect) -> Tongue:
    """Imported when there is one that speaks it."""
    if dialect == "jsonrpc":
        from hilt.authoring.speaking.jsonrpc import JsonRpc

        return JsonRpc()
    from hilt.authoring.speaking.frames import Frames

    return Frames()
