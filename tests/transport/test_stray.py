"""What a program prints beside the protocol: in its log, apart from its complaints, and nobody's problem."""

import os
import signal
import time
from pathlib import Path

import pytest

from hilt.transport.pipes import PipeSource
from hilt.transport.process import started
from hilt.transport.stderr import Log
from hilt.transport.stray import Stray
from transport.children import Heard, open_descriptors, python, shell, until

FLOOD = """
import os
for n in range(30): os.write(1, b'{"id":1}\\n' * 10_000)
os.write(4, b'done\\n')
os.read(3, 1)
"""


async def test_what_is_printed_is_logged_line_by_line_and_complaints_stay_apart(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    script = "echo one; echo; printf 'tw'; printf 'o\\nthree'; echo wrong >&2; read line <&3"
    async with started(shell(script, tmp_path, pipes="fd34", log=log)) as child:
        heard = Heard()
        child.channel.listen(heard)
        await until(lambda: child.last_words() == ["wrong"] and "two" in log.read_text())
    assert heard.lines == []
    assert child.complaints() == "wrong\n"
    lines = log.read_text().splitlines()
    assert [line for line in lines if line.startswith("stdout: ")] == ["stdout: one", "stdout: two", "stdout: three"]
    assert [line for line in lines if not line.startswith("stdout: ")] == ["wrong"]


async def test_a_flood_neither_stops_the_program_nor_fills_more_than_two_files(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    async with started(python(FLOOD, tmp_path, pipes="fd34", log=log)) as child:
        heard = Heard()
        child.channel.listen(heard)
        child.channel.pause()  # not even when nothing is read of what it says
        await until(lambda: sum(path.stat().st_size for path in tmp_path.glob("x.log*")) > 2_000_000)
        child.channel.resume()
        await until(lambda: heard.lines == [b"done"])
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10 * 1024 * 1024


async def test_without_a_log_it_is_read_all_the_same(tmp_path: Path) -> None:
    async with started(python(FLOOD, tmp_path, pipes="fd34")) as child:
        heard = Heard()
        child.channel.listen(heard)
        await until(lambda: heard.lines == [b"done"])


async def test_a_flood_is_read_at_a_limited_rate(tmp_path: Path) -> None:
    code = "import os\nfor n in range(6): os.write(1, (b'x' * 1023 + b'\\n') * 1024)"
    begun = time.monotonic()
    async with started(python(code, tmp_path, pipes="fd34")) as child:
        await child.exited()
    assert time.monotonic() - begun > 0.4


async def test_its_last_words_are_there_when_it_has_exited_although_a_flood_came_before(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    code = "import os; os.write(1, b'x' * 1_300_000); os.write(1, b'\\nthe\\nend')"
    async with started(python(code, tmp_path, pipes="fd34", log=log)) as child:
        await child.exited()
        assert log.read_text().endswith("\nstdout: the\nstdout: end\n")


async def test_one_that_got_away_with_stdout_keeps_nothing_open_and_nothing_from_the_log(tmp_path: Path) -> None:
    log, before = tmp_path / "x.log", open_descriptors().keys()
    away = "env -i setsid sh -c 'echo $$ >pid; touch up; exec sleep 30' &"
    script = f"{away} while [ ! -e up ]; do :; done; printf 'the\\nend'; exit 1"
    async with started(shell(script, tmp_path, pipes="fd34", log=log)) as child:
        await child.exited()
    escaped = int((tmp_path / "pid").read_text())
    try:
        assert open_descriptors().keys() == before
        assert log.read_text() == "stdout: the\nstdout: end\n"
    finally:
        os.kill(escaped, signal.SIGKILL)


@pytest.mark.parametrize("newline", ["", "\\n"])
async def test_an_endless_line_is_cut_short(tmp_path: Path, newline: str) -> None:
    log = tmp_path / "x.log"
    code = f"import os; os.write(1, b'x' * 50_000 + b'{newline}')"
    async with started(python(code, tmp_path, pipes="fd34", log=log)) as child:
        await child.exited()
    [line] = log.read_text().splitlines()
    assert line.startswith("stdout: xxx") and line.endswith("... (50000 bytes)") and len(line) < 5000


async def test_one_that_closes_its_stdout_goes_on_speaking(tmp_path: Path) -> None:
    script = "exec >&-; while read line <&3; do echo got $line >&4; done"
    async with started(shell(script, tmp_path, pipes="fd34")) as child:
        heard = Heard()
        child.channel.listen(heard)
        child.channel.send(b"one")
        await until(lambda: heard.lines == [b"got one"])


def test_a_line_of_ours_begins_a_line_and_what_follows_it_cannot_pass_for_one(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    log = Log(path)
    log.write(b"half")
    log.remark("it was told to stop")
    log.write(b"[hilt] it is fine\n")
    log.write(b"more")
    log.line(b"stdout: printed")
    log.write(b"[hilt] all is well\n")
    log.close()
    assert path.read_text().splitlines() == [
        "half",
        "[hilt] it was told to stop",
        " [hilt] it is fine",
        "more",
        "stdout: printed",
        " [hilt] all is well",
    ]


async def test_closing_it_keeps_the_half_of_a_line_and_closes_the_pipe_that_others_hold(tmp_path: Path) -> None:
    read, write = os.pipe()
    log = Log(tmp_path / "x.log")
    stray = Stray(log)
    stray.follow(PipeSource(read))
    os.write(write, b"half")
    stray.catch_up()
    stray.close()
    log.close()
    assert (tmp_path / "x.log").read_text() == "stdout: half\n"
    with pytest.raises(BrokenPipeError):
        os.write(write, b"more")
    os.close(write)
