"""The providers hilt knows by name: what each calls its key, and what it runs unless told otherwise."""

from types import MappingProxyType

from msgspec import Struct


class Vendor(Struct, frozen=True):
    name: str
    label: str
    default_model: str = ""
    """Empty where nobody can know: the user must name one."""
    env: tuple[str, ...] = ()
    """Variables that may hold the key, the first one that is set wins."""
    key_page: str = ""
    """Where a key is made."""
    base_url: str = ""
    """Empty leaves it to the adapter."""
    needs_key: bool = True
    aliases: tuple[str, ...] = ()
    context_window: int = 0
    """Assumed for models nobody knows; 0 assumes nothing."""
    max_output: int = 0
    api: str = ""
    """Whose language it speaks, where that is another's."""


PROVIDERS: MappingProxyType[str, Vendor] = MappingProxyType(
    {
        vendor.name: vendor
        for vendor in (
            Vendor(
                "anthropic",
                "Anthropic",
                default_model="claude-sonnet-4-5",
                env=("ANTHROPIC_API_KEY",),
                key_page="https://console.anthropic.com/settings/keys",
                aliases=("claude",),
            ),
            Vendor(
                "openai",
                "OpenAI",
                default_model="gpt-5",
                env=("OPENAI_API_KEY",),
                key_page="https://platform.openai.com/api-keys",
            ),
            Vendor(
                "google",
                "Google Gemini",
                default_model="gemini-2.5-pro",
                env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
                key_page="https://aistudio.google.com/apikey",
                aliases=("gemini",),
            ),
            Vendor(
                "kimi",
                "Kimi",
                default_model="kimi-for-coding",
                env=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
                key_page="https://platform.moonshot.ai/console/api-keys",
                base_url="https://api.moonshot.ai/v1",
                aliases=("moonshot",),
                api="openai",
            ),
            Vendor(
                "ollama",
                "Ollama, or any server that speaks Chat Completions",
                env=("OLLAMA_API_KEY",),
                base_url="http://localhost:11434/v1",
                needs_key=False,
                context_window=32768,
                max_output=8192,
                api="openai",
            ),
            Vendor("demo", "the built-in demo, not a language model", default_model="demo", needs_key=False),
            Vendor("script", "answers read from a file", default_model="script", needs_key=False),
        )
    }
)
"""In the order in which they are tried when nobody chose one."""

KEYS = tuple(name for vendor in PROVIDERS.values() for name in vendor.env)
"""The environment variables that hold keys of hilt's own."""

LOCAL = frozenset({"demo", "script"})
"""These have no API, so no key and no address."""

KIMI_CODING = "https://api.kimi.com/coding/v1"
"""The subscription's own address; it serves `kimi-for-coding` only."""

_ELSEWHERE = {
    "azure": "azure-openai",
    "bedrock": "amazon-bedrock",
    "copilot": "github-copilot",
    "vertex": "google-vertex",
}
"""Providers that only extensions talk to; hilt keeps their keys."""
_ALIASES = {alias: vendor.name for vendor in PROVIDERS.values() for alias in vendor.aliases} | _ELSEWHERE


def canonical(name: str) -> str:
    """The name used everywhere else; a name nobody knows stays as it is."""
    lowered = name.strip().lower()
    return _ALIASES.get(lowered, lowered)
