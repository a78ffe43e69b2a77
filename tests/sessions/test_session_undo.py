"""Undo puts files back, step by step, and loses nothing itself."""

from pathlib import Path

import pytest

from hilt.errors import SessionError
from hilt.sessions.blobs import Blobs
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import RestoredRecord
from hilt.sessions.undo import LARGEST_SNAPSHOT, FileHistory, FileOutcome
from support.session_files import answered, meta, said


def without_notes(outcomes: list[FileOutcome]) -> list[FileOutcome]:
    return [FileOutcome(outcome.path, outcome.action) for outcome in outcomes]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "one.jsonl"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def change(history: FileHistory, call: str, path: Path, content: str) -> None:
    assert history.remember(call, path) == ""
    path.write_text(content)


def test_undo_takes_back_one_prompt_at_a_time_even_after_a_restart(session: Path, work: Path) -> None:
    old, new = work / "old.txt", work / "new.txt"
    old.write_text("original")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("first"))
        log.append(answered("", "1"))
        change(history, "1", old, "changed once")
        log.append(said("second"))
        log.append(answered("", "2", "3"))
        change(history, "2", old, "changed twice")
        change(history, "2", old, "changed three times")
        change(history, "3", new, "created")
    with SessionLog.open(session) as log:
        history = FileHistory(Journal(log))
        assert without_notes(history.undo()) == [FileOutcome(old, "restored"), FileOutcome(new, "removed")]
        assert old.read_text() == "changed once"
        assert not new.exists()
    with SessionLog.open(session) as log:
        history = FileHistory(Journal(log))
        assert without_notes(history.undo()) == [FileOutcome(old, "restored")]
        assert old.read_text() == "original"
        assert without_notes(history.undo()) == []


def test_what_undo_overwrites_is_kept(session: Path, work: Path) -> None:
    path = work / "a"
    path.write_text("before")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", path, "after")
        path.write_text("edited by hand")
        history.undo()
        record = log.read(log.entries()[-1])
        assert isinstance(record, RestoredRecord)
        assert log.blobs
        assert log.blobs.get(record.replaced[0].blob) == b"edited by hand"
    assert path.read_text() == "before"


def test_permissions_come_back_and_are_never_looser_in_between(session: Path, work: Path) -> None:
    path = work / "script"
    path.write_text("a")
    path.chmod(0o750)
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", path, "b")
        path.chmod(0o644)
        assert without_notes(history.undo()) == [FileOutcome(path, "restored")]
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("a", 0o750)


def test_a_deleted_file_and_its_folder_come_back(session: Path, work: Path) -> None:
    path = work / "deep" / "er" / "a"
    path.parent.mkdir(parents=True)
    path.write_text("content")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        history.remember("1", path)
        path.unlink()
        path.parent.rmdir()
        assert without_notes(history.undo()) == [FileOutcome(path, "restored")]
    assert path.read_text() == "content"


def test_a_file_that_is_as_it_was_is_left_alone(session: Path, work: Path) -> None:
    path = work / "a"
    path.write_text("same")
    before = path.stat().st_ino
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", path, "other")
        path.write_text("same")
        assert without_notes(history.undo()) == [FileOutcome(path, "unchanged")]
        assert without_notes(history.undo()) == []
    assert path.stat().st_ino == before


def test_a_link_is_followed_when_remembered_and_stays_a_link(session: Path, work: Path) -> None:
    real, link = work / "real", work / "link"
    real.write_text("a")
    link.symlink_to(real)
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", link, "b")
        history.undo()
    assert (real.read_text(), link.is_symlink()) == ("a", True)


def test_a_file_that_cannot_be_put_back_is_reported_and_tried_again_next_time(session: Path, work: Path) -> None:
    lost, fine = work / "lost", work / "fine"
    lost.write_text("a")
    fine.write_text("b")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", lost, "x")
        change(history, "2", fine, "y")
        assert log.blobs
        kept = log.blobs.folder / next(blob.name for blob in log.blobs.folder.iterdir() if blob.read_bytes() == b"a")
        kept.write_bytes(b"damaged")
        first, second = history.undo()
        assert (first.action, second.action) == ("failed", "restored")
        assert "missing or damaged" in first.note
        assert lost.read_text() == "x"
        kept.write_bytes(b"a")
        assert without_notes(history.undo()) == [FileOutcome(lost, "restored")]


def test_a_file_that_became_a_directory_is_not_clobbered(session: Path, work: Path) -> None:
    path = work / "a"
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        history.remember("1", path)
        path.mkdir()
        (outcome,) = history.undo()
        assert outcome.action == "failed"
    assert path.is_dir()


def test_what_is_too_large_or_not_a_file_is_said_not_to_be_undoable(session: Path, work: Path) -> None:
    large = work / "large"
    with large.open("wb") as file:
        file.truncate(LARGEST_SNAPSHOT + 1)
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        assert "larger than 16 MiB" in history.remember("1", large)
        assert "not a regular file" in history.remember("1", work)
        assert without_notes(history.undo()) == []
        with large.open("wb") as file:
            file.truncate(LARGEST_SNAPSHOT)
        assert history.remember("1", large) == ""


def test_a_file_that_grew_too_large_to_keep_is_not_overwritten(session: Path, work: Path) -> None:
    path = work / "a"
    path.write_text("small")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        history.remember("1", path)
        with path.open("wb") as file:
            file.truncate(LARGEST_SNAPSHOT + 1)
        (outcome,) = history.undo()
        assert "larger than 16 MiB" in outcome.note
    assert path.stat().st_size == LARGEST_SNAPSHOT + 1


def test_call_ids_that_a_provider_uses_again_do_not_hide_later_changes(session: Path, work: Path) -> None:
    path = work / "a"
    path.write_text("0")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "call_0", path, "1")
        history.undo()
        log.append(said("again"))
        change(history, "call_0", path, "2")
        assert without_notes(history.undo()) == [FileOutcome(path, "restored")]
    assert path.read_text() == "0"


def test_changes_of_a_branch_that_was_left_are_not_undone(session: Path, work: Path) -> None:
    path = work / "a"
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", path, "kept")
        log.move("")
        log.append(said("new"))
        assert without_notes(history.undo()) == []
    assert path.read_text() == "kept"


def test_a_log_in_memory_can_undo_when_it_is_given_a_folder(work: Path, tmp_path: Path) -> None:
    log = SessionLog.in_memory(meta())
    with pytest.raises(SessionError, match="no place for snapshots"):
        FileHistory(Journal(log))
    history = FileHistory(Journal(log), tmp_path / "blobs")
    log.append(said("go"))
    change(history, "1", work / "a", "x")
    assert without_notes(history.undo()) == [FileOutcome(work / "a", "removed")]


def test_a_snapshot_is_private_and_a_damaged_one_is_repaired_when_put_again(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    name = blobs.put(b"content")
    assert (tmp_path / "blobs" / name).stat().st_mode & 0o777 == 0o600
    (tmp_path / "blobs" / name).write_bytes(b"other")
    assert blobs.get(name) is None
    assert blobs.put(b"content") == name
    assert blobs.get(name) == b"content"
    assert blobs.get("../../etc/passwd") is None


# One file


def test_a_single_file_is_put_back_one_change_at_a_time(session: Path, work: Path) -> None:
    one, other = work / "one", work / "other"
    one.write_text("original")
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", one, "changed")
        change(history, "2", other, "created")
        log.append(said("more"))
        change(history, "3", one, "changed again")
        assert {path: history.size(kept) for path, kept in history.latest().items()} == {
            str(one): len("changed"),
            str(other): 0,
        }
        assert put_back(log, history, one) == "restored"
        assert one.read_text() == "changed"
    with SessionLog.open(session) as log:
        history = FileHistory(Journal(log))
        assert put_back(log, history, one) == "restored"
        assert one.read_text() == "original"
        assert history.before(str(one)) is None
        assert without_notes(history.undo()) == [FileOutcome(other, "removed")]


def test_a_file_that_was_put_back_is_no_part_of_a_later_undo_but_others_of_the_same_call_are(
    session: Path, work: Path
) -> None:
    one, other = work / "one", work / "other"
    with SessionLog.create(session, meta()) as log:
        history = FileHistory(Journal(log))
        log.append(said("go"))
        change(history, "1", one, "created")
        change(history, "1", other, "created too")
        assert put_back(log, history, one) == "removed"
        one.write_text("by hand")
        assert without_notes(history.undo()) == [FileOutcome(other, "removed")]
        assert one.read_text() == "by hand"


def put_back(log: SessionLog, history: FileHistory, path: Path) -> str:
    snapshot = history.before(str(path))
    assert snapshot
    outcome, record = history.put_back(snapshot)
    log.append(record)
    return outcome.action
