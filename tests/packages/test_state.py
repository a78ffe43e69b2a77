"""Which files that come with an extension are its own to change."""

from pathlib import Path
from typing import Any

import pytest

from hilt.packages.install.installing import installed, staged
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import Directory
from hilt.packages.install.verifying import verify
from support.packages import extension


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "home" / "extensions", tmp_path / "home" / "extensions.lock")


DATA = ("notes.txt", "todo.json", "log/today.jsonl", ".state/cache.json", "pins.db", "pins.db-wal")
PINNED = (
    *("node_modules/a/data.json", ".venv/x.txt", "src/table.json", "package.json", "README.md", "theme.json"),
    *("extension.json", "run", "lib/helper.py", "skills/how.md", "rules.json", "script.json", "common", "state.pkl"),
)
FIELDS: dict[str, Any] = {"args": ["--rules=./rules.json", "@script.json"], "skills": ["./skills"]}
"""What names a file of its own in the manifest."""


def test_of_one_that_was_lived_in_data_is_its_own_and_what_it_may_run_by_is_not(tmp_path: Path, shelf: Shelf) -> None:
    made = {path: "x" for path in (*DATA, *PINNED) if path not in ("extension.json", "run", "lib/helper.py")}
    source = extension(tmp_path / "x", files=made, **FIELDS)
    (source / "tool.txt").write_text("x")
    (source / "tool.txt").chmod(0o755)
    (source / "link.txt").symlink_to("notes.txt")
    with staged(Directory(source), shelf, given="x", path="/bin", lived_in=True) as one:
        entry = one.keep()

    assert one.state == set(DATA) and entry.tree.files.keys() == {*PINNED, "tool.txt", "link.txt"}
    place = shelf.extensions / "demo"
    for path in DATA:
        (place / path).write_text("more")
        (source / path).write_text("and there otherwise")
    assert not verify(installed(shelf, "demo"), place)
    with staged(Directory(source), shelf, given="x", path="/bin", lived_in=True) as again:
        assert not again.difference()
    (place / "notes.txt").unlink()
    (place / "notes.txt").symlink_to("/etc/passwd")
    assert verify(entry, place).added == ("notes.txt",)


def test_a_folder_that_is_left_to_it_is_kept_by_an_update_and_what_can_be_run_in_it_is_not(
    tmp_path: Path, shelf: Shelf
) -> None:
    source = extension(tmp_path / "x", files={"kept/a": "1", "kept/b": "1", "kept/run.py": "1"})
    with staged(Directory(source), shelf, given="x", path="/bin", state=["kept/"]) as one:
        one.keep()
    place = shelf.extensions / "demo"
    (place / "kept" / "a").write_text("mine")
    (place / "kept" / "b").unlink()
    (place / "kept" / "b").mkdir()
    (place / "kept" / "b" / "c").write_text("mine, where a file was")
    extension(tmp_path / "x", files={"kept/a": "2", "kept/b": "2", "kept/run.py": "2"})
    with staged(Directory(source), shelf, given="x", path="/bin", state=one.entry.state) as two:
        difference, aside = two.difference(), two.replace()

    assert difference.files.changed == ("kept/run.py",) and not difference.tampered and not difference.released
    assert (place / "kept" / "a").read_text() == "mine" and (place / "kept" / "run.py").read_text() == "2"
    assert aside == ("kept/b/c",) and (place / "kept" / "b").read_text() == "2"
    assert not verify(installed(shelf, "demo"), place)
