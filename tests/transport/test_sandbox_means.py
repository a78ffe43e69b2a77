"""Which means is taken, what it says of itself, and that a program which cannot be confined does not run."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hilt.errors import StartError
from hilt.transport import bubblewrap, landlock
from hilt.transport.landlock_start import REFUSED
from hilt.transport.sandbox import available, confine
from transport.confinement import DEADLINE, World, without_bubblewrap, world


def fake_bubblewrap(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    without_bubblewrap(monkeypatch, folder)
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)


def marking(made: World) -> tuple[str, ...]:
    """A program that leaves a mark if it runs."""
    return ("/bin/sh", "-c", f"echo ran > {made.data}/ran")


def test_the_best_that_there_is_is_named() -> None:
    assert available() == f"bubblewrap and landlock {landlock.version()}"
    assert landlock.version() >= 1


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo bwrap: No permissions to create new namespace >&2; exit 1", "No permissions to create new namespace"),
        (
            "[ $1 = --version ] && echo bubblewrap 0.4.1 && exit; echo bwrap: Unknown option >&2; exit 1",
            "Unknown option",
        ),
        ("exec sleep 30", "timed out"),
    ],
    ids=["refused", "too old", "hangs"],
)
def test_a_bubblewrap_that_does_not_work_is_not_used(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "_PROBING", 0.5 if reason == "timed out" else 30.0)
    fake_bubblewrap(monkeypatch, tmp_path, f"PATH=/usr/bin:/bin\n{script}")
    before = time.monotonic()
    with world() as made:
        assert confine(("/bin/true",), made.policy()).by == "landlock"
    assert reason in available()
    assert available().startswith("landlock")
    assert time.monotonic() - before < 20


def test_it_is_tried_once_and_not_at_every_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_bubblewrap(monkeypatch, tmp_path, f"echo tried >> {tmp_path}/log; exit 1")
    for _ in range(3):
        available()
    assert (tmp_path / "log").read_text() == "tried\n"


def test_without_any_means_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_bubblewrap(monkeypatch, tmp_path)
    monkeypatch.setattr(landlock, "_known", 0)
    with (
        world() as made,
        pytest.raises(StartError, match="bubblewrap is not installed, and the kernel has no") as caught,
    ):
        confine(("/bin/true",), made.policy())
    assert "install bubblewrap" in caught.value.hint
    assert available().startswith("none: bubblewrap is not installed")


@pytest.mark.parametrize(
    ("argv", "message"),
    [(("./nothing",), "no such file"), (("no-such-program",), "no such program"), (("./file",), "chmod")],
)
def test_a_program_that_cannot_start_is_reported_as_without_a_sandbox(argv: tuple[str, ...], message: str) -> None:
    with world() as made:
        (made.code / "file").write_text("")
        with pytest.raises(StartError) as caught:
            confine(argv, made.policy())
        assert message in caught.value.message + caught.value.hint


def test_what_is_looked_for_on_path_is_looked_for_on_the_programs_own(tmp_path: Path) -> None:
    program = tmp_path / "prog"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with world() as made:
        confined = confine(("prog",), made.policy(), str(tmp_path))
        with pytest.raises(StartError, match="no such program"):
            confine(("prog",), made.policy(), "/usr/bin")
    assert str(program) in confined.argv


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6, 7])
def test_every_version_of_landlock_can_be_asked_for_what_it_has(
    abi: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if landlock.version() < abi:
        pytest.skip("this kernel is older")
    without_bubblewrap(monkeypatch, tmp_path)
    monkeypatch.setattr(landlock, "_known", abi)
    with world() as made:
        confined = confine(marking(made), made.policy())
        subprocess.run(confined.argv, cwd=made.code, check=True, timeout=DEADLINE)
        assert (made.data / "ran").exists()
    files, network, scopes = (int(word) for word in confined.argv[4:7])
    assert files.bit_length() == {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)
    assert (network > 0, scopes > 0) == (abi >= 4, abi >= 6)
    assert ("it can send signals to your other programs" in confined.gaps) == (abi < 6)
    assert ("it can cut files short that it may not write" in confined.gaps) == (abi < 3)


def test_a_bubblewrap_that_came_with_the_project_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "bin" / "bwrap"  # A27
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\necho bubblewrap 9.9.9\n")
    planted.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_known", None)
    monkeypatch.setattr(bubblewrap, "_USUAL", ())
    monkeypatch.setenv("PATH", str(planted.parent))
    monkeypatch.chdir(tmp_path)
    assert bubblewrap.working() == ((), "bubblewrap is not installed")
    monkeypatch.setattr(bubblewrap, "_known", None)
    monkeypatch.chdir("/")
    assert bubblewrap.working()[0][0] == str(planted)


def test_what_an_old_kernel_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with world() as made:
        assert confine(("/bin/true",), made.policy(network=True)).gaps == ()
        monkeypatch.setattr(landlock, "_known", 0)
        assert confine(("/bin/true",), made.policy(network=True)).gaps == (
            "it can run other programs",
            "it can talk to your other programs through sockets that lie where it may read",
            "it can talk to your other programs through sockets without a file",
        )
        assert confine(("/bin/true",), made.policy(programs=True)).gaps == (
            "it can talk to your other programs through sockets that lie where it may read",
        )


def helper(made: World, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = (sys.executable, "-I", "-S", str(landlock.START), *words, "--", *marking(made))
    return subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE, check=False)


@pytest.mark.parametrize(
    "words",
    [
        (str(1 << 40), "0", "0", "any", ""),
        ("0", str(1 << 40), "0", "any", ""),
        ("0", "0", str(1 << 40), "any", ""),
        ("1", "0", "0", "any", "", str(1 << 40), "/usr"),
    ],
    ids=["files", "network", "scopes", "rule"],
)
def test_a_program_whose_rights_cannot_be_taken_away_is_not_started(words: tuple[str, ...]) -> None:
    with world() as made:
        ended = helper(made, *words)
        assert ended.returncode == REFUSED
        assert ended.stderr.startswith("sandbox: the sandbox cannot be set up, so the program is not started")
        assert not (made.data / "ran").exists()


def test_a_program_that_is_gone_in_the_last_moment_is_reported() -> None:
    argv = (sys.executable, "-I", "-S", str(landlock.START), "0", "0", "0", "any", "", "--", "/nowhere")
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert (ended.returncode, ended.stderr) == (
        127,
        "sandbox: '/nowhere' cannot be started: No such file or directory\n",
    )


def test_a_bubblewrap_that_fails_in_the_last_moment_starts_nothing() -> None:
    with world() as made:
        confined = confine(marking(made), made.policy(programs=True))
        at = confined.argv.index("--")
        broken = (*confined.argv[:at], "--ro-bind", "/nowhere", "/nowhere", *confined.argv[at:])
        ended = subprocess.run(broken, cwd=made.code, capture_output=True, timeout=DEADLINE, check=False)
        assert ended.returncode == 1
        assert b"/nowhere" in ended.stderr
        assert not (made.data / "ran").exists()


def test_the_helper_takes_nothing_from_the_directory_it_is_started_in() -> None:
    with world() as made:
        for name in ("ctypes", "os", "struct", "stat"):
            (made.code / f"{name}.py").write_text(f"open({str(made.data / 'taken')!r}, 'w')")
        argv = confine(marking(made), made.policy()).argv
        subprocess.run(argv, cwd=made.code, env={"PYTHONPATH": str(made.code)}, check=True, timeout=DEADLINE)
        assert (made.data / "ran").exists()
        assert not (made.data / "taken").exists()


def test_a_program_that_writes_to_nobody_is_ended_as_it_would_be_without_the_helper() -> None:
    # Python ignores the signal, and what is ignored stays so over an exec.
    with world() as made:
        policy = made.policy(network=True, programs=True)
        argv = confine(("/bin/sh", "-c", "kill -PIPE $$; echo still there"), policy).argv
        ended = subprocess.run(argv, cwd=made.code, capture_output=True, timeout=DEADLINE, check=False)
        assert (ended.returncode, ended.stdout) == (128 + 13, b"")


def test_on_macos_the_profile_is_used_or_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with world() as made:
        monkeypatch.setattr("hilt.transport.seatbelt.PROGRAM", tmp_path / "sandbox-exec")
        with pytest.raises(StartError, match="there is no"):
            confine(("/bin/true",), made.policy())
        assert available().startswith("none")
        (tmp_path / "sandbox-exec").touch()
        confined = confine(("/bin/true",), made.policy())
        assert (confined.by, available()) == ("seatbelt", "seatbelt")
        assert confined.argv[:4] == ("/usr/bin/env", f"TMPDIR={made.data}", str(tmp_path / "sandbox-exec"), "-p")
        assert confined.argv[5:] == ("/bin/true",)
