"""Extensions for hilt, zot and piglet: typed functions, a few decorators, and `run`."""

from hilt_sdk.calls import Call
from hilt_sdk.extension import Extension
from hilt_sdk.values import (
    Block,
    Event,
    Handled,
    HostError,
    Image,
    Insert,
    Intercepted,
    NotConnected,
    NotOffered,
    Prompt,
    RegistrationError,
    Replace,
    Result,
    Rewrite,
    ToolError,
    ToolPrompt,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hilt_sdk.panels import Panel
    from hilt_sdk.provider import Model, Reply, Request

__version__ = "0.1.0"
__all__ = [
    "Block",
    "Call",
    "Event",
    "Extension",
    "Handled",
    "HostError",
    "Image",
    "Insert",
    "Intercepted",
    "Model",
    "NotConnected",
    "NotOffered",
    "Panel",
    "Prompt",
    "RegistrationError",
    "Replace",
    "Reply",
    "Request",
    "Result",
    "Rewrite",
    "ToolError",
    "ToolPrompt",
]

_LATER = {"Panel": "panels", "Model": "provider", "Reply": "provider", "Request": "provider"}
"""Where those are that few extensions need: they are imported when they are asked for."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{_LATER[name]}", fromlist=[name])
    value: object = getattr(module, name)
    return value
