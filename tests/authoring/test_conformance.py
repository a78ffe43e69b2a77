"""The rules of the protocol: good extensions keep them all, and each rule is broken by one that breaks no other."""

import os
import sys
from pathlib import Path

import pytest

from authoring.actors import frames, jsonrpc
from hilt.authoring.conformance.checking import check
from hilt.authoring.conformance.rules import RULES, Report

EXAMPLE = Path(__file__).parents[2] / "examples" / "extensions" / "project-kit"
SUM = {"add": {"a": 1, "b": 2}}


def failed(report: Report) -> dict[str, tuple[str, ...]]:
    return {finding.rule.id: finding.offences for finding in report.failed}


def skipped(report: Report) -> set[str]:
    return {finding.rule.id for finding in report.findings if finding.state == "not applicable"}


async def test_good_extensions_of_both_dialects_keep_every_rule(tmp_path: Path) -> None:
    for make, elsewhere in ((frames, {"kinds"}), (jsonrpc, {"ready"})):
        folder = tmp_path / make.__name__
        folder.mkdir()
        report = await check(make(folder), tmp_path, SUM)

        assert failed(report) == {} and report.conforms
        assert skipped(report) == elsewhere
        assert report.passed == report.applicable == len(RULES) - 1


async def test_the_example_keeps_all_that_it_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    report = await check(EXAMPLE, tmp_path)

    assert report.conforms, failed(report)
    assert "calls" in skipped(report)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("handshake", "it closed its output and exited with code 3"),
        ("ready", "it did not"),
        ("name", "'other', and the manifest says 'actor'"),
        ("json-lines", "'loading…'"),
        ("schema", 'message: 7 is not of type "string"'),
        ("names", "tool 'two words'"),
        ("tool-schemas", "it is of 'array'"),
        ("descriptions", "tool add has none"),
        ("unknown-tool", "as if there were one"),
        ("missing-arguments", "before it exited with code 1"),
        ("unknown-command", "as if there were one"),
        ("intercepts", "was not answered within 0.3 s"),
        ("harmless", "tool_call: block"),
        ("unknown-message", "before it exited with code 7"),
        ("unknown-fields", "before it exited with code 8"),
        ("garbage", "before it exited with code 1"),
        ("concurrent", "question 2 of 2 was not answered"),
        ("once", "was answered 2 times"),
        ("cancel", "before it exited with code 5"),
        ("calls", "add failed: no idea"),
        ("quiet", '"message":"bye"'),
        ("shutdown", "it exited with code 6"),
        ("end-of-input", "it did not end within 0.3 s"),
        ("poor-host", "it exited with code 4"),
        ("unannounced", "tool_progress was not announced"),
        ("no-secrets", "its log has the value of $HILT_CONFORMANCE"),
    ],
)
async def test_a_broken_rule_is_found_and_no_other(tmp_path: Path, rule: str, told: str) -> None:
    more = {"guard": {"timeout_ms": 300}} if rule == "intercepts" else {}
    grace = 300 if rule == "end-of-input" else 2000
    broken = frames(tmp_path, rule, stop_grace_ms=grace, **more)
    report = await check(broken, tmp_path, SUM, patience=2.5 if rule == "concurrent" else 20.0)

    found = failed(report)
    assert found.keys() == {rule}
    assert told in found[rule][0], found
    [level] = [one.level for one in RULES if one.id == rule]
    assert report.conforms is (level == "should")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("kinds", "messageHook/onMessage: no hook"),
        ("unknown-message", "expected the error −32601"),
        ("unannounced", "setStatus was not announced"),
    ],
)
async def test_what_only_the_other_dialect_can_break_is_found_there(tmp_path: Path, rule: str, told: str) -> None:
    found = failed(await check(jsonrpc(tmp_path, rule), tmp_path))

    assert found.keys() == {rule}
    assert told in found[rule][0], found


async def test_one_that_does_not_stay_is_asked_nothing(tmp_path: Path) -> None:
    report = await check(frames(tmp_path, "leaving"), tmp_path)

    assert failed(report) == {"handshake": ("right after the opening, it exited with code 9",)}


def test_every_rule_has_an_extension_that_breaks_it_and_says_why_and_how_to_mend_it() -> None:
    mine = test_a_broken_rule_is_found_and_no_other.pytestmark  # type: ignore[attr-defined]  # pytest puts it there
    broken = {rule for rule, _ in mine[0].args[1]} | {"kinds"}

    assert broken == {rule.id for rule in RULES}
    assert all(rule.says.endswith(".") and rule.why.endswith(".") and rule.fix.endswith(".") for rule in RULES)
