"""The codes of what the host, or an extension, could not do: the same whatever dialect carries them."""

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
NOT_FOUND = -32604
"""Of no standard, as the others are: there is no such tool, snapshot, entry."""
