"""How long extensions may take to have their say, each time they are asked. Interceptors say so for themselves."""

from msgspec import Struct


class Deadlines(Struct, frozen=True):
    """In seconds."""

    transformer: float = 30.0
    hook: float = 5.0
    result: float = 30.0
    compactor: float = 30.0
    command: float = 2.0
    """For one that waited for its turn: then what waits behind it goes on. It may be waiting for just that."""
