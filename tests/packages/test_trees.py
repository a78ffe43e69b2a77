import hashlib
import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import PackageError
from hilt.packages.layout import CAPS, Caps
from hilt.packages.trees import Changes, changes, copy_file, copy_tree, read_tree, remove_tree
from support.packages import extension, nested
from support.properties import patient


def test_a_tree_tells_each_file_with_its_hash_size_and_executable_bit(tmp_path: Path) -> None:
    tree = read_tree(extension(tmp_path / "a"))
    assert sorted(tree.files) == ["extension.json", "lib/helper.py", "run"]
    assert tree.files["run"].executable and not tree.files["lib/helper.py"].executable
    assert tree.files["lib/helper.py"].size == 9
    assert tree.files["lib/helper.py"].sha256 == hashlib.sha256(b"help = 1\n").hexdigest()
    assert tree.size == sum(file.size for file in tree.files.values())


def test_the_hash_minds_neither_time_nor_order_nor_other_bits_of_the_mode(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    for directory, names in ((first, "xyz"), (second, "zyx")):
        for name in names:
            (directory / name).write_text(name)
    (second / "x").chmod(0o600)
    os.utime(second / "x", (1, 1))
    assert read_tree(first) == read_tree(second)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "run").write_text("#!/bin/sh\nexit 1\n"),
        lambda root: (root / "run").chmod(0o644),
        lambda root: (root / "lib").rename(root / "bil"),
        lambda root: (root / "more").write_text(""),
        lambda root: ((root / "at").unlink(), (root / "at").symlink_to("lib/helper.py")),
        lambda root: ((root / "at").unlink(), (root / "at").write_text("run")),
    ],
)
def test_the_hash_changes_with_content_executable_bit_path_and_link(tmp_path: Path, change: object) -> None:
    root = extension(tmp_path / "a")
    (root / "at").symlink_to("run")
    before = read_tree(root).hash
    change(root)  # type: ignore[operator]  # one of the above
    assert read_tree(root).hash != before


@patient
@given(st.dictionaries(st.text("ab/", min_size=1, max_size=4), st.text("ab\0\n", max_size=4), max_size=4))
def test_no_two_different_trees_have_the_same_hash(files: dict[str, str]) -> None:
    from hilt.packages.trees import File, tree_of

    seen = {path: File(text, 0) for path, text in files.items()}
    moved = {path[::-1]: file for path, file in seen.items()}
    assert (tree_of(seen).hash == tree_of(moved).hash) == (seen == moved)


def test_a_copy_has_the_same_hash_and_private_plain_modes(tmp_path: Path) -> None:
    root = extension(tmp_path / "a")
    (root / "run").chmod(0o4777)
    (root / "at").symlink_to("lib")
    tree = copy_tree(root, tmp_path / "copy")
    assert tree == read_tree(root) == read_tree(tmp_path / "copy")
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (tmp_path / "copy").rglob("*")}
    assert (modes["run"], modes["helper.py"], modes["lib"]) == (0o755, 0o644, 0o700)
    assert (tmp_path / "copy" / "at").readlink() == Path("lib")


def test_what_git_and_python_keep_for_themselves_is_left_out(tmp_path: Path) -> None:
    files = {".git/config": "x", "lib/__pycache__/helper.pyc": "x"}
    plain, full = extension(tmp_path / "a"), extension(tmp_path / "b", files=files)
    assert copy_tree(full, tmp_path / "copy") == read_tree(plain)
    assert not (tmp_path / "copy" / ".git").exists()


def test_a_copy_is_made_afresh_or_not_at_all(tmp_path: Path) -> None:
    root = extension(tmp_path / "a")
    (tmp_path / "there").mkdir()
    with pytest.raises(PackageError, match="exists"):
        copy_tree(root, tmp_path / "there")
    assert (tmp_path / "there").is_dir()
    os.mkfifo(root / "zz-pipe")
    with pytest.raises(PackageError, match="zz-pipe"):
        copy_tree(root, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


# A9: links


@pytest.mark.parametrize(
    ("links", "why"),
    [
        ({"a": "/etc/passwd"}, "leaves the tree"),
        ({"a": "../secret"}, "leaves the tree"),
        ({"lib/a": "../../secret"}, "leaves the tree"),
        ({"lib/a": "../lib/../../secret"}, "leaves the tree"),
        ({"up": "lib", "a": "up/../../secret"}, "leaves the tree"),
        ({"lib/deep": "..", "a": "lib/deep/../secret"}, "leaves the tree"),
        ({"one": "two", "two": "/etc"}, "leaves the tree"),
        ({"one": "lib", "a": "one/../../a"}, "leaves the tree"),
        ({"a": "b", "b": "a"}, "circle"),
        ({"a": "a"}, "circle"),
        ({"a": "nowhere"}, "nowhere"),
        ({"a": ".git/config"}, "no part of it"),
        ({"a": "lib/__pycache__/x.pyc"}, "no part of it"),
        ({"a": "run\nx"}, "cannot be shown"),
    ],
)
def test_a_link_that_does_not_stay_in_the_tree_is_refused(tmp_path: Path, links: dict[str, str], why: str) -> None:
    (tmp_path / "secret").write_text("s")
    root = extension(tmp_path / "x", files={".git/config": "c", "lib/__pycache__/x.pyc": ""})
    for path, target in links.items():
        (root / path).symlink_to(target)
    with pytest.raises(PackageError, match=why) as caught:
        read_tree(root)
    assert caught.value.hint
    with pytest.raises(PackageError, match=why):
        copy_tree(root, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_links_that_stay_inside_are_kept_as_links(tmp_path: Path) -> None:
    root = extension(tmp_path / "x")
    for path, target in {"a": "run", "lib/up": "../lib/helper.py", "b": "a", "dir": "lib", "c": "dir/up"}.items():
        (root / path).symlink_to(target)
    tree = copy_tree(root, tmp_path / "copy")
    assert tree.files["c"].link == "dir/up"
    assert (tmp_path / "copy" / "c").read_text() == "help = 1\n"


def test_a_directory_that_is_itself_a_link_is_refused(tmp_path: Path) -> None:
    extension(tmp_path / "x")
    (tmp_path / "at").symlink_to("x")
    with pytest.raises(PackageError):
        read_tree(tmp_path / "at")


# What is no file


def test_pipes_sockets_and_devices_are_refused_without_being_opened(tmp_path: Path) -> None:
    for number, make in enumerate((_fifo, _socket, _device)):
        root = extension(tmp_path / str(number))
        if not make(root / "odd"):
            continue
        with pytest.raises(PackageError, match="odd is neither"):
            read_tree(root)


def _fifo(path: Path) -> bool:
    os.mkfifo(path)
    return True


def _socket(path: Path) -> bool:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)  # its name may only be short
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)
    return True


def _device(path: Path) -> bool:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        return False
    return True


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"a\nb", b"a\x1b[31m", "a\u202eb".encode(), "a\u200bb".encode(), b"a\\b", b"\x7f"]
)
def test_a_name_that_cannot_be_shown_is_refused_and_named_safely(tmp_path: Path, name: bytes) -> None:
    root = extension(tmp_path / "x")
    (Path(os.fsdecode(os.fsencode(root) + b"/" + name))).write_text("")
    with pytest.raises(PackageError) as caught:
        read_tree(root)
    assert caught.value.message.isprintable()
    caught.value.message.encode()


@pytest.mark.parametrize(
    ("one", "two"), [("README", "readme"), ("stra\u00dfe", "STRASSE"), ("caf\u00e9", "cafe\u0301")]
)
def test_names_that_another_file_system_takes_for_one_are_refused(tmp_path: Path, one: str, two: str) -> None:
    root = extension(tmp_path / "x", files={one: "1", two: "2"})
    with pytest.raises(PackageError, match="case or Unicode form"):
        read_tree(root)


def test_a_tree_that_is_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x" / "/".join("d" * 41)).mkdir(parents=True)
    with pytest.raises(PackageError, match="deep"):
        read_tree(tmp_path / "x")


# Caps


def test_too_many_entries_are_refused_also_when_they_are_empty_directories(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / "x" / f"d{number}").mkdir(parents=True)
    with pytest.raises(PackageError, match="more than 10 files"):
        read_tree(tmp_path / "x", Caps(entries=10))
    read_tree(tmp_path / "x", Caps(entries=12))


def test_what_is_left_out_hides_nothing_of_the_rest(tmp_path: Path) -> None:
    files = dict.fromkeys((".git/x", "__pycache__/x", "a", "b", "c", "d"), "")
    root = tmp_path / "x"
    extension(root, files=files)
    with pytest.raises(PackageError, match="more than 7"):
        read_tree(root, Caps(entries=7))
    assert len(read_tree(root, Caps(entries=8)).files) == 7


def test_too_many_bytes_are_refused_also_of_a_file_full_of_holes(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with (tmp_path / "x" / "holes").open("wb") as file:
        file.truncate(10_001)
    with pytest.raises(PackageError, match="more than 10000 bytes"):
        copy_tree(tmp_path / "x", tmp_path / "copy", Caps(size=10_000))
    assert not (tmp_path / "copy").exists()
    assert Caps(20_000, 256 * 1024 * 1024) == CAPS


# A28: somebody changes it meanwhile


def test_a_copy_never_holds_other_bytes_than_its_hash_says_nor_any_from_outside(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("SECRET")
    root = extension(tmp_path / "x")
    done = threading.Event()

    def meddle() -> None:
        swaps = root / "swap"
        while not done.is_set():
            (root / "run").write_text("#!/bin/sh\n" + "evil\n" * 5000)
            swaps.mkdir(exist_ok=True)
            (swaps / "key").write_text("harmless")
            swaps.rename(root / "gone")
            swaps.symlink_to(secret)
            swaps.unlink()
            swaps.symlink_to("lib")
            swaps.unlink()
            remove_tree(root / "gone")
            (root / "run").write_text("#!/bin/sh\n")

    meddler = threading.Thread(target=meddle)
    meddler.start()
    copies = 0
    try:
        for number in range(150):
            copy = tmp_path / f"copy{number}"
            try:
                tree = copy_tree(root, copy)
            except PackageError:
                assert not copy.exists()
                continue
            copies += 1
            assert read_tree(copy) == tree
            assert "SECRET" not in "".join(p.read_text() for p in copy.rglob("*") if p.is_file())
    finally:
        done.set()
        meddler.join()
    assert copies


# One file, changes, removal


def test_a_single_file_is_copied_under_the_name_given(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("x")
    tree = copy_file(tmp_path / "real.py", tmp_path / "copy", "given.py")
    assert tree == read_tree(tmp_path / "copy")
    assert list(tree.files) == ["given.py"]
    for bad in ("..", "a\nb", ""):
        with pytest.raises(PackageError):
            copy_file(tmp_path / "real.py", tmp_path / "other", bad)
        assert not (tmp_path / "other").exists()


def test_changes_are_told_by_path(tmp_path: Path) -> None:
    root = extension(tmp_path / "x", files={"a": "1", "b": "1"})
    before = read_tree(root).files
    (root / "a").write_text("2")
    (root / "b").unlink()
    (root / "c").write_text("3")
    assert changes(before, read_tree(root).files) == Changes(("c",), ("b",), ("a",))
    assert not changes(before, before)


def test_removing_deletes_links_and_never_what_they_lead_to(tmp_path: Path) -> None:
    extension(tmp_path / "kept")
    (tmp_path / "x" / "sub").mkdir(parents=True)
    (tmp_path / "x" / "sub" / "out").symlink_to(tmp_path / "kept")
    (tmp_path / "x" / "sub").chmod(0o500)
    remove_tree(tmp_path / "x")
    assert not (tmp_path / "x").exists()
    (tmp_path / "y").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "y")
    remove_tree(tmp_path / "never there")
    assert (tmp_path / "kept" / "run").exists() and not (tmp_path / "y").is_symlink()


def test_removing_reaches_any_depth(tmp_path: Path) -> None:
    top = tmp_path / "x"
    top.mkdir()
    with nested(top, 1500, "d" * 100):
        remove_tree(top)
        assert not top.exists()
