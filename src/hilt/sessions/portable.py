"""Sessions that travel: export to a file, import from one, fork into another.

All three copy lines as they stand, so that record types and fields this version does not know arrive
whole. What a record kept in side files travels inside it. Snapshots of files do not leave the
machine they were taken on: their contents are private, and undoing another machine's changes by
path would overwrite the wrong files.
"""

import re
from pathlib import Path

import msgspec
from msgspec import Raw

from hilt import __version__
from hilt.errors import SessionError
from hilt.model.conversation import now
from hilt.sessions import foreign
from hilt.sessions.blobs import Blobs, move_in, move_out
from hilt.sessions.envelope import fields_of, open_line, seal
from hilt.sessions.files import OS, write_new
from hilt.sessions.index import Entry, lineage
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CONVERSATION, LeafRecord, Meta, RestoredRecord, SnapshotRecord, new_id, new_meta
from hilt.sessions.store import SessionStore

SUFFIX = ".hiltsession"
_LONGEST_SLUG = 40
_STAY = frozenset({Meta.TYPE, SnapshotRecord.TYPE, RestoredRecord.TYPE})


def export(log: SessionLog, target: Path, *, force: bool = False) -> Path:
    """Write the whole session, without its folder's name, to a file or into a directory."""
    if target.is_dir():
        target = target / _export_name(log)
    meta = _changed(_first_meta(log), {"cwd": ""})
    _write(target, [meta, *_travelling(log)], force=force)
    return target


def import_(source: Path, store: SessionStore, cwd: str | Path) -> Path:
    """Bring in an exported session, or one of another program, as a new session of this folder."""
    session_id = new_id()
    fresh = {"id": session_id, "cwd": str(cwd), "created": now(), "version": __version__}
    with foreign.read(source) or _own(source) as log:
        if not any(entry.type in CONVERSATION for entry in log.entries()):
            raise SessionError(f"{source} holds no messages", hint="name an exported session file")
        lines = [_changed(_first_meta(log), fresh), *_travelling(log)]
    path = store.new_path(cwd, session_id)
    _write(path, lines, Blobs(store.blobs))
    return path


def _own(source: Path) -> SessionLog:
    try:
        return SessionLog.open(source, writable=False)
    except SessionError as error:
        raise SessionError(error.message, hint="name a session that hilt or zot exported") from error


def fork(log: SessionLog, store: SessionStore, at: str | None = None, cwd: str | Path | None = None) -> Path:
    """A new session that begins with this one's conversation up to an entry, the same ids and all."""
    point = log.head if at is None else at
    parents = {entry.id: entry.parent for entry in log.entries()}
    if point and point not in parents:
        raise SessionError(f"there is no entry {point!r} in this session", hint="see `hilt sessions tree`")
    provider, model = log.model
    meta = new_meta(str(cwd or log.meta.cwd), provider, model, parent=log.meta.id, fork_point=point)
    path = store.new_path(meta.cwd, meta.id)
    facts = {name: getattr(meta, name) for name in Meta.__struct_fields__}
    above = set(lineage(point, parents))
    copied = [_whole(log, entry) for entry in log.entries() if _belongs(entry, above)]
    _write(path, [_changed(_first_meta(log), facts), *copied], Blobs(store.blobs))
    return path


def _belongs(entry: Entry, above: set[str]) -> bool:
    """What the conversation is made of, and what was noted beside it; not the moves between branches."""
    if entry.type in (Meta.TYPE, LeafRecord.TYPE):
        return False
    beside = entry.type not in CONVERSATION and (not entry.parent or entry.parent in above)
    return entry.id in above or beside


def _travelling(log: SessionLog) -> list[dict[str, bytes]]:
    return [_whole(log, entry) for entry in log.entries() if entry.type not in _STAY]


def _whole(log: SessionLog, entry: Entry) -> dict[str, bytes]:
    """An entry's fields, known or not, with nothing left in side files."""
    line = log.line(entry)
    fields = fields_of(line)
    opened = open_line(line)
    if opened and log.blobs:
        fields["data"] = move_in(opened.data, opened.blobs, log.blobs)
    fields.pop("blobs", None)
    fields.pop("parent", None)  # the one in the file may have been lost
    return fields | ({"parent": msgspec.json.encode(entry.parent)} if entry.parent else {})


def _first_meta(log: SessionLog) -> dict[str, bytes]:
    entry = next(entry for entry in log.entries() if entry.type == Meta.TYPE)
    return _whole(log, entry)


def _changed(meta: dict[str, bytes], facts: dict[str, object]) -> dict[str, bytes]:
    data = {key: Raw(value) for key, value in fields_of(meta["data"]).items()}
    data |= {key: Raw(msgspec.json.encode(value)) for key, value in facts.items()}
    return meta | {"data": msgspec.json.encode(data)}


def _numbered(lines: list[dict[str, bytes]], blobs: Blobs | None) -> bytes:
    """The lines of a new file, counted from its beginning, with what is too long moved to side files."""
    sealed: list[bytes] = []
    for number, fields in enumerate(lines):
        fields["n"] = b"%d" % number
        if blobs:
            fields["data"], moved = move_out(fields["data"], blobs)
            if moved:
                fields["blobs"] = msgspec.json.encode(moved)
        sealed.append(seal(fields))
    return b"\n".join([*sealed, b""])


def _write(path: Path, lines: list[dict[str, bytes]], blobs: Blobs | None = None, *, force: bool = False) -> None:
    try:
        write_new(OS, path, _numbered(lines, blobs), force=force)
    except FileExistsError as error:
        raise SessionError(f"{path} exists already", hint="choose another name, or overwrite it with force") from error
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror}", hint="choose another place") from error


def _export_name(log: SessionLog) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", log.title.lower()).strip("-")[:_LONGEST_SLUG].rstrip("-")
    parts = [f"{log.meta.created:%Y%m%d-%H%M%S}", log.meta.id[:8], *([slug] if slug else [])]
    return "-".join(parts) + SUFFIX
