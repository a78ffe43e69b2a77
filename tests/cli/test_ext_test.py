"""`hilt ext test`: one line a test, a diff for what fails, an exit code for CI, and fixtures written from a run."""

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from authoring.actors import fixture, frames
from hilt.cli.ext import run
from hilt.errors import ManifestError, UsageError
from support.ext_site import ExtSite
from support.hilt_process import living_in

GOOD = {"call": "add", "args": {"a": 1, "b": 2}, "result": "3"}
WRONG = {"call": "add", "args": {"a": 1, "b": 2}, "result": "\x1b[31m4"}
OF_PYTHON = """
import unittest

class Sums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(1 + 1, 2)
"""
OF_NODE = """
import { test } from "node:test";
test("fails", () => { throw new Error("no sum"); });
"""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    site = ExtSite(tmp_path)
    (frames(site.project) / "tests").mkdir()
    return site


def write(site: ExtSite, name: str, *lines: dict[str, Any]) -> Path:
    return fixture(site.project / "actor" / "tests", *lines, name=name)


def test_all_fixtures_are_played_and_the_failing_one_is_explained(site: ExtSite) -> None:
    write(site, "good", {"about": "it adds"}, GOOD)
    write(site, "wrong", GOOD, WRONG)
    write(site, "other", {"about": "no \x01 XML", "dialect": "jsonrpc"}, GOOD)
    done = site.ext("test", "actor", "--junit", "out.xml")

    assert done.code == 1
    lines = done.out.split("\n")
    assert lines[0].startswith("ok    actor/tests/good.jsonl  it adds  (")
    assert lines[1].startswith("skip  actor/tests/other.jsonl") and "speaks frames" in lines[2]
    assert lines[3].startswith("FAIL  actor/tests/wrong.jsonl:2  (")
    assert lines[4].strip() == json.dumps(WRONG)
    assert lines[5].strip() == r'result: expected "\u001b[31m4", got "3"'
    assert lines[6] == "1 passed, 1 failed, 1 skipped"
    suite = ET.parse(site.project / "out.xml").getroot()
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    assert "expected" in str(suite.findall("testcase/failure")[0].text)


def test_one_fixture_alone_and_json_for_programs(site: ExtSite, capsys: pytest.CaptureFixture[str]) -> None:
    write(site, "wrong", WRONG)
    good = write(site, "good", GOOD)
    with living_in(site):
        assert run(["ext", "test", "actor", str(good), "--json"]) == 0

    [outcome] = json.loads(capsys.readouterr().out)["outcomes"]
    assert (outcome["name"], outcome["state"]) == ("good", "passed") and outcome["seconds"] > 0


def test_a_fixture_that_cannot_be_understood_is_a_mistake_of_usage_and_nothing_runs(site: ExtSite) -> None:
    write(site, "good", GOOD)
    write(site, "bad", GOOD, {"cal": "add"})
    done = site.ext("test", "actor")

    assert (done.code, done.out) == (2, "")
    assert "actor/tests/bad.jsonl:2: there is no step 'cal'" in done.err and "did you mean 'call'?" in done.err


def test_nothing_to_test_and_nothing_to_start_are_said_so(site: ExtSite) -> None:
    with living_in(site), pytest.raises(UsageError, match="there is nothing to test"):
        run(["ext", "test", "actor"])
    write(site, "good", GOOD)
    (site.project / "actor" / "extension.json").write_text("{")
    with living_in(site), pytest.raises(ManifestError, match=r"extension\.json"):
        run(["ext", "test", "actor"])


def test_tests_in_the_language_itself_are_run_or_said_to_be_skipped(site: ExtSite, tmp_path: Path) -> None:
    tests = site.project / "actor" / "tests"
    (tests / "test_sum.py").write_text(OF_PYTHON)
    (tests / "sum.test.mjs").write_text(OF_NODE)
    (site.project / "actor" / "sum_test.go").write_text("package main\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    if node := shutil.which("node"):
        (programs / "node").symlink_to(Path(node).resolve())
    done = site.ext("test", "actor", env={"PATH": f"{programs}:/bin"})

    assert "ok    tests/test_sum.py" in done.out
    if not shutil.which("go", path="/bin"):
        assert "skip  sum_test.go  go\n      go is not on PATH" in done.out
    if node:
        assert done.code == 1 and "FAIL  tests/sum.test.mjs  node" in done.out and "no sum" in done.out
    else:
        assert "node is not on PATH" in done.out


def test_a_run_is_recorded_as_a_fixture_that_passes_at_once(site: ExtSite) -> None:
    call = {"type": "tool_call", "name": "add", "args": {"a": 2, "b": 2}}
    flags = site.script({"content": [call]}, {"content": [{"type": "text", "text": "four"}]})
    done = site.ext("test", "actor", "--record", "actor/tests/sum.jsonl", *flags[2:], "--", "what is 2 + 2?", "/hi Ada")

    assert done.code == 0, done.err
    steps = [json.loads(line) for line in (site.project / "actor/tests/sum.jsonl").read_text().splitlines()]
    assert {"call": "add", "args": {"a": 2, "b": 2}, "result": "4"} in steps
    assert {"run": "/hi Ada", "shows": "hello, Ada"} in steps
    with living_in(site):
        assert run(["ext", "test", "actor"]) == 0
        with pytest.raises(UsageError, match="is there already"):
            run(["ext", "test", "actor", "--record", "actor/tests/sum.jsonl", "--", "hi"])


def test_a_fixture_is_made_of_a_trace_and_what_differs_in_it_is_loosened(
    site: ExtSite, capsys: pytest.CaptureFixture[str]
) -> None:
    def line(way: str, **frame: Any) -> str:
        whole = {"time": "", "at": 0.0, "extension": "actor", "pid": 1, "dialect": "frames", "direction": way}
        return json.dumps({**whole, "frame": frame}) + "\n"

    asked = line("to_extension", type="tool_call", id="1", name="add", args={"a": 1, "b": 1})
    said = line("from_extension", type="tool_result", id="1", content=[{"type": "text", "text": "on Monday, 2"}])
    (site.project / "trace.jsonl").write_text(asked + said)
    with living_in(site):
        assert run(["ext", "test", "actor", "--record", "new.jsonl", "--from", "trace.jsonl"]) == 0

    assert "line 2: played again, what came of it was otherwise" in capsys.readouterr().out
    assert json.loads((site.project / "new.jsonl").read_text().splitlines()[1]) == {
        "call": "add",
        "args": {"a": 1, "b": 1},
    }
