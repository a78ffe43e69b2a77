"""What handlers give back and what goes wrong: results, pictures, verdicts, commands' actions, errors.

Plain values, the same in both dialects. How they are written on the wire is the dialects' business.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any

    Block_ = dict[str, Any]
    """`{"type": "text", "text": …}` or `{"type": "image", "mime_type": …, "data": …}`."""


# What goes wrong


class SdkError(Exception):
    """All errors that the SDK raises itself."""


class RegistrationError(SdkError, ValueError):
    """Something that cannot be registered; the message says what and how to put it right."""


class NotOffered(SdkError):
    """The present host does not offer what was asked for."""


class NotConnected(SdkError):
    """There is no host: the extension does not run, or the host has gone."""


class HostError(SdkError):
    """The host answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ToolError(Exception):
    """A tool failed, and the model shall read exactly this; the code and the hint are for it too."""

    def __init__(self, message: str, code: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint


def explained(error: BaseException) -> str:
    """One line for whoever asked: the message of a `ToolError` or of the SDK's own, of others their kind too."""
    if isinstance(error, (ToolError, SdkError)):
        return readable(str(error))
    text = " ".join(readable(str(error)).split())
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def readable(text: str) -> str:
    """The text without what no line could carry."""
    return text.encode(errors="replace").decode()


# What tools give back


class Image:
    """A picture: its bytes, or the path of its file. The type is found out when it is not given."""

    __slots__ = ("data", "mime")

    def __init__(self, data: bytes | str | os.PathLike[str], mime: str = "") -> None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            with open(data, "rb") as file:
                data = file.read()
        self.data = bytes(data)
        self.mime = mime or _mime(self.data)

    def block(self) -> Block_:
        from binascii import b2a_base64

        return {"type": "image", "mime_type": self.mime, "data": b2a_base64(self.data, newline=False).decode()}


class Result:
    """What a tool returns when a text alone does not say it all."""

    __slots__ = ("activate", "code", "content", "hint", "is_error", "structured", "truncated")

    def __init__(
        self,
        text: str | None = None,
        *,
        content: Sequence[str | Image | Block_] | None = None,
        is_error: bool = False,
        structured: Any = None,
        activate: Sequence[str] = (),
        code: str = "",
        hint: str = "",
    ) -> None:
        blocks = [] if text is None else [_block(text)]
        blocks.extend(_block(one) for one in content or ())
        self.content: list[Block_] = blocks
        self.is_error = is_error
        self.structured = structured
        """For programs: kept beside the text, where the host can."""
        self.activate = list(activate)
        """Deferred tools that the model may call from now on."""
        self.code = code
        self.hint = hint
        self.truncated = False
        """Of another tool's result: there was more."""

    @property
    def failed(self) -> bool:
        return self.is_error or bool(self.code)

    @property
    def text(self) -> str:
        """All its texts, joined by line breaks."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    def __repr__(self) -> str:
        return f"Result({self.text!r}{', is_error=True' if self.is_error else ''})"


def result_of(value: Any) -> Result:
    """What a handler returned, as a result. Raises `TypeError` for what has no form."""
    if isinstance(value, str):
        return Result(value)
    if isinstance(value, Result):
        return value
    if value is None:
        return Result("ok")
    if isinstance(value, Image):
        return Result(content=[value])
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, (str, Image, Result)) for one in value):
        return _joined(value)
    from hilt_sdk.transport import encoded_text

    text = encoded_text(value)
    return Result(text) if isinstance(value, (bool, int, float)) else Result(text, structured=value)


def failure(error: BaseException) -> Result:
    """An exception, as the model shall read it."""
    if isinstance(error, ToolError):
        return Result(readable(error.message), is_error=True, code=error.code, hint=error.hint)
    return Result(explained(error), is_error=True)


def _joined(parts: Sequence[Any]) -> Result:
    whole = Result()
    for part in parts:
        one = result_of(part)
        whole.content.extend(one.content)
        whole.is_error = whole.is_error or one.is_error
        whole.activate.extend(one.activate)
        whole.structured = one.structured if whole.structured is None else whole.structured
    return whole


def _block(one: Any) -> Block_:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if isinstance(one, Image):
        return one.block()
    if isinstance(one, dict):
        return one
    raise TypeError(f"content is made of str, Image and blocks, not of {type(one).__name__}")


_MAGIC = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def _mime(data: bytes) -> str:
    for begins, mime in _MAGIC:
        if data.startswith(begins):
            return mime
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    raise ValueError("neither PNG, JPEG, GIF nor WebP: give mime=")


# What commands and shortcuts give back, besides a text to show and a panel to open


class Insert:
    """Put the text into the user's input."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Prompt:
    """Send the text to the model."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class ToolPrompt:
    """Run the tool, and send the prompt to the model with what it returned."""

    __slots__ = ("args", "prompt", "tool")

    def __init__(self, tool: str, args: Mapping[str, Any] | None = None, prompt: str = "") -> None:
        self.tool = tool
        self.args = dict(args or {})
        self.prompt = prompt


# What interceptors and transformers give back


class Block:
    """No: the tool is not run, the turn ends, the answer is not shown."""

    __slots__ = ("reason",)

    def __init__(self, reason: str = "") -> None:
        self.reason = reason


class Rewrite:
    """Run the tool with these arguments instead."""

    __slots__ = ("args",)

    def __init__(self, args: Mapping[str, Any]) -> None:
        self.args = dict(args)


class Replace:
    """Show this text instead of the answer."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Handled:
    """The input was dealt with: nothing is sent to the model."""

    __slots__ = ()


# What handlers are told and asked

_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("text", "tool_id", "tool_name", "stop", "error", "reason", "status", "session_id", "cwd"), ""),
    **dict.fromkeys(("tool_preview", "decision", "source", "stage", "tool_args_raw", "compaction_id"), ""),
    **dict.fromkeys(("agent_id", "agent_run_id"), ""),
    **dict.fromkeys(("step", "sequence", "image_count", "message_count", "token_estimate"), 0),
    **dict.fromkeys(("queued", "executed"), False),
    "tool_args": None,
    "result": None,
}


class Event:
    """Something that happened. Its members are those of the frames dialect; one that was not told has its default."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        """Which event it is."""
        self.data = data
        """As it came."""

    def __getattr__(self, member: str) -> Any:
        try:
            value = self.data.get(member)
            return _DEFAULTS[member] if value is None else value
        except KeyError:
            raise AttributeError(f"{self.name} has no {member}; it has: {', '.join(sorted(self.data))}") from None


class Intercepted:
    """What an interceptor is asked about. Which members have a meaning depends on the event."""

    __slots__ = (
        "args",
        "content",
        "data",
        "event",
        "id",
        "is_error",
        "origin",
        "step",
        "system_prompt",
        "text",
        "tool",
    )

    def __init__(self, event: str, data: dict[str, Any] | None = None) -> None:
        self.event = event
        self.data = data or {}
        """As it came."""
        self.tool = ""
        self.id = ""
        """That of the tool call."""
        self.args: dict[str, Any] = {}
        self.origin = ""
        """The extension that makes the call, when it is not the model."""
        self.step = 0
        self.text = ""
        """Of the answer, or of the result."""
        self.system_prompt = ""
        self.content: list[Block_] = []
        self.is_error = False
