import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hilt.errors import PackageError
from hilt.packages.scripts.environments import consent, environment_for, find_environment, remove_environment

BASE = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
UV = f"""
import json, os, sys
if sys.argv[1] == "venv":
    os.makedirs("bin")
    os.symlink({BASE!r}, "bin/python")
print("uv", *sys.argv[1:], flush=True)
with open({{log!r}}, "a") as log:
    print(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]), file=log)
if sys.argv[1] == "pip":
    {{then}}
"""


def wheel(directory: Path, name: str, code: str) -> None:
    """A package of one module, with a program of the same name."""
    directory.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:main\n")
        archive.writestr(f"{info}/RECORD", "")


def sdist(directory: Path, name: str, code: str) -> None:
    """A package that has to be built, which runs its code."""
    source = directory / f"{name}-1.0"
    source.mkdir(parents=True)
    (source / "setup.py").write_text(code)
    (source / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    with tarfile.open(directory / f"{name}-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)


def offline(tmp_path: Path, *programs: str) -> dict[str, str]:
    """An environment in which packages come from `tmp_path/wheels`, and PATH has only `python3` and these."""
    (tmp_path / "bin").mkdir()
    for program in (f"{sys.prefix}/bin/python3", *programs):
        (tmp_path / "bin" / Path(program).name).symlink_to(program)
    wheels = str(tmp_path / "wheels")
    return {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "PIP_FIND_LINKS": wheels,
        "PIP_NO_INDEX": "1",
        "UV_FIND_LINKS": wheels,
        "UV_OFFLINE": "1",
    }


def fake_uv(tmp_path: Path, then: str = "pass") -> dict[str, str]:
    """Stands in for the real one, which not everybody has and which would need packages: notes how it was called."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    code = UV.format(log=str(tmp_path / "log"), then=then)
    (tmp_path / "uv.py").write_text(code)
    (tmp_path / "bin/uv").write_text(f'#!/bin/sh\nexec {BASE} -S {tmp_path}/uv.py "$@"\n')
    (tmp_path / "bin/uv").chmod(0o755)
    return {"PATH": str(tmp_path / "bin")}


def calls(tmp_path: Path) -> list[tuple[list[str], str, dict[str, str]]]:
    log = tmp_path / "log"
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


def build(tmp_path: Path, env: dict[str, str], *dependencies: str, requires: str = "", patience: float = 60) -> Path:
    root = tmp_path / "environments"
    return environment_for(dependencies, requires, root, "demo", lambda line: None, env=env, patience=patience)


def output(*argv: str | Path) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, env={}).stdout


def ended(fifo: int) -> bool:
    """Whether everybody is gone who had it open for writing, after waiting for them."""
    return bool(select.select([fifo], [], [], 20)[0]) and not os.read(fifo, 1)


def test_pip_installs_into_an_environment_of_its_own_whatever_the_users_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "wheels", "thing", "def main(): print('it runs')")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/thing.py").write_text("raise SystemExit('not mine')")
    (tmp_path / "pip.conf").write_text("[install]\nuser = true\n")
    monkeypatch.chdir(tmp_path)
    env = offline(tmp_path) | {
        "PYTHONPATH": str(tmp_path / "elsewhere"),
        "PIP_TARGET": str(tmp_path / "target"),
        "PIP_PREFIX": str(tmp_path / "prefix"),
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
    }

    python = build(tmp_path, env, "thing>=1", requires=">=3.9")

    home = tmp_path / "environments/demo"
    assert output(python, "-c", "import thing; thing.main()") == output(python.parent / "thing") == "it runs\n"
    assert output(python, "-c", "import importlib.util as u; print(u.find_spec('hilt'))") == "None\n"
    assert [place.name[16:] for place in home.iterdir()] == ["-{}.{}.{}".format(*sys.version_info)]
    assert home.stat().st_mode & 0o777 == python.parent.parent.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "target").exists() and not (tmp_path / "prefix").exists()


def test_what_would_have_to_be_built_is_not_installed_and_nothing_of_it_runs(tmp_path: Path) -> None:
    sdist(tmp_path / "wheels", "thing", f"open({str(tmp_path / 'ran')!r}, 'w')")
    env = offline(tmp_path) | {"PIP_NO_BINARY": ":all:"}

    with pytest.raises(PackageError, match="No matching distribution found for thing") as caught:
        build(tmp_path, env, "thing")

    assert not (tmp_path / "ran").exists()
    assert "ready-made wheel" in caught.value.hint
    assert list((tmp_path / "environments/demo").iterdir()) == []


@pytest.mark.skipif(not shutil.which("uv"), reason="uv is not installed")
def test_uv_installs_into_an_environment_of_its_own(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "thing", "def main(): print('it runs')")
    uv = shutil.which("uv")
    assert uv

    python = build(tmp_path, offline(tmp_path, uv), "thing", requires=">=3.9")

    assert output(python, "-c", "import thing; thing.main()") == output(python.parent / "thing") == "it runs\n"


def test_an_environment_is_built_once_and_found_again(tmp_path: Path) -> None:
    env = fake_uv(tmp_path)
    root = tmp_path / "environments"
    assert find_environment(("a", "b"), ">=3.9", root, "demo") is None

    first = build(tmp_path, env, "a", "b", requires=">=3.9")

    assert build(tmp_path, {}, "b", "a", "a", requires=">=3.9") == first
    assert find_environment(("a", "b"), ">=3.9", root, "demo") == first
    assert len(calls(tmp_path)) == 2
    assert find_environment(("a", "b"), "", root, "demo") is None
    assert find_environment(("a",), ">=3.9", root, "demo") is None
    assert find_environment(("a", "b"), ">=3.9", root, "other") is None
    assert build(tmp_path, env, "a", requires=">=3.9") != first and first.exists()


def test_uv_is_told_where_to_install_and_to_run_nothing(tmp_path: Path) -> None:
    env = fake_uv(tmp_path) | {"UV_SYSTEM_PYTHON": "1", "PYTHONPATH": "/x", "UV_NO_BINARY": "1", "UV_INDEX_URL": "y"}

    python = build(tmp_path, env, "b", "a[c]>=1; python_version > '3'")

    (venv, at, _), (install, there, seen) = calls(tmp_path)
    assert venv[:3] == ["venv", "--python", BASE] and "--no-python-downloads" in venv
    assert install[:4] == ["pip", "install", "--python", str(python)]
    assert install[-4:] == ["--only-binary", ":all:", "a[c]>=1; python_version > '3'", "b"]
    assert " ".join(install).count("--link-mode copy") == 1
    assert at == there == str(python.parent.parent)  # nothing that lies about elsewhere is taken for a package
    assert seen["UV_INDEX_URL"] == "y" and not {"UV_SYSTEM_PYTHON", "PYTHONPATH", "UV_NO_BINARY"} & set(seen)


@pytest.mark.parametrize("dependency", ["--index-url=x", "-rfile", "a @ file:///etc", "./a", "a\n-rb", ""])
def test_what_is_no_package_of_the_index_is_refused_before_anything_starts(tmp_path: Path, dependency: str) -> None:
    with pytest.raises(PackageError, match="demo depends on"):
        build(tmp_path, fake_uv(tmp_path), "fine", dependency)

    assert not calls(tmp_path) and not (tmp_path / "environments").exists()


@pytest.mark.parametrize("name", ["../demo", "", ".", "a/b", "/etc", "a\0"])
def test_what_is_no_name_becomes_no_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "demo").mkdir()
    root = tmp_path / "environments"
    with pytest.raises(PackageError, match="not the name of an extension"):
        environment_for(("a",), "", root, name, lambda line: None, env=fake_uv(tmp_path))
    with pytest.raises(PackageError, match="not the name of an extension"):
        find_environment(("a",), "", root, name)
    with pytest.raises(PackageError, match="not the name of an extension"):
        remove_environment(root, name)

    assert (tmp_path / "demo").exists() and not root.exists()


def test_a_failure_tells_the_last_lines_and_leaves_nothing(tmp_path: Path) -> None:
    env = fake_uv(tmp_path, r"print(*range(9), '\x1b]52;evil\a\rover', 'x' * 900, '\xff', sep='\n'); sys.exit(3)")

    with pytest.raises(PackageError) as caught:
        build(tmp_path, env, "a")

    assert caught.value.message == "packages cannot be installed: �]52;evil� / over / " + "x" * 200 + " / ÿ"
    assert "index" in caught.value.hint
    assert list((tmp_path / "environments/demo").iterdir()) == []


def test_a_failure_with_errors_tells_these_and_nothing_else(tmp_path: Path) -> None:
    env = fake_uv(tmp_path, r"print('Looking in links', 'ERROR: no a', 'ERROR: none at all', sep='\n'); sys.exit(1)")

    with pytest.raises(PackageError) as caught:
        build(tmp_path, env, "a")

    assert caught.value.message == "packages cannot be installed: ERROR: no a / ERROR: none at all"


def test_a_silent_failure_tells_the_code(tmp_path: Path) -> None:
    env = fake_uv(tmp_path)
    (tmp_path / "bin/uv").write_text("#!/bin/sh\nexit 7\n")

    with pytest.raises(PackageError, match=r"an environment cannot be made: .*/bin/uv exited with code 7"):
        build(tmp_path, env, "a")


def test_what_the_tool_says_is_passed_on_as_it_comes(tmp_path: Path) -> None:
    lines: list[str] = []
    environment_for(("a",), "", tmp_path / "environments", "demo", lines.append, env=fake_uv(tmp_path))

    assert lines[0] == "making an environment for demo…"
    assert [line.split()[:2] for line in lines[1:]] == [["uv", "venv"], ["uv", "pip"]]


def hanging(tmp_path: Path) -> tuple[dict[str, str], int]:
    """A tool that starts another program and outlasts the test; and a pipe that tells when both have ended."""
    os.mkfifo(tmp_path / "alive")
    fifo = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    then = (
        f"os.open({str(tmp_path / 'alive')!r}, os.O_WRONLY); print('hangs', os.getpgrp(), flush=True); "
        "os.fork(); import signal; signal.alarm(50); signal.pause()"
    )
    return fake_uv(tmp_path, then), fifo


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    env, fifo = hanging(tmp_path)

    with pytest.raises(PackageError, match=r"uv took longer than 3 s"):
        build(tmp_path, env, "a", patience=3)

    assert calls(tmp_path)[1:] and ended(fifo)
    assert list((tmp_path / "environments/demo").iterdir()) == []
    os.close(fifo)


def test_what_talks_for_ever_takes_too_long_as_well(tmp_path: Path) -> None:
    env = fake_uv(tmp_path, "while True: print('x', flush=True)")

    with pytest.raises(PackageError, match="took longer than 2 s"):
        build(tmp_path, env, "a", patience=2)

    assert calls(tmp_path)[1:]


def test_an_interrupted_build_ends_what_it_started_and_leaves_nothing(tmp_path: Path) -> None:
    env, fifo = hanging(tmp_path)

    def interrupt(line: str) -> None:
        if line.startswith("hangs"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environment_for(("a",), "", tmp_path / "environments", "demo", interrupt, env=env)

    assert ended(fifo)
    assert list((tmp_path / "environments/demo").iterdir()) == []
    os.close(fifo)


def test_a_killed_build_is_not_disturbed_while_it_goes_on_and_swept_away_after(tmp_path: Path) -> None:
    env, fifo = hanging(tmp_path)
    code = (
        "import sys, json; from pathlib import Path; from hilt.packages.scripts.environments import environment_for\n"
        "root, env = sys.argv[1:]\n"
        "environment_for(['a'], '', Path(root), 'demo', lambda line: print(line, flush=True), env=json.loads(env))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "environments"), json.dumps(env)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as builder:
        assert builder.stdout
        while not (line := builder.stdout.readline()).startswith("hangs"):
            assert line
        builder.kill()
    (left,) = (tmp_path / "environments/demo").iterdir()
    (left / "unfinished").touch()

    assert find_environment(("a",), "", tmp_path / "environments", "demo") is None
    with pytest.raises(PackageError, match="is being built or removed by another hilt"):
        build(tmp_path, env, "a")
    with pytest.raises(PackageError, match="is being built or removed by another hilt"):
        remove_environment(tmp_path / "environments", "demo")
    assert (left / "unfinished").exists()

    os.killpg(int(line.split()[1]), signal.SIGKILL)
    assert ended(fifo)
    build(tmp_path, fake_uv(tmp_path), "a")
    assert not (left / "unfinished").exists()
    os.close(fifo)


def test_an_environment_whose_interpreter_is_gone_is_built_anew(tmp_path: Path) -> None:
    env = fake_uv(tmp_path)
    python = build(tmp_path, env, "a")
    python.unlink()
    python.symlink_to(tmp_path / "uninstalled")

    assert find_environment(("a",), "", tmp_path / "environments", "demo") is None
    assert build(tmp_path, env, "a").exists()


def test_a_place_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "environments").write_text("a file")

    with pytest.raises(PackageError, match=r"cannot be built in .*/environments/demo: Not a directory"):
        build(tmp_path, fake_uv(tmp_path), "a")


def test_removing_takes_all_that_were_built_for_one_extension(tmp_path: Path) -> None:
    root, env = tmp_path / "environments", fake_uv(tmp_path)
    build(tmp_path, env, "a")
    build(tmp_path, env, "b")
    other = environment_for(("a",), "", root, "other", lambda line: None, env=env)

    remove_environment(root, "demo")
    remove_environment(root, "demo")

    assert [place.name for place in root.iterdir()] == ["other"] and other.exists()


def test_removing_a_link_removes_the_link_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/precious").touch()
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/demo").symlink_to(tmp_path / "mine")

    with pytest.raises(PackageError, match="cannot be built"):
        build(tmp_path, fake_uv(tmp_path), "a")
    remove_environment(tmp_path / "environments", "demo")

    assert (tmp_path / "mine/precious").exists() and not os.path.lexists(tmp_path / "environments/demo")


def test_consent_says_what_is_installed_and_that_none_of_it_runs() -> None:
    text = consent(("rich>=14", "a\x1bb"))

    assert "rich>=14, a\ufffdb" in text and "nothing of them runs" in text
