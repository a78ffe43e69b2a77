"""An extension is replaced while it runs: the new process is up before the old one goes, or the old one stays."""

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import UsageError
from hilt.extensions import supervisor
from hilt.extensions.agent import Program
from hilt.model.content import text_of
from hilt.model.contributions import Invocation
from hilt.model.events import ExtensionChanged
from hilt.model.extensions import Dialect, Reloaded
from hilt.packages.discovery import Found
from hilt.transport.launch import Spec
from hilt.transport.process import started
from support import extending
from support.extending import CHAOS, FRAMES_ONLY, JSONRPC_ONLY, Extended, Made, chaos, extended, tool
from support.hilt_process import Hilt, Rpc
from support.leftovers import nothing_left
from transport.children import our_children, runs

pytestmark = pytest.mark.usefixtures("dialect")


async def reload(it: Extended, name: str = "") -> Reloaded:
    async with asyncio.timeout(20):
        return await it.host.reload(name)


def pid(it: Extended, name: str = "t") -> int:
    found = it.status(name).pid
    assert found
    return found


def answering(word: str, *items: Any, **manifest: Any) -> Made:
    """Extension `t` whose tool says this."""
    return tool("t", *items, {"on": "tool_call", "do": f"answer:{word}"}, **manifest)


# The new one comes before the old one goes


async def test_the_tool_is_there_all_the_time_and_the_new_process_is_up_before_the_old_is_told_to_end(
    tmp_path: Path,
) -> None:
    made = answering("first", "record:record", "touch:starts")
    async with nothing_left(), extended(tmp_path, made, tool("well")) as it:
        await it.ready()
        old, bystander = pid(it), pid(it, "well")
        answering("second", "record:record", "touch:starts").write(tmp_path / "extensions")
        async with asyncio.TaskGroup() as group:
            reloading = group.create_task(reload(it, "t"))
            answers = []
            while not reloading.done():
                answers.append(await it.call("t"))
        assert reloading.result() == Reloaded(stopped=1, loaded=1, ready=1)
        assert set(answers) <= {("first", False), ("second", False)} and answers
        assert await it.call("t") == ("second", False)
        await it.until(lambda: not runs(old), "the end of the old one")
        assert pid(it) != old and pid(it, "well") == bystander
        assert [event.state for event in it.of(ExtensionChanged) if event.extension == "t"][1:] == ["ready", "ready"]
        folder = Path("extensions", "t")
        second_start = float((tmp_path / folder / "starts").read_text().splitlines()[1].split()[1])
        told_to_end = [row["at"] for row in it.recorded(str(folder / "record")) if '"shutdown"' in row.get("line", "")]
        assert second_start < told_to_end[0]


async def test_reloading_all_takes_in_what_is_new_and_lets_go_of_what_is_gone(tmp_path: Path) -> None:
    user = tmp_path / "user"
    tool("gone").write(user)
    tool("asleep", enabled=False).write(user)
    tool("tiring").write(user)
    async with nothing_left(), extended(tmp_path, tool("well")) as it:
        await it.ready("gone", "tiring", "well")
        before = {name: pid(it, name) for name in ("gone", "tiring", "well")}
        assert it.status("asleep").state == "disabled"
        shutil.rmtree(user / "gone")
        tool("fresh").write(user)
        tool("asleep").write(user)
        tool("tiring", enabled=False).write(user)
        assert await reload(it) == Reloaded(stopped=3, loaded=3, ready=3)
        assert {status.name: status.state for status in it.host.statuses()} == {
            "well": "ready",
            "fresh": "ready",
            "asleep": "ready",
            "tiring": "disabled",
        }
        for name in ("well", "fresh", "asleep"):
            assert await it.call(name) == ("ok", False)
        for name in ("gone", "tiring"):
            assert "unknown tool" in (await it.call(name))[0]
        await it.until(lambda: not any(map(runs, before.values())), "the end of all old ones")
        assert len(our_children()) == 3


async def test_one_that_nobody_knows_cannot_be_reloaded_and_those_there_are_are_named(tmp_path: Path) -> None:
    async with extended(tmp_path, tool("well")) as it:
        with pytest.raises(UsageError) as raised:
            await reload(it, "will")
        assert "will" in raised.value.message and "well" in raised.value.hint


# When it fails, the old one goes on


def broken_manifest(folder: Path) -> None:
    manifest(folder).write_text('{"name": "t", "exec": ')


def wrong_manifest(folder: Path) -> None:
    rewrite(folder, tool_timeout_ms="long")


def no_program(folder: Path) -> None:
    rewrite(folder, **{PROGRAM[extending.SPOKEN]: "./nowhere"})


def dies(folder: Path) -> None:
    script(folder, "log:half a program", "exit:4")


def mute(folder: Path) -> None:
    script(folder, "hang")
    rewrite(folder, start_timeout_ms=200)


PROGRAM = {"frames": "exec", "jsonrpc": "runtime"}


def manifest(folder: Path) -> Path:
    return folder / {"frames": "extension.json", "jsonrpc": "manifest.yaml"}[extending.SPOKEN]


def rewrite(folder: Path, **fields: Any) -> None:
    members = json.loads(manifest(folder).read_text())
    manifest(folder).write_text(json.dumps({**members, **fields}))


def script(folder: Path, *items: Any) -> None:
    (folder / "chaos.json").write_text(chaos("t", *items).files["chaos.json"])


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (broken_manifest, "not JSON"),
        (wrong_manifest, '"tool_timeout_ms" must be a whole number'),
        (no_program, "no such file"),
        (dies, "exited with code 4 before its hello; its last words: half a program"),
        (mute, "did not say hello within 0.2 s"),
    ],
)
async def test_one_that_cannot_be_loaded_anew_goes_on_as_it_was_and_says_why(
    tmp_path: Path, dialect: Dialect, spoil: Callable[[Path], None], reason: str
) -> None:
    if dialect == "jsonrpc":
        said = {"its hello": "its answer to initialize", "say hello": "answer initialize", "not JSON": "not YAML"}
        reason = reduce(lambda text, words: text.replace(*words), said.items(), reason)
    async with nothing_left(), extended(tmp_path, answering("first", stop_grace_ms=200), tool("well")) as it:
        await it.ready()
        old = pid(it)
        spoil(tmp_path / "extensions" / "t")
        for name in ("t", ""):
            reloaded = await reload(it, name)
            assert len(reloaded.problems) == 1, reloaded
            assert reason in reloaded.problems[0] and "the one that was running goes on" in reloaded.problems[0]
            assert reloaded.problems[0].startswith("t: ")
            assert it.status("t").state == "ready" and pid(it) == old
            assert await it.call("t") == ("first", False)
            assert await it.call("well") == ("ok", False)
        answering("second").write(tmp_path / "extensions")
        assert (await reload(it, "t")).problems == ()
        assert await it.call("t") == ("second", False)


async def test_one_that_was_renamed_goes_on_until_all_are_reloaded_and_is_then_another(tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "t"
    async with nothing_left(), extended(tmp_path, answering("ok")) as it:
        await it.ready()
        old = pid(it)
        rewrite(folder, name="u")
        assert '"name" is now "u", it was "t"' in (await reload(it, "t")).problems[0]
        assert pid(it) == old and await it.call("t") == ("ok", False)
        assert (await reload(it)).problems == ()
        assert [(status.name, status.state) for status in it.host.statuses()] == [("u", "ready")]
        await it.until(lambda: not runs(old), "the end of the old one")


async def test_one_that_failed_and_fails_again_says_the_new_reason(tmp_path: Path, dialect: Dialect) -> None:
    folder = tmp_path / "extensions" / "t"
    async with nothing_left(), extended(tmp_path, chaos("t", "exit:1"), tool("well")) as it:
        assert "exited with code 1" in (await it.state("t", "failed")).reason
        script(folder, "exit:2")
        before = {"frames": "its hello", "jsonrpc": "its answer to initialize"}[dialect]
        assert f"t: exited with code 2 before {before}" in (await reload(it, "t")).problems[0]
        assert it.status("t").state == "failed" and "exited with code 2" in it.status("t").reason
        answering("at last").write(tmp_path / "extensions")
        assert (await reload(it, "t")).problems == ()
        assert await it.call("t") == ("at last", False)


async def test_one_that_dies_while_its_successor_fails_is_not_said_to_go_on_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.01)
    made = answering("alive", {"on": "command_invoked", "do": "exit:3"})
    folder = tmp_path / "extensions" / "t"
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.ready()
        old = pid(it)
        script(folder, "touch:second", "wait_for:go", "exit:4")
        async with asyncio.TaskGroup() as group:
            reloading = group.create_task(reload(it, "t"))
            await it.until((folder / "second").exists, "a second process")
            os.kill(old, signal.SIGKILL)
            await it.until(lambda: it.status("t").pid is None, "the end of the first")
            (folder / "chaos.json").write_text(answering("again").files["chaos.json"])
            (folder / "go").touch()
        assert "exited with code 4" in reloading.result().problems[0]
        assert "goes on" not in reloading.result().problems[0]
        await it.until(lambda: it.status("t").state == "ready" and it.status("t").pid, "a restart")
        assert await it.call("t") == ("again", False)


# What a reload forgets and what it takes over


async def test_a_reload_forgets_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.01)
    made = tool("t", {"on": "tool_call", "do": "exit:3"})
    async with extended(tmp_path, made) as it:
        for _ in range(3):
            for _ in range(supervisor._CRASHES - 1):
                await it.ready("t")
                await it.call("t")
                await it.state("t", "restarting")
            await it.ready("t")
            assert (await reload(it, "t")).problems == ()
            assert it.status("t").restarts == 0
        assert it.status("t").state == "ready"


async def test_what_the_manifest_says_now_is_what_holds(tmp_path: Path) -> None:
    record = "record:record"
    async with extended(tmp_path, tool("t", version="1"), tool("well", stop_grace_ms=100)) as it:
        await it.ready()
        guard = {"on_failure": "block", "timeout_ms": 200, "required": True}
        silent = {"on": "event_intercept", "do": []}
        slow = {"on": "tool_call", "do": []}
        tool("t", record, "intercept:tool_call", silent, slow, version="2", guard=guard, tool_timeout_ms=300).write(
            tmp_path / "extensions"
        )
        assert (await reload(it, "t")).problems == ()
        status = it.status("t")
        assert status.version == "2" and status.guards == ("tool_call",)
        text, is_error = await it.call("well")
        assert is_error and "guard t" in text, "the new policy is to block what it does not answer for"
        tool("t", slow, version="3", tool_timeout_ms=300).write(tmp_path / "extensions")
        assert (await reload(it, "t")).problems == ()
        assert await it.call("well") == ("ok", False), "it is no guard any more"
        text, is_error = await it.call("t")
        assert is_error and "timeout waiting for t/t (0.3" in text


# What is under way


async def test_a_call_that_ends_soon_after_the_reload_is_answered_by_the_old_process(tmp_path: Path) -> None:
    slow = {"on": "tool_call", "match": {"args": {"slow": True}}, "do": ["touch:begun", "wait_for:go", "answer:$PID"]}
    made = tool("t", slow, {"on": "tool_call", "do": "answer:$PID"})
    folder = tmp_path / "extensions" / "t"
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.ready()
        old = pid(it)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(it.call("t", slow=True))
            await it.until((folder / "begun").exists, "the call")
            assert (await reload(it, "t")).problems == ()
            assert await it.call("t") == (str(pid(it)), False) and pid(it) != old
            assert not call.done()
            (folder / "go").touch()
        assert call.result() == (str(old), False)
        await it.until(lambda: not runs(old), "the end of the old one")


async def test_a_call_that_takes_longer_fails_when_the_old_process_has_had_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_DRAIN", 0.2)
    made = tool("t", {"on": "tool_call", "do": ["touch:begun", "hang"]}, stop_grace_ms=200)
    folder = tmp_path / "extensions" / "t"
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.ready()
        old = pid(it)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(it.call("t"))
            await it.until((folder / "begun").exists, "the call")
            assert (await reload(it, "t")).problems == ()
            began = asyncio.get_running_loop().time()
            text, is_error = await call
        assert asyncio.get_running_loop().time() - began < 5
        assert is_error and "t was stopped before it answered t" in text and "outcome is unknown" in text
        await it.until(lambda: not runs(old), "the end of the old one")
        assert it.status("t").state == "ready"


async def test_a_call_that_was_about_to_be_sent_to_the_old_process_is_said_not_to_have_been_run(tmp_path: Path) -> None:
    made = tool("t", {"on": "tool_call", "do": "answer:$PID"})
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.ready()
        chosen, old = it.session.parts.registry.snapshot().tool("t"), pid(it)
        assert chosen
        assert (await reload(it, "t")).problems == ()
        await it.until(lambda: not runs(old), "the end of the old one")
        output = await chosen.invoke(Invocation("1", {}, unseen))
        assert output.is_error and "t was stopped and t was not run" in text_of(output.content)
        assert await it.call("t") == (str(pid(it)), False)


async def unseen(text: str) -> None:
    raise AssertionError(text)


async def test_many_reloads_at_once_end_with_one_process(tmp_path: Path) -> None:
    async with nothing_left(), extended(tmp_path, tool("t"), tool("well")) as it:
        await it.ready()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(reload(it, name)) for name in ("t", "", "t", "well", "")]
        assert all(task.result().problems == () for task in tasks)
        await it.until(lambda: len(our_children()) == 2, "the end of all old ones")
        assert our_children() == {pid(it), pid(it, "well")}


async def test_reloading_one_that_is_still_starting_waits_for_its_deadline_and_no_longer(tmp_path: Path) -> None:
    made = chaos("t", "touch:begun", "hang", start_timeout_ms=500, stop_grace_ms=100)
    folder = tmp_path / "extensions" / "t"
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.until((folder / "begun").exists, "the first start")
        answering("second").write(tmp_path / "extensions")
        assert (await reload(it, "t")).problems == ()
        assert await it.call("t") == ("second", False)
        await it.until(lambda: our_children() == {pid(it)}, "the end of the first")


async def test_a_mistake_of_the_host_costs_one_extension_and_its_reload_is_answered(tmp_path: Path) -> None:
    broken = True

    def opener(spec: Spec) -> AbstractAsyncContextManager[Program]:
        if broken and spec.cwd.name == "t":
            raise RuntimeError("unforeseen")
        return started(spec)

    async with nothing_left(), extended(tmp_path, tool("t"), tool("well"), opener=opener) as it:
        assert "unforeseen" in (await it.state("t", "failed")).reason
        assert (await reload(it, "t")).problems[0].startswith("t: ")
        await it.until(lambda: "unforeseen" in it.status("t").reason, "the same again")
        broken = False
        assert (await reload(it, "t")).problems == ()
        await it.ready("t", "well")
        assert await it.call("well") == ("ok", False)


async def test_a_mistake_in_the_middle_of_a_reload_is_its_answer(tmp_path: Path) -> None:
    def again() -> Found:
        raise RuntimeError("unforeseen")

    async with nothing_left(), extended(tmp_path, tool("t"), tool("well")) as it:
        await it.ready()
        async with asyncio.timeout(20):
            outcome = await it.host._supervisors["t"].reload(again)
        assert outcome.problem == "t: internal error: RuntimeError: unforeseen" and not outcome.stopped
        assert it.status("t").state == "failed" and not it.status("t").tools
        assert "unknown tool" in (await it.call("t"))[0]
        assert (await reload(it, "t")).problems == ()
        assert await it.call("t") == await it.call("well") == ("ok", False)


# L15: a program that is being written


async def test_a_binary_that_is_being_written_or_half_there_does_not_replace_the_one_that_runs(tmp_path: Path) -> None:
    binary = compiled(tmp_path)
    whole = binary.read_bytes()
    made = Made("add", {"exec": "./add"})
    program = made.write(tmp_path / "extensions") / "add"
    program.write_bytes(whole)
    program.chmod(0o755)
    async with nothing_left(), extended(tmp_path, made, tool("well")) as it:
        await it.ready()
        old = pid(it, "add")
        assert await it.call("add", a=2, b=3) == ("5", False)
        other = program.with_name("add.new")
        other.write_bytes(whole)
        other.chmod(0o755)
        other.replace(program)
        with program.open("r+b"):
            assert "its file is being written" in (await reload(it, "add")).problems[0]
            assert pid(it, "add") == old and await it.call("add", a=2, b=3) == ("5", False)
        os.truncate(program, len(whole) // 3)
        assert "the one that was running goes on" in (await reload(it, "add")).problems[0]
        assert pid(it, "add") == old and await it.call("add", a=2, b=3) == ("5", False)
        assert await it.call("well") == ("ok", False)
        program.write_bytes(whole)
        assert (await reload(it, "add")).problems == ()
        assert pid(it, "add") != old and await it.call("add", a=2, b=3) == ("5", False)


async def test_a_first_start_while_its_file_is_written_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.05)
    made = Made("add", {"exec": "./add"})
    program = made.write(tmp_path / "extensions") / "add"
    program.write_bytes(compiled(tmp_path).read_bytes())
    program.chmod(0o755)
    writer = os.open(program, os.O_WRONLY)
    try:
        async with nothing_left(), extended(tmp_path, made) as it:
            assert "its file is being written" in (await it.state("add", "restarting")).reason
            os.close(writer)
            writer = -1
            await it.ready("add")
            assert await it.call("add", a=2, b=3) == ("5", False)
    finally:
        if writer >= 0:
            os.close(writer)


def compiled(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    source = Path(__file__).with_name("programs") / "c" / "checker.c"
    binary = folder / "checker"
    subprocess.run([compiler, "-std=c99", "-o", binary, source], check=True)
    return binary


# Watching, with the whole program


@JSONRPC_ONLY
def test_watching_sees_an_entry_in_a_directory_below_and_reads_the_manifest_again(tmp_path: Path) -> None:
    def saying(word: str, **manifest: Any) -> Path:
        made = tool("t", {"on": "tool_call", "match": {"args": {}}, "do": f"answer:{word}"}, **manifest)
        # What it does is in its entry, so that this is what changes.
        command = shlex.join([sys.executable, "-I", "-S", str(CHAOS), made.files.pop("chaos.json")])
        made.files = {"lib/run.sh": f"exec {command}\n"}
        made.manifest["entry"] = "lib/run.sh"
        return made.write(tmp_path / "extensions")

    folder = saying("first")
    hilt = Hilt(tmp_path)
    with hilt.rpc("--provider", "demo", "--ext", str(folder), "--watch-ext") as rpc:
        rpc.event("ext_status", extension="t", state="ready")
        assert answer(rpc) == "first"
        (folder / "lib" / "run.sh").write_text("exit 64\n")
        told = rpc.event("notice", level="warn")["message"]
        assert told.startswith("t: exited with code 64") and "the one that was running goes on" in told
        assert answer(rpc) == "first"
        saying("second")
        assert "t changed on disk and was reloaded" in rpc.event("notice", level="info")["message"]
        assert answer(rpc) == "second"
        saying("second", version="9")
        rpc.event("notice", level="info")
        [status] = rpc.ask("extensions")["data"]["extensions"]
        assert status["version"] == "9"
        assert rpc.close() == 0


@FRAMES_ONLY
def test_watching_reloads_what_changes_on_disk_and_keeps_the_old_while_it_is_broken(tmp_path: Path) -> None:
    def saying(word: str, script: str) -> Made:
        """What its command line names is watched, so that is named a second time."""
        args = ["-I", "-S", str(CHAOS), f"@{script}", script]
        return Made("t", {"exec": sys.executable, "args": args}, {script: answering(word).files["chaos.json"]})

    folder = saying("first", "a").write(tmp_path / "extensions")
    hilt = Hilt(tmp_path)
    with hilt.rpc("--provider", "demo", "--ext", str(folder), "--watch-ext") as rpc:
        rpc.event("ext_status", extension="t", state="ready")
        assert answer(rpc) == "first"
        (folder / "a").write_text('["hello:t", {"on')
        told = rpc.event("notice", level="warn")["message"]
        assert told.startswith("t: exited with code 64") and "the one that was running goes on" in told
        assert answer(rpc) == "first"
        saying("second", "a").write(tmp_path / "extensions")
        assert "t changed on disk and was reloaded" in rpc.event("notice", level="info")["message"]
        assert answer(rpc) == "second"
        # A manifest that names another program: that one is watched from then on.
        saying("third", "b").write(tmp_path / "extensions")
        rpc.event("notice", level="info")
        assert answer(rpc) == "third"
        saying("fourth", "b").write(tmp_path / "extensions")
        rpc.event("notice", level="info")
        assert answer(rpc) == "fourth"
        assert rpc.close() == 0


def answer(rpc: Rpc) -> str:
    [result] = [line for line in rpc.prompt("call `t`") if line["type"] == "tool_result"]
    return str(result["content"][0]["text"])
