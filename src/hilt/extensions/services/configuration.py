"""What the user configured, and the keys of providers."""

from hilt.extensions.capabilities import FILES_READ
from hilt.extensions.services.asking import Asker, Backing, Service, Table, invalid
from hilt.packages.members import quoted
from hilt.packages.permissions import problem
from hilt.wire.jsonrpc_services import (
    AuthGetKey,
    AuthGetKeyResult,
    ConfigGet,
    ConfigGetResult,
    ConfigReadExtension,
    ConfigReadExtensionResult,
    ExtensionsDirResult,
)
from hilt.wire.jsonrpc_types import Empty


async def config_get(backing: Backing, params: ConfigGet, asker: Asker) -> ConfigGetResult:
    return ConfigGetResult(backing.facilities.settings.get(params.keys, asker.name))


async def read_extension(backing: Backing, params: ConfigReadExtension, asker: Asker) -> ConfigReadExtensionResult:
    if params.name != asker.name:
        asker.require(FILES_READ)  # it is a file of another's
    return ConfigReadExtensionResult(backing.facilities.settings.read(params.name))


async def get_key(backing: Backing, params: AuthGetKey, asker: Asker) -> AuthGetKeyResult:
    """A refusal is an error: an empty key would say that there is none."""
    provider = backing.facilities.models.provider(params.provider)
    if problem(permission := f"auth:{provider}"):
        raise invalid(f"auth.getKey: {quoted(params.provider)!r} is no provider's name")
    asker.require(permission)
    return AuthGetKeyResult(backing.facilities.models.key(provider))


async def extensions_dir(backing: Backing, _: Empty, __: Asker) -> ExtensionsDirResult:
    return ExtensionsDirResult(backing.facilities.settings.directory())


SERVICES: Table = {
    "host/config.get": Service(config_get),
    "host/config.readExtension": Service(read_extension, failing="read extension config"),
    "host/auth.getKey": Service(get_key),
    "host/extensionsDir": Service(extensions_dir),
}
