"""Whatever is typed, piped or configured wrongly: one clear line, a hint, an exit code, never a traceback."""

import os
from pathlib import Path

import pytest

from hilt import __version__
from support.agent import says
from support.hilt_process import Ended, Hilt


def complaint(done: Ended, code: int) -> str:
    """The one line that says what is wrong; the shape of every complaint is checked on the way."""
    assert done.code == code, done
    assert done.out == ""
    assert "Traceback" not in done.err and "internal error" not in done.err
    first, *hints = done.err.rstrip("\n").split("\n")
    assert first.startswith("hilt: error: ")
    assert len(hints) <= 1 and all(hint.startswith("hint: ") for hint in hints), done.err
    return done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bogus"], "--bogus"),
        (["--provdier", "demo", "-p", "x"], "did you mean --provider"),
        (["-p", "x", "--model"], "--model"),
        (["-p", "x", "--max-steps", "none"], "--max-steps"),
        (["-p", "x", "--max-steps", "0"], "--max-steps"),
        (["-p", "x", "--permissions", "maybe"], "--permissions"),
        (["-p", "x", "--reasoning", "extreme"], "--reasoning"),
        (["-p", "x", "--no-yolo", "--permissions", "yolo"], "--no-yolo"),
        (["-p", "x", "--tools", "read", "--no-tools"], "exclude each other"),
        (["-p", "x", "--no-session", "-c"], "exclude each other"),
        (["-p", "x", "--provider", "opnai"], "did you mean openai"),
        (["-p", "x", "--provider", "script"], "--script"),
        (["-p", "x", "--cwd", "/no/such/place"], "/no/such/place"),
        (["-p"], "there is no prompt"),
        (["--json", "  "], "there is no prompt"),
        (["frobnicate"], "frobnicate"),
        (["rpc", "hello"], "rpc takes no prompt"),
        (["sessions"], "sessions needs a verb"),
        (["sessions", "frobnicate"], "frobnicate"),
        (["sessions", "show"], "id"),
        (["login"], "name a provider"),
        (["logout", "nobody"], "nobody"),
    ],
)
def test_a_mistake_on_the_command_line_is_explained_and_exits_with_2(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    hilt = Hilt(tmp_path)
    text = complaint(hilt.run(*arguments), 2)
    assert said in text and "hint: " in text
    assert hilt.files() == []


def test_a_bad_configuration_names_the_file_and_the_field_and_exits_with_1(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = hilt.script(says("never"))
    hilt.home.mkdir(mode=0o700)
    config = hilt.home / "config.toml"
    for text, field in (
        (b"max_steps = 'many'\n", "max_steps"),
        (b"max_steps = 0\n", "max_steps"),
        (b"colour = 'blue'\n", "colour"),
        (b"[retry]\nattempts = []\n", "retry.attempts"),
        (b"permissions = 'sometimes'\n", "permissions"),
        (b"model = \n", "line 1"),
        (b"\xff\xfe", "cannot be read"),
    ):
        config.write_bytes(text)
        said = complaint(hilt.run("-p", "hi", *script), 1)
        assert str(config) in said and field in said
    assert hilt.sessions() == []


def test_a_bad_script_names_its_line_and_leaves_no_session(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = tmp_path / "bad.jsonl"
    script.write_text('{"content":[{"type":"text","text":"fine"}]}\n{"content":[{"type":"song"}]}\n')
    said = complaint(hilt.run("-p", "hi", "--script", str(script)), 1)
    assert f"{script}, line 2" in said
    assert "/no/such.jsonl" in complaint(hilt.run("-p", "hi", "--script", "/no/such.jsonl"), 1)
    assert hilt.sessions() == []


def test_a_home_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.home.write_text("a file is in the way")
    done = hilt.run("-p", "hi", *hilt.script(says("x")))
    assert done.code == 1
    assert str(hilt.home) in done.err and "Traceback" not in done.err


def test_arguments_and_folders_that_are_not_utf8_are_taken_as_well_as_can_be(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    odd = os.fsencode(hilt.project) + b"/d\xff"
    os.mkdir(odd)
    heard = says("heard", expect={"contains": "sm"})
    done = hilt.run("-p", b"sm\xf8rrebr\xf8d", b"--cwd", odd, *hilt.script(heard))
    assert (done.code, done.out) == (0, "heard\n"), done.err
    listed = hilt.run("sessions", "list", "--json")
    assert listed.code == 0 and "d\\\\udcff" in listed.out
    with hilt.rpc("--cwd", os.fsdecode(odd), *hilt.script(heard)) as rpc:
        assert rpc.ask("get_state")["data"]["cwd"].endswith("d\\udcff")
        rpc.prompt("smile")
        assert rpc.close() == 0


def test_a_terminal_that_lacks_a_character_still_gets_the_answer(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.run("-p", "hi", *hilt.script(says("caf\u00e9 \u2192 ok")), env={"PYTHONIOENCODING": "ascii"})
    assert (done.code, done.out, done.err) == (0, "caf? ? ok\n", "")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('"$@" models | true', 0),
        ('"$@" models --json | head -c 1 >/dev/null', 0),
        ('"$@" --help | true', 0),
        ('"$@" sessions list | true', 0),
        ('"$@" -p hi $SCRIPT | true', 0),
        ('"$@" -p hi $SCRIPT >&-', 0),
        ('"$@" -p hi $SCRIPT 2>&-', 0),
        ('"$@" -p hi $SCRIPT 2>&- >&- <&-', 0),
        ('"$@" --json hi $SCRIPT >&-', 0),
        ('"$@" models >&-', 0),
        ('"$@" --bogus 2>&-', 2),
        ('"$@" -p <&-', 2),
        ('"$@" rpc $SCRIPT <&- >&-', 0),
        ('"$@" -p hi $SCRIPT >/dev/full', 1),
        ('"$@" --version | true', 0),
        ('"$@" --version >/dev/full', 1),
        ('"$@" --help >/dev/full', 1),
        ('"$@" models >/dev/full', 1),
        ('"$@" --json hi $SCRIPT >/dev/full', 1),
    ],
)
def test_streams_that_are_closed_or_gone_cost_no_traceback(tmp_path: Path, line: str, code: int) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.shell(line, env={"SCRIPT": " ".join(hilt.script(says("hello")))})
    assert done.code == code, done
    assert "Traceback" not in done.err and "Exception" not in done.err and "internal error" not in done.err


def test_a_session_written_while_stdout_was_closed_holds_the_session_and_nothing_else(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.shell('"$@" --json hi $SCRIPT >&- 2>&- <&-', env={"SCRIPT": " ".join(hilt.script(says("hello")))})
    (path,) = hilt.sessions()
    assert "text_delta" not in path.read_text()
    shown = hilt.run("sessions", "show", str(path))
    assert shown.code == 0 and "hello" in shown.out


def test_the_version_and_the_help_are_on_stdout(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    assert hilt.run("--version") == Ended(0, f"hilt {__version__}\n", "")
    for help_ in (hilt.run("--help"), hilt.run("--help", env={"COLUMNS": "nonsense"})):
        assert help_.code == 0 and help_.err == ""
        for word in ("--provider", "hilt rpc", "sessions", "exit codes"):
            assert word in help_.out
    assert hilt.files() == []
