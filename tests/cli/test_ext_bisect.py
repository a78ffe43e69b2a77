"""`hilt ext bisect`: the extension, or the few together, that cause a problem, found without changing anything."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.authoring.bisect import Names, Outcome, bisect
from support.agent import says
from support.ext_site import ExtSite
from support.extending import tool
from support.hilt_process import Rpc, until
from support.properties import patient

NAMES = tuple("abcdef")


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    site = ExtSite(tmp_path)
    for name in NAMES:
        tool(name).write(site.home / "extensions")
    tool("named").write(site.folder)
    return site


def sh(condition: str) -> tuple[str, ...]:
    """A command that is bad when this holds of `$HILT_ONLY_EXT`, with commas at both ends."""
    return ("--", "sh", "-c", f'echo tried; case ",$HILT_ONLY_EXT," in {condition} *) exit 0;; esac')


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, set[int]]:
    """How many there are, and which of them it takes."""
    count = draw(st.integers(1, 16))
    return count, draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3))


def listed(rpc: Rpc) -> list[dict[str, Any]]:
    return list(rpc.ask("extensions")["data"]["extensions"])


@patient
@given(problems())
def test_what_is_found_is_exactly_what_it_takes_in_few_tries(drawn: tuple[int, set[int]]) -> None:
    count, places = drawn
    names = tuple(f"e{place}" for place in range(count))
    culprits = {names[place] for place in places}
    found = bisect(names, lambda tried: "bad" if culprits <= set(tried) else "good")

    assert set(found.culprits) == culprits and found.verdict == ("found" if len(culprits) == 1 else "together")
    assert len({run.names for run in found.runs}) == len(found.runs)
    if len(culprits) == 1:
        assert len(found.runs) <= 2 + 2 * (count - 1).bit_length()


@pytest.mark.parametrize(
    ("whole", "none", "verdict"),
    [
        ("good", "good", "not_bad"),
        ("bad", "bad", "always_bad"),
        ("skip", "good", "unclear"),
        ("bad", "skip", "unclear"),
    ],
)
def test_a_problem_that_does_not_depend_on_them_is_no_problem_of_theirs(
    whole: Outcome, none: Outcome, verdict: str
) -> None:
    def attempt(names: Names) -> Outcome:
        assert names in (NAMES, ()), "nothing else needs to be tried"
        return whole if names else none

    assert bisect(NAMES, attempt).verdict == verdict


def test_what_cannot_be_tried_is_left_out_and_said(site: ExtSite) -> None:
    found = bisect(NAMES, lambda names: "bad" if {"b", "c"} <= set(names) else "skip" if "c" in names else "good")
    assert set(found.culprits) >= {"b", "c"} and found.skipped


def test_a_command_finds_the_one_or_those_that_are_bad_together_and_nothing_is_changed(site: ExtSite) -> None:
    site.ext("list")
    before = site.left()
    one = site.ext("bisect", *sh("*,e,*) exit 3;;"))
    two = site.ext("bisect", "--json", *sh("*,b,*f,*) exit 1;;"))
    value = json.loads(two.out)

    assert one.code == 0 and one.out.startswith("e causes it\n") and "tried" in one.err and "tried" not in one.out
    assert "1. with a, b, c, d, e and f (6 of 6)\n" in one.err and "2. with none (0 of 6)" in one.err
    assert two.code == 0 and (value["verdict"], value["culprits"]) == ("together", ["b", "f"])
    assert value["runs"][0] == {"names": list(NAMES), "outcome": "bad"}
    for command, why in ((sh("x) exit 1;;"), "it is not bad with all"), (sh("*) exit 1;;"), "bad without any")):
        done = site.ext("bisect", *command)
        assert done.code == 1 and why in done.out
    assert site.ext("bisect", "--", "./no-such-program").code == site.ext("bisect").code == 2
    assert site.ext("bisect", *sh("*,a,*) exit 130;;")).code == 130
    assert site.left() == before


def test_a_person_is_asked_when_there_is_no_command_and_may_leave_at_any_time(site: ExtSite) -> None:
    asked = site.terminal("bisect")
    for answer in ("y", "what?", "no", "no", "yes", "y"):
        asked.expect_exact("is it still bad? yes, no, skip or quit: ")
        asked.sendline(answer)
    asked.expect(r"(\w) causes it")
    asked.expect_exact("hilt ext disable d")
    asked.wait()
    left = site.terminal("bisect")
    left.expect_exact("HILT_ONLY_EXT=a,b,c,d,e,f hilt")
    left.sendline("quit")
    left.expect_exact("nothing was changed")
    left.wait()
    interrupted = site.terminal("bisect", "--", sys.executable, "-c", "print('busy', flush=True); input()")
    interrupted.expect_exact("busy")
    interrupted.sendintr()
    interrupted.wait()
    assert (asked.exitstatus, left.exitstatus, interrupted.exitstatus) == (0, 130, 130)


def test_only_those_that_the_variable_names_run_beside_those_that_a_flag_names(site: ExtSite) -> None:
    script = site.script(says("hi"))
    with site.rpc(*script, "--ext", str(site.folder / "named"), env={"HILT_ONLY_EXT": "b, e,typo"}) as rpc:
        until(lambda: sum(one["state"] == "ready" for one in listed(rpc)) == 3, "three that are ready")
        rows = listed(rpc)
    states = {row["name"]: row["state"] for row in rows}
    reasons = {row.get("reason") for row in rows if row["state"] == "disabled"}

    assert {name for name, state in states.items() if state == "ready"} == {"b", "e", "named"}
    assert {name for name, state in states.items() if state == "disabled"} == {"a", "c", "d", "f"}
    assert reasons == {"HILT_ONLY_EXT does not name it"}
    assert any('HILT_ONLY_EXT names "typo"' in line.get("message", "") for line in rpc.lines)
