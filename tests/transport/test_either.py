"""A program that may speak on 3 and 4 or on stdin and stdout: found out by what it says, and nothing is lost."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import StartError
from hilt.transport.channels import Bounds, Channel
from hilt.transport.either import Arrangement, BothSinks, FirstSource
from hilt.transport.launch import Launch, Spec
from hilt.transport.memory import MemoryPipe, VirtualLoop
from hilt.transport.process import Child, Exit, started
from hilt.transport.stderr import Log
from hilt.transport.stray import Stray
from support.properties import patient
from transport.children import PATH, Heard, open_descriptors, our_children, python, runs, shell, speaks, until

ON_3_AND_4 = 'while read line <&3; do echo "{got $line}" >&4; done'
ON_STDIO = 'while read line; do echo "{got $line}"; done'
SPEAKERS = pytest.mark.parametrize(("script", "arrangement"), [(ON_3_AND_4, "fd34"), (ON_STDIO, "stdio")])
GO = """
package main

import ("bufio"; "os")

func main() {
	in, out := os.Stdin, os.Stdout
	if os.Getenv("PIGLET_FD") == "1" {
		in, out = os.NewFile(3, "in"), os.NewFile(4, "out")
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		out.Write([]byte("{got " + lines.Text() + "}\\n"))
	}
}
"""


def listen(child: Child) -> Heard:
    heard = Heard()
    child.channel.listen(heard)
    return heard


@SPEAKERS
async def test_wherever_it_speaks_it_hears_everything_once_and_is_heard(
    tmp_path: Path, script: str, arrangement: Arrangement
) -> None:
    async with started(shell(script, tmp_path, pipes="either")) as child:
        heard = listen(child)
        assert child.arrangement is None
        for word in (b"one", b"two"):
            child.channel.send(word)
        await until(lambda: len(heard.lines) == 2)
        assert child.arrangement == arrangement
        child.channel.send(b"three")
        child.channel.post(b"four")
        await until(lambda: len(heard.lines) == 4)
    assert heard.lines == [b"{got one}", b"{got two}", b"{got three}", b"{got four}"]
    assert child.exit == Exit(0), "it saw the end of its input"


@pytest.mark.parametrize("language", ["go", "node"])
async def test_real_programs_are_understood_without_a_word_about_their_pipes(tmp_path: Path, language: str) -> None:
    if not (program := shutil.which(language)):
        pytest.skip(f"there is no {language} here")
    if language == "go":
        (tmp_path / "main.go").write_text(GO)
        build = [program, "build", "-o", str(tmp_path / "main"), str(tmp_path / "main.go")]
        subprocess.run(build, check=True, env={**os.environ, "GO111MODULE": "off"}, capture_output=True)
        argv: tuple[str, ...] = (str(tmp_path / "main"),)
    else:
        read = "require('readline').createInterface({input: process.stdin})"
        argv = (program, "-e", f"{read}.on('line', line => process.stdout.write(`{{got ${{line}}}}\\n`))")
    async with started(Spec(argv, tmp_path, PATH, "either", speaks=speaks)) as child:
        heard = listen(child)
        child.channel.send(b"one")
        await until(lambda: heard.lines)
        child.channel.send(b"two")
        await until(lambda: len(heard.lines) == 2)
        assert child.arrangement == ("fd34" if language == "go" else "stdio")
    assert heard.lines == [b"{got one}", b"{got two}"]
    assert child.exit == Exit(0)


async def test_once_it_speaks_on_4_its_stdin_is_at_its_end_and_what_it_prints_is_only_logged(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    script = (
        'echo "before"; echo "{x}" >&4; cat >rest; echo "{after}"; read line <&3; echo "{$line}" >&4; read line <&3'
    )
    async with started(shell(script, tmp_path, pipes="either", log=log)) as child:
        child.channel.send(b"one")
        heard = listen(child)
        await until(lambda: len(heard.lines) == 2)
    assert heard.lines == [b"{x}", b"{one}"]
    assert (tmp_path / "rest").read_text() == "one\n", "both inputs were given it"
    assert log.read_text() == "stdout: before\nstdout: {after}\n"


async def test_once_it_speaks_on_stdout_3_is_at_its_end(tmp_path: Path) -> None:
    script = 'echo "{x}"; cat <&3 >rest; echo "not json"; read line; echo "{$line}"; read line'
    async with started(shell(script, tmp_path, pipes="either")) as child:
        child.channel.send(b"one")
        heard = listen(child)
        await until(lambda: len(heard.lines) == 3)
    assert heard.lines == [b"{x}", b"not json", b"{one}"], "now that it is the protocol, the host judges every line"
    assert (tmp_path / "rest").read_text() == "one\n"


async def test_4_counts_although_stdout_spoke_before_anybody_looked(tmp_path: Path) -> None:
    script = 'echo "{printed}"; echo "{said}" >&4; touch done; read line <&3'
    async with started(shell(script, tmp_path, pipes="either")) as child:
        await until((tmp_path / "done").exists)
        heard = listen(child)
        await until(lambda: heard.lines)
        assert heard.lines == [b"{said}"] and child.arrangement == "fd34"


async def test_what_is_printed_before_the_first_line_that_counts_is_logged_in_its_order(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    script = "echo hello; echo; echo 'npm WARN'; printf '{a}\\nstray\\n{b}'"
    async with started(shell(script, tmp_path, pipes="either", log=log)) as child:
        heard = listen(child)
        await child.exited()
        await child.channel.drain()
    assert heard.lines == [b"{a}", b"stray", b"{b}"] and heard.told == ["ended"]
    assert log.read_text() == "stdout: hello\nstdout: npm WARN\n"


async def test_a_last_line_without_its_newline_decides_as_well(tmp_path: Path) -> None:
    async with started(shell("printf '{a}'", tmp_path, pipes="either")) as child:
        heard = listen(child)
        await until(lambda: heard.told == ["ended"])
    assert heard.lines == [b"{a}"] and child.arrangement == "stdio"


async def test_an_overlong_line_that_is_printed_is_cut_short_in_the_log_and_decides_nothing(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    code = "import os; os.write(1, b'{' + b'x' * 300_000 + b'}\\n'); os.write(4, b'{said}\\n'); os.read(3, 1)"
    async with started(python(code, tmp_path, pipes="either", log=log), Bounds(line=100_000)) as child:
        heard = listen(child)
        await until(lambda: heard.lines)
        assert heard.lines == [b"{said}"] and heard.overlongs == []
    [line] = log.read_text().splitlines()
    assert line.startswith("stdout: {xxx") and line.endswith("... (300002 bytes)") and len(line) < 5000


@pytest.mark.parametrize(("fd", "arrangement"), [(1, "stdio"), (4, "fd34")])
async def test_a_first_line_larger_than_the_pipe_arrives_whole(
    tmp_path: Path, fd: int, arrangement: Arrangement
) -> None:
    code = f"import os\nline = b'{{' + b'x' * 3_000_000 + b'}}\\n'\nwhile line: line = line[os.write({fd}, line):]"
    async with started(python(code, tmp_path, pipes="either")) as child:
        heard = listen(child)
        await until(lambda: heard.lines)
        assert len(heard.lines[0]) == 3_000_002 and child.arrangement == arrangement


@pytest.mark.parametrize(("fds", "arrangement"), [((0, 1), "stdio"), ((3, 4), "fd34")])
async def test_a_first_line_larger_than_both_inputs_reaches_the_one_that_is_read(
    tmp_path: Path, fds: tuple[int, int], arrangement: Arrangement
) -> None:
    code = f"""
import os
source, target = os.fdopen({fds[0]}, 'rb'), {fds[1]}
for line in source: os.write(target, b'{{%d}}\\n' % len(line))
"""
    async with started(python(code, tmp_path, pipes="either")) as child:
        heard = listen(child)
        child.channel.send(b"x" * 3_000_000)
        child.channel.send(b"y" * 10)
        await until(lambda: len(heard.lines) == 2)
        assert heard.lines == [b"{3000001}", b"{11}"] and child.arrangement == arrangement


async def test_the_loop_rests_while_one_input_is_full_and_nobody_speaks(tmp_path: Path) -> None:
    code = "import os\nread = 0\nwhile read < 2_000_001: read += len(os.read(3, 65536))\nopen('up', 'w')\nos.read(3, 1)"
    async with started(python(code, tmp_path, pipes="either")) as child:
        listen(child)
        child.channel.send(b"x" * 2_000_000)
        await until((tmp_path / "up").exists)
        before = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - before < 0.03


async def test_one_that_closes_3_and_4_is_spoken_to_on_stdin(tmp_path: Path) -> None:
    script = "exec 3<&- 4>&-; touch up; " + ON_STDIO
    async with started(shell(script, tmp_path, pipes="either")) as child:
        heard = listen(child)
        await until((tmp_path / "up").exists)
        child.channel.send(b"one")
        await until(lambda: heard.lines == [b"{got one}"])
        assert child.arrangement == "stdio" and not child.channel.broken


async def test_an_exit_before_anything_was_said_leaves_nothing_behind(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    before = open_descriptors().keys()
    async with started(shell("echo oh; echo why >&2; exit 3", tmp_path, pipes="either", log=log)) as child:
        heard = listen(child)
        assert await child.exited() == Exit(3)
        await child.channel.drain()
        assert heard.lines == [] and heard.told == ["ended"] and child.arrangement is None
        assert child.last_words() == ["why"]
    assert open_descriptors().keys() == before
    assert sorted(log.read_text().splitlines()) == ["stdout: oh", "why"]


@pytest.mark.parametrize("said", ["", "echo '{x}';", "echo '{x}' >&4;"])
async def test_a_grandchild_that_holds_every_pipe_delays_nothing(tmp_path: Path, said: str) -> None:
    script = f"{said} sleep 300 & echo $! >pid; exit 5"
    async with started(shell(script, tmp_path, pipes="either", grace=30)) as child:
        heard = listen(child)
        begun = time.monotonic()
        assert await child.exited() == Exit(5)
        await child.channel.drain()
        assert heard.lines == ([b"{x}"] if said else [])
    assert time.monotonic() - begun < 15
    assert not runs(int((tmp_path / "pid").read_text()))


async def test_one_that_never_says_anything_ends_when_both_inputs_do(tmp_path: Path) -> None:
    for script in ("cat >rest", "cat <&3 >rest"):
        async with started(shell(script, tmp_path, pipes="either", grace=10)) as child:
            listen(child)
            child.channel.send(b"one")
        assert child.exit == Exit(0)
        assert (tmp_path / "rest").read_text() == "one\n"


async def test_without_a_way_to_tell_nothing_is_started(tmp_path: Path) -> None:
    before = open_descriptors().keys()
    with pytest.raises(StartError, match="which of its pipes count"):
        async with started(Spec(("/bin/true",), tmp_path, PATH, "either")):
            pass
    assert open_descriptors().keys() == before


async def test_a_line_that_was_printed_half_when_it_was_decided_is_logged_whole(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    script = "printf 'ha'; read line; echo '{x}' >&4; read line <&3; read line <&3; echo lf; read line <&3"
    async with started(shell(script, tmp_path, pipes="either", log=log)) as child:
        heard = listen(child)
        child.channel.send(b"one")
        await until(lambda: heard.lines)
        child.channel.send(b"two")
        await until(lambda: log.read_text() == "stdout: half\n")


def test_a_start_that_was_given_up_leaves_nothing_open(tmp_path: Path) -> None:
    before, children = open_descriptors().keys(), our_children()
    launch = Launch(Spec(("/bin/cat",), tmp_path, PATH, "either", speaks=speaks))
    launch.abandon()
    with pytest.raises(StartError, match="no longer wanted"):
        launch.run()
    assert open_descriptors().keys() == before and our_children() == children


async def test_a_long_line_that_decides_nothing_is_cut_short_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    code = "import os; os.write(1, b'x' * 50_000 + b'\\n')"
    async with started(python(code, tmp_path, pipes="either", log=log)) as child:
        listen(child)
        await child.exited()
        await child.channel.drain()
    [line] = log.read_text().splitlines()
    assert line.endswith("... (50000 bytes)") and len(line) < 5000


class Rig:
    """Both pairs in memory, and a far end that is played by the test."""

    def __init__(self, capacity: int, longest: int = 64, log: Log | None = None) -> None:
        self.in3, self.in0, self.out4, self.out1 = (MemoryPipe(capacity) for _ in range(4))
        self.arrangement: list[Arrangement] = []
        self.sink = BothSinks(self.in3.sink, self.in0.sink)
        self.source = FirstSource(self.out4.source, self.out1.source, speaks, longest, Stray(log))
        self.source.on_decision(self._decided)
        self.channel = Channel(self.source, self.sink, Bounds(line=longest))
        self.heard = Heard()
        self.channel.listen(self.heard)

    def _decided(self, arrangement: Arrangement) -> None:
        self.arrangement.append(arrangement)
        self.sink.keep(arrangement)


def ready(pipe: MemoryPipe) -> bytes:
    try:
        return pipe.get(1 << 20)
    except BlockingIOError:
        return b""


async def put(pipe: MemoryPipe, data: bytes) -> None:
    while data:
        try:
            data = data[pipe.put(data) :]
        except BlockingIOError:
            pass
        await asyncio.sleep(0)


def in_virtual_time(work: Callable[[], object]) -> None:
    async def all_of_it() -> None:
        async with asyncio.timeout(20):
            await work()  # type: ignore[misc]  # a coroutine function

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(all_of_it())


@patient
@given(
    st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=12),
    st.integers(0, 12),
    st.sampled_from(["stdio", "fd34"]),
    st.integers(1, 40),
    st.lists(st.integers(0, 25), min_size=12, max_size=12),
)
def test_whatever_fits_into_the_pipes_and_whenever_it_is_decided_every_byte_arrives_once(
    lines: list[bytes], when: int, arrangement: Arrangement, capacity: int, reads: list[int]
) -> None:
    async def work() -> None:
        rig = Rig(capacity)
        chosen, out = (rig.in3, rig.out4) if arrangement == "fd34" else (rig.in0, rig.out1)
        other = rig.in0 if arrangement == "fd34" else rig.in3
        got = b""
        for at, line in enumerate(lines):
            if at == when:
                await put(out, b"{}\n")
            rig.channel.send(line)
            await asyncio.sleep(0)
            for pipe in (chosen, other):  # at different speeds
                if reads[at] and not (pipe is other and reads[at] % 2):
                    try:
                        piece = pipe.get(reads[at])
                    except BlockingIOError:
                        piece = b""
                    got += piece if pipe is chosen else b""
        await put(out, b"{}\n")
        expected = b"".join(line + b"\n" for line in lines)
        while len(got) < len(expected):
            got += ready(chosen)
            await asyncio.sleep(0.01)
        assert got == expected
        assert rig.arrangement == [arrangement]
        rig.channel.abort()

    in_virtual_time(work)


@patient
@given(
    st.lists(st.sampled_from([b"stray", b"", b"{x}", b"{y}", b"z" * 80, b"{" * 80]), max_size=8),
    st.lists(st.integers(1, 30), max_size=20),
    st.booleans(),
)
def test_however_stdout_is_cut_into_pieces_it_is_the_same_lines(
    lines: list[bytes], cuts: list[int], newline: bool
) -> None:
    async def work() -> None:
        rig = Rig(4096)
        data = b"\n".join(lines) + (b"\n" if newline else b"")
        begin = 0
        for cut in (*cuts, len(data)):
            await put(rig.out1, data[begin : begin + cut])
            await asyncio.sleep(0.01)
            begin += cut
        rig.out1.sink.close()
        rig.out4.sink.close()
        while not rig.heard.told:
            await asyncio.sleep(0.01)
        first = next((at for at, line in enumerate(lines) if line in (b"{x}", b"{y}")), None)
        said = [] if first is None else [line for line in lines[first:] if line]
        assert rig.heard.lines == [line for line in said if len(line) <= 64]
        assert len(rig.heard.overlongs) == len([line for line in said if len(line) > 64])
        assert rig.arrangement == ([] if first is None else ["stdio"])
        rig.channel.abort()

    in_virtual_time(work)


async def test_when_both_inputs_are_gone_the_channel_is_broken() -> None:
    rig = Rig(100)
    rig.in3.source.close()
    rig.channel.send(b"one")
    assert ready(rig.in0) == b"one\n"
    rig.in0.source.close()
    with pytest.raises(BrokenPipeError):
        rig.sink.write(b"two\n")
    rig.channel.abort()
