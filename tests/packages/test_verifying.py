import os
from pathlib import Path

import pytest

from hilt.packages.install.installing import staged
from hilt.packages.install.lock import Entry
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import Directory
from hilt.packages.install.verifying import verify
from hilt.packages.trees import Changes
from support.packages import extension


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "home" / "extensions", tmp_path / "home" / "extensions.lock")


def install(shelf: Shelf, source: Path) -> Entry:
    with staged(Directory(source), shelf, given="given", path="/usr/bin:/bin") as one:
        return one.keep()


def test_what_was_changed_removed_or_made_runnable_is_told(tmp_path: Path, shelf: Shelf) -> None:
    files = {f"{name}.txt": name for name in "abcdef"}
    source = extension(tmp_path / "x", files=files)
    (source / "l").symlink_to("a.txt")
    entry, place = install(shelf, source), shelf.extensions / "demo"
    (place / "a.txt").write_text("A")
    (place / "b.txt").unlink()
    (place / "c.txt").chmod(0o755)
    (place / "d.txt").unlink()
    (place / "d.txt").symlink_to("/etc/passwd")
    (place / "e.txt").write_text("e and more")
    (place / "f.txt").write_text("")
    (place / "l").unlink()
    (place / "l").symlink_to("c.txt")
    assert verify(entry, place) == Changes((), ("b.txt",), ("a.txt", "c.txt", "d.txt", "e.txt", "f.txt", "l"))


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("evil.py", True),
        ("lib/json.py", True),
        ("lib/x.cpython-311.so", True),
        ("a.pth", True),
        ("a.mjs", True),
        ("node_modules/a/index.js", True),
        ("manifest.yaml", True),
        ("lib/package.json", True),
        ("bunfig.toml", True),
        (".python-version", True),
        ("notes.txt", False),
        ("state/db.sqlite", False),
        ("config.json", False),
        ("lib/__pycache__/helper.cpython-311.pyc", False),
        (".git/config", False),
    ],
)
def test_an_added_file_counts_only_if_it_could_be_run(tmp_path: Path, shelf: Shelf, path: str, counts: bool) -> None:
    entry, place = install(shelf, extension(tmp_path / "x")), shelf.extensions / "demo"
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    (place / path).write_text("x")
    assert verify(entry, place).added == ((path,) if counts else ())
    (place / path).chmod(0o755)
    assert bool(verify(entry, place)) == (counts or not path.startswith((".git", "lib/__pycache__")))


def test_an_added_link_counts_and_so_does_a_directory_that_became_one(tmp_path: Path, shelf: Shelf) -> None:
    entry, place = install(shelf, extension(tmp_path / "x")), shelf.extensions / "demo"
    (place / "state").symlink_to(tmp_path)
    assert verify(entry, place).added == ("state",)
    (place / "state").unlink()
    (place / "lib").rename(tmp_path / "lib")
    (place / "lib").symlink_to(tmp_path / "lib")
    assert verify(entry, place) == Changes(("lib",), ("lib/helper.py",), ())


def test_verifying_waits_for_nothing_and_fails_for_nothing(tmp_path: Path, shelf: Shelf) -> None:
    entry, place = install(shelf, extension(tmp_path / "x")), shelf.extensions / "demo"
    (place / "run").unlink()
    os.mkfifo(place / "run")
    os.mkfifo(place / "pipe")
    assert verify(entry, place) == Changes((), (), ("run",))
    assert verify(entry, tmp_path / "nowhere").removed == ("extension.json", "lib/helper.py", "run")
    assert verify(entry, place / "extension.json").removed
