"""Which model answers: flags, configuration and keys become one choice.

Owns the rules of precedence and the making of adapters. Adapters are imported when one is
opened, because their HTTP client costs more than everything else at start-up.
"""

import asyncio
from collections.abc import Callable, Container
from pathlib import Path
from typing import Protocol

from msgspec import Struct, structs

from hilt.errors import AuthError, ConfigError, HiltError, Unavailable, UsageError
from hilt.model.models import ModelInfo
from hilt.model.ports import Provider
from hilt.providers.catalogue import DEMO, Catalogue
from hilt.providers.credentials import Credentials
from hilt.providers.vendors import KIMI_CODING, LOCAL, PROVIDERS, Vendor, canonical

__all__ = ["PROVIDERS", "Choice", "build", "canonical", "choose", "priceless", "verify"]

_CHECK_SECONDS = 30


class Choice(Struct, frozen=True):
    info: ModelInfo
    open: Callable[[], Provider]
    """Makes the adapter; the caller closes it."""
    notice: str = ""
    """One line the user should see once."""


class _Asked(Struct, frozen=True):
    """What the flags and the configuration say, with the provider's name made canonical."""

    provider: str
    model: str
    api_key: str
    base_url: str
    configured_provider: str
    configured_model: str
    configured_base_url: str
    claimed: Container[str]


def choose(
    *,
    provider: str,
    model: str,
    api_key: str,
    base_url: str,
    script: Path | None,
    credentials: Credentials,
    catalogue: Catalogue,
    configured_provider: str = "",
    configured_model: str = "",
    configured_base_url: str = "",
    claimed: Container[str] = (),
) -> Choice:
    """Decide who answers. Nothing is opened and nothing is sent. `claimed` are APIs that need no key: others answer."""
    named = _known(provider, UsageError, "provider") if provider else ""
    configured = _known(configured_provider, ConfigError, "configured provider") if configured_provider else ""
    if script is not None and named not in ("", "script"):
        raise UsageError(f"--script cannot be used with --provider {provider}", hint="leave --provider out")
    if script is not None or named == "script":
        return _scripted(model, script, catalogue)
    if configured_model and not configured:
        configured, configured_model = _owner(configured_model, catalogue)
    asked = _Asked(named, model, api_key, base_url, configured, configured_model, configured_base_url, claimed)
    vendor, model = _who(asked, credentials, catalogue)
    if vendor is None:
        return _fallback(model)
    if vendor.name == "script":
        return _scripted(model, script, catalogue)
    return _settle(vendor, model, asked, credentials, catalogue)


def priceless(info: ModelInfo) -> str:
    """What the user should know about a model whose price nobody does."""
    return "" if info.price else f'the price of "{info.id}" is not known: it counts as 0 (models.json can give it)'


def build(provider_name: str, api_key: str, base_url: str = "") -> Provider:
    """Make an adapter by name."""
    name = _known(provider_name, UsageError, "provider")
    if name == "script":
        raise UsageError("the script provider needs a file", hint="add --script FILE")
    if name == "demo":
        from hilt.providers.demo import Demo

        return Demo()
    return _adapter(name, api_key, base_url or PROVIDERS[name].base_url)


async def verify(provider_name: str, api_key: str, base_url: str = "") -> None:
    """Ask the provider whether it takes this key; raises AuthError when it does not."""
    name = _known(provider_name, UsageError, "provider")
    if name in LOCAL:
        return
    first = base_url or PROVIDERS[name].base_url
    try:
        await _check(_adapter(name, api_key, first))
    except AuthError:
        if name != "kimi" or base_url:
            raise
        # Keys of the subscription and of the platform look alike and work at one address only.
        await _check(_adapter(name, api_key, KIMI_CODING))


class _Checkable(Provider, Protocol):
    async def check_key(self) -> None: ...


async def _check(adapter: _Checkable) -> None:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            await adapter.check_key()
    except TimeoutError as error:
        raise Unavailable(f"{adapter.name} did not answer within {_CHECK_SECONDS} s") from error
    finally:
        await adapter.aclose()


def _adapter(name: str, api_key: str, base_url: str) -> _Checkable:
    match name:
        case "anthropic":
            from hilt.providers.anthropic import Anthropic

            return Anthropic(api_key, base_url)
        case "openai":
            from hilt.providers.openai import OpenAI

            return OpenAI(api_key, base_url)
        case "google":
            from hilt.providers.google import Google

            return Google(api_key, base_url)
        case _:
            from hilt.providers.openai_chat import OpenAIChat

            return OpenAIChat(api_key, base_url, name=name)


def _who(asked: _Asked, credentials: Credentials, catalogue: Catalogue) -> tuple[Vendor | None, str]:
    """The provider and the model id as it names it; nobody when no key is to be found."""
    if asked.provider:
        owner, rest = _split(asked.model, catalogue)
        # At an address of its own, `openai/…` is how a server of many vendors names its models.
        return PROVIDERS[asked.provider], rest if owner == asked.provider and not asked.base_url else asked.model
    if asked.model:
        owner, model = _owner(asked.model, catalogue)
        if owner:
            return PROVIDERS[owner], model
    if asked.configured_provider and _usable(asked.configured_provider, asked, credentials):
        return PROVIDERS[asked.configured_provider], asked.model
    for vendor in PROVIDERS.values():
        if vendor.needs_key and credentials.key(vendor.name, asked.api_key):
            return vendor, asked.model
    # An address without a key is a server of one's own, and those speak OpenAI's language.
    return (PROVIDERS["openai"] if asked.base_url else None), asked.model


def _owner(model: str, catalogue: Catalogue) -> tuple[str, str]:
    """The provider that a model id alone tells, if it does, and the id without the provider's name."""
    owner, rest = _split(model, catalogue)
    if not owner:
        serving = [name for name in catalogue.providers_of(model) if name in PROVIDERS]
        owner = serving[0] if len(serving) == 1 else ""
    return owner, rest


def _split(model: str, catalogue: Catalogue) -> tuple[str, str]:
    """`openai/gpt-5` and `openai:gpt-5` name the provider too, unless somebody serves a model of that whole name."""
    for separator in (":", "/"):
        before, _, rest = model.partition(separator)
        if rest and canonical(before) in PROVIDERS and not catalogue.providers_of(model):
            return canonical(before), rest
    return "", model


def _usable(name: str, asked: _Asked, credentials: Credentials) -> bool:
    vendor = PROVIDERS[name]
    if not vendor.needs_key or (vendor.api or name) in asked.claimed:
        return True
    return bool(asked.base_url or asked.configured_base_url or credentials.key(name, asked.api_key))


def _settle(vendor: Vendor, model: str, asked: _Asked, credentials: Credentials, catalogue: Catalogue) -> Choice:
    own = asked.configured_provider in ("", vendor.name)
    model = model or (asked.configured_model if own else "") or vendor.default_model
    if not model:
        raise UsageError(f"{vendor.name} needs a model", hint="name one that it serves: --model NAME")
    info = catalogue.find(vendor.name, model)
    notice = priceless(info)
    if vendor.name in LOCAL:
        return Choice(info, lambda: build(vendor.name, ""), notice)
    given = asked.base_url or info.base_url or (asked.configured_base_url if own else "")
    key = credentials.key(vendor.name, asked.api_key)
    if vendor.needs_key and not key and not given:
        if info.spoken not in asked.claimed:
            raise _keyless(vendor)
        return Choice(info, lambda: _refuse(_keyless(vendor)), notice)
    coding = vendor.name == "kimi" and (model == "kimi-for-coding" or key.startswith("sk-kimi-"))
    address = given or (KIMI_CODING if coding else vendor.base_url)
    return Choice(structs.replace(info, base_url=address), lambda: build(vendor.name, key, address), notice)


def _keyless(vendor: Vendor) -> AuthError:
    hint = f"run `hilt login {vendor.name}` or set {vendor.env[0]}"
    return AuthError(f"there is no API key for {vendor.name}", hint=hint)


def _refuse(error: HiltError) -> Provider:
    raise error


def _scripted(model: str, script: Path | None, catalogue: Catalogue) -> Choice:
    if script is None:
        raise UsageError("the script provider needs a file", hint="add --script FILE")
    info = catalogue.find("script", model or "script")
    notice = "" if info.price else f'the price of "{info.id}" is not known: it counts as 0'

    def open_script() -> Provider:
        from hilt.providers.script import Script

        return Script(script)

    return Choice(info, open_script, notice)


def _fallback(model: str) -> Choice:
    instead = f' instead of "{model}"' if model else ""
    notice = (
        f"no API key found: the built-in `demo` model answers{instead}. "
        "It is not a language model; log in with `hilt login <provider>`"
    )
    return Choice(DEMO, lambda: build("demo", ""), notice)


def _known(name: str, kind: type[HiltError], what: str) -> str:
    found = canonical(name)
    if found in PROVIDERS:
        return found
    from difflib import get_close_matches  # costs 8 ms; only a mistake pays

    near = get_close_matches(found, PROVIDERS, n=1)
    known = ", ".join(PROVIDERS)
    raise kind(f'the {what} "{name}" is not known; known are {known}', hint=f"did you mean {near[0]}?" if near else "")
