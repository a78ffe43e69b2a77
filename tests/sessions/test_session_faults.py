"""A disk that fails: nothing raises, nothing is lost while the process lives, and nobody says "saved"."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.errors import SessionError
from hilt.sessions.files import OsFiles
from hilt.sessions.log import SessionLog
from support.fault_fs import FaultyFiles
from support.session_files import meta, reread, said, texts, write_session

MORE_CALLS_THAN_ANY_RUN = 200
FAULTS = [
    pytest.param(errno.EIO, False, id="EIO"),
    pytest.param(errno.ENOSPC, False, id="ENOSPC"),
    pytest.param(errno.ENOSPC, True, id="ENOSPC after half a write"),
    pytest.param(errno.EINTR, False, id="EINTR"),
]


@pytest.fixture
def path(quick_path: Path) -> Path:
    return quick_path / "sessions" / "one.jsonl"


def live_a_session(path: Path, files: FaultyFiles) -> tuple[list[str], str]:
    """Create, append, sync, close, and open again: what was said, and the trouble at the end."""
    spoken: list[str] = []
    trouble = ""
    for reopened in (False, True):
        try:
            log = SessionLog.open(path, fs=files) if reopened else SessionLog.create(path, meta(), fs=files)
        except SessionError:
            continue
        with log:
            for _ in range(3):
                spoken.append(f"message {len(spoken)}")
                log.append(said(spoken[-1]))
                log.sync()
        trouble += log.trouble
    return spoken, trouble


@pytest.mark.parametrize(("error", "short"), FAULTS)
def test_one_failing_call_anywhere_loses_no_record(quick_path: Path, error: int, short: bool) -> None:
    for number in range(1, MORE_CALLS_THAN_ANY_RUN):
        path = quick_path / str(number) / "one.jsonl"
        files = FaultyFiles(number, error, short=short)
        spoken, trouble = live_a_session(path, files)
        assert reread(path) == spoken, f"call {number}: {files.failed}"
        # What could not be forced to the disk stays doubtful for good; all else was made up for.
        assert bool(trouble) == bool({"fdatasync", "fsync", "close"} & set(files.failed) or "power" in trouble)
        if not files.failed:
            return
    pytest.fail("no run finished without a fault")


@pytest.mark.parametrize(("error", "short"), FAULTS)
def test_a_disk_that_fails_for_good_keeps_a_prefix_and_says_what_is_missing(
    quick_path: Path, error: int, short: bool
) -> None:
    for number in range(1, MORE_CALLS_THAN_ANY_RUN):
        path = quick_path / str(number) / "one.jsonl"
        files = FaultyFiles(number, error, forever=True, short=short)
        spoken, trouble = live_a_session(path, files)
        if not files.failed:
            return
        saved = reread(path) if path.exists() else []
        assert saved == spoken[: len(saved)], f"call {number}: {files.failed}"
        if len(saved) < len(spoken):
            assert "not saved" in trouble
    pytest.fail("no run finished without a fault")


@pytest.mark.parametrize(("error", "short"), FAULTS)
def test_a_fault_while_the_end_is_repaired_never_appends_after_it(path: Path, error: int, short: bool) -> None:
    for number in range(1, MORE_CALLS_THAN_ANY_RUN):
        wanted = write_session(path, 2)
        path.write_bytes(path.read_bytes() + b'{"type":"message","id":')
        files = FaultyFiles(number, error, short=short)
        try:
            with SessionLog.open(path, fs=files) as log:
                log.append(said("after"))
            assert reread(path) == [*wanted, "after"], f"call {number}: {files.failed}"
            with SessionLog.open(path) as log:
                assert log.recovered == []
        except SessionError:
            assert reread(path) == wanted
        for left in path.parent.iterdir():
            left.unlink()
        if not files.failed:
            return
    pytest.fail("no run finished without a fault")


def test_records_a_full_disk_refused_are_written_when_there_is_room_again(path: Path) -> None:
    files = FaultyFiles(0, errno.ENOSPC, short=True)
    with SessionLog.create(path, meta(), fs=files) as log:
        log.append(said("a"))
        size = path.stat().st_size
        files.forever, files.fail_at = True, files.calls + 1
        log.append(said("b"))
        assert log.trouble == f"1 record not saved to {path}: No space left on device"
        log.append(said("c"))
        assert log.trouble == f"2 records not saved to {path}: No space left on device"
        files.forever, files.fail_at = False, 0
        assert texts(log) == ["a", "b", "c"]
        log.sync()
        assert log.trouble == ""
        assert path.stat().st_size > size
    assert reread(path) == ["a", "b", "c"]


def test_a_partial_write_is_undone_at_once(path: Path) -> None:
    files = FaultyFiles(0, errno.ENOSPC, short=True)
    with SessionLog.create(path, meta(), fs=files) as log:
        log.append(said("a"))
        before = path.read_bytes()
        files.fail_at = files.calls + 1
        log.append(said("b"))
        assert files.failed == ["write"]
        assert path.read_bytes() == before


def test_what_could_not_be_forced_to_the_disk_is_never_called_safe_again(path: Path) -> None:
    files = FaultyFiles(0, errno.EIO)
    with SessionLog.create(path, meta(), fs=files) as log:
        log.append(said("a"))
        files.fail_at = files.calls + 2  # after the look at the file comes the forcing
        log.sync()
        assert files.failed == ["fdatasync"]
        log.sync()
        assert "may not survive a power loss: Input/output error" in log.trouble


def test_a_session_deleted_while_in_use_is_not_called_saved(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        path.unlink()
        log.sync()
        assert "deleted while in use" in log.trouble


def test_a_folder_that_cannot_be_made_is_trouble_and_not_an_exception(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with SessionLog.create(tmp_path / "file" / "one.jsonl", meta()) as log:
        log.append(said("a"))
        assert "1 record" in log.trouble or "2 records" in log.trouble
        assert texts(log) == ["a"]


def test_a_name_taken_by_another_process_meanwhile_is_left_to_it(path: Path) -> None:
    first = SessionLog.create(path, meta())
    second = SessionLog.create(path, meta())
    first.append(said("first"))
    second.append(said("second"))
    assert "open in another hilt" in second.trouble
    first.close()
    second.append(said("third"))
    assert "created by another hilt meanwhile" in second.trouble
    second.close()
    assert reread(path) == ["first"]


class FullDevice(OsFiles):
    """Every new file is the device that is always full: a real ENOSPC from the system."""

    def open(self, path: Path, flags: int) -> int:
        if flags & os.O_CREAT:
            return os.open("/dev/full", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        return super().open(path, flags)


def test_a_device_that_is_full_costs_the_file_and_not_the_conversation(tmp_path: Path) -> None:
    with SessionLog.create(tmp_path / "one.jsonl", meta(), fs=FullDevice()) as log:
        log.append(said("a"))
        assert "No space left on device" in log.trouble
        log.append(said("b"))
        assert texts(log) == ["a", "b"]
    assert "3 records not saved" in log.trouble


LIMITED = """
import resource, sys
from pathlib import Path
from support.session_files import meta, said, texts
from hilt.sessions.log import SessionLog

resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
with SessionLog.create(Path(sys.argv[1]), meta()) as log:
    for number in range(40):
        log.append(said(f"{number} " + "x" * 3_000))
    assert "File too large" in log.trouble, log.trouble
    assert len(texts(log)) == 40
    assert Path(sys.argv[1]).read_bytes().endswith(b"\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.append(said("40"))
    assert log.trouble == "", log.trouble
"""


def test_a_real_limit_on_the_files_size_loses_nothing_once_it_is_lifted(path: Path) -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], cwd=tests, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [text.split()[0] for text in reread(path)] == [str(number) for number in range(41)]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_session_on_a_disk_that_can_only_be_read_goes_on_unsaved_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    write_session(path, 2)
    before = path.read_bytes()

    class ReadOnly(OsFiles):
        def open(self, path: Path, flags: int) -> int:
            if flags & (os.O_RDWR | os.O_WRONLY):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return super().open(path, flags)

    with SessionLog.open(path, fs=ReadOnly()) as log:
        assert log.trouble == ""
        log.append(said("after"))
        log.sync()
        assert texts(log) == ["message 0", "message 1", "after"]
        assert "1 record not saved" in log.trouble and "Read-only file system" in log.trouble
    assert path.read_bytes() == before
