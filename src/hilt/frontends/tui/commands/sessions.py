"""`/sessions`, `/session`, its tree, and `/jump`: going elsewhere, in this conversation or in another."""

import asyncio
from contextlib import closing

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.entry import Entry
from hilt.frontends.tui.dialogs.picker import Item, KeyedPicker, Picker
from hilt.model.actions import Branch, OpenSession, Rename
from hilt.sessions.log import SessionLog
from hilt.sessions.portable import fork
from hilt.sessions.records import TitleRecord
from hilt.sessions.store import SessionSummary
from hilt.sessions.tree import tree_of

_OPERATIONS = (
    Item("export", "export", "write this session to a file that can be given away"),
    Item("import", "import", "read a session from such a file"),
    Item("fork", "fork", "make a copy of this session to go on in"),
    Item("tree", "tree", "all branches of this session; go on from any message"),
    Item("rename", "rename", "give this session a title"),
    Item("open", "open", "go on in another session"),
)
_SPOKEN = ("user", "assistant", "compaction", "replacement")
"""The entries that one can go on from."""


async def resume(desk: Desk, _: str = "") -> None:
    """Pick one of this directory's sessions and go on in it."""
    found = await asyncio.to_thread(desk.keeping.store.list, desk.session.parts.cwd)
    here = desk.session.parts.log.meta.id
    items = [_session(one, here) for one in found]
    keys = {"ctrl+r": "rename"}
    chosen = await desk.ask(KeyedPicker("sessions of this directory", items, desk.look, keys=keys, current=here))
    if chosen is None:
        return
    if chosen.key == "ctrl+r":
        await _rename(desk, next(one for one in found if one.id == chosen.id))
    elif chosen.id != here:
        await desk.session.apply((OpenSession(chosen.id),), "hilt")


async def operate(desk: Desk, _: str = "") -> None:
    """Pick what to do with this session."""
    match await desk.ask(Picker("this session", _OPERATIONS, desk.look)):
        case "open":
            await resume(desk)
        case "tree":
            await branch(desk)
        case "rename":
            title = await desk.ask(Entry("title of this session", desk.look, text=desk.session.parts.log.title))
            if title:
                await desk.session.apply((Rename(title),), "hilt")
        case "export" | "import" as verb:
            path = await desk.ask(Entry(f"{verb}: which file?", desk.look))
            if path or (verb == "export" and path is not None):
                await desk.session.command("session", f"{verb} {path}")
        case "fork":
            await copy(desk)
        case _:
            pass


async def copy(desk: Desk, _: str = "") -> None:
    """Go on in a copy of this session."""
    made = await asyncio.to_thread(fork, desk.session.parts.log, desk.keeping.store)
    await desk.session.apply((OpenSession(made.stem),), "hilt")
    desk.tell("this is a copy now; the session it was made of stays as it is")


async def branch(desk: Desk, _: str = "") -> None:
    """Pick an entry of this session's tree and go on from there."""
    log = desk.session.parts.log
    tree = await asyncio.to_thread(tree_of, log)
    listed = [(depth, node) for depth, node in tree.walk() if node.role in _SPOKEN]
    # What was said last, also when something else came after it.
    here = next((node.id for _, node in reversed(listed) if node.on_current_path), "")
    items = [
        Item(
            node.id,
            f"{'  ' * min(depth, 12)}{one_line(node.preview, 100) or node.role}",
            node.label,
            "●" if node.id == here else "│" if node.on_current_path else "",
        )
        for depth, node in listed
    ]
    picked = await desk.ask(Picker("go on from", items, desk.look, current=here, hint="● is where you are"))
    if picked and picked not in (here, log.head):
        await desk.session.apply((Branch(picked),), "hilt")


async def jump(desk: Desk, args: str) -> None:
    """Scroll to something the user said; at once when only one matches."""
    places = [(at, block.heading) for at, block in enumerate(desk.app.scene.blocks) if block.heading]
    fitting = [(at, text) for at, text in places if args.lower() in text.lower()]
    if len(fitting) == 1 and args:
        desk.app.go_to(fitting[0][0])
        return
    items = [Item(str(at), text) for at, text in fitting]
    current = items[-1].id if items else ""
    picked = await desk.ask(Picker("jump to", items, desk.look, current=current))
    if picked:
        desk.app.go_to(int(picked))


async def _rename(desk: Desk, session: SessionSummary) -> None:
    title = await desk.ask(Entry("title of this session", desk.look, text=session.title))
    if not title:
        return
    if session.id == desk.session.parts.log.meta.id:
        await desk.session.apply((Rename(title),), "hilt")
    else:
        await asyncio.to_thread(_retitle, session, title)
        desk.tell(f"it is now called: {title}")


def _retitle(session: SessionSummary, title: str) -> None:
    with closing(SessionLog.open(session.path)) as log:
        log.append(TitleRecord(title))


def _session(one: SessionSummary, here: str) -> Item:
    when = f"{one.updated.astimezone():%Y-%m-%d %H:%M}  {one.messages} messages"
    return Item(one.id, one_line(one.title, 100) or "(nothing said yet)", when, "●" if one.id == here else "")
