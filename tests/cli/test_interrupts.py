"""Ctrl-C, SIGTERM and a reader that leaves: the run ends soon, without a traceback, and leaves no child behind."""

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pexpect
import pytest

from support.agent import calls, says
from support.extending import chaos
from support.hilt_process import DEADLINE, Hilt, running_with, until, wait_gone


def sleeper(tmp_path: Path) -> tuple[Hilt, str, tuple[str, ...]]:
    """A hilt whose model runs a long command, and a number to know that command by."""
    mark = f"60.{random.randrange(10**8, 10**9)}"
    hilt = Hilt(tmp_path)
    return hilt, mark, hilt.script(calls(("bash", {"command": f"sleep {mark}; echo late"})), says("never"))


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_a_signal_during_a_command_ends_it_and_tells_by_the_exit_code(tmp_path: Path, number: int, code: int) -> None:
    hilt, mark, script = sleeper(tmp_path)
    with hilt.started("-p", "go", *script) as process:
        until(lambda: running_with(mark), "the command's start")
        start = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE)
    assert time.monotonic() - start < 20
    assert (process.returncode, out) == (code, b"")
    assert b"Traceback" not in err
    wait_gone(mark)
    shown = hilt.run("sessions", "show", str(hilt.sessions()[0]))
    assert "go" in shown.out and "outcome is unknown" in shown.out


def test_ctrl_c_during_a_command_of_an_extension_tells_by_the_exit_code_and_loses_nothing_it_said(
    tmp_path: Path,
) -> None:
    hilt = Hilt(tmp_path)
    hanging = {"on": "command_invoked", "do": 'host_notify:{"method":"showMessage","params":{"text":"half of it"}}'}
    made = chaos("x", "hello", "register_command:go", "ready", hanging, dialect="jsonrpc")
    with hilt.started("-p", "/go", *hilt.script(), "--ext", str(made.write(tmp_path / "flagged"))) as process:
        assert process.stdout and process.stdout.readline() == b"half of it\n"  # at once, and not when it is over
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, err) == (130, b"hilt: error: /go was cancelled\n")


def test_rpc_ends_at_once_on_sigterm_and_takes_its_command_along(tmp_path: Path) -> None:
    hilt, mark, script = sleeper(tmp_path)
    with hilt.rpc(*script) as rpc:
        rpc.send(type="prompt", message="go")
        until(lambda: running_with(mark), "the command's start")
        rpc.process.terminate()
        assert rpc.process.wait(DEADLINE) == 143
    assert "Traceback" not in rpc.errors
    wait_gone(mark)


def test_ctrl_c_during_start_up_ends_it_quietly(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = hilt.script(says("soon", delay_ms=60_000))
    for _ in range(10):
        # The profile shows when hilt's own first line runs; before that it is Python that is interrupted.
        with hilt.started("-p", "hi", *script, env={"PYTHONPROFILEIMPORTTIME": "1"}, bufsize=0) as process:
            assert process.stderr
            for line in process.stderr:
                if line.rstrip().endswith(b"hilt.cli.main"):
                    break
            threading.Event().wait(random.uniform(0.002, 0.25))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=DEADLINE)
        said = [line for line in err.decode().split("\n") if not line.startswith("import time:")]
        # Python itself dies of the signal in rare cases, which a shell reports as 130 all the same.
        assert process.returncode in (130, -signal.SIGINT), said
        assert said == [""]


def test_ctrl_c_at_any_moment_of_a_turn_leaves_no_process_and_a_session_that_can_be_read(tmp_path: Path) -> None:
    hilt, mark, script = sleeper(tmp_path)
    for _ in range(10):
        with hilt.started("--json", "go", *script, bufsize=0) as process:
            assert process.stdout
            process.stdout.readline()  # the turn has begun
            threading.Event().wait(random.uniform(0, 0.15))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=DEADLINE)
        assert process.returncode == 130
        assert err == b""
        assert out.rstrip().split(b"\n")[-1].startswith(b'{"type":"done"')
    wait_gone(mark)
    for path in hilt.sessions():
        assert hilt.run("sessions", "show", str(path)).code == 0


def test_a_reader_that_goes_away_ends_a_json_run_even_while_nothing_is_said(tmp_path: Path) -> None:
    hilt, mark, script = sleeper(tmp_path)
    with hilt.started("--json", "go", *script) as process:
        until(lambda: running_with(mark), "the command's start")
        assert process.stdout
        process.stdout.close()
        process.stdout = None
        process.wait(DEADLINE / 2)
        assert process.stderr and b"Traceback" not in process.stderr.read()
    wait_gone(mark)


def test_a_client_that_dies_ends_what_it_started(tmp_path: Path) -> None:
    hilt, mark, script = sleeper(tmp_path)
    with hilt.started("rpc", *script, stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b'{"type":"prompt","message":"go"}\n{"type":"prompt","message":"and again"}\n')
        process.stdin.flush()
        until(lambda: running_with(mark), "the command's start")
        process.stdin.close()
        process.stdout.close()
        process.stdin = process.stdout = None
        process.wait(DEADLINE / 2)
    wait_gone(mark)


def test_ctrl_c_at_the_list_of_sessions_leaves_at_once(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.run("-p", "hi", *hilt.script(says("hello")))
    arguments = ["-m", "hilt", "-r", "-p", "hi", *hilt.script(says("hello"))]
    terminal = pexpect.spawn(
        sys.executable, arguments, env=hilt.environment, cwd=str(hilt.project), timeout=DEADLINE, encoding="utf-8"
    )
    terminal.expect("pick #: ")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 130 and "Traceback" not in terminal.before


def test_resuming_by_list_over_rpc_is_refused_with_a_hint(tmp_path: Path) -> None:
    done = Hilt(tmp_path).run("rpc", "-r")
    assert done.code == 2 and "--session" in done.err


def test_a_prompt_that_begins_with_the_name_of_a_verb_is_a_prompt(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.run("-p", "rpc", "calls", "hang", *hilt.script(says("why?", expect={"contains": "rpc calls hang"})))
    assert (done.code, done.out) == (0, "why?\n")


def test_commands_end_with_a_hilt_that_is_killed(tmp_path: Path) -> None:
    hilt, mark, flags = sleeper(tmp_path)
    with hilt.started("-p", "go", *flags) as process:
        until(lambda: bool(running_with(f"sleep\0{mark}")), "the command's start")
        process.kill()
        process.wait(DEADLINE)
        wait_gone(mark)
