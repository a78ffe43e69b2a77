"""Which pipes a program will speak on: what its manifest says, else what its file gives away."""

import os
from pathlib import Path

import pytest

from hilt.packages.arrangement import pipes_of
from hilt.packages.manifest import Manifest, SaidPipes, read_manifest


def manifest(exec_: str = "./main", entry: str = "", pipes: SaidPipes | None = None) -> Manifest:
    return Manifest("demo", exec=exec_, entry=entry, dialect="jsonrpc", pipes=pipes)


def binary(path: Path, before: int, holds: bytes) -> None:
    path.write_bytes(b"\x7fELF" + b"\0" * before + holds + b"\0" * 5000)


@pytest.mark.parametrize("before", [0, 1_000_000, 1024 * 1024 - 4 - 9, 1024 * 1024 - 4 - 5, 1024 * 1024 - 4, 3_500_000])
def test_a_compiled_program_that_knows_of_the_variable_gets_3_and_4(tmp_path: Path, before: int) -> None:
    binary(tmp_path / "main", before, b"xPATHPIGLET_FDHOME")
    assert pipes_of(manifest(), tmp_path) == "fd34"


def test_a_compiled_program_that_does_not_may_be_either(tmp_path: Path) -> None:
    binary(tmp_path / "main", 2_000_000, b"PIGLET_F")
    assert pipes_of(manifest(), tmp_path) == "either"


def test_of_a_script_its_own_text_counts_and_not_what_runs_it(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import os\nos.environ['PIGLET_FD']\n")
    (tmp_path / "sdk.py").write_text("import piglet\n")
    (tmp_path / "python").write_text("PIGLET_FD")
    assert pipes_of(manifest("python", "main.py"), tmp_path) == "fd34"
    assert pipes_of(manifest("python", "sdk.py"), tmp_path) == "either"
    assert pipes_of(manifest("./sdk.py", "main.py"), tmp_path) == "fd34"
    assert pipes_of(manifest("python"), tmp_path) == "either"


def test_what_the_manifest_says_counts_whatever_stands_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "main").write_text("PIGLET_FD")
    assert pipes_of(manifest(pipes="stdio"), tmp_path) == "stdio"
    (tmp_path / "main").write_text("")
    assert pipes_of(manifest(pipes="fd"), tmp_path) == "fd34"


def test_the_first_dialect_knows_only_stdin_and_stdout(tmp_path: Path) -> None:
    (tmp_path / "main").write_text("PIGLET_FD")
    assert pipes_of(Manifest("demo", exec="./main"), tmp_path) == "stdio"


@pytest.mark.parametrize("name", ["missing", "folder", "pipe", "loop", "locked", "nul\0", "x" * 5000])
def test_a_file_that_cannot_be_read_is_no_reason_to_fail_or_to_wait(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "locked").touch(mode=0)
    assert pipes_of(manifest(f"./{name}"), tmp_path) == "either"


def test_a_manifest_says_fd_or_stdio_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "manifest.yaml"
    for said, expected in (("fd", "fd"), ("stdio", "stdio"), ("", None), ("null", None)):
        path.write_text(f"name: demo\nruntime: python\npipes: {said}\n")
        assert read_manifest(tmp_path).pipes == expected
    path.write_text("name: demo\nruntime: python\npipes: both\n")
    with pytest.raises(Exception, match='"pipes" must be one of "fd", "stdio", not "both"'):
        read_manifest(tmp_path)
