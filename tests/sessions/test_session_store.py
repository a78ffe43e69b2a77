"""Finding, listing and deleting sessions."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from hilt.errors import SessionError
from hilt.sessions.blobs import LONGEST_RECORD
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import ModelRecord, TitleRecord
from hilt.sessions.store import SessionStore
from hilt.sessions.undo import FileHistory
from support.session_files import answered, meta, said, write_session


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def add(store: SessionStore, text: str, cwd: str = "/a", updated: int = 0) -> tuple[str, Path]:
    facts = meta(cwd)
    path = store.new_path(cwd, facts.id)
    with SessionLog.create(path, facts) as log:
        log.append(said(text))
        log.append(answered("yes"))
    os.utime(path, (updated, updated))
    return facts.id, path


def test_a_new_path_names_the_folder_by_its_hash_and_the_file_by_time_and_id(store: SessionStore) -> None:
    path = store.new_path("/a", "0123456789abcdef0123456789abcdef")
    assert path.parent == store.root / sha256(b"/a").hexdigest()[:16]
    assert path.name.endswith("-01234567.jsonl")
    assert len(path.stem) == len("YYYYMMDD-HHMMSS-01234567")
    assert not store.root.exists()


def test_sessions_are_listed_newest_first_with_what_a_person_needs_to_choose(store: SessionStore) -> None:
    old, _ = add(store, "old question\nmore", updated=1000)
    new, path = add(store, "new question", cwd="/b", updated=2000)
    with SessionLog.open(path) as log:
        log.append(TitleRecord("A title"))
        log.append(ModelRecord("other", "m2"))
    os.utime(path, (2000, 2000))
    first, second = store.list()
    assert (first.id, first.title, first.cwd, first.messages, first.path) == (new, "A title", "/b", 2, path)
    assert (first.provider, first.model, first.updated.timestamp()) == ("other", "m2", 2000)
    assert (second.id, second.title) == (old, "old question")
    assert [summary.id for summary in store.list("/a")] == [old]
    assert store.list("/nowhere") == []


def test_broken_files_cost_only_themselves(store: SessionStore) -> None:
    kept, path = add(store, "kept")
    (path.parent / "empty.jsonl").touch()
    (path.parent / "binary.jsonl").write_bytes(os.urandom(3000))
    (path.parent / "folder.jsonl").mkdir()
    (path.parent / "gone.jsonl").symlink_to("/nowhere")
    torn, torn_path = add(store, "torn")
    torn_path.write_bytes(torn_path.read_bytes()[:-10])
    headless, headless_path = add(store, "headless")
    headless_path.write_bytes(headless_path.read_bytes().partition(b"\n")[2])
    assert {summary.id for summary in store.list()} == {kept, torn, headless[:8]}


def test_the_latest_session_of_a_folder_is_the_one_last_written(store: SessionStore) -> None:
    _, older = add(store, "older", updated=1000)
    _, newer = add(store, "newer", updated=3000)
    add(store, "elsewhere", cwd="/b", updated=4000)
    junk = newer.with_name("junk.jsonl")
    junk.write_bytes(b"not a session\n")
    assert store.latest("/a") == newer
    assert store.latest("/nowhere") is None
    newer.unlink()
    assert store.latest("/a") == older


def test_a_session_is_found_by_id_prefix_or_path(store: SessionStore) -> None:
    session, path = add(store, "one")
    add(store, "two")
    assert store.find(session) == path
    assert store.find(path.stem) == path
    assert store.find(str(path)) == path
    length = next(
        length for length in range(1, 33) if sum(s.id[:length] == session[:length] for s in store.list()) == 1
    )
    assert store.find(session[:length]) == path


def test_an_ambiguous_or_unknown_name_is_refused_with_what_would_help(store: SessionStore) -> None:
    folder = store.folder("/a")
    for number in range(7):
        write_session(folder / f"2024-{number}.jsonl", 1)
    with pytest.raises(SessionError, match=r"7 sessions match '2024'.*and 2 more"):
        store.find("2024")
    for unknown in ("zzzz", "", "/no/such/file"):
        with pytest.raises(SessionError, match="no session matches") as caught:
            store.find(unknown)
        assert "sessions list" in caught.value.hint


def test_deleting_removes_the_session_and_what_was_set_aside(store: SessionStore) -> None:
    _, path = add(store, "one")
    path.write_bytes(path.read_bytes() + b'{"torn')
    SessionLog.open(path).close()
    assert len(list(path.parent.iterdir())) == 2
    store.delete(path)
    assert list(path.parent.iterdir()) == []


def test_a_session_in_use_is_not_deleted(store: SessionStore) -> None:
    _, path = add(store, "one")
    with SessionLog.open(path), pytest.raises(SessionError, match="open in another hilt"):
        store.delete(path)
    assert path.exists()


def test_deleting_removes_side_files_that_no_other_session_uses(store: SessionStore, tmp_path: Path) -> None:
    shared, own = "s" * (LONGEST_RECORD + 1), "o" * (LONGEST_RECORD + 1)
    _, first = add(store, "first")
    _, second = add(store, "second")
    for path, contents in ((first, (shared, own)), (second, (shared,))):
        with SessionLog.open(path) as log:
            for text in contents:
                log.append(said(text))
    (tmp_path / "file").write_text("snapshot")
    with SessionLog.open(first) as log:
        FileHistory(Journal(log)).remember("1", tmp_path / "file")
    blobs = list(store.blobs.iterdir())
    assert len(blobs) == 3
    young = next(blob for blob in blobs if blob.read_bytes() == b"snapshot")
    for blob in blobs:
        if blob != young:  # one may belong to a record that is just being written, so the young ones stay
            os.utime(blob, (1000, 1000))
    store.delete(first)
    assert {blob.read_bytes()[:1] for blob in store.blobs.iterdir()} == {b"s"}
    assert young.exists()
    assert len(list(store.blobs.iterdir())) == 2
