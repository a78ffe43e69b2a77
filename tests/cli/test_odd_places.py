"""Homes, files and terminals that are not what they should be: the answer still comes, or the error is clear."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.agent import calls, says
from support.hilt_process import DEADLINE, Hilt


def test_slash_commands_work_in_one_shot(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    turns = [says(str(number), usage={"input": 10}) for number in range(4)]
    flags = hilt.script(*turns)
    for _ in range(3):
        assert hilt.run("-c", "-p", "say a number", *flags).code == 0
    helped = hilt.run("-c", "-p", "/help", *flags)
    assert helped.code == 0 and "/compact" in helped.out and helped.err == ""
    compacted = hilt.run("-c", "-p", "/compact", *flags)
    assert (compacted.code, compacted.out) == (0, "") and "compacted" in compacted.err
    again = hilt.run("-c", "--json", "/compact", *flags)
    assert again.code == 1 and [event["type"] for event in again.events] == ["error"]
    unknown = hilt.run("-p", "/frobnicate it", *hilt.script(says("what?", expect={"contains": "/frobnicate it"})))
    assert unknown.out == "what?\n"


def test_a_home_that_cannot_be_made_costs_the_record_and_not_the_answer(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    turns = (calls(("bash", {"command": "echo made it"})), says("done", expect={"contains": "made it"}))
    done = hilt.run("-p", "go", *hilt.script(*turns), env={"HILT_HOME": "/proc/nowhere"})
    assert (done.code, done.out) == (0, "done\n")
    assert "/proc/nowhere cannot be made" in done.err and "not saved" in done.err
    quiet = hilt.run("-p", "go", "--no-session", *hilt.script(*turns), env={"HILT_HOME": "/proc/nowhere"})
    assert (quiet.code, quiet.out) == (0, "done\n")


@pytest.mark.parametrize("arguments", [("-p", "hi"), ("ext", "list"), ("sessions", "list", "--here")])
def test_a_working_directory_that_is_gone_is_told(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    hilt = Hilt(tmp_path)
    (tmp_path / "gone").mkdir()
    command = ["sh", "-c", 'rmdir "$PWD" && exec "$0" -m hilt "$@"', sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=tmp_path / "gone", env=hilt.environment, capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.returncode == 2 and "the working directory is gone" in done.stderr and "hint: cd to" in done.stderr


def test_pipes_where_files_should_be_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.home.mkdir(mode=0o700)
    os.mkfifo(hilt.home / "config.toml")
    done = hilt.run("-p", "go", *hilt.script(says("x")))
    assert done.code == 1 and "config.toml: it is not a regular file" in done.err
    os.mkfifo(hilt.project / "pipe")
    imported = hilt.run("sessions", "import", "pipe")
    assert imported.code == 1 and "not a regular file" in imported.err


def test_a_session_with_windows_line_ends_is_listed_and_continued(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.run("-p", "first words", *hilt.script(says("hello")))
    (path,) = hilt.sessions()
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (listed,) = json.loads(hilt.run("sessions", "list", "--json").out)
    assert listed["title"] == "first words" and listed["messages"] == 2
    assert hilt.run("-c", "-p", "more", *hilt.script(says("hello again"))).out == "hello again\n"
    assert hilt.sessions() == [path]


def test_what_undo_takes_away_is_kept_and_named(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    file = hilt.project / "notes.txt"
    hilt.run("-p", "go", *hilt.script(calls(("write", {"path": "notes.txt", "content": "one\n"})), says("done")))
    file.write_text("one\nand mine\n")
    undone = hilt.run("-c", "--json", "/undo", *hilt.script(says("x")))
    (shown,) = [event["text"] for event in undone.events if event["type"] == "ext_display"]
    assert not file.exists()
    kept = Path(shown.rpartition(" ")[2])
    assert kept.read_text() == "one\nand mine\n"


def test_one_ctrl_c_ends_json_output_that_nobody_reads(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    flood = calls(*[("bash", {"command": "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo"})] * 4)
    flags = hilt.script(*[flood] * 8, says("never"))
    with hilt.started("--json", "go", *flags, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        process.stdout.read(10)  # it has begun; from now on nobody reads
        time.sleep(1.5)  # let the pipe and the backlog fill up
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
        assert time.monotonic() - began < 20


def test_mistakes_about_sessions_and_verbs_are_explained(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    assert "needs an id or a path" in hilt.run("-p", "hi", "--session", "").err
    assert "the verb comes first" in hilt.run("--provider", "demo", "models").err
    (hilt.project / "words.txt").write_text("no session\n")
    imported = hilt.run("sessions", "import", "words.txt")
    assert imported.code == 1 and "hilt or zot exported" in imported.err
    assert hilt.run("-p", "hi", "--no-ext", *hilt.script(says("yes"))).out == "yes\n"
