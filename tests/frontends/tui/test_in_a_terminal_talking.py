"""The conversation in a real terminal: typing, streaming, live output, the popup, the queue, cancelling, leaving."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt, running_with
from support.offerer import Ask
from support.offering import offering
from support.screen import Terminal, needs_tmux
from support.tty import Tty

pytestmark = needs_tmux


def started(hilt: Hilt, *arguments: str, **more: Any) -> Terminal:
    return Terminal(hilt.command(*arguments), hilt.environment, hilt.project, **more)


def test_what_is_typed_while_it_starts_is_not_lost(hilt: Hilt) -> None:
    with started(hilt, *hilt.script(says("well said"), says("that too"))) as terminal:
        terminal.type("early")  # before there is a program that could read it
        terminal.wait_for("› early")
        terminal.type(" words")
        terminal.press("Enter")  # there may be no session yet
        terminal.wait_for("well said")
        terminal.wait_for("┃ early words")
        terminal.type("and more")
        terminal.press("Enter")
        terminal.wait_for("that too")


def test_what_is_sent_in_the_first_moment_waits_for_the_session(hilt: Hilt) -> None:
    with Tty(hilt.command(*hilt.script(says("well said"))), hilt.environment, hilt.project) as tty:
        tty.wait_for("starting…".encode())
        tty.send(b"first words\r")
        tty.wait_for(b"well said")


def _in_two_pieces(ask: Ask) -> Any:
    ask.say("# A plan\n\nThe **first** half")
    ask.wait_for("go on")
    ask.say(", and the second.\n\n```python\nprint('sown')\n```\n")
    text = "# A plan\n\nThe **first** half, and the second.\n\n```python\nprint('sown')\n```\n"
    return ask.message({"type": "text", "text": text})


@pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])
def test_an_answer_is_read_while_it_is_written(hilt: Hilt, dialect: Any) -> None:
    model = {"id": "slow", "name": "slow", "contextWindow": 1000, "maxTokens": 100}
    provider = {"api": "mine", "models": [model]}
    made = offering("pen", ("provider", provider), answers={"provider/stream": _in_two_pieces}, dialect=dialect)
    folder = made.write(hilt.folder)
    with started(hilt, "--provider", "mine", "--ext", str(folder)) as terminal:
        terminal.wait_for("✓ 1 extension")
        terminal.type("write")
        terminal.press("Enter")
        screen = terminal.wait_for("The first half")
        assert "A plan" in screen and "**" not in screen and "second" not in screen
        terminal.wait_for("writing")
        (folder / "go on").touch()
        terminal.wait_for("The first half, and the second.")
        terminal.wait_for("print('sown')")
        terminal.wait_until_gone("writing")


def test_a_running_tool_shows_its_output_and_its_time_and_what_is_sent_meanwhile_waits(hilt: Hilt) -> None:
    command = "echo first line; while [ ! -e go ]; do sleep 0.05; done; echo last line"
    script = hilt.script(calls(("bash", {"command": command})), says("it is done"), says("to the second"))
    with started(hilt, *script) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("run it")
        terminal.press("Enter")
        terminal.wait_for("first line")
        terminal.wait_for("running bash")
        terminal.wait_until(lambda screen: bool(re.search(r"running bash.*\b1 ?s", screen)), "its time")
        for words in ("second thing", "third thing"):
            terminal.type(words)
            terminal.press("Enter")
            terminal.wait_for(f"waiting: {words}")
        terminal.press("Up")  # takes them back
        screen = terminal.wait_until_gone("waiting:")
        assert "› second thing" in screen and "  third thing" in screen
        terminal.press("C-u")
        terminal.wait_for("Ask anything")
        terminal.type("second thing")
        terminal.press("Enter")
        terminal.wait_for("waiting: second thing")
        (hilt.project / "go").touch()
        terminal.wait_for("last line")
        terminal.wait_for("it is done")
        terminal.wait_for("to the second")
        assert "┃ second thing" in terminal.text and "third" not in terminal.text


def test_esc_cancels_what_runs_and_the_next_words_are_answered(hilt: Hilt) -> None:
    command = f"echo under way; sleep 77.{random.randrange(10**8, 10**9)}"
    script = hilt.script(calls(("bash", {"command": command})), says("never mind"))
    with started(hilt, *script) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("run it")
        terminal.press("Enter")
        terminal.wait_for("under way")
        terminal.press("Escape")
        terminal.wait_for("cancelled")
        terminal.wait_until_gone("running bash")
        terminal.wait_until(lambda _: not running_with(command), "the command's end")
        terminal.type("and now?")
        terminal.press("Enter")
        terminal.wait_for("never mind")


def test_commands_are_offered_with_whose_they_are_and_filtered_as_one_types(hilt: Hilt) -> None:
    made = offering("garden", ("command", {"name": "modest", "description": "be modest"}))
    with started(hilt, *hilt.script(), "--ext", str(made.write(hilt.folder))) as terminal:
        terminal.wait_for("✓ 1 extension")
        terminal.type("/mod")
        screen = terminal.wait_for("/modest")
        assert screen.index("/model") < screen.index("/modest")  # hilt's own first
        assert "garden" in next(row for row in screen.split("\n") if "/modest" in row)
        terminal.type("el")
        terminal.wait_until_gone("/modest")
        terminal.press("Escape")
        terminal.wait_until(lambda screen: screen.count("/model") == 1, "the list is closed")
        terminal.press("C-u")
        terminal.wait_for("Ask anything")


def test_ctrl_c_twice_leaves_and_the_line_it_prints_goes_on_with_the_session(hilt: Hilt, tmp_path: Path) -> None:
    # As it would be installed: the line says `hilt`.
    installed = tmp_path / "bin" / "hilt"
    installed.parent.mkdir()
    installed.write_text('#!/bin/sh\nexec $REAL "$@"\n')
    installed.chmod(0o755)
    real = " ".join(map(str, hilt.command()))
    script = " ".join(hilt.script(says("of turnips"), says("once more")))
    shell = (
        f'REAL="{real}"; export REAL; PATH="{installed.parent}:$PATH"; hilt {script}; echo "left with $?"; exec sh -i'
    )
    with started(hilt, shell=shell) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("speak")
        terminal.press("Enter")
        terminal.wait_for("of turnips")
        terminal.type("unfinished")
        terminal.press("C-c")
        screen = terminal.wait_for("ctrl+c again to leave")
        assert "unfinished" not in screen
        screen = terminal.press_until("C-c", "left with 0")  # it counts for two seconds, or is a first one again
        line = next(row for row in screen.split("\n") if row.startswith("to go on with this session: "))
        terminal.type(line.partition(": ")[2])
        terminal.press("Enter")
        terminal.wait_for("┃ speak")
        terminal.wait_for("of turnips")


def test_ctrl_z_suspends_it_and_fg_goes_on_where_it_was(hilt: Hilt) -> None:
    program = " ".join(map(str, hilt.command(*hilt.script(says("of turnips")))))
    with started(hilt, shell=f'PROGRAM="{program}"; export PROGRAM; exec bash --norc -i') as terminal:
        terminal.wait_for("bash-")
        terminal.type("$PROGRAM")
        terminal.press("Enter")
        terminal.wait_for("Ask anything")
        terminal.type("half a senten")
        terminal.wait_for("› half a senten")
        terminal.press("C-z")
        terminal.wait_for("Stopped")
        terminal.type("echo $((6 * 7)) is the answer")
        terminal.press("Enter")
        terminal.wait_for("42 is the answer")  # the shell has the terminal, and it works
        terminal.type("fg")
        terminal.press("Enter")
        terminal.wait_for("› half a senten")
        terminal.type("ce")
        terminal.press("Enter")
        terminal.wait_for("┃ half a sentence")
        terminal.wait_for("of turnips")


# How it is started


def test_words_on_the_command_line_stand_in_the_input_unsent(hilt: Hilt) -> None:
    with started(hilt, *hilt.script(says("well said")), "some words of mine") as terminal:
        screen = terminal.wait_for("› some words of mine")
        terminal.wait_for("runs freely")
        assert "┃" not in screen
        terminal.press("Enter")
        terminal.wait_for("well said")


@pytest.mark.parametrize("how", ["-c", "-r", "--session"])
def test_an_earlier_session_is_gone_on_with(hilt: Hilt, how: str) -> None:
    said = calls(("bash", {"command": "echo three rows"}))
    assert hilt.run("-p", "count the turnips", *hilt.script(said, says("**three** rows it is"))).code == 0
    session = hilt.sessions()[0].stem
    arguments = [how, session] if how == "--session" else [how]
    with started(hilt, *hilt.script(says("and four of beets"), name="other.jsonl"), *arguments) as terminal:
        if how == "-r":
            terminal.wait_for("› count the turnips")
            terminal.press("Enter")
        terminal.wait_for("┃ count the turnips")
        screen = terminal.wait_for("three rows it is")
        assert "bash" in screen and "echo three rows" in screen
        terminal.wait_for("runs freely")
        terminal.type("and the beets?")
        terminal.press("Enter")
        terminal.wait_for("and four of beets")
    messages = [json.loads(line) for line in hilt.sessions()[0].read_text().splitlines()]
    assert len(hilt.sessions()) == 1 and "four of beets" in json.dumps(messages)


def test_without_a_terminal_it_says_what_to_use_instead(hilt: Hilt) -> None:
    done = hilt.run(*hilt.script(says("hello")))
    assert done.code == 2 and done.out == ""
    assert "needs a terminal" in done.err and "hilt -p" in done.err


def test_without_a_key_it_opens_and_the_demo_answers(hilt: Hilt) -> None:
    with started(hilt, "--permissions", "yolo") as terminal:
        terminal.wait_for("try the demo")
        terminal.press("Escape")
        assert "no API key found" in terminal.wait_for("Ask anything")
        terminal.type("run `echo sown`")
        terminal.press("Enter")
        terminal.wait_until(lambda screen: screen.count("sown") > 1, "the command's output")


def test_a_prompt_is_answered_while_an_extension_hangs_in_its_start(hilt: Hilt) -> None:
    folder = hilt.folder / "stuck"
    folder.mkdir()
    (folder / "extension.json").write_text(json.dumps({"name": "stuck", "exec": "/bin/sleep", "args": ["60"]}))
    with started(hilt, *hilt.script(says("well said")), "--ext", str(folder)) as terminal:
        terminal.wait_for("1 of 1 extensions starting")
        terminal.type("hello")
        terminal.press("Enter")
        screen = terminal.wait_for("well said", 8)
        assert "1 of 1 extensions starting" in screen
        terminal.type("/exit")
        terminal.press("Enter")
        terminal.wait_for("left with 0", 5)
