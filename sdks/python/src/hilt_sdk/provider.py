"""Answering for a model: what is asked, and the answer as it grows.

@ext.provider("parrot", models=[Model("polly", "Polly", 8192)])
def answer(request, reply):
    reply.text(request.text)
"""

from __future__ import annotations

from hilt_sdk.protocol import message_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hilt_sdk.link import Link


class Model:
    """A model that only the extension knows. Costs are in US dollars for a million tokens."""

    __slots__ = ("context_window", "cost", "id", "max_tokens", "name", "reasoning")

    def __init__(
        self,
        id: str,  # noqa: A002  # what everybody calls it
        name: str = "",
        context_window: int = 0,
        max_tokens: int = 0,
        *,
        reasoning: bool = False,
        cost: Mapping[str, float] | None = None,
    ) -> None:
        self.id = id
        self.name = name or id
        self.context_window = context_window
        self.max_tokens = max_tokens
        self.reasoning = reasoning
        self.cost = dict(cost or {})
        """`input`, `output`, `cacheRead`, `cacheWrite`."""

    def fields(self) -> dict[str, Any]:
        told: dict[str, Any] = {"id": self.id, "name": self.name}
        if self.context_window:
            told["contextWindow"] = self.context_window
        if self.max_tokens:
            told["maxTokens"] = self.max_tokens
        if self.reasoning:
            told["reasoning"] = True
        if self.cost:
            told["cost"] = self.cost
        return told


class Request:
    """One answer that is wanted. Messages, tools and options are as they came."""

    __slots__ = ("data", "messages", "model", "options", "system", "tools")

    def __init__(self, params: dict[str, Any]) -> None:
        self.data = params
        self.model: dict[str, Any] = params.get("model") or {}
        self.system: str = params.get("system") or ""
        self.messages: list[dict[str, Any]] = params.get("messages") or []
        self.tools: list[dict[str, Any]] = params.get("tools") or []
        self.options: dict[str, Any] = params.get("options") or {}

    @property
    def text(self) -> str:
        """What was said last by the user."""
        for message in reversed(self.messages):
            if message.get("role", "user") == "user" and "toolCallId" not in message:
                return message_text(message) or message_text({"content": message.get("blocks")})
        return ""


class Reply:
    """The answer. Each piece is shown at once; the whole is put together when the function returns."""

    __slots__ = ("_calls", "_link", "_number", "_parts", "_request", "_usage", "cancelled")

    def __init__(self, link: Link, request: Request, number: Any) -> None:
        self._link = link
        self._request = request
        self._number = number
        self._parts: list[dict[str, Any]] = []
        self._calls: dict[str, int] = {}
        self._usage: dict[str, Any] = {}
        self.cancelled = False
        """Nobody waits for it any more."""

    def text(self, delta: str) -> None:
        self._add("text", "text_delta", delta)

    def thinking(self, delta: str) -> None:
        self._add("thinking", "thinking_delta", delta)

    def tool_call_delta(self, id: str, name: str, delta: str) -> None:  # noqa: A002  # what everybody calls it
        """A piece of the arguments of a call, as JSON text. `tool_call` with the same id ends it."""
        first = id not in self._calls
        index = self._index(id)
        piece: dict[str, Any] = {"type": "toolcall_delta", "index": index, "delta": delta}
        if first:
            piece["tool"] = {"id": id, "name": name, "arguments": ""}
        self._send(piece)

    def tool_call(self, name: str, args: Mapping[str, Any] | None = None, *, id: str = "") -> str:  # noqa: A002
        """The model calls a tool. The id of the call."""
        from hilt_sdk.transport import encoded_text

        call = id or f"call_{self._number}_{len(self._parts)}"
        index = self._index(call)
        self._parts[index] = {"id": call, "name": name, "arguments": dict(args or {})}
        tool = {"id": call, "name": name, "arguments": encoded_text(args or {})}
        self._send({"type": "toolcall_end", "index": index, "tool": tool})
        return call

    def usage(self, input: int, output: int, *, cache_read: int = 0, cache_write: int = 0, cost: float = 0) -> None:  # noqa: A002
        """Tokens that were used, and what they cost."""
        self._usage = {
            "inputTokens": input,
            "outputTokens": output,
            "cacheReadTokens": cache_read,
            "cacheWriteTokens": cache_write,
            "cost": cost,
        }

    def message(self, stop: str = "") -> dict[str, Any]:
        """The whole, as the host wants it."""
        parts = [part for part in self._parts if part]
        model = self._request.model
        return {
            "content": parts,
            "model": model.get("id") or "",
            "provider": model.get("provider") or model.get("api") or "",
            "usage": self._usage,
            "stopReason": stop or ("toolUse" if self._calls else "stop"),
            "timestamp": _now(),
        }

    def _add(self, kind: str, piece: str, delta: str) -> None:
        if not delta:
            return
        if not self._parts or kind not in self._parts[-1]:
            self._parts.append({kind: ""})
        self._parts[-1][kind] += delta
        self._send({"type": piece, "index": len(self._parts) - 1, "delta": delta})

    def _index(self, call: str) -> int:
        if call not in self._calls:
            self._calls[call] = len(self._parts)
            self._parts.append({})
        return self._calls[call]

    def _send(self, piece: dict[str, Any]) -> None:
        self._link.tell("provider/delta", {"requestId": self._number, **piece})


def _now() -> str:
    from time import gmtime, strftime

    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
