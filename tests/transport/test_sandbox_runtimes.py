"""Programs whose interpreter lies where a confined one has nothing to look for start all the same."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hilt.transport import runtimes
from hilt.transport.runtimes import Runtime, hops, runtime
from hilt.transport.sandbox import confine
from transport.confinement import DEADLINE, World, without_bubblewrap, world

SHIM = """#!/bin/sh
for word in a b c; do ls > /dev/null; done
exec {manager} exec tool "$@"
"""
MANAGER = """#!/bin/sh
[ "$1 $2" = "which tool" ] && echo {tool}
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environment(home: Path) -> Path:
    """A virtual environment, made by hand: a link in it leads to a Python somewhere else."""
    real = Path(os.path.realpath(sys.executable))
    own = home / ".venvs/own"
    (own / "bin").mkdir(parents=True)
    (own / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
    packages = own / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "dependency.py").write_text("NAME = 'the dependency'")
    (own / "bin/python").symlink_to(real)
    (own / "bin/python3").symlink_to("python")
    (home / "bin").mkdir()
    (home / "bin/py").symlink_to("../.venvs/own/bin/python3")
    return own


@pytest.fixture(params=["bubblewrap", "landlock"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if request.param == "landlock":
        without_bubblewrap(monkeypatch, tmp_path)


def strictly(made: World, *argv: str, path: str = "/usr/bin:/bin") -> str:
    confined = confine(argv, made.policy(level="strict", readable=()), path)
    ended = subprocess.run(confined.argv, cwd=made.code, env={"PATH": path}, capture_output=True, timeout=DEADLINE)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode().strip()


@pytest.mark.usefixtures("means")
@pytest.mark.parametrize("start", [".venvs/own/bin/python", ".venvs/own/bin/python3", "bin/py"])
def test_a_virtual_environment_in_the_home_works_through_any_link(start: str) -> None:
    with world() as made:
        environment(made.home)
        assert strictly(made, str(made.home / start), "-c", "print(1 + 1)") == "2"


@pytest.mark.usefixtures("means")
def test_a_script_finds_the_environment_that_comes_first_on_its_path() -> None:
    with world() as made:
        own = environment(made.home)
        main = script(
            made.code / "main", "#!/usr/bin/env python3\nimport dependency, sys\nprint(dependency.NAME, sys.argv)"
        )
        said = strictly(made, str(main), "one", "two", path=f"{own / 'bin'}:/usr/bin:/bin")
        assert said == f"the dependency {[str(main), 'one', 'two']}"


@pytest.mark.usefixtures("means")
def test_a_script_of_a_version_manager_is_seen_through() -> None:
    # With it would come a shell, the manager, and all that these run.
    with world() as made:
        tool = environment(made.home) / "bin/python"
        manager = script(made.home / ".anyenv/bin/anyenv", MANAGER.format(tool=tool))
        script(made.home / ".anyenv/shims/tool", SHIM.format(manager=manager))
        said = strictly(made, "tool", "-c", "print(1 + 1)", path=f"{made.home / '.anyenv/shims'}:/usr/bin:/bin")
        assert said == "2"


@pytest.mark.parametrize("answer", ["exit 1", "echo nonsense", "exec sleep 30"])
def test_a_version_manager_that_does_not_answer_is_left_to_do_its_work(
    answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "_ASKING", 0.3)
    with world() as made:
        script(made.home / ".anyenv/bin/anyenv", f"#!/bin/sh\n{answer}")
        shim = script(made.home / ".anyenv/shims/tool", "#!/bin/sh\necho done it")
        began = time.monotonic()
        assert runtime(("tool", "x"), made.code, str(shim.parent), made.home).argv == ("/bin/sh", str(shim), "x")
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("#!/bin/sh", ("/bin/sh",)),
        ("#! /bin/sh  -e -u ", ("/bin/sh", "-e -u")),
        ("#!/usr/bin/env sh", ("{path}/sh",)),
        ("#!/usr/bin/env -S sh -e -u", ("{path}/sh", "-e", "-u")),
        ("#!/usr/bin/env NAME=x sh", ("/usr/bin/env", "NAME=x sh")),
    ],
)
def test_a_script_is_started_as_the_system_would(line: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    main = script(tmp_path / "main", f"{line}\n")
    found = runtime(("./main", "one"), tmp_path, str(tmp_path), tmp_path)
    assert found.argv == (*(word.format(path=tmp_path) for word in words), str(main), "one")
    assert main in found.executed


def test_scripts_that_name_each_other_come_to_an_end(tmp_path: Path) -> None:
    main, other = tmp_path / "main", tmp_path / "other"
    script(main, f"#!{other}\n")
    script(other, f"#!{main}\n")
    assert isinstance(runtime((str(main),), tmp_path, "", tmp_path), Runtime)


def test_links_in_circles_and_long_ones_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert 0 < len(list(hops(tmp_path / "a/x"))) <= 40


def test_every_link_on_the_way_is_found_where_it_really_lies(tmp_path: Path) -> None:
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "real/inner/file").touch()
    (tmp_path / "one").symlink_to("real")
    (tmp_path / "real/two").symlink_to(tmp_path / "one/inner")
    (tmp_path / "real/inner/three").symlink_to("../two/file")
    assert list(hops(tmp_path / "one/two/three")) == [
        (tmp_path / "one", "real"),
        (tmp_path / "real/two", f"{tmp_path}/one/inner"),
        (tmp_path / "one", "real"),
        (tmp_path / "real/inner/three", "../two/file"),
        (tmp_path / "real/two", f"{tmp_path}/one/inner"),
        (tmp_path / "one", "real"),
    ]


def test_the_loader_of_a_binary_may_be_executed_and_what_it_only_reads_may_not(tmp_path: Path) -> None:
    found = runtime(("/bin/ls",), tmp_path, "", tmp_path)
    assert [path.name.partition("-")[0] for path in found.executed] in (["ls", "ld"], ["ls", "ld.so.1"], ["ls"])
    assert Path(os.path.realpath("/bin/ls")) in found.executed


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF" + bytes(100), b"\x7fELF\x02\x01" + b"\xff" * 200, b"#!"]
)
def test_a_program_that_is_none_has_no_loader_and_no_interpreter(content: bytes, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(content)
    assert runtime((str(program),), tmp_path, "", tmp_path).executed == (program,)


def test_a_program_in_the_home_itself_does_not_bring_the_whole_home(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    program = script(tmp_path / "bin/program", "")
    assert runtime((str(program),), tmp_path, "", tmp_path).needed == (program,)
    assert runtime((str(program),), tmp_path, "", Path("/home/me")).needed == (tmp_path,)
