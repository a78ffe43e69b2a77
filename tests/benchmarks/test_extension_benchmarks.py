"""The benchmarks of the extension host run, in little, also with a baseline in its place; figures are not judged."""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import calls
import dialects
import fanout
import hilt_host
import interception
import large
import mcp_sdk
import memory
import prototype
import pytest
import starting
from hosts import Args, Host, Opening
from programs import Program, compiled, in_c, in_python, several_in_c, write_manifest
from report import Measured

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for the other end")


@pytest.fixture
def folder() -> Iterator[Path]:
    with compiled("frames_echo") as folder:
        assert folder
        yield folder


def named(measured: list[Measured], part: str) -> Measured:
    (found,) = (one for one in measured if part in one.name)
    return found


@pytest.fixture(params=[hilt_host.opened, prototype.opened], ids=["hilt", "prototype"])
def host(request: pytest.FixtureRequest) -> Opening:
    opening: Opening = request.param
    return opening


def test_the_benchmark_of_calls_measures_every_goal_and_loses_nothing(host: Opening) -> None:
    measured = calls.run(host, rounds=2, calls=64, checked=500)
    assert [len(goal.values) for goal in measured] == [2, 2, 2, 2, 1]
    assert named(measured, "lost or crossed").values == [0]


def test_the_benchmark_of_dialects_measures_every_goal() -> None:
    measured = dialects.run(rounds=2, calls=64, deltas=2000)
    assert [len(goal.values) for goal in measured] == [2, 2, 2]


def test_the_benchmark_of_starting_measures_every_goal(host: Opening) -> None:
    measured = starting.run(host, rounds=1, count=2)
    assert [len(goal.values) for goal in measured] == [3, 1]


def test_the_benchmark_of_interception_measures_every_goal(host: Opening) -> None:
    measured = interception.run(host, rounds=2, questions=5)
    assert [len(goal.values) for goal in measured] == [2, 2, 2, 2]


def test_the_benchmark_of_events_measures_every_goal_and_finds_them_in_order(host: Opening) -> None:
    measured = fanout.run(host, rounds=2, events=5, subscribers=3, ordered=1200)
    assert [len(goal.values) for goal in measured] == [2, 2, 1]
    assert named(measured, "out of order").values == [0]


def test_the_benchmark_of_large_answers_measures_every_goal(host: Opening) -> None:
    measured = large.run(host, rounds=2, calls=1)
    assert [len(goal.values) for goal in measured] == [2, 2, 2]


def test_the_benchmark_of_memory_measures_every_goal_and_accounts_for_every_event(host: Opening) -> None:
    measured = memory.run(host, rounds=1, events=20_000)
    assert [len(goal.values) for goal in measured] == [1, 1, 1]
    assert named(measured, "nor counted").values == [0]


def test_the_benchmark_of_memory_shows_what_it_costs_to_have_no_cap() -> None:
    measured = memory.run(prototype.opened, rounds=1, events=20_000)
    assert named(measured, "nobody reads").values[0] > 0.5, "some ten thousand lines wait in memory"


class Unreliable:
    """Gives some callers what belongs to others, and tells events in the wrong order."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def call(self, tool: str, args: Args) -> str:
        answer = await self._host.call(tool, args)
        return "another's" if answer.endswith("7") else answer

    async def intercept(self, args: Args) -> Args:
        return await self._host.intercept(args)

    async def emit(self, step: int) -> None:
        await self._host.emit(step + 2 if step % 2 else step)

    def lost(self) -> int:
        return self._host.lost()


@asynccontextmanager
async def unreliable(programs: Sequence[Program]) -> AsyncIterator[Unreliable]:
    async with prototype.opened(programs) as host:
        yield Unreliable(host)


def test_a_host_that_crosses_answers_is_found_out() -> None:
    measured = calls.run(unreliable, rounds=1, calls=64, checked=100)
    assert named(measured, "lost or crossed").values == [10]


def test_a_host_that_reorders_events_is_found_out() -> None:
    measured = fanout.run(unreliable, rounds=1, events=5, subscribers=2, ordered=100)
    assert named(measured, "out of order").values[0] > 0


async def test_the_extension_answers_with_as_much_as_was_asked_for(folder: Path) -> None:
    async with prototype.opened([in_c(folder)]) as host:
        assert await host.call("echo", {"text": 'a "quoted" one\n'}) == 'a "quoted" one\n'
        padded = await host.call("echo", {"text": "begin", "size": 100_000})
        assert padded.startswith("beginxxx")
        assert len(json.dumps(padded)) - 2 == 100_000


async def test_interceptors_rewrite_in_their_order(folder: Path) -> None:
    chain = [in_c(folder, f"echo{letter}", "-i", "tool_call", "-r", letter) for letter in "abc"]
    async with prototype.opened([*chain, in_c(folder, "allows", "-i", "tool_call")]) as host:
        assert await host.intercept({"text": ">"}) == {"text": ">abc"}


async def test_a_python_extension_answers_as_the_one_in_c_does() -> None:
    async with prototype.opened([in_python()]) as host:
        assert await host.call("echo", {"text": "é"}) == "é"


def test_every_program_is_an_extension_with_a_manifest(folder: Path, tmp_path: Path) -> None:
    first, second = several_in_c(folder, 2, "-e", "turn_start")
    homes = [write_manifest(program, tmp_path) for program in (first, second)]
    manifests = [json.loads((home / "extension.json").read_text()) for home in homes]
    assert [manifest["name"] for manifest in manifests] == ["echo0", "echo1"]
    assert (manifests[0]["exec"], *manifests[0]["args"]) == first.argv


def test_the_mcp_server_in_c_answers_what_a_client_asks() -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"method": "tools/list", "jsonrpc": "2.0", "id": "a"},
        {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "id"}, "_meta": {}}, "id": 2},
        {"jsonrpc": "2.0", "id": 3, "method": "nonsense"},
    ]
    with compiled("mcp_echo") as folder:
        assert folder
        said = "".join(json.dumps(line) + "\n" for line in asked)
        printed = subprocess.run(folder / "mcp_echo", input=said, capture_output=True, text=True, timeout=10).stdout
    answers = [json.loads(line) for line in printed.split("\n")[:-1]]
    assert [answer["id"] for answer in answers] == [0, "a", 2, 3]
    assert answers[0]["result"]["protocolVersion"] == "2025-06-18"
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["echo"]
    assert answers[2]["result"]["content"] == [{"type": "text", "text": "id"}]
    assert answers[3]["error"]["code"] == -32601


def test_without_the_mcp_sdk_it_says_so_and_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_the_way = tmp_path / "environment"
    in_the_way.touch()
    assert mcp_sdk.run(prototype.opened, rounds=1, calls=1, environment=in_the_way) == []
    assert f"mcp {mcp_sdk.VERSION} cannot be installed" in capsys.readouterr().err


def test_without_a_compiler_it_says_so_and_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert calls.run(prototype.opened) == []
    assert "no C compiler" in capsys.readouterr().err
