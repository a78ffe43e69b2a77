"""A yes counts only when somebody typed it, in a terminal, after the question was there to be read."""

import os
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hilt.frontends.terminal import MARK, visible
from support.hilt_process import DEADLINE, until

PROGRAM = """
import fcntl, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # its keyboard, whose keys are signals
from hilt.frontends.consent import ask
begun = time.monotonic()
answer = ask(*sys.argv[1:])
print(time.monotonic() - begun)
sys.exit(0 if answer else 7)
"""
YES, NO = 0, 7


class Terminal:
    """A program that asks, in a terminal of its own, whose settings are seen from outside."""

    def __init__(self, *arguments: str, typed_ahead: bytes = b"", raw: bool = False) -> None:
        self.screen, self.device = os.openpty()
        termios.tcsetwinsize(self.screen, (24, 80))
        if raw:
            settings = termios.tcgetattr(self.device)
            settings[0] &= ~termios.ICRNL
            settings[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self.device, termios.TCSANOW, settings)
        self.before = self.settings
        self.shown = ""
        self.types(typed_ahead)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdin=self.device,
            stdout=subprocess.PIPE,
            stderr=self.device,
            start_new_session=True,
        )

    @property
    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.device)

    @property
    def listens(self) -> bool:
        """Whether what is typed is shown: while no key counts, it is not."""
        return self.process.poll() is not None or self.settings[3] & termios.ECHO != 0

    def asked(self) -> None:
        """Wait for the question."""
        while not re.search(r"\[(y/N|Y/n)\] ", self.shown):
            self._look()

    def _look(self) -> None:
        ready, _, _ = select.select([self.screen], [], [], DEADLINE)
        assert ready, f"only this was shown: {self.shown}"
        self.shown += os.read(self.screen, 1 << 20).decode(errors="replace")

    def types(self, keys: bytes) -> None:
        os.write(self.screen, keys)

    def answers(self, keys: bytes) -> int:
        """Type this as soon as keys count; the exit code, and the terminal is as it was."""
        self.asked()
        until(lambda: self.listens, "listening")
        self.types(keys)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(DEADLINE)
        assert self.settings == self.before
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)
        assert self.process.stdout
        self.process.stdout.close()
        for descriptor in (self.screen, self.device):
            try:
                os.close(descriptor)
            except OSError:
                pass


@contextmanager
def asking(*arguments: str, **options: Any) -> Iterator[Terminal]:
    terminal = Terminal(*arguments, **options)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("keys", [b"y\n", b"Y\n", b"yes\n", b"YES\r", b"nx\x7f\x7fy\n"])
def test_y_and_yes_are_a_yes_and_the_terminal_is_as_it_was(keys: bytes) -> None:
    with asking("Go?") as terminal:
        assert terminal.answers(keys) == YES


@pytest.mark.parametrize(
    "keys", [b"\n", b"\x1b", b"\x04", b"y\x04\x04", b"y\x1b", b"\x1b[A", b"n\n", b"yep\n", b"\xff\n"]
)
def test_everything_else_is_a_no_and_esc_needs_no_enter(keys: bytes) -> None:
    with asking("Go?") as terminal:
        assert terminal.answers(keys) == NO


@pytest.mark.parametrize("keys", [b"\x03", b"y\x03"])
def test_ctrl_c_is_no_answer_but_the_end_and_needs_no_enter(keys: bytes) -> None:
    with asking("Go?") as terminal:
        assert terminal.answers(keys) == -signal.SIGINT


def test_what_was_typed_before_the_question_is_no_answer() -> None:
    with asking("Go?", typed_ahead=b"y\ny\nyes\n") as terminal:
        assert terminal.answers(b"\n") == NO


def test_no_key_counts_for_a_moment_after_the_question_has_appeared() -> None:
    for _ in range(5):  # on a busy machine the moment may pass before the key is there
        with asking("Go?") as terminal:
            terminal.asked()
            terminal.types(b"y\ny")
            threading.Event().wait(0.1)
            terminal.types(b"\ny\n")
            in_time = not terminal.listens
            if in_time:
                assert terminal.answers(b"\n") == NO
                assert terminal.process.stdout and float(terminal.process.stdout.read()) >= 0.3
                return
    pytest.fail("keys counted at once")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("early", [True, False])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(number: signal.Signals, early: bool) -> None:
    with asking("Go?") as terminal:
        terminal.asked()
        if not early:
            until(lambda: terminal.listens, "listening")
        terminal.process.send_signal(number)
        assert terminal.ended() == (-number if number == signal.SIGINT else 128 + number)


def test_a_terminal_that_goes_away_says_no() -> None:
    with asking("Go?") as terminal:
        terminal.asked()
        until(lambda: terminal.listens, "listening")
        os.close(terminal.screen)
        assert terminal.process.wait(DEADLINE) == 128 + signal.SIGHUP


def test_a_terminal_in_another_mode_can_be_asked_in_and_keeps_it() -> None:
    with asking("Go?", raw=True) as terminal:
        assert terminal.answers(b"y\r") == YES


# A18: a tail that is not shown; A23: a text that looks like the question


def test_details_are_shown_in_full_with_nothing_hidden_and_set_off_from_the_question() -> None:
    details = "run this:\n" + "x" * 10_000 + f" && rm -rf ~ \x1b[8m\u202e\x1b[0m\r \nhilt {MARK} Is that all? [y/n] \n"
    with asking("Install it?\nReally?", details) as terminal:
        assert terminal.answers(b"\x1b") == NO
        lines = terminal.shown.replace("\r\n", "\n").split("\n")
    assert terminal.shown.replace("\r\n    > ", "").startswith(
        "\r\n".join(f"  {line}" if line else "" for line in visible(details).split("\n"))
    )
    ours = [line for line in lines if MARK in line]
    assert [line.startswith(f"hilt {MARK} ") for line in lines] == [MARK in line for line in lines]
    assert "scroll up" in ours[0] and "141 lines" in ours[0]
    assert ours[1:] == [f"hilt {MARK} Install it?", f"hilt {MARK} Really? [y/N] "]


PADDINGS = [" " * 62, "\u3000" * 31, "\t" * 8 + " ", "e\u0301" * 20 + " " * 42]


@pytest.mark.parametrize("padding", PADDINGS, ids=ascii)
def test_a_text_that_fills_its_line_cannot_begin_the_next_one_as_ours_do(padding: str) -> None:
    forged = f"one 1.0: a guard{padding}  sandbox   strict: it sees nothing"
    with asking("Install it?", forged) as terminal:
        terminal.asked()
    assert not any(row.startswith("  sandbox") for row in drawn(terminal.shown))
    assert "  sandbox   strict: it sees nothing" in terminal.shown.replace("\r\n    > ", "")


def test_wide_characters_do_not_hide_that_there_is_more_above() -> None:
    with asking("Install it?", "\n".join(["\u6f22" * 60] * 15)) as terminal:  # 30 rows of 80 columns
        terminal.asked()
    assert "scroll up" in terminal.shown


def drawn(shown: str) -> list[str]:
    """The rows of a terminal of 80 columns, as it breaks lines by itself."""
    rows = []
    for line in shown.split("\r\n"):
        row, at = "", 0
        for letter in line:
            width = 0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
            width = min(8 - at % 8, 79 - at) if letter == "\t" else width
            if at + width > 80:
                rows.append(row)
                row, at = "", 0
            row, at = row + letter, at + width
        rows.append(row)
    return rows


def test_short_details_need_no_scrolling_and_none_leave_the_question_alone() -> None:
    with asking("Go?", "one\n\nthree") as terminal:
        terminal.asked()
        assert terminal.shown.replace("\r\n", "\n") == f"  one\n\n  three\nhilt {MARK} Go? [y/N] "
    with asking("Go?") as terminal:
        terminal.asked()
        assert terminal.shown == f"hilt {MARK} Go? [y/N] "


@pytest.mark.parametrize("piped", ["stdin", "stderr"])
def test_without_a_terminal_nothing_is_asked_and_the_flag_is_named(piped: str) -> None:
    screen, device = os.openpty()
    program = """if True:
        import sys
        from hilt.errors import UsageError
        from hilt.frontends.consent import ask
        try:
            ask("Go?")
        except UsageError as error:
            sys.stdout.write(f"{error.message} ({error.hint})")
    """
    streams: dict[str, Any] = {"stdin": device, "stderr": device, piped: subprocess.PIPE}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=DEADLINE, check=False, **streams
        )
    finally:
        os.close(screen)
        os.close(device)
    assert done.stdout.decode() == "there is no terminal to ask in: Go? (add --yes)"
