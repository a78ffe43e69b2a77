"""Sessions on the disk, and the tree of the present one."""

from hilt.extensions.capabilities import READ, WRITE
from hilt.extensions.services.asking import Asker, Backing, Service, Table, given
from hilt.model.services import SessionNode, SessionRow
from hilt.wire.jsonrpc_messages import timestamp
from hilt.wire.jsonrpc_services import (
    AppendCustomMessage,
    AppendSessionEntry,
    BranchSession,
    BranchSessionWithSummary,
    EntryInfo,
    ForkSessionResult,
    LoadSession,
    SessionEntryInfosResult,
    SessionFullTreeResult,
    SessionInfo,
    SessionsResult,
    SessionStatsResult,
    SessionTitleResult,
    SetLabel,
    SetSessionTitle,
    TreeNode,
)
from hilt.wire.jsonrpc_types import Empty


async def sessions(backing: Backing, _: Empty, __: Asker) -> SessionsResult:
    return SessionsResult(tuple(map(_row, await backing.facilities.sessions.list())))


def _row(row: SessionRow) -> SessionInfo:
    created = timestamp(row.created.replace(microsecond=0))
    return SessionInfo(row.id, row.title, row.cwd, created, row.path, row.parent)


async def load(backing: Backing, params: LoadSession, _: Asker) -> Empty:
    await backing.facilities.sessions.load(given("path", params.path))
    return Empty()


async def fork(backing: Backing, _: Empty, __: Asker) -> ForkSessionResult:
    forked = await backing.facilities.sessions.fork()
    return ForkSessionResult(forked.parent, forked.messages)


async def title(backing: Backing, _: Empty, __: Asker) -> SessionTitleResult:
    return SessionTitleResult(backing.facilities.sessions.title())


async def set_title(backing: Backing, params: SetSessionTitle, _: Asker) -> Empty:
    await backing.facilities.sessions.set_title(params.title)
    return Empty()


async def stats(backing: Backing, _: Empty, __: Asker) -> SessionStatsResult:
    known = backing.facilities.sessions.stats()
    return SessionStatsResult(
        turn_count=known.turns,
        total_input_tokens=known.usage.input,
        total_output_tokens=known.usage.output,
        total_cache_read_tokens=known.usage.cache_read,
        total_cache_write_tokens=known.usage.cache_write,
        total_cost=known.usage.cost_usd,
        model=known.model,
    )


async def append_entry(backing: Backing, params: AppendSessionEntry, asker: Asker) -> Empty:
    backing.facilities.sessions.append_entry(given("kind", params.kind), params.data, asker.name)
    return Empty()


async def append_message(backing: Backing, params: AppendCustomMessage, asker: Asker) -> Empty:
    role = "assistant" if params.role == "assistant" else "user"
    await backing.facilities.sessions.append_message(role, given("content", params.content), asker.name)
    return Empty()


async def set_label(backing: Backing, params: SetLabel, _: Asker) -> Empty:
    backing.facilities.sessions.set_label(given("targetId", params.target_id), params.label)
    return Empty()


async def branch(backing: Backing, params: BranchSession, asker: Asker) -> Empty:
    await backing.facilities.sessions.branch(given("entryId", params.entry_id), "", asker.name)
    return Empty()


async def branch_with_summary(backing: Backing, params: BranchSessionWithSummary, asker: Asker) -> Empty:
    await backing.facilities.sessions.branch(given("entryId", params.entry_id), params.summary, asker.name)
    return Empty()


async def reset(backing: Backing, _: Empty, asker: Asker) -> Empty:
    await backing.facilities.sessions.reset(asker.name)
    return Empty()


async def entry_infos(backing: Backing, _: Empty, __: Asker) -> SessionEntryInfosResult:
    path = backing.facilities.sessions.path()
    return SessionEntryInfosResult(
        tuple(EntryInfo(node.id, node.type, timestamp(node.time), node.children, node.parent) for node in path)
    )


async def full_tree(backing: Backing, _: Empty, __: Asker) -> SessionFullTreeResult:
    return SessionFullTreeResult(tuple(map(_node, await backing.facilities.sessions.tree())))


def _node(node: SessionNode) -> TreeNode:
    return TreeNode(
        id=node.id,
        type=node.type,
        timestamp=timestamp(node.time),
        children=node.children,
        on_active_path=node.active,
        depth=node.depth,
        parent_id=node.parent,
        preview=node.preview,
        label=node.label,
        tokens_before=node.tokens_before,
    )


SERVICES: Table = {
    "host/sessions": Service(sessions, (READ,), failing="list sessions"),
    "host/loadSession": Service(load, (WRITE,), failing="load session"),
    "host/forkSession": Service(fork, (WRITE,), failing="fork session"),
    "host/sessionTitle": Service(title, (READ,), failing="session title"),
    "host/setSessionTitle": Service(set_title, (WRITE,), failing="set session title"),
    "host/sessionStats": Service(stats, (READ,), failing="session stats"),
    "host/appendSessionEntry": Service(append_entry, (WRITE,), failing="append session entry"),
    "host/appendCustomMessage": Service(append_message, (WRITE,), failing="append custom message"),
    "host/setLabel": Service(set_label, (WRITE,), failing="set label"),
    "host/branchSession": Service(branch, (WRITE,), failing="branch session"),
    "host/branchSessionWithSummary": Service(branch_with_summary, (WRITE,), failing="branch session"),
    "host/resetSessionLeaf": Service(reset, (WRITE,), failing="reset session"),
    "host/sessionEntryInfos": Service(entry_infos, (READ,), failing="session entries"),
    "host/sessionFullTree": Service(full_tree, (READ,), failing="session tree"),
}
