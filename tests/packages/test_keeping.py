import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hilt.errors import ManifestError, PackageError
from hilt.packages import keeping


def test_what_is_kept_is_private_and_so_is_a_directory_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "home" / "file"
    keeping.replace(path, b"one")
    assert keeping.read(path, 10) == b"one"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    path.chmod(0o666)
    keeping.replace(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o600)
    assert os.listdir(path.parent) == ["file"]


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    (tmp_path / "file").symlink_to("other")
    keeping.replace(tmp_path / "file", b"new")
    assert (tmp_path / "other").read_text() == "precious"
    assert not (tmp_path / "file").is_symlink() and (tmp_path / "file").read_bytes() == b"new"


def test_a_link_in_place_of_the_file_that_locks_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".file.busy").symlink_to(tmp_path / "made-by-hilt")
    with pytest.raises(PackageError, match="cannot be changed"), keeping.alone(tmp_path / "file"):
        pass
    assert not (tmp_path / "made-by-hilt").exists()


def test_what_is_not_there_is_empty_and_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    assert keeping.read(tmp_path / "none", 10) == b""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 11)
    (tmp_path / "nowhere").symlink_to("gone")
    for name in ("pipe", "large", "nowhere"):
        with pytest.raises(ManifestError, match=name):
            keeping.read(tmp_path / name, 10)


def test_a_write_that_fails_leaves_the_old_one_and_says_so(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from pathlib import Path
from hilt.errors import PackageError
from hilt.packages import keeping
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    keeping.replace(Path(sys.argv[1]), b"x" * 1000)
except PackageError as error:
    sys.exit(str(error))
"""
    path = tmp_path / "file"
    keeping.replace(path, b"old")
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and str(path) in done.stderr and "cannot be written" in done.stderr
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_one_process_at_a_time_changes_a_file(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from hilt.packages import keeping
path = Path(sys.argv[1])
for _ in range(25):
    with keeping.alone(path):
        keeping.replace(path, b"%d" % (int(keeping.read(path, 100) or 0) + 1))
"""
    path = tmp_path / "count"
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(3)]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert path.read_bytes() == b"75"


def test_whoever_waits_too_long_for_another_gives_up_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_PATIENCE", 0.05)
    path = tmp_path / "file"
    held = os.open(tmp_path / ".file.busy", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PackageError, match="in use") as caught, keeping.alone(path):
            pass
        assert str(path) in caught.value.message and caught.value.hint
    finally:
        os.close(held)
    with keeping.alone(path):
        pass


def test_threads_take_turns_too(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with keeping.alone(tmp_path / "file"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(most) == 80 and max(most) == 1
