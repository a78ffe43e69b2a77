import json
import stat
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ManifestError, PackageError
from hilt.packages import keeping
from hilt.packages.install.lock import Entry, Lock, Pending
from hilt.packages.trees import read_tree
from support.packages import extension
from support.properties import patient


def entry(root: Path) -> Entry:
    tree = read_tree(extension(root / "source"))
    return Entry(
        kind="git",
        source="https://example.org/demo@v1",
        installed="2026-01-02T03:04:05+00:00",
        url="https://example.org/demo",
        ref="v1",
        commit="a" * 40,
        version="1.0",
        command=("/bin/sh", "run"),
        permissions=("net",),
        tree=tree,
    )


def test_what_is_saved_is_read_back_and_private(tmp_path: Path) -> None:
    path, one = tmp_path / "extensions.lock", entry(tmp_path)
    assert Lock.load(path).entries == {}
    Lock.load(path).with_entry("demo", one).with_pending(Pending("demo", ".aside-1", one)).save(path)
    lock = Lock.load(path)
    assert lock.entries == {"demo": one}
    assert lock.pending == Pending("demo", ".aside-1", one)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir() if found.name != "source"] == ["extensions.lock"]
    lock.without("demo").with_pending(None).save(path)
    assert Lock.load(path) == Lock(1)


def test_it_is_plain_json_that_names_every_file_with_its_hash(tmp_path: Path) -> None:
    Lock(1).with_entry("demo", entry(tmp_path)).save(tmp_path / "lock")
    told = json.loads((tmp_path / "lock").read_text())["entries"]["demo"]
    assert told["tree"]["files"]["run"]["executable"] is True
    assert len(told["tree"]["files"]["lib/helper.py"]["sha256"]) == 64
    assert (told["kind"], told["ref"], told["permissions"]) == ("git", "v1", ["net"])


def test_names_that_differ_by_case_only_are_found(tmp_path: Path) -> None:
    lock = Lock(1).with_entry("Demo", entry(tmp_path))
    assert (lock.find("demo"), lock.find("other")) == ("Demo", None)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "\0" * 100,
        '{"entries": {}}',
        '{"format": 2}',
        '{"format": "1"}',
        '{"format": 1, "entries": {"demo": {}}}',
        '{"format": 1, "entries": {"demo": {"kind": "magic", "source": "", "installed": ""}}}',
        '{"format": 1, "entries": {"../evil": {"kind": "git", "source": "", "installed": ""}}}',
        '{"format": 1, "pending": {"name": "../evil"}}',
        '{"format": 1, "pending": {"name": "demo", "aside": "../evil"}}',
        '{"format": 1, "pending": {"name": "demo", "aside": "mine"}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_one_is_an_error_that_names_it_and_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "extensions.lock"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        Lock.load(path)
    assert str(path) in caught.value.message
    assert caught.value.hint and caught.value.message.isprintable()
    assert path.read_text() == text


@patient
@given(data=st.data())
def test_no_damage_makes_it_anything_but_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("damage")
    content = bytearray(msgspec.json.encode(Lock(1).with_entry("demo", Entry("git", "x", "y"))))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (root / "lock").write_bytes(content)
    try:
        Lock.load(root / "lock")
    except ManifestError:
        pass
    assert (root / "lock").read_bytes() == content


def test_what_cannot_be_written_is_an_error_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "extensions.lock"
    Lock(1).with_entry("demo", entry(tmp_path)).save(path)
    before = path.read_bytes()
    limits = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    program = (
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"{limits}\n"
        "from pathlib import Path; from hilt.packages.install.lock import *; from hilt.errors import PackageError\n"
        "lock = Lock.load(Path(sys.argv[1]))\n"
        "try: lock.without('demo').with_entry('other', lock.entries['demo']).save(Path(sys.argv[1]))\n"
        "except PackageError as error: print(error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=30)
    assert "cannot be written" in done.stdout, done.stderr
    assert path.read_bytes() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["extensions.lock", "source"]


def test_it_is_written_over_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "lock").symlink_to("precious")
    Lock(1).save(tmp_path / "lock")
    assert (tmp_path / "precious").read_text() == "mine"


def test_writers_take_turns(tmp_path: Path) -> None:
    path, one = tmp_path / "extensions.lock", Entry("file", "x", "y")

    def add(first: str) -> None:
        for number in range(20):
            with keeping.alone(path):
                Lock.load(path).with_entry(f"{first}{number}", one).save(path)

    writers = [threading.Thread(target=add, args=(first,)) for first in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Lock.load(path).entries) == 60


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PackageError):
        Lock(1).save(tmp_path / "file" / "lock")
