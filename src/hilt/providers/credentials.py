"""API keys: where they come from, and how `auth.json` keeps them.

A key is looked for in the flag, then the environment, then the file. The file is
`{"anthropic": {"api_key": "…"}}`; whatever else it holds is kept when it is written again.
Checking that a key works is `choose.verify`'s business.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISLNK, S_ISREG, S_ISVTX
from typing import Any

import msgspec

from hilt.errors import ConfigError, HiltError, PackageError, UsageError
from hilt.providers.vendors import PROVIDERS, canonical

_LARGEST_FILE = 1024 * 1024
_SECRET_FIELDS = ("key", "token", "secret")


class Credentials:
    def __init__(self, auth_file: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._file = auth_file
        self._environment = environment
        self._explicit: set[str] = set()
        self.warnings: list[str] = []
        """What was put right, or could not be, while reading; for the user to see."""

    def key(self, provider: str, explicit: str = "") -> str:
        """The key to use, or an empty string when there is none."""
        if explicit.strip():
            key = _clean(explicit, "the key on the command line", UsageError)
            self._explicit.add(key)
            return key
        provider = canonical(provider)
        for variable in _variables(provider):
            if value := self._environment.get(variable, "").strip():
                return _clean(value, f"the environment variable {variable}", ConfigError)
        return self._stored(provider)

    def stored(self, provider: str) -> bool:
        """Whether the file has one, and not only the environment."""
        return bool(self._stored(canonical(provider)))

    def save(self, provider: str, key: str) -> None:
        provider = canonical(provider)
        key = _clean(key, f"the key for {provider}", UsageError)
        if not key:
            raise UsageError(f"the key for {provider} is empty", hint="paste the whole key")
        entries = self._read()
        entry = entries.get(provider)
        entries[provider] = {**(entry if isinstance(entry, dict) else {}), "api_key": key}
        self._write(entries)

    def remove(self, provider: str) -> bool:
        """Forget one provider, or `all`; says whether there was anything to forget."""
        entries = self._read()
        names = list(entries) if provider == "all" else _names(canonical(provider))
        kept = {name: entry for name, entry in entries.items() if name not in names}
        if len(kept) == len(entries):
            return False
        self._write(kept)
        return True

    def all_secrets(self) -> tuple[str, ...]:
        """Every key and token in reach, so that none of them is shown by accident."""
        found = set(self._explicit)
        for vendor in PROVIDERS.values():
            found.update(self._environment.get(variable, "").strip() for variable in vendor.env)
        try:
            found.update(_secrets(self._read()))
        except ConfigError as error:
            # A run that needs no stored key goes on; one that does is told by `key`.
            self._warn(error.message)
        return tuple(sorted(found - {""}))

    def _stored(self, provider: str) -> str:
        entries = self._read()
        for name in _names(provider):
            entry = entries.get(name, {})
            key = entry.get("api_key", "") if isinstance(entry, dict) else None
            if not isinstance(key, str):
                raise ConfigError(
                    f'{self._file}: "{name}" must be an object whose "api_key" is a string',
                    hint=f"hilt login {provider} writes it anew",
                )
            if key.strip():
                return _clean(key, f'{self._file}: the "api_key" of "{name}"', ConfigError)
        return ""

    def _read(self) -> dict[str, Any]:
        try:
            data = self._bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"cannot read {self._file}: {error.strerror}", hint="make it readable") from error
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{self._file} is not valid JSON of keys: {error}",
                hint="correct it, or move it away and log in again; hilt has left it as it is",
            ) from error

    def _bytes(self) -> bytes:
        # Not blocking: a named pipe in its place must not hold hilt up.
        descriptor = os.open(self._file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            facts = os.fstat(descriptor)
            if not S_ISREG(facts.st_mode) or facts.st_size > _LARGEST_FILE:
                raise ConfigError(f"{self._file} is not a file of keys", hint="move it away and log in again")
            if facts.st_mode & 0o077:
                self._tighten(descriptor)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def _tighten(self, descriptor: int) -> None:
        try:
            if S_ISLNK(os.lstat(self._file).st_mode):
                self._warn(f"{self._file} leads to a file that others can read: make that 0600")
                return
            os.fchmod(descriptor, 0o600)
        except OSError as error:
            self._warn(f"others can read {self._file}, and that cannot be changed: {error.strerror}")
        else:
            self._warn(f"others could read {self._file}: it is 0600 now")

    def _write(self, entries: dict[str, Any]) -> None:
        from hilt.packages.keeping import replace  # only a login pays for it

        data = msgspec.json.format(msgspec.json.encode(entries), indent=2) + b"\n"
        try:
            self._own_directory(self._file.parent)
            replace(self._file, data)
        except PackageError as error:
            raise ConfigError(error.message, hint=error.hint) from error
        except OSError as error:
            raise ConfigError(
                f"{self._file} cannot be written: {error.strerror}", hint="check the disk and the permissions"
            ) from error

    def _own_directory(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = directory.stat()
        # A sticky directory is shared on purpose (/tmp): taking it from others would break them.
        if facts.st_mode & 0o077 and facts.st_uid == os.getuid() and not facts.st_mode & S_ISVTX:
            directory.chmod(0o700)
            self._warn(f"others could look into {directory}: it is 0700 now")

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def _variables(provider: str) -> tuple[str, ...]:
    """Of the environment, in which its key may be; of one that hilt does not talk to itself, by what is usual."""
    if vendor := PROVIDERS.get(provider):
        return vendor.env
    name = provider.upper().replace("-", "_")
    return (f"{name}_API_KEY",) if name.isidentifier() else ()


def _names(provider: str) -> list[str]:
    """Under which names a file may keep a provider."""
    vendor = PROVIDERS.get(provider)
    return [provider, *(vendor.aliases if vendor else ())]


def _clean(key: str, origin: str, kind: type[HiltError]) -> str:
    key = key.strip()
    # A key travels in an HTTP header, and nothing else fits there.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise kind(
            f"{origin} contains a space, a control character or a letter that no key has",
            hint="copy the key again, without line breaks or quotes",
        )
    return key


def _secrets(value: object, field: str = "") -> Iterator[str]:
    """The strings of a file whose field says that they are secret, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _secrets(inner, str(name).lower())
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, field)
    elif isinstance(value, str) and any(part in field for part in _SECRET_FIELDS):
        yield value.strip()
