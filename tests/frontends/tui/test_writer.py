"""What is drawn on its way to a real terminal: nobody waits for one that does not read, and little is kept for it."""

import os
import pty
import select
import time
from collections.abc import Iterator
from threading import Event
from typing import IO

import pytest

from hilt.frontends.tui.writer import Writer

DEADLINE = 20.0
FRAME = "x" * 1_000


@pytest.fixture
def terminal() -> Iterator[tuple[int, IO[str]]]:
    """The end that reads, and the one that is written to."""
    master, slave = pty.openpty()
    with open(slave, "w") as file:
        yield master, file
    os.close(master)


def read(master: int, enough: Event) -> int:
    """How many bytes come until then."""
    count, deadline = 0, time.monotonic() + DEADLINE
    while not enough.is_set() or select.select((master,), (), (), 0)[0]:
        assert time.monotonic() < deadline
        if select.select((master,), (), (), 0.01)[0]:
            count += len(os.read(master, 65_536))
    return count


def test_what_is_drawn_while_nobody_reads_is_left_out_and_then_drawn_anew(terminal: tuple[int, IO[str]]) -> None:
    master, file = terminal
    writer, again = Writer(file), Event()
    writer.caught_up = again.set
    writer.start()
    for _ in range(2_000):
        writer.write(FRAME)  # nobody waits
    assert not again.is_set()
    assert 256 * 1024 <= read(master, again) < 512 * 1024
    writer.write("after it")
    assert os.read(master, 100) == b"after it"
    assert writer.finished(DEADLINE)


def test_a_picture_arrives_whole_however_many_pieces_it_has(terminal: tuple[int, IO[str]]) -> None:
    master, file = terminal
    writer, again = Writer(file), Event()
    writer.caught_up = again.set
    writer.start()
    for _ in range(1_000):
        writer.write("\x1b_Gm=1;" + FRAME)
    writer.write(FRAME)  # there is no room for a frame: when this is told, all else has arrived
    assert read(master, again) == 1_000 * (len(FRAME) + 7)
    assert writer.finished(DEADLINE)


def test_the_end_does_not_wait_for_a_terminal_that_does_not_read(terminal: tuple[int, IO[str]]) -> None:
    _, file = terminal
    writer = Writer(file)
    writer.start()
    for _ in range(200):
        writer.write(FRAME)
    assert not writer.finished(0.05)
    assert not writer.is_alive()


def test_what_stands_at_the_end_arrives(terminal: tuple[int, IO[str]]) -> None:
    master, file = terminal
    writer = Writer(file)
    writer.start()
    writer.write("日本")
    assert writer.finished(DEADLINE)
    assert os.read(master, 100) == "日本".encode()
