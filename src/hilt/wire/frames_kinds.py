"""What the frame `register` can be for, and what each kind cannot do without."""

from collections.abc import Mapping
from types import MappingProxyType

from hilt.wire.frames_types import Register

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "prompt_section": "title",
        "shortcut": "key",
        "message_hook": "name",
        "input_transformer": "name",
        "compactor": "name",
        "provider": "api",
        "interceptor": "name",
        "event_handler": "name",
    }
)
"""What `register` takes, and the field each kind cannot do without."""


def register_problem(contribution: Register) -> str | None:
    """Why it is refused, or None."""
    needed = KINDS.get(contribution.kind)
    if needed is None:
        return f"register: kind {contribution.kind[:64]!r} is not one of {', '.join(KINDS)}"
    if not getattr(contribution, needed):
        return f"register {contribution.kind}: {needed} is missing"
    return None
