"""Programs from start to end: nothing waits for ever, nothing survives, nobody else is hit."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from hilt.errors import ChannelClosed
from hilt.transport import process
from hilt.transport.process import Child, Exit, started
from hilt.transport.processes import Process, find_each
from hilt.transport.trampoline import Limits, Pipes
from transport.children import DEADLINE, PATH, Heard, our_children, python, runs, shell, state, until

ECHO = "while read line; do echo got $line; done"
STUBBORN = "trap '' TERM HUP INT; echo up; while :; do sleep 100; done"
LEAVES_DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        time.sleep(300)
    os._exit(0)
os.wait()
"""


async def listen(child: Child) -> Heard:
    heard = Heard()
    child.channel.listen(heard)
    return heard


async def first_number(heard: Heard) -> int:
    await until(lambda: heard.lines)
    return int(heard.lines[0])


async def test_lines_go_to_a_program_and_come_back(tmp_path: Path) -> None:
    async with started(shell(ECHO, tmp_path)) as child:
        heard = await listen(child)
        child.channel.send(b"one")
        child.channel.post(b"two")
        await until(lambda: heard.lines == [b"got one", b"got two"])
        assert child.exit is None
    assert child.exit == Exit(0)
    assert not runs(child.pid)


async def test_the_other_arrangement_puts_the_pipes_on_3_and_4_and_leaves_stdin_empty(tmp_path: Path) -> None:
    script = 'test -z "$(cat)" && while read line <&3; do echo "got $line $PIGLET_FD" >&4; done'
    async with started(shell(script, tmp_path, pipes="fd34")) as child:
        heard = await listen(child)
        child.channel.send(b"one")
        await until(lambda: heard.lines == [b"got one 1"])
        assert child.arrangement == "fd34"
    assert child.exit == Exit(0)


async def test_a_program_that_pulls_at_its_leash_ends_itself_and_no_other(tmp_path: Path) -> None:
    # A25
    pull = """
import os
for name in os.listdir('/proc/self/fd'):
    if int(name) >= 20:
        os.write(os.open(f'/proc/self/fd/{name}', os.O_WRONLY), b'x')
input()
"""
    async with started(shell("while read line; do echo $line; done", tmp_path)) as other:
        heard = await listen(other)
        async with started(python(pull, tmp_path)) as child:
            assert await child.exited() == Exit(None, signal.SIGKILL)
        other.channel.send(b"here")
        await until(lambda: heard.lines == [b"here"])
        assert other.exit is None


@pytest.mark.parametrize("pipes", ["stdio", "fd34", "either"])
async def test_a_program_inherits_nothing_but_its_pipes_and_its_leash(tmp_path: Path, pipes: Pipes) -> None:
    code = """
import os
kinds = {}
for name in os.listdir('/proc/self/fd'):
    try:
        kinds[int(name)] = os.readlink(f'/proc/self/fd/{name}')
    except OSError:
        pass
os.write(%d, repr(kinds).encode() + b'\\n')
"""
    noise = [os.open(tmp_path / "private", os.O_CREAT | os.O_RDWR) for _ in range(12)]
    os.set_inheritable(noise[0], True)
    try:
        spec = python(code % (1 if pipes == "stdio" else 4), tmp_path, pipes=pipes)
        async with started(spec) as child:
            heard = await listen(child)
            await until(lambda: heard.lines)
    finally:
        for fd in noise:
            os.close(fd)
    kinds: dict[int, str] = eval(heard.lines[0])
    low = {fd: kind.partition(":")[0] for fd, kind in kinds.items() if fd < 20}
    expected = {0: "/dev/null" if pipes == "fd34" else "pipe", 1: "pipe", 2: "pipe"}
    assert low == (expected if pipes == "stdio" else {**expected, 3: "pipe", 4: "pipe"})
    high = [kind for fd, kind in kinds.items() if fd >= 20 and kind not in (kinds[0], kinds[1])]
    assert [kind.partition(":")[0] for kind in high] == ["pipe"]


async def test_a_program_has_no_terminal_and_a_session_of_its_own(tmp_path: Path) -> None:
    code = "import os\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError: print(os.getsid(0) == os.getpid())"
    async with started(python(code, tmp_path)) as child:
        heard = await listen(child)
        await until(lambda: heard.lines == [b"True"])


async def test_limits_hold_from_the_first_moment(tmp_path: Path) -> None:
    limits = Limits(memory=1 << 30, processes=5000, files=123, file_size=51200, cpu=77)
    script = "ulimit -d; ulimit -n; ulimit -f; ulimit -t; ulimit -p 2>/dev/null || ulimit -u"
    async with started(shell(script, tmp_path, limits=limits)) as child:
        heard = await listen(child)
        await until(lambda: len(heard.lines) == 5)
    assert heard.lines == [b"1048576", b"123", b"100", b"77", b"5000"]


async def test_a_limit_beyond_our_own_is_lowered_to_it(tmp_path: Path) -> None:
    async with started(shell("ulimit -n", tmp_path, limits=Limits(files=1 << 40))) as child:
        heard = await listen(child)
        await until(lambda: heard.lines)
    assert int(heard.lines[0]) < 1 << 40


@pytest.mark.parametrize(
    ("script", "expected", "text"),
    [
        ("exit 3", Exit(3), "exited with code 3"),
        ("kill -9 $$", Exit(None, 9), "killed by SIGKILL"),
    ],
)
async def test_how_a_program_ended_is_known(tmp_path: Path, script: str, expected: Exit, text: str) -> None:
    async with started(shell(script, tmp_path)) as child, asyncio.timeout(DEADLINE):
        assert await child.exited() == expected
        assert str(child.exit) == text
        assert state(child.pid) == "", "reaped in the same moment"


async def test_an_exit_is_seen_although_a_grandchild_holds_the_output(tmp_path: Path) -> None:
    async with started(shell("sleep 300 & echo $!; exit 5", tmp_path)) as child:
        heard = await listen(child)
        async with asyncio.timeout(5):
            assert await child.exited() == Exit(5)
        await child.channel.drain()
        grandchild = int(heard.lines[0])
        assert runs(grandchild) and heard.told == []
    assert not runs(grandchild)


async def test_the_end_of_the_output_is_not_an_exit(tmp_path: Path) -> None:
    async with started(shell("exec >&-; read line", tmp_path)) as child:
        heard = await listen(child)
        await until(lambda: heard.told == ["ended"])
        assert child.exit is None and runs(child.pid)


async def test_what_was_said_before_an_exit_is_told_by_draining(tmp_path: Path) -> None:
    async with started(python("print('x\\n' * 9999 + 'last', end='')", tmp_path)) as child:
        heard = await listen(child)
        await child.exited()
        await child.channel.drain()
        assert len(heard.lines) == 10_000 and heard.lines[-1] == b"last"
        assert heard.told == ["ended"]


async def test_one_that_is_cancelled_while_waiting_does_not_disturb_another(tmp_path: Path) -> None:
    async with started(shell("read line; exit 4", tmp_path)) as child, asyncio.TaskGroup() as group:
        impatient = group.create_task(child.exited())
        patient = group.create_task(child.exited())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
        child.channel.send(b"go")
        assert await patient == Exit(4)
        assert impatient.cancelled()


async def test_leaving_asks_by_closing_the_input_and_waits_for_a_tidy_end(tmp_path: Path) -> None:
    done = tmp_path / "tidy"
    async with started(shell(f"cat >/dev/null; sleep 0.1; touch {done}; exit 7", tmp_path, grace=DEADLINE)) as child:
        pass
    assert child.exit == Exit(7)
    assert done.exists()


async def test_what_waits_is_written_before_the_input_is_closed(tmp_path: Path) -> None:
    size = 3_000_000
    async with started(shell(f"sleep 0.1; wc -c > {tmp_path}/size", tmp_path, grace=DEADLINE)) as child:
        child.channel.send(b"x" * (size - 1))
    assert int((tmp_path / "size").read_text()) == size


async def test_one_that_does_not_listen_gets_a_signal_it_can_handle(tmp_path: Path) -> None:
    script = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done"
    async with started(shell(script, tmp_path, grace=0.1)) as child:
        heard = await listen(child)
        await until(lambda: heard.lines)
    assert child.exit == Exit(9)


async def test_ten_that_ignore_everything_are_killed_within_the_grace_and_a_second(tmp_path: Path) -> None:
    begun = asyncio.Event()
    children: list[Child] = []

    async def live() -> None:
        async with started(shell(STUBBORN, tmp_path, grace=1.0)) as child:
            heard = await listen(child)
            await until(lambda: heard.lines)
            children.append(child)
            await begun.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(live())
        await until(lambda: len(children) == 10)
        leaving = time.monotonic()
        begun.set()
    assert time.monotonic() - leaving < 10, "in parallel: one after another they take longer"
    assert {child.exit for child in children} == {Exit(None, signal.SIGKILL)}
    assert not any(runs(child.pid) for child in children)


async def test_a_stopped_program_is_continued_so_that_it_can_end(tmp_path: Path) -> None:
    async with started(shell("kill -STOP $$; cat; exit 3", tmp_path, grace=DEADLINE)) as child:
        await until(lambda: state(child.pid) == "T")
    assert child.exit == Exit(3)


async def test_descendants_go_with_it(tmp_path: Path) -> None:
    async with started(shell("sh -c 'sleep 300 & echo $!; wait' & wait", tmp_path, grace=0.1)) as child:
        pid = await first_number(await listen(child))
        assert runs(pid)
    await until(lambda: not runs(pid), 2)


async def test_a_daemon_that_left_the_session_and_ignores_signals_goes_with_it(tmp_path: Path) -> None:
    async with started(python(LEAVES_DAEMON, tmp_path)) as child:
        pid = await first_number(await listen(child))
        await child.exited()
        assert runs(pid)
    await until(lambda: not runs(pid), 2)


async def test_a_member_of_the_group_goes_although_it_hides_its_environment(tmp_path: Path) -> None:
    script = "env -i /bin/sh -c 'trap \"\" TERM; echo $$; while :; do /bin/sleep 100; done' & read line"
    async with started(shell(script, tmp_path)) as child:
        pid = await first_number(await listen(child))
        child.channel.send(b"exit")
        await child.exited()
        assert runs(pid)
    await until(lambda: not runs(pid), 2)


async def test_descendants_that_fork_faster_than_they_can_be_counted_go_with_it(tmp_path: Path) -> None:
    code = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for n in range(5):
    if os.fork() == 0:
        os.setsid()
        for hop in range(2000):
            time.sleep(0.02)
            open(f'alive{n}', 'w').close()
            if os.fork():
                os._exit(0)
        os._exit(0)
print('up', flush=True)
"""
    async with started(python(code, tmp_path, grace=0)) as child:
        await listen(child)
        await until(lambda: len(list(tmp_path.glob("alive*"))) == 5)
    for path in tmp_path.glob("alive*"):
        path.unlink()
    await asyncio.sleep(0.2)
    assert list(tmp_path.glob("alive*")) == []


async def test_stopping_twice_at_once_stops_once_and_both_wait(tmp_path: Path) -> None:
    async with started(shell(STUBBORN, tmp_path)) as child:
        heard = await listen(child)
        await until(lambda: heard.lines)
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(child.stop(0.1))
        assert child.exit == Exit(None, signal.SIGKILL)
        await child.stop()
    with pytest.raises(ChannelClosed):
        child.channel.send(b"anyone?")


async def test_many_that_stop_at_once_share_the_search_for_what_they_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = []

    def counting(programs: Sequence[tuple[int, str]]) -> list[list[Process]]:
        searches.append(len(programs))
        return find_each(programs)

    monkeypatch.setattr(process, "find_each", counting)
    up, leave = [], asyncio.Event()

    async def live() -> None:
        async with started(shell("read line", tmp_path, grace=DEADLINE)) as child:
            up.append(child)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(40):
            group.create_task(live())
        await until(lambda: len(up) == 40)
        leave.set()
    assert sum(searches) >= 40
    assert len(searches) < 30


async def test_a_search_that_hangs_does_not_keep_us_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def hanging(programs: Sequence[tuple[int, str]]) -> list[list[Process]]:
        release.wait(DEADLINE)
        return find_each(programs)

    monkeypatch.setattr(process, "find_each", hanging)
    try:
        async with started(shell(STUBBORN, tmp_path)) as child:
            heard = await listen(child)
            await until(lambda: heard.lines)
            leaving = time.monotonic()
        assert time.monotonic() - leaving < 15
        assert child.exit == Exit(None, signal.SIGKILL)
    finally:
        release.set()


async def test_cancellation_while_stopping_kills_at_once(tmp_path: Path) -> None:
    async def live(up: asyncio.Event) -> None:
        async with started(shell(STUBBORN, tmp_path, grace=300)) as child:
            heard = await listen(child)
            await until(lambda: heard.lines)
            pids.append(child.pid)
            up.set()

    pids: list[int] = []
    up = asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(live(up))
        await up.wait()
        await asyncio.sleep(0.05)
        task.cancel()
    assert task.cancelled()
    assert state(pids[0]) == ""


async def test_cancellation_inside_the_block_stops_it(tmp_path: Path) -> None:
    pids: list[int] = []

    async def live() -> None:
        async with started(shell(ECHO, tmp_path)) as child:
            pids.append(child.pid)
            await child.exited()

    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        task = group.create_task(live())
        await until(lambda: pids)
        task.cancel()
    assert task.cancelled()
    assert state(pids[0]) == ""


async def test_a_start_that_nobody_waits_for_any_more_leaves_nothing(tmp_path: Path) -> None:
    before = our_children()

    async def live() -> None:
        async with started(shell("sleep 300", tmp_path, grace=0)):
            await asyncio.Event().wait()

    for turns in range(30):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(live())
            for _ in range(turns % 10):
                await asyncio.sleep(0.0005)
            task.cancel()
    await until(lambda: our_children() == before)


async def test_a_program_that_reads_nothing_does_not_keep_us_from_stopping(tmp_path: Path) -> None:
    async with started(shell("sleep 300", tmp_path)) as child:
        child.channel.send(b"x" * 4_000_000)
        leaving = time.monotonic()
    assert time.monotonic() - leaving < 10
    assert child.exit == Exit(None, signal.SIGTERM)


async def test_a_flood_of_output_while_we_write_deadlocks_nobody(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(50_000): print('x' * 80)\nprint(len(sys.stdin.readline()))"
    async with started(python(code, tmp_path)) as child:
        heard = await listen(child)
        child.channel.send(b"y" * 3_000_000)
        await until(lambda: len(heard.lines) == 50_001)
    assert heard.lines[-1] == b"3000001"


async def test_signals_of_a_write_to_a_dead_program_never_reach_us(tmp_path: Path) -> None:
    async with started(shell("exit 0", tmp_path)) as child:
        heard = await listen(child)
        await child.exited()
        with pytest.raises(ChannelClosed):
            child.channel.send(b"anyone?")
        await until(lambda: "broken" in heard.told)


HOST = """
import asyncio, os, sys
from pathlib import Path
from hilt.transport.process import started
from hilt.transport.launch import Spec

async def main():
    script = "trap '' TERM HUP PIPE; sleep 300 & echo $$ $! > pids; mv pids up; while :; do sleep 100; done"
    spec = Spec(("/bin/sh", "-c", script), Path.cwd(), dict(os.environ), sys.argv[1], speaks=bool)
    async with started(spec):
        Path("inside").touch()
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("pipes", ["stdio", "fd34", "either"])
async def test_a_killed_host_takes_the_whole_group_with_it(tmp_path: Path, pipes: str) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, pipes], cwd=tmp_path, env={**os.environ, **PATH})
    try:
        await until(lambda: (tmp_path / "up").exists() and (tmp_path / "inside").exists())
        pids = [int(pid) for pid in (tmp_path / "up").read_text().split()]
        assert len(pids) == 2 and all(runs(pid) for pid in pids)
    finally:
        host.kill()
        host.wait()
    try:
        await until(lambda: not any(runs(pid) for pid in pids))
    finally:
        for pid in filter(runs, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def test_complaints_are_kept_in_a_private_log_and_the_last_of_them_at_hand(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "ext.log"
    async with started(shell("for n in $(seq 30); do echo line $n >&2; done; exit 1", tmp_path, log=log)) as child:
        await child.exited()
        assert child.last_words() == [f"line {number}" for number in range(11, 31)]
        assert child.log_failure is None
    assert log.read_text().splitlines() == [f"line {number}" for number in range(1, 31)]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
