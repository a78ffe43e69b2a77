"""`hilt sessions`: list, show, export, import, fork, tree, rename and delete what was said before."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from hilt.cli.flags import Parser
from hilt.errors import UsageError
from hilt.frontends.encode import json_line, message_json, usage_json
from hilt.frontends.terminal import clean, hanging, json_for_stdout, one_line
from hilt.home import Home, working_directory
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, UserMessage
from hilt.sessions import portable
from hilt.sessions.log import SessionLog
from hilt.sessions.records import TitleRecord
from hilt.sessions.store import SessionStore
from hilt.sessions.tree import plain, render, tree_of


def run(argv: list[str]) -> int:
    options = _parser().parse_args(argv[1:])
    if options.verb is None:
        raise UsageError("sessions needs a verb", hint="`hilt sessions --help` lists them")
    store = SessionStore(Home.find().sessions)
    verb: Callable[[SessionStore, argparse.Namespace], tuple[Any, str]] = _VERBS[options.verb]
    value, text = verb(store, options)
    shown = json_for_stdout(json_line(value)).decode() if options.json else clean(text).rstrip("\n")
    sys.stdout.write(shown + "\n")
    return 0


def _parser() -> Parser:
    parser = Parser(prog="hilt sessions", description="Look after sessions. All verbs take --json.", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", metavar="verb", parser_class=Parser)

    def verb(name: str, help_: str, *, id_: bool = True) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help_, description=help_.capitalize() + ".", allow_abbrev=False)
        if id_:
            sub.add_argument("id", help="a session's id, the beginning of it, or a path")
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    listing = verb("list", "list sessions, the newest first", id_=False)
    listing.add_argument("--here", action="store_true", help="only those of this directory")
    verb("show", "print a session's conversation")
    exporting = verb("export", "write a session to a file that can be given away: it does not say where it was made")
    exporting.add_argument("path", nargs="?", default=".", help="a file or a directory")
    exporting.add_argument("--force", action="store_true", help="replace the file if it exists")
    importing = verb("import", "bring in an exported session, also one of zot's", id_=False)
    importing.add_argument("path")
    forking = verb("fork", "begin a new session with the same past")
    forking.add_argument("--at", default=None, metavar="ENTRY", help="only up to this entry (see tree)")
    verb("tree", "show the branches of a session")
    renaming = verb("rename", "give a session a title")
    renaming.add_argument("title", nargs="+")
    deleting = verb("delete", "delete a session for good")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _list(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    found = store.list(str(working_directory()) if options.here else None)
    lines = [
        f"{summary.id[:8]}  {summary.updated.astimezone():%Y-%m-%d %H:%M}  {summary.messages:4}  "
        + one_line(summary.title or "(no title)", 80)
        + ("" if options.here else f"  ({one_line(_short(summary.cwd), 200)})")
        for summary in found
    ]
    empty = "no sessions of this directory yet" if options.here else "no sessions yet"
    return [msgspec.to_builtins(summary, enc_hook=str) for summary in found], "\n".join(lines) or empty


def _short(cwd: str) -> str:
    home = str(Path.home())
    return "~" + cwd[len(home) :] if cwd == home or cwd.startswith(home + "/") else cwd or "elsewhere"


def _show(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    with _read(store, options.id) as log:
        messages = log.messages()
        value = {
            **_facts(log),
            "usage": usage_json(log.usage),
            "messages": [message_json(message) for message in messages],
        }
        return value, "\n\n".join([f"# {log.title or '(no title)'}", *map(_spoken, messages)])


def _export(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    with _read(store, options.id) as log:
        path = portable.export(log, Path(options.path).expanduser(), force=options.force)
    return {"path": str(path)}, f"exported to {path}"


def _import(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    path = portable.import_(Path(options.path).expanduser(), store, str(working_directory()))
    return _made(path, "imported")


def _fork(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    with _read(store, options.id) as log:
        path = portable.fork(log, store, options.at)
    return _made(path, "forked")


def _tree(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    with _read(store, options.id) as log:
        tree = tree_of(log)
        return {**_facts(log), "head": log.head, "tree": plain(tree)}, "\n".join(render(tree)) or "(empty)"


def _rename(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    with SessionLog.open(store.find(options.id)) as log:
        log.append(TitleRecord(" ".join(options.title)))
        return _facts(log), f"{log.meta.id[:8]} is now called: {log.title}"


def _delete(store: SessionStore, options: argparse.Namespace) -> tuple[Any, str]:
    path = store.find(options.id)
    with SessionLog.open(path, writable=False) as log:
        facts, title = _facts(log), log.title
    if not options.yes:
        if not sys.stdin.isatty():
            raise UsageError("delete asks before it deletes, and there is nobody to ask", hint="add --yes")
        sys.stderr.write(f"delete {one_line(path.name, 80)} ({one_line(title, 60)})? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return {**facts, "deleted": False}, "kept"
    store.delete(path)
    return {**facts, "deleted": True}, f"deleted {path.name}"


def _read(store: SessionStore, id_: str) -> SessionLog:
    log = SessionLog.open(store.find(id_), writable=False)
    for note in log.recovered:
        sys.stderr.write(clean(f"hilt: {hanging(note)}\n"))
    return log


def _made(path: Path, what: str) -> tuple[Any, str]:
    with SessionLog.open(path, writable=False) as log:
        id_ = log.meta.id
        return _facts(log), f"{what} as {id_[:8]}\nopen it with: hilt --session {id_[:8]} -p …"


def _facts(log: SessionLog) -> dict[str, Any]:
    return {"id": log.meta.id, "title": log.title, "cwd": log.meta.cwd, "path": str(log.path or "")}


def _spoken(message: Message) -> str:
    match message:
        case UserMessage(content=content):
            return "> " + text_of(content, "\n").replace("\n", "\n> ")
        case AssistantMessage():
            parts = [
                block.text if isinstance(block, Text) else one_line(f"→ {block.name} {block.args}", 120)
                for block in message.seen
                if isinstance(block, Text | ToolCall)
            ]
            return "\n".join(parts)
        case ToolMessage(results=results):
            return "\n".join(
                ("✗ " if result.is_error else "✓ ") + one_line(f"{result.name}: {text_of(result.content, ' ')}", 200)
                for result in results
            )


_VERBS: dict[str, Callable[[SessionStore, argparse.Namespace], tuple[Any, str]]] = {
    "list": _list,
    "show": _show,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "tree": _tree,
    "rename": _rename,
    "delete": _delete,
}
