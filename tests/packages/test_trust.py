import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.errors import ManifestError, PackageError
from hilt.packages.trees import File
from hilt.packages.trust import store as trust_file
from hilt.packages.trust.store import Trusted, TrustStore

ENTRY = Trusted("abc", {"run": File("123", 4, executable=True)}, ("net",), ("env:A",), "2026-01-01")


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "home" / "trust.json")


def file_of(tmp_path: Path) -> Path:
    return tmp_path / "home" / "trust.json"


def test_at_first_nothing_is_trusted_and_asking_writes_nothing(store: TrustStore, tmp_path: Path) -> None:
    assert (store.of(tmp_path), store.trees()) == ({}, frozenset())
    assert not (tmp_path / "home").exists()


def test_what_was_trusted_is_known_again_in_a_private_file(store: TrustStore, tmp_path: Path) -> None:
    store.add(tmp_path, {"a": ENTRY})
    assert TrustStore(file_of(tmp_path)).of(tmp_path) == {"a": ENTRY}
    assert store.trees() == {"abc"}
    assert stat.S_IMODE(file_of(tmp_path).stat().st_mode) == 0o600


def test_more_is_added_and_the_same_replaced(store: TrustStore, tmp_path: Path) -> None:
    changed = Trusted("def", {})
    store.add(tmp_path, {"a": ENTRY, "b": ENTRY})
    store.add(tmp_path, {"b": changed, "c": ENTRY})
    assert store.of(tmp_path) == {"a": ENTRY, "b": changed, "c": ENTRY}


def test_one_folder_says_nothing_of_another_not_even_of_one_within(store: TrustStore, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    store.add(tmp_path, {"a": ENTRY})
    assert store.of(inner) == store.of(tmp_path.parent) == {}


def test_a_link_to_a_folder_is_that_folder_and_a_moved_one_is_new(store: TrustStore, tmp_path: Path) -> None:
    first, link, second = tmp_path / "first", tmp_path / "link", tmp_path / "second"
    first.mkdir()
    link.symlink_to(first)
    store.add(link, {"a": ENTRY})
    assert store.of(first) == store.of(link) == store.of(tmp_path / "first" / ".." / "link") == {"a": ENTRY}
    first.rename(second)
    assert store.of(second) == {}


def test_what_is_forgotten_is_gone_and_the_rest_stays(store: TrustStore, tmp_path: Path) -> None:
    other = tmp_path / "other"
    store.add(tmp_path, {"a": ENTRY})
    store.add(other, {"b": ENTRY})
    assert store.forget(tmp_path) and not store.forget(tmp_path)
    assert (store.of(tmp_path), store.of(other)) == ({}, {"b": ENTRY})


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"folders": {"\xff": {}}}',
        b'{"folders": []}',
        b'{"folders": {"/x": {"a": {"tree": 5, "files": {}}}}}',
        b'{"version": 2, "folders": {}}',
        b'{"x": ' + b"[" * 100_000,
        b'{"folders": {"/x": true}}',
    ],
)
def test_a_damaged_file_trusts_nothing_is_named_and_is_left_as_it_is(
    store: TrustStore, tmp_path: Path, damage: bytes
) -> None:
    store.add(tmp_path, {"a": ENTRY})
    file_of(tmp_path).write_bytes(damage)
    for attempt in (
        lambda: store.of(tmp_path),
        lambda: store.add(tmp_path, {"b": ENTRY}),
        lambda: store.forget(tmp_path),
        store.trees,
    ):
        with pytest.raises(ManifestError) as caught:
            attempt()
        assert str(file_of(tmp_path)) in caught.value.message and "left it as it is" in caught.value.hint
    assert file_of(tmp_path).read_bytes() == damage


def test_the_file_never_becomes_too_large_to_be_read_again(
    store: TrustStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust_file, "_LARGEST", 2000)
    store.add(tmp_path, {"a": ENTRY})
    with pytest.raises(PackageError, match=r"trust\.json") as caught:
        store.add(tmp_path, {f"b{number}": ENTRY for number in range(100)})
    assert "untrust" in caught.value.hint
    assert store.of(tmp_path) == {"a": ENTRY}


def test_several_writers_at_once_lose_nothing(store: TrustStore, tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from hilt.packages.trust.store import Trusted, TrustStore
store = TrustStore(Path(sys.argv[1]))
for number in range(20):
    store.add(Path(sys.argv[2]), {f"{sys.argv[3]}-{number}": Trusted(sys.argv[3], {})})
"""
    arguments = [sys.executable, "-c", program, str(file_of(tmp_path)), str(tmp_path)]
    writers = [subprocess.Popen([*arguments, str(number)]) for number in range(3)]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert len(store.of(tmp_path)) == 60


def test_what_an_older_hilt_did_not_say_has_its_default(store: TrustStore, tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    known = {"tree": "abc", "files": {"run": {"sha256": "1", "size": 2}}, "more": 1}
    file_of(tmp_path).write_text(json.dumps({"folders": {str(tmp_path): {"a": known}}}))
    assert store.of(tmp_path) == {"a": Trusted("abc", {"run": File("1", 2)})}
