"""Files that an extension begins with: copied once, into its own data directory and nowhere else."""

import os
import resource
import stat
from pathlib import Path

import pytest

from hilt.errors import PackageError
from hilt.packages.checkup import checkup
from hilt.packages.install.seeding import absent, seed, seeds, unfit
from hilt.packages.manifest import Default, Manifest, read_manifest


def made(root: Path, *defaults: tuple[str, str]) -> tuple[Manifest, Path, Path]:
    directory = root / "demo"
    (directory / "seed").mkdir(parents=True)
    (directory / "seed" / "a.md").write_text("from the author")
    manifest = Manifest("demo", dialect="jsonrpc", defaults=tuple(Default(*one) for one in defaults))
    return manifest, directory, root / "data" / "demo"


def test_files_are_copied_to_where_their_destination_means(tmp_path: Path) -> None:
    where = ("x.md", "deep/er/x.md", "extensions/demo/own.md", "extensions/other/x.md", "./dot//y.md")
    manifest, directory, data = made(tmp_path, *(("seed/a.md", one) for one in where))
    new = ("x.md", "deep/er/x.md", "own.md", "extensions/other/x.md", "dot/y.md")
    assert seed(manifest, directory, data) == new
    assert all((data / one).read_text() == "from the author" for one in new)
    assert stat.S_IMODE((data / "x.md").stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "deep").stat().st_mode) == 0o700
    assert seed(manifest, directory, data) == ()


@pytest.mark.parametrize("occupy", ["file", "empty", "folder", "link", "dangling"])
def test_what_is_there_stays_as_it_is(tmp_path: Path, occupy: str) -> None:
    manifest, directory, data = made(tmp_path, ("seed/a.md", "x"))
    data.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    match occupy:
        case "file" | "empty":
            (data / "x").write_text("mine" if occupy == "file" else "")
        case "folder":
            (data / "x").mkdir()
        case "link" | "dangling":
            (data / "x").symlink_to(elsewhere)
            if occupy == "link":
                elsewhere.write_text("mine")
    assert seed(manifest, directory, data) == ()
    assert occupy != "file" or (data / "x").read_text() == "mine"
    assert elsewhere.read_text() == "mine" if occupy == "link" else not elsewhere.exists()


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/tmp/x", "~/x", "", "a\nb", "a\0b", "..", "x" * 2000])
@pytest.mark.parametrize("field", ["src", "dest"])
def test_one_that_leaves_its_directory_is_refused_and_named(tmp_path: Path, path: str, field: str) -> None:
    # A10
    bad = (path, "x") if field == "src" else ("seed/a.md", path)
    manifest, directory, data = made(tmp_path, ("seed/a.md", "fine"), bad)
    [why] = unfit(manifest, directory)
    assert why.startswith("defaults, entry 2, has ") and field in why
    with pytest.raises(PackageError, match="defaults, entry 2"):
        seed(manifest, directory, data)
    assert not data.exists(), "nothing of it is copied"


def test_a_destination_that_is_the_directory_itself_is_refused(tmp_path: Path) -> None:
    for dest in (".", "./", "extensions/demo/", "extensions/demo/."):
        manifest, directory, _ = made(tmp_path / dest.replace("/", "_"), ("seed/a.md", dest))
        assert [*unfit(manifest, directory)] == [f'defaults, entry 1, has a dest that names no file: "{dest}"']


def test_a_source_that_a_link_leads_out_of_the_extension_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    manifest, directory, data = made(tmp_path, ("seed/link", "x"), ("out/secret", "y"))
    (directory / "seed" / "link").symlink_to(tmp_path / "secret")
    (directory / "out").symlink_to(tmp_path)
    assert len([*unfit(manifest, directory)]) == 2
    with pytest.raises(PackageError, match="leads out of the extension"):
        seed(manifest, directory, data)


def test_a_link_within_the_data_directory_is_not_followed(tmp_path: Path) -> None:
    manifest, directory, data = made(tmp_path, ("seed/a.md", "notes/x"))
    outside = tmp_path / "outside"
    outside.mkdir()
    data.mkdir(parents=True)
    (data / "notes").symlink_to(outside)
    with pytest.raises(PackageError, match="notes/x cannot be made"):
        seed(manifest, directory, data)
    assert [*outside.iterdir()] == []


def test_a_data_directory_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    manifest, directory, data = made(tmp_path, ("seed/a.md", "x"))
    outside = tmp_path / "outside"
    outside.mkdir()
    data.parent.mkdir()
    data.symlink_to(outside)
    with pytest.raises(PackageError):
        seed(manifest, directory, data)
    assert [*outside.iterdir()] == []


def test_one_whose_source_is_missing_is_left_out_and_told(tmp_path: Path) -> None:
    manifest, directory, data = made(tmp_path, ("seed/gone.md", "x"), ("seed", "y"), ("seed/a.md", "z"))
    os.mkfifo(directory / "pipe")
    assert [why.partition(", has")[0] for why in absent(manifest, directory)] == [
        "defaults, entry 1",
        "defaults, entry 2",
    ]
    assert seeds(manifest, directory) == (("seed/a.md", "z"),)
    assert seed(manifest, directory, data) == ("z",)


def test_every_field_of_a_yaml_manifest_is_read(tmp_path: Path) -> None:
    text = """
name: demo
version: 0.3
runtime: python
entry: main.py
description: Notes
pipes: fd
capabilities: [tools, eventHandlers]
defaults:
  - src: seed/a.md
    dest: extensions/demo/a.md
  - {src: b, dest: c, mode: 7}
intents: [whatever]
triggers: {deep: [1, 2]}
"""
    (tmp_path / "manifest.yaml").write_text(text)
    assert read_manifest(tmp_path) == Manifest(
        "demo",
        version="0.3",
        exec="python",
        entry="main.py",
        description="Notes",
        dialect="jsonrpc",
        tool_timeout_ms=3_600_000,
        pipes="fd",
        capabilities=("tools", "eventHandlers"),
        defaults=(Default("seed/a.md", "extensions/demo/a.md"), Default("b", "c")),
    )


def test_defaults_that_make_no_sense_do_not_keep_it_from_running_but_are_errors_to_validate(tmp_path: Path) -> None:
    defaults = "[7, {src: a}, {src: [x], dest: b}, {src: a, dest: ../b}]"
    (tmp_path / "manifest.yaml").write_text(f"name: demo\nruntime: python\nentry: main.py\ndefaults: {defaults}\n")
    manifest = read_manifest(tmp_path)
    assert len(manifest.defaults) == 4
    wrong = [finding for finding in checkup(tmp_path, "/usr/bin:/bin") if finding.check == "defaults"]
    assert [finding.level for finding in wrong] == ["error"] * 4
    assert [finding.message.split(", ")[1] for finding in wrong] == [f"entry {number}" for number in (1, 2, 3, 4)]


def test_half_a_file_is_not_left_behind(tmp_path: Path) -> None:
    manifest, directory, data = made(tmp_path, ("seed/a.md", "x"))
    (directory / "seed" / "a.md").write_bytes(b"x" * 10_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(PackageError, match="x cannot be made: File too large"):
            seed(manifest, directory, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [*data.iterdir()] == []
