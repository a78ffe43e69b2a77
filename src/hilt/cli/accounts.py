"""Keys for whoever shows and changes them while a session runs: the same file and checks as `hilt login`."""

import asyncio

from hilt.cli.config import load_config
from hilt.errors import AuthError, ProviderError, UsageError
from hilt.frontends.terminal import clean
from hilt.frontends.tui.commands.desk import Account
from hilt.home import Home
from hilt.model.masking import Mask
from hilt.providers.credentials import Credentials
from hilt.providers.vendors import LOCAL, PROVIDERS, canonical


class Keys:
    def __init__(self, home: Home, mask: Mask, provider: str, address: str = "") -> None:
        """`address` is where the provider that it began with is to be found, when the flags say so."""
        self._home = home
        self._mask = mask
        self._begun_with = canonical(provider)
        self._address = address
        self._credentials = Credentials(home.auth)

    def all(self) -> list[Account]:
        return [
            Account(
                vendor.name,
                vendor.label,
                vendor.key_page,
                known=not vendor.needs_key or bool(self._credentials.key(vendor.name)),
                stored=self._credentials.stored(vendor.name),
                model=vendor.default_model,
                needs_key=vendor.needs_key,
            )
            for vendor in PROVIDERS.values()
            if vendor.name not in LOCAL
        ]

    async def log_in(self, name: str, key: str) -> str:
        from hilt.providers.choose import verify  # brings the HTTP client: 60 ms

        vendor = PROVIDERS.get(canonical(name))
        if vendor is None or vendor.name in LOCAL:
            raise UsageError(f'there is no provider "{name}" to log in to')
        self._mask.add(key)
        try:
            await verify(vendor.name, key, self._address_of(vendor.name))
            checked = "the key works"
        except AuthError as error:
            raise AuthError(
                f"the key was refused and not stored: {self._mask.text(error.message)}", hint="copy it again"
            ) from None
        except ProviderError as error:
            checked = f"the key could not be checked: {self._mask.text(clean(error.message))}"
        self._home.prepare()
        await asyncio.to_thread(self._credentials.save, vendor.name, key)
        return f"logged in to {vendor.label}: {checked}"

    def _address_of(self, provider: str) -> str:
        """Where a key is tried: where it will be used. Another's key must not be sent there."""
        config = load_config(self._home.config)
        configured = canonical(config.provider)
        if self._address and provider == self._begun_with:
            return self._address
        return config.base_url if provider == configured else ""

    def log_out(self, name: str) -> str:
        removed = self._credentials.remove(name if name == "all" else canonical(name))
        return f"logged out of {name}" if removed else f"there was no key stored for {name}"
