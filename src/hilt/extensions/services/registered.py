"""What is registered, and by whom."""

from collections.abc import Container

from hilt.extensions.services.asking import Asker, Backing, Service, Table
from hilt.extensions.services.ports import Registered
from hilt.model.extensions import ExtensionStatus
from hilt.registry.snapshot import Snapshot
from hilt.wire.jsonrpc_services import (
    CommandsResult,
    Described,
    ExtensionInfo,
    ExtInfosResult,
    PromptSectionsResult,
    SectionInfo,
    ShortcutInfo,
    ShortcutsResult,
)
from hilt.wire.jsonrpc_types import Empty

_RUNNING = ("starting", "ready", "restarting")


async def commands(backing: Backing, _: Empty, __: Asker) -> CommandsResult:
    known = (owned.command for owned in backing.snapshot().commands.values())
    listed = (Described(command.name, command.description) for command in known)
    return CommandsResult(tuple(sorted(listed, key=lambda command: command.name)))


async def shortcuts(backing: Backing, _: Empty, __: Asker) -> ShortcutsResult:
    known = backing.snapshot().shortcuts
    return ShortcutsResult({key: ShortcutInfo(owned.shortcut.description) for key, owned in known.items()})


async def prompt_sections(backing: Backing, _: Empty, __: Asker) -> PromptSectionsResult:
    known = backing.snapshot().sections
    return PromptSectionsResult(tuple(SectionInfo(section.title, section.tokens) for section in known))


async def ext_infos(backing: Backing, _: Empty, __: Asker) -> ExtInfosResult:
    """What is built in first, under one name; then those that run."""
    snapshot, neighbours = backing.snapshot(), backing.neighbours
    statuses = neighbours.statuses()
    running = (status for status in statuses if status.state in _RUNNING)
    own = _builtin(snapshot, {status.name for status in statuses})
    return ExtInfosResult((own, *(_external(snapshot, one, neighbours.registered(one.name)) for one in running)))


def _builtin(snapshot: Snapshot, others: Container[str]) -> ExtensionInfo:
    return ExtensionInfo(
        name="builtin",
        kind="builtin",
        runtime="python",
        tools=tuple(name for name, owned in snapshot.tools.items() if owned.owner not in others),
        commands=tuple(name for name, owned in snapshot.commands.items() if owned.owner not in others),
        shortcuts=tuple(key for key, owned in snapshot.shortcuts.items() if owned.owner not in others),
    )


def _external(snapshot: Snapshot, status: ExtensionStatus, registered: Registered) -> ExtensionInfo:
    compactor = snapshot.compactor
    return ExtensionInfo(
        name=status.name,
        kind="external",
        version=status.version,
        runtime=registered.runtime,
        tools=status.tools,
        commands=status.commands,
        interceptors=registered.interceptors,
        event_handlers=registered.event_handlers,
        shortcuts=tuple(key for key, owned in snapshot.shortcuts.items() if owned.owner == status.name),
        message_hooks=registered.message_hooks,
        compactor=compactor.offer.name if compactor and compactor.owner == status.name else "",
    )


SERVICES: Table = {
    "host/commands": Service(commands),
    "host/shortcuts": Service(shortcuts),
    "host/promptSections": Service(prompt_sections),
    "host/extInfos": Service(ext_infos),
}
