import asyncio
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from hilt.errors import ToolError
from hilt.model.contributions import Effect
from hilt.tools.job import Command, Limits
from hilt.tools.shell import Shell
from tools.kit import Bench, pid_in, runs, until, zombies

STUBBORN = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
DAEMON = (
    "import os, signal, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "null = os.open('/dev/null', os.O_RDWR)\n"
    "for fd in (0, 1, 2): os.dup2(null, fd)\n"
    "open('daemon.tmp', 'w').write(str(os.getpid()))\n"
    "os.rename('daemon.tmp', 'daemon')\n"
    "time.sleep(300)\n"
)


async def start(bench: Bench, command: str, *pid_files: str) -> tuple["asyncio.Task[object]", list[int]]:
    """Run a command until it has written its pid files."""
    task: asyncio.Task[object] = asyncio.create_task(bench.call("bash", command=command))
    paths = [bench.root / name for name in pid_files]
    await until(lambda: all(pid_in(path) for path in paths) or task.done())
    assert not task.done()
    return task, [int(path.read_text()) for path in paths]


async def cancelled(task: "asyncio.Task[object]") -> float:
    """Cancel and say how long it took to come back."""
    begin = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - begin


async def test_the_answer_shows_the_command_its_merged_output_and_the_exit_code(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        output = await bench.call("bash", command="echo out; echo err >&2; pwd; exit 3")
        text = await bench.text("bash", command="echo out; echo err >&2; pwd")
    assert output.is_error
    assert output.details["exit_code"] == 3
    assert text.startswith(f"$ echo out; echo err >&2; pwd\n\nout\nerr\n{bench.root}\n\n[exit 0]  Took 0.")
    assert "".join(bench.progress) == f"out\nerr\n{bench.root}\n" * 2
    assert list(bench.workspace.outputs.iterdir()) == []


async def test_a_command_killed_by_a_signal_has_the_shells_exit_code(tmp_path: Path) -> None:
    async with Shell() as shell:
        output = await Bench(tmp_path, shell).call("bash", command="kill -KILL $$")
    assert output.details["exit_code"] == 137
    assert output.is_error


async def test_children_learn_who_runs_them_and_get_no_input(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        text = await bench.text("bash", command="echo $AI_AGENT $AGENT $HILT $COLOUR ${#HILT_CALL}; cat")
    assert "hilt hilt 1 green 16\n" in text


async def test_a_command_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        await bench.call("bash", command="cut -d' ' -f1,5,6 /proc/$$/stat > ids")
    pid, group, session = (bench.root / "ids").read_text().split()
    assert pid == group == session


async def test_short_of_the_limit_nothing_is_cut(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        output = await bench.call("bash", command="seq 1980")
    assert output.details["cut"] is False
    assert list(bench.workspace.outputs.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "size", "marker"),
    [
        ("seq 100000", 588_895, "… 98021 lines omitted …"),
        (f"{sys.executable} -c \"print('é' * 90000, end='')\"", 180_000, "… 130000 bytes omitted …"),
        ("head -c 60000 /dev/zero | tr '\\0' '\\377'", 60_000, "bytes omitted …"),
        (f"{sys.executable} -c \"print(('y' * 3000 + chr(10)) * 100)\"", 300_101, "… 84 lines omitted …"),
    ],
)
async def test_long_output_keeps_head_and_tail_and_the_file_keeps_all(
    tmp_path: Path, command: str, size: int, marker: str
) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        output = await bench.call("bash", command=command)
        text = await bench.text("bash", command=command)
    assert len(text.encode()) <= 51_200
    assert text.count("\n") <= 2_000
    assert marker in text
    kept = Path(output.details["output"])
    assert kept.stat().st_size == size
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert f"[exit 0] (full output: {bench.workspace.outputs}/bash-" in text
    if command == "seq 100000":
        assert "\n1\n2\n3\n" in text
        assert "\n99999\n100000\n\n[exit" in text
        assert await bench.text("read", path=str(kept), offset=50_000, limit=1) == "50000\n"


async def test_progress_never_splits_a_character(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        running = asyncio.create_task(
            bench.call("bash", command="printf 'a\\303'; until [ -e go ]; do sleep 0.01; done; printf '\\251b'")
        )
        await until(lambda: bench.progress)
        (bench.root / "go").touch()
        await running
    assert bench.progress[0] == "a"
    assert "".join(bench.progress) == "aéb"


async def test_progress_comes_while_the_command_runs(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        running = asyncio.create_task(bench.call("bash", command="echo early; until [ -e go ]; do sleep 0.01; done"))
        await until(lambda: bench.progress == ["early\n"])
        assert not running.done()
        (bench.root / "go").touch()
        await running


async def test_progress_of_much_output_skips_ahead_and_says_so(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        await bench.call("bash", command="seq 1000000")
    assert all(len(piece) <= 64 * 1024 + 100 for piece in bench.progress)
    assert any("bytes skipped …" in piece for piece in bench.progress)
    assert bench.progress[-1].endswith("999999\n1000000\n")


async def test_a_background_process_delays_nothing_and_keeps_writing(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        async with asyncio.timeout(5):
            output = await bench.call(
                "bash",
                command="(until [ -e go ]; do sleep 0.01; done; echo late && touch wrote; sleep 300) & echo started",
            )
        text = output.content[0]
        assert output.details["background"] is True
        kept = Path(output.details["output"])
        assert f"its output goes to: {kept}" in str(text)
        (bench.root / "go").touch()
        await until((bench.root / "wrote").exists)  # no SIGPIPE
        assert kept.read_text() == "started\nlate\n"


async def test_background_processes_end_with_the_shell(tmp_path: Path) -> None:
    async with Shell(Limits(closing_grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        await bench.call("bash", command=f"({STUBBORN}) & sh -c 'echo $$ > quiet; exec sleep 300 > /dev/null 2>&1' &")
        await until(lambda: pid_in(bench.root / "quiet"))
        quiet = int((bench.root / "quiet").read_text())
        assert runs(quiet)
    assert not runs(quiet)
    assert zombies() == []


async def test_a_daemon_with_a_session_of_its_own_ends_with_the_shell(tmp_path: Path) -> None:
    async with Shell(Limits(closing_grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        (bench.root / "daemon.py").write_text(DAEMON)
        command = f"{sys.executable} daemon.py; until [ -e daemon ]; do sleep 0.01; done"
        output = await bench.call("bash", command=command)
        assert output.details["background"] is False  # it let go of the output
        daemon = int((bench.root / "daemon").read_text())
        assert runs(daemon)
    assert not runs(daemon)


async def test_a_background_process_without_the_marker_ends_with_the_shell(tmp_path: Path) -> None:
    async with Shell(Limits(closing_grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        await bench.call("bash", command="env -i sleep 300 > /dev/null 2>&1 & echo $! > pid")
        pid = int((bench.root / "pid").read_text())
        assert runs(pid)
    assert not runs(pid)


async def test_the_end_of_a_background_process_is_noticed(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        before = len(os.listdir("/proc/self/fd"))
        await bench.call("bash", command="(until [ -e go ]; do sleep 0.01; done) &")
        await until(lambda: len(os.listdir("/proc/self/fd")) > before)
        (bench.root / "go").touch()
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before, 5)


async def test_cancelling_returns_at_once_and_ends_the_whole_tree(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        command = "sh -c 'echo $$ > a; exec sleep 300' & setsid sh -c 'echo $$ > b; exec sleep 300' & echo $$ > c; wait"
        task, pids = await start(bench, command, "a", "b", "c")
        assert await cancelled(task) < 0.3
        await until(lambda: not any(runs(pid) for pid in pids), 2)  # by SIGTERM, well within the grace
        await until(lambda: not list(bench.workspace.outputs.iterdir()), 2)
    assert zombies() == []


async def test_what_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    async with Shell(Limits(grace=0.3)) as shell:
        bench = Bench(tmp_path, shell)
        task, pids = await start(bench, STUBBORN, "pid")
        begin = time.monotonic()
        assert await cancelled(task) < 0.25
        assert runs(pids[0])  # the grace is real
        await until(lambda: not runs(pids[0]), 5)
        assert time.monotonic() - begin >= 0.3
        await until(lambda: not zombies())


async def test_a_double_forked_daemon_of_a_cancelled_command_is_killed(tmp_path: Path) -> None:
    async with Shell(Limits(grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        (bench.root / "daemon.py").write_text(DAEMON)
        task, pids = await start(bench, f"{sys.executable} daemon.py; exec sleep 300", "daemon")
        await cancelled(task)
        await until(lambda: not runs(pids[0]), 5)


async def test_a_descendant_without_the_marker_is_found_by_its_parents(tmp_path: Path) -> None:
    async with Shell(Limits(grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        script = "import os, time; os.setsid(); open('p', 'w').write(str(os.getpid())); time.sleep(300)"
        task, pids = await start(bench, f'env -i {sys.executable} -c "{script}"; true', "p")
        await cancelled(task)
        await until(lambda: not runs(pids[0]), 5)


async def test_a_stopped_process_is_ended_too(tmp_path: Path) -> None:
    async with Shell(Limits(grace=30)) as shell:
        bench = Bench(tmp_path, shell)
        task, pids = await start(bench, "sh -c 'echo $$ > pid; kill -STOP $$' & wait", "pid")
        await cancelled(task)
        await until(lambda: not runs(pids[0]), 5)


async def test_a_command_cancelled_while_it_starts_is_ended(tmp_path: Path) -> None:
    async with Shell(Limits(grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        for delay in (0.0, 0.001, 0.002, 0.005):
            task: asyncio.Task[object] = asyncio.create_task(bench.call("bash", command="echo $$ > started; sleep 300"))
            await asyncio.sleep(delay)
            await cancelled(task)
    pid = pid_in(bench.root / "started")
    assert pid is None or not runs(pid)
    assert zombies() == []
    outputs = bench.workspace.outputs
    assert not outputs.exists() or list(outputs.iterdir()) == []


async def test_a_timeout_kills_the_tree_and_says_so(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        output = await bench.call(
            "bash", command="setsid sh -c 'echo $$ > a; exec sleep 300' & echo $$ > b; echo seen; wait", timeout=0.4
        )
        text = str(output.content[0])
        assert output.is_error
        assert output.details["exit_code"] is None
        assert output.details["ending"] == "timeout"
        assert "seen" in text
        assert "timed out after 0.4s" in text
        await until(lambda: not any(runs(int((bench.root / name).read_text())) for name in "ab"), 2)


async def test_a_timeout_does_not_wait_for_what_ignores_it(tmp_path: Path) -> None:
    async with Shell(Limits(grace=20, closing_grace=0.05)) as shell:
        bench = Bench(tmp_path, shell)
        async with asyncio.timeout(5):
            output = await bench.call("bash", command=STUBBORN, timeout=0.2)
        assert output.is_error
    pid = pid_in(bench.root / "pid")
    assert pid is not None
    assert not runs(pid)


async def test_a_flood_of_output_ends_the_command(tmp_path: Path) -> None:
    async with Shell(Limits(flood=1 << 20)) as shell:
        bench = Bench(tmp_path, shell)
        async with asyncio.timeout(10):
            output = await bench.call("bash", command="yes")
    assert output.is_error
    assert output.details["ending"] == "flood"
    assert "too much output" in str(output.content[0])
    assert Path(output.details["output"]).stat().st_size > 1 << 20


async def test_a_flood_from_the_background_is_ended_too(tmp_path: Path) -> None:
    async with Shell(Limits(grace=0.1, flood=1 << 20)) as shell:
        bench = Bench(tmp_path, shell)
        await bench.call("bash", command="yes & echo $! > pid")
        pid = int((bench.root / "pid").read_text())
        await until(lambda: not runs(pid), 10)


async def test_closing_the_shell_ends_a_cancelled_command_within_the_closing_grace(tmp_path: Path) -> None:
    async with Shell(Limits(grace=60, closing_grace=0.1)) as shell:
        bench = Bench(tmp_path, shell)
        task, pids = await start(bench, STUBBORN, "pid")
        await cancelled(task)
        begin = time.monotonic()
    assert time.monotonic() - begin < 20
    assert not runs(pids[0])
    assert zombies() == []


async def test_an_error_in_the_shells_block_comes_out_as_it_is(tmp_path: Path) -> None:
    async def work() -> None:
        async with Shell(Limits(closing_grace=0.05)) as shell:
            await Bench(tmp_path, shell).call("bash", command="sleep 300 &")
            raise ToolError("mine")

    with pytest.raises(ToolError, match="mine"):
        await work()


async def test_cancelling_the_shell_while_it_closes_kills_at_once(tmp_path: Path) -> None:
    started = asyncio.Event()
    pids: list[int] = []

    async def owner() -> None:
        async with Shell(Limits(grace=60, closing_grace=60)) as shell:
            task, found = await start(Bench(tmp_path, shell), STUBBORN, "pid")
            pids.extend(found)
            task.cancel()
            started.set()

    closing = asyncio.create_task(owner())
    await started.wait()
    await asyncio.sleep(0.1)
    assert runs(pids[0])
    closing.cancel()
    done, _ = await asyncio.wait([closing], timeout=20)
    assert done
    assert not runs(pids[0])
    assert zombies() == []


async def test_a_closed_shell_runs_nothing(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
    assert "closed" in await bench.refusal("bash", command="true")


async def test_no_descriptor_and_no_zombie_is_left(tmp_path: Path) -> None:
    async with Shell(Limits(grace=0.05, closing_grace=0.05)) as shell:
        bench = Bench(tmp_path, shell)
        await bench.call("bash", command="true")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            await bench.call("bash", command="echo x")
            await bench.call("bash", command="seq 5000")
            await bench.call("bash", command="sleep 300 & true")
            await bench.call("bash", command="sleep 300", timeout=0.05)
            with pytest.raises(ToolError):
                await bench.call("bash", command=":" * 3_000_000)
    assert len(os.listdir("/proc/self/fd")) <= before
    assert zombies() == []


async def test_commands_run_side_by_side(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        meet = "touch {0}; until [ -e {1} ]; do sleep 0.01; done; echo {0}"
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            first = group.create_task(bench.text("bash", command=meet.format("a", "b")))
            second = group.create_task(bench.text("bash", command=meet.format("b", "a")))
    assert "\na\n" in first.result()
    assert "\nb\n" in second.result()


async def test_commands_that_cannot_be_started_are_explained(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        assert "too long" in await bench.refusal("bash", command="echo " + "a" * 3_000_000)
        assert "cannot be passed" in await bench.refusal("bash", command="echo a\0b")
        assert "cannot be passed" in await bench.refusal("bash", command="echo \ud800")
        assert "empty" in await bench.refusal("bash", command="  ")
        assert "timeout" in await bench.refusal("bash", command="true", timeout=-1)
        assert list(bench.workspace.outputs.iterdir()) == []
        bench.root.rmdir()
        assert f"{bench.root} no longer exists" in await bench.refusal("bash", command="true")


async def test_an_outputs_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("in the way")
    async with Shell() as shell:
        assert "could not be started" in await Bench(tmp_path, shell).refusal("bash", command="true")


async def test_a_failing_listener_ends_the_command(tmp_path: Path) -> None:
    async def listener(_text: str) -> None:
        raise ToolError("the screen is gone")

    async with Shell() as shell:
        command = Command("echo $$; exec sleep 300", tmp_path, tmp_path / "outputs", {})
        async with asyncio.timeout(5):
            with pytest.raises(ToolError, match="screen"):
                await shell.run(command, listener)
        await until(lambda: not list((tmp_path / "outputs").iterdir()))


async def test_an_inner_run_keeps_the_outer_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_CALL", "outer")
    async with Shell() as shell:
        assert "\nouter." in await Bench(tmp_path, shell).text("bash", command="echo $HILT_CALL")


async def test_control_sequences_are_left_in_the_text(tmp_path: Path) -> None:
    async with Shell() as shell:
        assert "\x1b[31mred" in await Bench(tmp_path, shell).text("bash", command="printf '\\033[31mred'")


async def test_the_preview_is_the_whole_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    command = "echo " + "x" * 5_000
    assert await bench.preview("bash", command=command) == command
    assert bench.tools["bash"].effect is Effect.EXECUTE
    assert bench.tools["bash"].schema["additionalProperties"] is False
