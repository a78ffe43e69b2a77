import json
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.errors import HiltError, ManifestError, PackageError
from hilt.packages.install.installing import Staged, installed, link, remove, source_of, staged
from hilt.packages.install.lock import Entry, Lock, Pending
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import Archive, Directory, File, Git, Source
from hilt.packages.install.verifying import strays, verify
from hilt.packages.manifest import is_name
from hilt.packages.trees import Changes, remove_tree
from support.packages import extension, killed_everywhere, nested, outside, repository, tar_of
from support.properties import patient


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "home" / "extensions", tmp_path / "home" / "extensions.lock")


def install(shelf: Shelf, source: Source | Path, given: str = "given") -> Entry:
    source = Directory(source) if isinstance(source, Path) else source
    with staged(source, shelf, given=given, path="/usr/bin:/bin") as one:
        return one.keep()


def update(shelf: Shelf, source: Source | Path) -> tuple[str, ...]:
    source = Directory(source) if isinstance(source, Path) else source
    with staged(source, shelf, given="given", path="/usr/bin:/bin") as one:
        return one.replace()


def names(shelf: Shelf) -> list[str]:
    """Hidden ones too: none may be left."""
    return sorted(os.listdir(shelf.extensions))


# Installing


def test_a_directory_is_installed_with_its_entry(tmp_path: Path, shelf: Shelf) -> None:
    source = extension(tmp_path / "x", permissions=["net"])
    with staged(Directory(source), shelf, given="./x", path="/bin") as one:
        assert one.manifest.name == "demo" and one.manifest.permissions == ("net",)
        assert one.command == (str(shelf.extensions / "demo" / "run"),)
        assert sorted(one.tree.files) == ["extension.json", "lib/helper.py", "run"]
        assert one.oddities == ()
        assert stat.S_IMODE(one.where.stat().st_mode) == 0o700
        assert Lock.load(shelf.lock).entries == {}
        one.keep()
    entry = Lock.load(shelf.lock).entries["demo"]
    assert (entry.kind, entry.source, entry.url, entry.version) == ("directory", "./x", str(source), "1.0")
    assert (entry.permissions, entry.command, entry.tree) == (("net",), one.command, one.tree)
    assert entry.installed.endswith("+00:00")
    assert installed(shelf, "demo") == entry
    assert not verify(entry, shelf.extensions / "demo")
    assert names(shelf) == ["demo"]


def test_what_is_not_kept_leaves_nothing(tmp_path: Path, shelf: Shelf) -> None:
    with staged(Directory(extension(tmp_path / "x")), shelf, given="x", path="/bin"):
        assert len(names(shelf)) == 1
    assert names(shelf) == []
    with pytest.raises(KeyboardInterrupt), staged(Directory(tmp_path / "x"), shelf, given="x", path="/bin"):
        raise KeyboardInterrupt
    assert names(shelf) == [] and not Lock.load(shelf.lock).entries


def test_an_archive_and_a_repository_are_installed_as_they_are(tmp_path: Path, shelf: Shelf) -> None:
    manifest = json.dumps({"name": "packed", "exec": "python3", "args": ["run.py"]}).encode()
    archive = tar_of(tmp_path / "a.tgz", ("packed-1/extension.json", manifest), ("packed-1/run.py", b"1\n"))
    assert install(shelf, Archive(archive)).command[1:] == ("run.py",)
    repo = repository(tmp_path / "repo")
    repo.git("tag", "v1")
    entry = install(shelf, Git(str(repo.path), "v1", local=True))
    assert (entry.kind, entry.ref, entry.commit) == ("git", "v1", repo.git("rev-parse", "HEAD").strip())
    assert names(shelf) == ["demo", "packed"]
    for name in names(shelf):
        assert not verify(installed(shelf, name), shelf.extensions / name)


@pytest.mark.parametrize("executable", [True, False])
def test_a_single_file_becomes_an_extension_of_its_stem(tmp_path: Path, shelf: Shelf, executable: bool) -> None:
    file = tmp_path / "my tool.py"
    file.write_text('#!/usr/bin/env python3\n# /// hilt\n# permissions = ["net"]\n# ///\n')
    file.chmod(0o755 if executable else 0o644)
    entry = install(shelf, File(file))
    [name] = names(shelf)
    assert name == "my-tool"
    manifest = json.loads((shelf.extensions / name / "extension.json").read_text())
    if executable:
        assert manifest["exec"] == "./my tool.py"
    else:
        assert (manifest["exec"], manifest["args"]) == ("python3", ["./my tool.py"])
    assert entry.permissions == ("net",)
    assert sorted(entry.tree.files) == ["extension.json", "my tool.py"]


def test_a_second_install_of_a_name_is_refused_whoever_put_the_first_there(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    with pytest.raises(PackageError, match="installed already") as caught:
        install(shelf, tmp_path / "x")
    assert "update demo" in caught.value.hint
    with pytest.raises(PackageError, match="installed already"):
        install(shelf, extension(tmp_path / "y", name="DEMO"))
    mine = extension(shelf.extensions / "mine", name="mine")
    with pytest.raises(PackageError, match="hilt did not put it there"):
        install(shelf, extension(tmp_path / "z", name="mine"))
    assert (mine / "run").exists() and names(shelf) == ["demo", "mine"]


def test_what_was_deleted_by_hand_can_be_installed_again(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    remove_tree(shelf.extensions / "demo")
    install(shelf, tmp_path / "x")
    assert names(shelf) == ["demo"]


def test_a_manifest_that_cannot_be_used_is_refused_by_the_name_the_user_gave(tmp_path: Path, shelf: Shelf) -> None:
    archive = tar_of(tmp_path / "x.tgz", ("x/extension.json", b'{"exec": "./run"}'))
    with pytest.raises(ManifestError) as caught:
        install(shelf, Archive(archive), given="./x.tgz")
    assert "./x.tgz: extension.json" in caught.value.message and ".staging" not in caught.value.message
    assert caught.value.hint == 'write "name": "demo"'
    assert names(shelf) == []


def test_what_is_no_extension_is_not_copied_to_find_that_out(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "x").mkdir()
    said: list[str] = []
    with (
        pytest.raises(ManifestError, match="there is no such file") as caught,
        staged(Directory(tmp_path / "x"), shelf, given="./x", path="", progress=said.append),
    ):
        pass
    assert str(tmp_path / "x") in caught.value.message and said == []


# A10
@pytest.mark.parametrize("name", ["../evil", "..", ".", "a/b", "/tmp/evil", ".hidden", "-x", "a\0b", "", "é", "a" * 65])
def test_a_name_that_is_none_never_becomes_a_path(tmp_path: Path, shelf: Shelf, name: str) -> None:
    source = extension(tmp_path / "x", name=name)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "extension.json").write_text("{}")
    before = outside(tmp_path, tmp_path / "home")
    for attempt in (install, update):
        with pytest.raises(HiltError):
            attempt(shelf, source)
    with pytest.raises(PackageError, match="not installed by hilt"):
        remove(shelf, name)
    assert outside(tmp_path, tmp_path / "home") == before
    assert names(shelf) == []


@settings(patient, max_examples=40)
@given(st.text(max_size=12))
def test_no_name_reaches_outside(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.mktemp("names")
    shelf = Shelf(root / "home" / "extensions", root / "home" / "lock")
    try:
        install(shelf, extension(root / "x", name=name))
    except ManifestError:
        assert not is_name(name)
    else:
        assert names(shelf) == [name]


# A9
def test_an_install_never_copies_what_a_link_leads_to(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "secret").write_text("key")
    source = extension(tmp_path / "x")
    (source / "stolen").symlink_to(tmp_path / "secret")
    with pytest.raises(PackageError, match="leaves the tree"):
        install(shelf, source)
    assert names(shelf) == []


def test_oddities_are_told_before_anything_is_kept(tmp_path: Path, shelf: Shelf) -> None:
    source = extension(tmp_path / "x", files={"a.py": "x = '\u202e'\n"})
    with staged(Directory(source), shelf, given="x", path="/bin") as one:
        assert [(oddity.file, oddity.line) for oddity in one.oddities] == [("a.py", 1)]


# A28
def test_what_was_shown_is_what_is_kept_whatever_becomes_of_the_source(tmp_path: Path, shelf: Shelf) -> None:
    source = extension(tmp_path / "x")
    with staged(Directory(source), shelf, given="x", path="/bin") as one:
        shown = one.tree
        (source / "run").write_text("evil")
        one.keep()
    assert not verify(installed(shelf, "demo"), shelf.extensions / "demo")
    assert installed(shelf, "demo").tree == shown
    assert "evil" not in (shelf.extensions / "demo" / "run").read_text()


# A29
def test_everything_is_private_whatever_the_umask(tmp_path: Path, shelf: Shelf) -> None:
    before = os.umask(0)
    try:
        install(shelf, extension(tmp_path / "x"))
    finally:
        os.umask(before)
    for path in (shelf.extensions, shelf.extensions / "demo", shelf.extensions / "demo" / "lib"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((shelf.extensions / "demo" / "run").stat().st_mode) == 0o755
    for file in shelf.lock.parent.iterdir():
        assert file.is_dir() or stat.S_IMODE(file.stat().st_mode) == 0o600


# Updating


def test_an_update_tells_what_changes_and_changes_it(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x", permissions=["net", "exec"], files={"gone.py": ""}))
    new = extension(
        tmp_path / "y",
        version="2.0",
        permissions=["net", "fs.read"],
        exec="./other",
        files={"come.py": "", "other": ""},
    )
    with staged(Directory(new), shelf, given="y", path="/bin") as one:
        told = one.difference()
        assert told.files == Changes(("come.py", "other"), ("gone.py",), ("extension.json",))
        assert told.version == ("1.0", "2.0")
        assert (told.permissions_added, told.permissions_removed, told.full_access) == (("fs.read",), ("exec",), False)
        assert [Path(command[0]).name for command in told.command] == ["run", "other"]
        assert not told.tampered and told
        assert one.replace() == ()
    assert installed(shelf, "demo").version == "2.0"
    assert not verify(installed(shelf, "demo"), shelf.extensions / "demo")
    assert not (shelf.extensions / "demo" / "gone.py").exists()
    assert names(shelf) == ["demo"]


def test_an_update_that_has_a_list_of_permissions_now_gives_up_full_access(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    with staged(Directory(extension(tmp_path / "y", permissions=["net"])), shelf, given="y", path="/bin") as one:
        assert one.difference().confined and not one.difference().full_access
    with staged(Directory(tmp_path / "x"), shelf, given="x", path="/bin") as one:
        assert not one.difference().confined


def test_an_update_that_drops_its_list_of_permissions_asks_for_everything(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x", permissions=[]))
    with staged(Directory(extension(tmp_path / "y")), shelf, given="y", path="/bin") as one:
        assert one.difference().full_access
    with staged(Directory(tmp_path / "x"), shelf, given="x", path="/bin") as one:
        assert not one.difference()


def test_state_beside_the_code_survives_an_update(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    place = shelf.extensions / "demo"
    (place / "state" / "deep").mkdir(parents=True)
    (place / "state" / "deep" / "notes.db").write_text("precious")
    (place / "lib" / "cache.json").write_text("{}")
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "x.pyc").write_text("stale")
    (place / "weird \udcff\n").write_text("odd name")
    assert strays(installed(shelf, "demo"), place) == ("lib/cache.json", "state/deep/notes.db", "weird \udcff\n")
    with (place / "state" / "deep" / "notes.db").open("a") as being_written:
        assert update(shelf, extension(tmp_path / "y", version="2.0")) == ()
        being_written.write(" still")
    assert (place / "state" / "deep" / "notes.db").read_text() == "precious still"
    assert (place / "lib" / "cache.json").read_text() == "{}"
    assert (place / "weird \udcff\n").read_text() == "odd name"
    assert not (place / "__pycache__").exists()
    assert not verify(installed(shelf, "demo"), place)


def test_what_is_in_the_way_of_an_update_is_kept_out_of_the_way(tmp_path: Path, shelf: Shelf) -> None:
    """Changed by hand, runnable though nobody agreed to it, or where the new version has something."""
    install(shelf, extension(tmp_path / "x"))
    place = shelf.extensions / "demo"
    (place / "lib" / "helper.py").write_text("my own change")
    (place / "added.py").write_text("mine")
    (place / "tool").write_text("#!/bin/sh")
    (place / "tool").chmod(0o755)
    (place / "taken").write_text("old state")
    (place / "folder").write_text("was a file")
    (place / "file").mkdir()
    (place / "file" / "inside").write_text("was in a folder")
    (place / "link").symlink_to("/etc/passwd")
    new = extension(tmp_path / "y", files={"taken": "new", "folder/x": "x", "file": "f"})
    aside = update(shelf, new)
    assert aside == ("added.py", "file/inside", "folder", "lib/helper.py", "taken", "tool")
    kept = place / "before-update-1"
    assert {str(path.relative_to(kept)): path.read_text() for path in kept.rglob("*") if path.is_file()} == {
        "lib/helper.py.kept": "my own change",
        "added.py.kept": "mine",
        "tool.kept": "#!/bin/sh",
        "taken.kept": "old state",
        "folder.kept": "was a file",
        "file/inside.kept": "was in a folder",
    }
    assert (place / "taken").read_text() == "new" and not (place / "link").is_symlink()
    assert not verify(installed(shelf, "demo"), place)
    (place / "added.py").write_text("again")
    assert update(shelf, new) == ("added.py",)
    assert (place / "before-update-2" / "added.py.kept").read_text() == "again"
    assert (place / "before-update-1" / "added.py.kept").read_text() == "mine"
    assert not verify(installed(shelf, "demo"), place)


def test_only_what_hilt_installed_is_updated(tmp_path: Path, shelf: Shelf) -> None:
    """A11."""
    extension(shelf.extensions / "demo")
    before = outside(shelf.extensions, tmp_path / "none")
    with pytest.raises(PackageError, match="not installed by hilt"):
        update(shelf, extension(tmp_path / "x"))
    assert outside(shelf.extensions, tmp_path / "none") == before


def test_what_the_user_put_in_its_place_is_neither_updated_nor_removed(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    place = shelf.extensions / "demo"
    remove_tree(place)
    place.mkdir()
    (place / "precious").write_text("mine")
    for attempt in (lambda: update(shelf, tmp_path / "x"), lambda: remove(shelf, "demo")):
        with pytest.raises(PackageError, match="not what hilt put there"):
            attempt()
    remove_tree(place)
    place.symlink_to(tmp_path / "x")
    for attempt in (lambda: update(shelf, tmp_path / "x"), lambda: remove(shelf, "demo")):
        with pytest.raises(PackageError, match="not what hilt put there"):
            attempt()
    assert (tmp_path / "x" / "run").exists() and place.is_symlink()


def test_an_update_comes_from_where_the_install_came_from(tmp_path: Path, shelf: Shelf) -> None:
    repo = repository(tmp_path / "repo")
    for source in (
        Directory(extension(tmp_path / "x", name="one")),
        Git(str(repo.path), "main", local=True),
        Git(f"file://{repo.path}", "main", local=True),
    ):
        assert source_of(install(shelf, source)) == source
        remove(shelf, names(shelf)[0])
    with pytest.raises(PackageError, match="linked"):
        source_of(link(shelf, tmp_path / "x", given="x", path="/bin"))


# A6
def test_a_moved_tag_changes_nothing_until_the_user_updates_and_is_told_then(tmp_path: Path, shelf: Shelf) -> None:
    repo = repository(tmp_path / "repo")
    repo.git("tag", "v1")
    source = Git(str(repo.path), "v1", local=True)
    entry = install(shelf, source)
    (repo.path / "run").write_text("evil")
    evil = repo.commit()
    repo.git("tag", "--force", "v1")
    assert (shelf.extensions / "demo" / "run").read_text() != "evil"
    with staged(source, shelf, given="x", path="/bin") as one:
        assert one.difference().files.changed == ("run",)
        assert one.difference().commit == (entry.commit, evil)


# Removing and linking


def test_removing_takes_it_away_with_its_entry_and_nothing_else(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    install(shelf, extension(tmp_path / "y", name="other"))
    (shelf.extensions / "demo" / "out").symlink_to(tmp_path / "x")
    remove(shelf, "demo")
    assert names(shelf) == ["other"]
    assert list(Lock.load(shelf.lock).entries) == ["other"]
    assert (tmp_path / "x" / "run").exists()
    with pytest.raises(PackageError, match="not installed by hilt"):
        remove(shelf, "demo")


def test_removing_one_that_is_gone_removes_its_entry(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    remove_tree(shelf.extensions / "demo")
    remove(shelf, "demo")
    assert Lock.load(shelf.lock).entries == {}


def test_removing_one_by_a_name_in_other_letters_asks_back(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    with pytest.raises(PackageError) as caught:
        remove(shelf, "Demo")
    assert '"demo"' in caught.value.hint


def test_a_link_is_made_and_removed_without_touching_what_it_leads_to(tmp_path: Path, shelf: Shelf) -> None:
    source = extension(tmp_path / "x", name="mine")
    before = outside(tmp_path, tmp_path / "home")
    entry = link(shelf, source, given="x", path="/bin")
    assert (entry.kind, entry.url) == ("link", str(source))
    assert (shelf.extensions / "mine").readlink() == source
    with pytest.raises(PackageError, match="linked already"):
        link(shelf, source, given="x", path="/bin")
    remove(shelf, "mine")
    assert names(shelf) == []
    assert outside(tmp_path, tmp_path / "home") == before


def test_a_linked_one_is_not_updated(tmp_path: Path, shelf: Shelf) -> None:
    link(shelf, extension(tmp_path / "x"), given="x", path="/bin")
    with pytest.raises(PackageError, match="linked, not copied"):
        update(shelf, tmp_path / "x")
    with staged(Directory(tmp_path / "x"), shelf, given="x", path="/bin") as one, pytest.raises(PackageError):
        one.difference()
    assert (shelf.extensions / "demo").is_symlink() and names(shelf) == ["demo"]


def test_a_link_into_the_shelf_itself_is_refused(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    with pytest.raises(PackageError, match="already"):
        link(shelf, shelf.extensions / "demo", given="x", path="/bin")


def test_what_is_nested_without_end_is_refused_and_can_still_be_removed(tmp_path: Path, shelf: Shelf) -> None:
    entry, place = install(shelf, extension(tmp_path / "x")), shelf.extensions / "demo"
    with nested(place, 1200, "d"):
        assert verify(entry, place).changed
        with pytest.raises(PackageError, match="too deeply"):
            update(shelf, tmp_path / "x")
        remove(shelf, "demo")
        assert names(shelf) == []


# Interruption


def test_an_install_killed_anywhere_is_whole_or_not_there(tmp_path: Path) -> None:
    told = killed_everywhere("install", tmp_path / "scenes")
    assert told["steps"] > 20 and set(told["outcomes"]) == {"absent", "1.0 1.0"}


def test_an_update_killed_anywhere_leaves_the_old_or_the_new_with_its_state(tmp_path: Path) -> None:
    told = killed_everywhere("update", tmp_path / "scenes")
    assert told["steps"] > 20 and set(told["outcomes"]) == {"1.0 1.0", "2.0 2.0"}


def test_a_removal_killed_anywhere_is_done_or_not(tmp_path: Path) -> None:
    told = killed_everywhere("remove", tmp_path / "scenes")
    assert told["steps"] > 10 and set(told["outcomes"]) == {"1.0 1.0", "absent"}


def test_a_link_killed_anywhere_is_there_or_not(tmp_path: Path) -> None:
    told = killed_everywhere("link", tmp_path / "scenes")
    assert told["steps"] > 10 and set(told["outcomes"]) == {"absent", "linked"}


@pytest.mark.parametrize("failing", [1, 2])
def test_a_lock_that_cannot_be_written_undoes_the_change(
    tmp_path: Path, shelf: Shelf, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full for the nth time it is written and ever after, also for the note that nothing was changed."""
    install(shelf, extension(tmp_path / "x"))
    (shelf.extensions / "demo" / "notes").write_text("precious")
    new = extension(tmp_path / "y", version="2.0")
    real, calls = os.fsync, 0

    def full(fd: int) -> None:
        nonlocal calls
        calls += stat.S_ISREG(os.fstat(fd).st_mode)
        if calls >= failing:
            raise OSError(28, "No space left on device")
        real(fd)

    for attempt in (lambda: update(shelf, new), lambda: remove(shelf, "demo")):
        calls = 0
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(PackageError, match="No space left"):
                attempt()
        shelf.repair()
        assert Lock.load(shelf.lock).pending is None
        assert names(shelf) == ["demo"]
        assert installed(shelf, "demo").version == "1.0"
        assert not verify(installed(shelf, "demo"), shelf.extensions / "demo")
        assert (shelf.extensions / "demo" / "notes").read_text() == "precious"


def test_a_half_done_install_never_claims_what_the_user_put_there(tmp_path: Path, shelf: Shelf) -> None:
    entry = install(shelf, extension(tmp_path / "x"))
    remove(shelf, "demo")
    Lock.load(shelf.lock).with_pending(Pending("demo", "", entry)).save(shelf.lock)
    extension(shelf.extensions / "demo", version="mine")
    shelf.repair()
    assert Lock.load(shelf.lock).entries == {}
    with pytest.raises(PackageError, match="not installed by hilt"):
        remove(shelf, "demo")
    assert (shelf.extensions / "demo" / "run").exists()


def test_what_dead_processes_left_is_swept_and_what_living_ones_use_is_not(tmp_path: Path, shelf: Shelf) -> None:
    with shelf.staging() as used:
        extension(used / "tree")
        (shelf.extensions / ".staging-dead").mkdir()
        (shelf.extensions / ".staging-file").write_text("")
        (shelf.extensions / ".staging-link").symlink_to(tmp_path)
        (shelf.extensions / ".aside-dead" / "x").mkdir(parents=True)
        (shelf.extensions / ".mine").mkdir()
        install(shelf, extension(tmp_path / "x"))
        assert names(shelf) == sorted([used.name, ".mine", "demo"])
    assert names(shelf) == [".mine", "demo"]


def test_two_installs_of_one_name_at_once_give_one_of_them(tmp_path: Path, shelf: Shelf) -> None:
    source = extension(tmp_path / "x")
    together, outcomes = threading.Barrier(2), list[str]()

    def run() -> None:
        with staged(Directory(source), shelf, given="x", path="/bin") as one:
            together.wait(10)
            outcomes.append(_kept(one))

    both = [threading.Thread(target=run) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(outcomes) == ["kept", "refused"]
    assert names(shelf) == ["demo"] and not verify(installed(shelf, "demo"), shelf.extensions / "demo")


def _kept(one: Staged) -> str:
    try:
        one.keep()
    except PackageError:
        return "refused"
    return "kept"


def test_a_damaged_lock_stops_every_change_and_stays_as_it_is(tmp_path: Path, shelf: Shelf) -> None:
    install(shelf, extension(tmp_path / "x"))
    shelf.lock.write_text("{")
    for attempt in (
        lambda: install(shelf, extension(tmp_path / "y", name="other")),
        lambda: update(shelf, tmp_path / "x"),
        lambda: remove(shelf, "demo"),
        lambda: link(shelf, tmp_path / "x", given="x", path="/bin"),
    ):
        with pytest.raises(HiltError, match="damaged"):
            attempt()
    assert shelf.lock.read_text() == "{" and names(shelf) == ["demo"]
