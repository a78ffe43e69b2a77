"""`hilt login PROVIDER` and `hilt logout PROVIDER|all`: API keys in `auth.json`."""

import sys
from typing import TYPE_CHECKING

from hilt.cli.flags import Parser
from hilt.errors import AuthError, ProviderError, UsageError
from hilt.frontends.terminal import clean, hanging
from hilt.home import Home
from hilt.model.masking import Mask

if TYPE_CHECKING:
    from hilt.providers.vendors import Vendor


def run(argv: list[str]) -> int:
    return _login(argv[1:]) if argv[0] == "login" else _logout(argv[1:])


def _login(argv: list[str]) -> int:
    parser = Parser(
        prog="hilt login",
        description="Store an API key. It is asked for without echo, or read from stdin when that is piped.",
        allow_abbrev=False,
    )
    parser.add_argument("provider", nargs="?", default="", help="anthropic, openai, google, kimi or ollama")
    parser.add_argument("--base-url", default="", metavar="URL", help="check the key against another server")
    parser.add_argument("--no-check", action="store_true", help="store the key without trying it")
    options = parser.parse_args(argv)

    from hilt.providers.credentials import Credentials

    provider = _vendor(options.provider)
    home = Home.find()
    key = _ask(provider.label, provider.key_page)
    if not key:
        raise UsageError(
            "no key was given", hint=f"paste it at the prompt, or pipe it: hilt login {provider.name} < file"
        )
    checked = "not checked" if options.no_check else _check(provider.name, key, options.base_url)
    home.prepare()
    Credentials(home.auth).save(provider.name, key)
    sys.stdout.write(clean(f"logged in to {provider.name} ({checked}); the key is in {home.auth}\n"))
    return 0


def _vendor(name: str) -> "Vendor":
    from hilt.providers.vendors import LOCAL, PROVIDERS, canonical

    known = [vendor for vendor in PROVIDERS.values() if vendor.name not in LOCAL]
    for vendor in known:
        if vendor.name == canonical(name):
            return vendor
    names = ", ".join(vendor.name for vendor in known)
    if not name:
        raise UsageError("name a provider", hint=f"one of {names}")
    raise UsageError(f'there is no provider "{name}" to log in to', hint=f"one of {names}")


def _ask(label: str, page: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    import getpass

    sys.stderr.write(clean(f"API key for {label}" + (f" (from {page})" if page else "") + "\n"))
    try:
        return getpass.getpass("key, not shown: ").strip()
    except EOFError:
        return ""


def _check(provider: str, key: str, base_url: str) -> str:
    """Try the key with one cheap call. A refused key is not stored; an unreachable server is not its fault."""
    import asyncio

    from hilt.providers.choose import verify

    try:
        asyncio.run(verify(provider, key, base_url))
    except AuthError as error:
        raise AuthError(
            f"the key was refused and not stored: {Mask([key]).text(error.message)}",
            hint="copy it again; --no-check stores it anyway",
        ) from None
    except ProviderError as error:
        reason = Mask([key]).text(clean(error.message))  # in this order: cleaning may join the parts of a key
        sys.stderr.write(clean(f"hilt: the key could not be checked: {hanging(reason)}\n"))
        return "not checked"
    return "the key works"


def _logout(argv: list[str]) -> int:
    parser = Parser(prog="hilt logout", description="Forget a stored API key.", allow_abbrev=False)
    parser.add_argument("provider", nargs="?", default="", help="a provider, or `all`")
    options = parser.parse_args(argv)

    from hilt.providers.credentials import Credentials

    name = "all" if options.provider == "all" else _vendor(options.provider).name
    removed = Credentials(Home.find().auth).remove(name)
    sys.stdout.write(clean(f"logged out of {name}\n" if removed else f"there was no key stored for {name}\n"))
    return 0
