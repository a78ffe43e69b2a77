"""What a provider is asked for, and what its message says."""

from typing import Any

from hilt.authoring.greeting import Registered
from hilt.authoring.values import Value


def to_stream(prompt: str, model: str, provider: Registered) -> Value:
    """The params of `provider/stream` for one thing said; without a name it is the provider's first model."""
    models = provider.fields.get("models") or []
    known = models[0].get("id", "") if models and isinstance(models[0], dict) else ""
    name = model or known or "test"
    return {
        "requestId": 1,
        "model": {
            "id": name,
            "name": name,
            "api": provider.name,
            "provider": provider.name,
            "reasoning": False,
            "contextWindow": 100_000,
            "maxTokens": 4096,
            "cost": {},
        },
        "system": "",
        "messages": [{"role": "user", "content": prompt, "timestamp": "2026-01-01T00:00:00Z"}],
        "options": {},
    }


def message_text(message: Any) -> str:
    """All of its text."""
    content = message.get("content", message.get("Content")) if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    blocks = [block for block in content or () if isinstance(block, dict)] if isinstance(content, list) else []
    return "".join(str(block.get("text", block.get("Text", ""))) for block in blocks)
