"""What a session promises when nothing goes wrong."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hilt.errors import SessionError
from hilt.model.content import Image, Text
from hilt.model.conversation import Usage, UserMessage, now, pair_calls
from hilt.model.masking import Mask
from hilt.sessions.blobs import LONGEST_RECORD
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord, MessageRecord, ModelRecord, NoteRecord, TitleRecord
from support.fault_fs import RecordingFiles, ShortWrites
from support.session_files import answered, meta, reread, resulted, said, texts, write_session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "0123456789abcdef" / "one.jsonl"


def test_a_run_without_a_message_leaves_no_file(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.sync()
    assert not path.parent.exists()


def test_a_record_is_in_the_file_when_append_returns(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        for number in range(3):
            log.append(said(f"message {number}"))
            assert reread(path)[-1] == f"message {number}"


def test_files_and_folders_are_private_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        write_session(path, 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_a_session_others_could_read_is_made_private_when_it_is_opened(path: Path) -> None:
    write_session(path, 1)
    path.chmod(0o644)
    SessionLog.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_reopened_session_goes_on_where_it_stopped(path: Path) -> None:
    write_session(path, 2)
    with SessionLog.open(path) as log:
        assert log.recovered == []
        log.append(said("message 2"))
    assert reread(path) == ["message 0", "message 1", "message 2"]


def test_creating_over_a_session_that_exists_opens_it(path: Path) -> None:
    write_session(path, 1)
    with SessionLog.create(path, meta("/elsewhere")) as log:
        assert log.meta.cwd == "/home/someone/project"
        log.append(said("message 1"))
    assert reread(path) == ["message 0", "message 1"]


def test_an_empty_file_becomes_a_session(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    wanted = meta()
    with SessionLog.create(path, wanted) as log:
        log.append(said("hello"))
    with SessionLog.open(path) as log:
        assert (log.meta, texts(log)) == (wanted, ["hello"])


def test_results_join_into_one_message_in_the_order_of_the_calls(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        for record in (said("go"), answered("I run", "1", "2"), resulted("2", "two"), resulted("1", "one")):
            log.append(record)
        log.append(answered("done"))
        assert texts(log) == ["go", "I run", "one|two", "done"]
        assert pair_calls(log.messages()) == log.messages()
    with SessionLog.open(path) as log:
        assert texts(log) == ["go", "I run", "one|two", "done"]


def test_a_call_without_a_result_is_left_for_the_caller_to_repair(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        for record in (said("go"), answered("I run", "1", "2"), resulted("1", "one")):
            log.append(record)
        assert texts(log) == ["go", "I run", "one"]
        assert "outcome is unknown" in str(pair_calls(log.messages())[-1])


def test_after_compaction_the_conversation_is_the_summary_and_the_tail_that_was_kept(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        log.append(answered("b"))
        kept = log.append(said("c"))
        log.append(answered("d"))
        log.append(CompactionRecord("They said a and b.", kept, 1000))
        log.append(said("e"))
    with SessionLog.open(path) as log:
        assert texts(log) == ["## Context Summary (compacted)\n\nThey said a and b.", "c", "d", "e"]
        first = log.messages()[0]
        assert isinstance(first, UserMessage)
        assert first.summary


def test_of_two_compactions_the_last_one_counts(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        log.append(CompactionRecord("one", "", 10))
        log.append(said("b"))
        log.append(CompactionRecord("two", "", 10))
        assert texts(log) == ["## Context Summary (compacted)\n\ntwo"]


def test_going_back_starts_a_branch_and_keeps_the_other(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        first = log.append(said("a"))
        log.append(answered("b"))
        log.move(first)
        log.append(answered("other b"))
    with SessionLog.open(path) as log:
        assert texts(log) == ["a", "other b"]
        assert len([entry for entry in log.entries() if entry.role]) == 3


def test_clearing_starts_from_nothing_even_after_a_restart(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        log.move("")
    with SessionLog.open(path) as log:
        assert (log.head, texts(log)) == ("", [])
        log.append(said("b"))
        assert texts(log) == ["b"]


def test_moving_to_an_entry_that_is_not_there_is_refused(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        with pytest.raises(SessionError, match="no entry 'ffff'"):
            log.move("ffff")
        with pytest.raises(SessionError, match="no entry 'ffff'"):
            log.append(said("b"), parent="ffff")


def test_records_beside_the_conversation_do_not_move_the_head(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        head = log.append(said("a"))
        for record in (TitleRecord("t"), ModelRecord("p", "m"), NoteRecord("k", [1])):
            log.append(record)
            assert log.head == head
        assert texts(log) == ["a"]


def test_the_title_is_the_given_one_or_the_first_line_of_the_first_prompt(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        assert log.title == ""
        log.append(said("\n  fix   the parser\nplease" + "x" * 200))
        log.append(said("second"))
        assert log.title == "fix   the parser"
        log.append(TitleRecord("Parser " + "x" * 100))
    with SessionLog.open(path) as log:
        assert log.title.startswith("Parser xx")
        assert len(log.title) == 80


def test_usage_is_summed_over_all_branches_and_the_last_model_is_remembered(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        first = log.append(said("a"))
        log.append(answered("b", usage=Usage(1, 2, 3, 4, 0.5)))
        assert log.usage == Usage(1, 2, 3, 4, 0.5)
        log.move(first)
        log.append(answered("c", usage=Usage(10, 20, 30, 40, 1.0)))
        log.append(ModelRecord("other", "model-2"))
        assert log.usage == Usage(11, 22, 33, 44, 1.5)
    with SessionLog.open(path) as log:
        assert (log.usage, log.model) == (Usage(11, 22, 33, 44, 1.5), ("other", "model-2"))


def test_a_log_in_memory_behaves_the_same_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SessionLog.in_memory(meta()) as log:
        first = log.append(said("a"))
        log.append(answered("b"))
        log.move(first)
        log.append(answered("c"))
        log.append(MessageRecord(UserMessage((Image("image/png", bytes(LONGEST_RECORD)),), now())))
        log.sync()
        assert texts(log) == ["a", "c", ""]
        assert (log.title, log.trouble, log.path) == ("a", "", None)
        assert log.usage == Usage(20, 10)
    assert list(tmp_path.iterdir()) == []


def test_secrets_never_reach_the_file(path: Path) -> None:
    with SessionLog.create(path, meta("/home/sk-secret-key"), mask=Mask(["sk-secret-key"])) as log:
        log.append(said("my key is sk-secret-key"))
        log.append(TitleRecord("about sk-secret-key"))
    assert b"sk-secret-key" not in path.read_bytes()
    assert reread(path) == ["my key is [key hidden]"]


def test_large_contents_live_in_private_side_files_and_come_back_whole(path: Path) -> None:
    image = os.urandom(LONGEST_RECORD)
    text = "é" * LONGEST_RECORD
    with SessionLog.create(path, meta()) as log:
        log.append(MessageRecord(UserMessage((Text("look"), Image("image/png", image), Text(text)), now())))
    assert path.stat().st_size < LONGEST_RECORD
    blobs = list((path.parent.parent / "blobs").iterdir())
    assert len(blobs) == 2
    assert all(stat.S_IMODE(blob.stat().st_mode) == 0o600 for blob in blobs)
    with SessionLog.open(path) as log:
        assert log.messages()[0].content == (Text("look"), Image("image/png", image), Text(text))  # type: ignore[union-attr]  # a user message
        blobs[0].write_bytes(b"damaged")
        blobs[1].unlink()
        kept = log.messages()[0]
        assert isinstance(kept, UserMessage)
        assert kept.content[:2] == (Text("look"), Image("image/png", b""))
        assert "side file" in str(kept.content[2])


def test_a_side_file_is_on_the_disk_before_the_record_that_needs_it(path: Path) -> None:
    files = RecordingFiles()
    with SessionLog.create(path, meta(), fs=files) as log:
        log.append(said("x" * (LONGEST_RECORD + 1)))
    blobs = path.parent.parent / "blobs"
    assert files.order[0] == "write"
    assert files.order[1].startswith(f"fsync {blobs}/")
    assert f"fsync {blobs}" in files.order[: files.order.index("write", 1)]
    assert f"fsync {blobs.parent}" in files.order[: files.order.index("write", 1)]


def test_a_large_record_without_a_long_string_is_written_whole(path: Path) -> None:
    pieces = ["x" * 60_000] * 80
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        log.append(NoteRecord("pieces", pieces))
    assert path.stat().st_size > LONGEST_RECORD
    with SessionLog.open(path) as log:
        assert log.read(log.entries()[-1]) == NoteRecord("pieces", pieces)


def test_a_side_file_of_a_log_outside_the_store_lies_beside_it(tmp_path: Path) -> None:
    with SessionLog.create(tmp_path / "mine.jsonl", meta()) as log:
        log.append(said("x" * (LONGEST_RECORD + 1)))
    assert sorted(item.name for item in tmp_path.iterdir()) == ["blobs", "mine.jsonl"]


def test_a_second_writer_is_refused_and_told_who_has_the_session(path: Path) -> None:
    write_session(path, 1)
    script = "import sys, pathlib, hilt.sessions.log as s; s.SessionLog.open(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", script, str(path)]
    with SessionLog.open(path):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert f"open in another hilt (pid {os.getpid()})" in done.stderr
    assert subprocess.run(command, timeout=30, check=False).returncode == 0


def test_a_locked_session_can_still_be_read_and_reading_changes_nothing(path: Path) -> None:
    write_session(path, 2)
    before = path.read_bytes()
    with SessionLog.open(path), SessionLog.open(path, writable=False) as reader:
        assert texts(reader) == ["message 0", "message 1"]
        with pytest.raises(SessionError, match="opened for reading"):
            reader.append(said("no"))
    assert path.read_bytes() == before


def test_a_child_process_does_not_inherit_the_session(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        # Left open on purpose: programs that are started without closing must not get it either.
        command = ["ls", "-l", "/proc/self/fd"]
        listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, close_fds=False)
    assert path.name not in listing.stdout


def test_a_symbolic_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    write_session(path, 1)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    with pytest.raises(SessionError, match="symbolic link"):
        SessionLog.open(link)


def test_what_is_not_a_session_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    contents = {"notes.md": b"# Notes", "other.jsonl": b'{"type":"meta","meta":{"id":"x"}}\n', "text": b"a\nb"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o644)
        with pytest.raises(SessionError, match="not a hilt session"):
            SessionLog.open(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o644
    for odd in (pipe, tmp_path, tmp_path / "missing"):
        for writable in (True, False):
            with pytest.raises(SessionError) as caught:
                SessionLog.open(odd, writable=writable)
            assert caught.value.hint
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([*contents, "pipe"])


def test_appending_after_closing_is_an_error_and_closing_twice_is_not(path: Path) -> None:
    log = SessionLog.create(path, meta())
    log.append(said("a"))
    log.close()
    log.close()
    with pytest.raises(SessionError, match="closed"):
        log.append(said("b"))
    assert reread(path) == ["a"]


def test_sync_forces_the_data_and_then_the_new_names_to_the_disk(path: Path) -> None:
    files = RecordingFiles()
    with SessionLog.create(path, meta(), fs=files) as log:
        log.append(said("a"))
        assert files.order == ["write"]
        log.sync()
        expected = ["write", "fdatasync"]
        assert files.order[:2] == expected
        assert set(files.order[2:]) == {f"fsync {folder}" for folder in list(path.parents)[:3]}
        log.append(said("b"))
        log.sync()
        log.sync()
        assert files.order[-2:] == expected
    assert files.order[-2:] == expected


def test_full_durability_forces_every_record_and_os_none(path: Path) -> None:
    full, none = RecordingFiles(), RecordingFiles()
    with SessionLog.create(path, meta(), durability="full", fs=full) as log:
        log.append(said("a"))
        log.append(said("b"))
        assert full.order.count("fdatasync") == 2
    with SessionLog.create(path.with_name("two.jsonl"), meta(), durability="os", fs=none) as log:
        log.append(said("a"))
        log.sync()
    assert none.order == ["write"]


def test_a_file_system_that_takes_few_bytes_at_a_time_gets_whole_records(path: Path) -> None:
    with SessionLog.create(path, meta(), fs=ShortWrites()) as log:
        log.append(said("a" * 100))
        assert log.trouble == ""
    assert reread(path) == ["a" * 100]


def test_appending_goes_on_while_another_thread_syncs(path: Path) -> None:
    stop = threading.Event()
    with SessionLog.create(path, meta()) as log:

        def keep_syncing() -> None:
            while not stop.is_set():
                log.sync()

        thread = threading.Thread(target=keep_syncing)
        thread.start()
        try:
            for number in range(500):
                log.append(said(str(number)))
                assert log.read(log.entries()[-1]) == log.read(log.branch()[-1])
        finally:
            stop.set()
            thread.join(timeout=30)
    assert reread(path) == [str(number) for number in range(500)]


def test_importing_the_log_loads_nothing_costly() -> None:
    script = "import sys, hilt.sessions.log; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert {"hashlib", "sqlite3", "base64", "httpx2", "asyncio"}.isdisjoint(done.stdout.split())
