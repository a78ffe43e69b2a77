"""Files as they were before the agent last changed them."""

from hilt.extensions.capabilities import FILES_WRITE, READ
from hilt.extensions.services.asking import Asker, Backing, Service, Table, given, missing
from hilt.packages.members import quoted
from hilt.wire.jsonrpc_services import UndoRestore, UndoSnapshotsResult
from hilt.wire.jsonrpc_types import Empty


async def snapshots(backing: Backing, _: Empty, __: Asker) -> UndoSnapshotsResult:
    return UndoSnapshotsResult(dict(backing.facilities.undo.snapshots()))


async def restore(backing: Backing, params: UndoRestore, _: Asker) -> Empty:
    if not await backing.facilities.undo.restore(given("path", params.path)):
        raise missing(f"no snapshot for path: {quoted(params.path)}")
    return Empty()


SERVICES: Table = {
    "host/undoSnapshots": Service(snapshots, (READ,)),
    "host/undoRestore": Service(restore, (FILES_WRITE,), failing="undo restore"),
}
