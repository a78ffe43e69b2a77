"""Which other session may be gone on with, and that all who record are in the same one."""

import os
from pathlib import Path

import pytest

from hilt.errors import SessionError
from hilt.model.masking import Mask
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta
from hilt.sessions.store import SessionStore
from hilt.sessions.undo import FileHistory
from support.session_files import reread, said, write_session


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


@pytest.fixture
def journal(store: SessionStore) -> Journal:
    return Journal(_new(store), store, Mask(("s3cr3t-s3cr3t",)))


def _new(store: SessionStore) -> SessionLog:
    meta = new_meta("/project", "demo", "demo-1")
    log = SessionLog.create(store.new_path("/project", meta.id), meta)
    log.append(said("here"))
    return log


def test_a_session_is_found_by_id_and_by_path(store: SessionStore, journal: Journal) -> None:
    other = _new(store)
    assert other.path
    assert journal.find(other.meta.id[:12]) == other.path.resolve()
    assert journal.find(str(other.path)) == other.path.resolve()
    assert journal.is_at(journal.find(journal.log.meta.id))
    assert not journal.is_at(journal.find(other.meta.id))


def test_a_file_elsewhere_is_refused_however_it_is_named(  # A14
    tmp_path: Path, store: SessionStore, journal: Journal
) -> None:
    outside = tmp_path / "elsewhere" / "one.jsonl"
    write_session(outside, 1)
    folder = store.folder("/project")
    (folder / "link.jsonl").symlink_to(outside)
    (store.root / "linked").symlink_to(outside.parent, target_is_directory=True)
    (store.root / "loose.jsonl").write_bytes(outside.read_bytes())
    (folder / "deeper").mkdir()
    (folder / "deeper" / "one.jsonl").write_bytes(outside.read_bytes())
    (folder / "one.txt").write_bytes(outside.read_bytes())
    named = [
        outside,
        folder / "link.jsonl",
        store.root / "linked" / "one.jsonl",
        folder / ".." / ".." / "elsewhere" / "one.jsonl",
        store.root / "loose.jsonl",
        folder / "deeper" / "one.jsonl",
        folder / "one.txt",
    ]
    for path in named:
        with pytest.raises(SessionError, match="not among hilt's own sessions"):
            journal.find(str(path))


def test_a_store_behind_a_link_is_still_hilts_own(tmp_path: Path, store: SessionStore) -> None:
    log = _new(store)
    (tmp_path / "link").symlink_to(store.root, target_is_directory=True)
    journal = Journal(log, SessionStore(tmp_path / "link"))
    assert log.path
    assert journal.find(log.meta.id) == Path(os.path.realpath(log.path))


def test_a_conversation_that_is_not_kept_goes_nowhere(store: SessionStore) -> None:
    journal = Journal(SessionLog.in_memory(new_meta("/project", "demo", "demo-1")), store)
    for go in (journal.fork, lambda: journal.find("x")):
        with pytest.raises(SessionError, match="no active session"):
            go()


def test_after_a_turn_to_another_session_everything_is_recorded_there(
    tmp_path: Path, store: SessionStore, journal: Journal
) -> None:
    history = FileHistory(journal)
    path = _new(store)
    target = path.path
    assert target
    path.close()
    (tmp_path / "file").write_text("before")
    left = journal.turn_to(journal.open(target))
    left.close()
    journal.append(said("s3cr3t-s3cr3t there"))
    assert history.remember("1", tmp_path / "file") == ""
    journal.close()
    assert reread(target)[0] == "here"
    assert reread(target)[1].endswith(" there") and "s3cr3t" not in reread(target)[1]
    with SessionLog.open(target) as log:
        assert [outcome.action for outcome in FileHistory(Journal(log)).undo()] == ["unchanged"]
    assert left.path
    assert reread(left.path) == ["here"]
