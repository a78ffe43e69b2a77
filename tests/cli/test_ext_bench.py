"""`hilt ext bench`: figures that add up, beside a bare extension that is measured in the same run."""

from pathlib import Path
from typing import Any

import pytest

from hilt.authoring import bench
from hilt.errors import ExtensionFailure, ExtensionTimeout
from support.ext_site import ExtSite
from support.extending import tool

SLEEPY = {"on": "tool_call", "do": ["sleep:0.02", "answer"]}


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "_WARMING", 1)
    monkeypatch.setattr(bench, "_BUDGET", 0.1)


def orderly(spread: bench.Spread) -> bool:
    figures = [spread.least, spread.p50, spread.p95, spread.p99, spread.most]
    return figures[0] > 0 and figures == sorted(figures)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])
async def test_a_slow_extension_is_measured_as_slow_and_less_often(site: ExtSite, dialect: Any) -> None:
    path = site.make(tool("slow", SLEEPY, dialect=dialect))
    done = await bench.bench(path, site.project, "slow", {"n": 1}, 10_000, {})
    measured, bare = done.measured, done.bare
    assert (done.name, done.question) == ("slow", "tool slow")
    assert all(orderly(one) for figures in (measured, bare) for one in (figures.start, figures.call, figures.at_once))
    assert measured.call.least >= 20 > bare.call.least, "milliseconds: the tool takes 20"
    assert done.ratios.call[0] > 1
    assert 2 <= measured.call.count < 100 and measured.at_once.count < 200, "there was no time for 10,000"
    assert measured.memory and bare.memory and min(measured.memory, bare.memory) > 1_000_000


@pytest.mark.usefixtures("quick")
async def test_a_call_that_fails_or_is_not_answered_is_said_and_not_counted(site: ExtSite) -> None:
    refusing = site.make(tool("refusing", {"on": "tool_call", "do": "refuse:never"}))
    with pytest.raises(ExtensionFailure, match="refusing failed: never") as failed:
        await bench.bench(refusing, site.project, "refusing", {}, 1, {})
    assert "--args" in failed.value.hint
    mute = site.make(tool("mute", {"on": "tool_call", "do": []}, tool_timeout_ms=200))
    with pytest.raises(ExtensionTimeout, match=r"did not answer a call of .* within 0\.2 s"):
        await bench.bench(mute, site.project, "", {}, 1, {})


def test_without_a_tool_people_get_a_table_of_the_cheapest_question(site: ExtSite) -> None:
    path = str(site.make(tool("t")))
    done = site.ext("bench", path, "--calls", "5")
    assert done.code == 0, done
    assert done.out.startswith("t: 5 starts, 5 calls of a tool that it does not have")
    assert {"start", "one", "8", "memory", "bare"} <= {
        line.split()[0] for line in done.out.splitlines() if line.strip()
    }
    assert " MB" in done.out and "Times in ms." in done.out
    unknown = site.ext("bench", path, "--tool", "other")
    assert unknown.code == 2 and 't has no tool "other"\nhint: its tools are: t' in unknown.err
