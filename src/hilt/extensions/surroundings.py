"""Where an extension finds itself."""

from msgspec import Struct


class Surroundings(Struct, frozen=True):
    """Where an extension finds itself; fixed when the host is started."""

    provider: str
    model: str
    cwd: str
