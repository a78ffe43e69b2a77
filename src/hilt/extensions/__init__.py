"""Extensions at work: programs of their own that add to the agent, and the host that runs and hears them.

`ExtensionHost` as it is exported here is the public one, for other programs: it is made in `hilt.embedding`, above,
since it takes the agent's tool calls and guards along. What hilt itself runs is `extensions.host.RunningExtensions`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilt.embedding.called import Called as Called
    from hilt.embedding.host import ExtensionHost as ExtensionHost

__all__ = ["Called", "ExtensionHost"]


def __getattr__(name: str) -> object:
    """Looked up when somebody asks for it: whoever imports a module of this package needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hilt.embedding import host

    return getattr(host, name)
