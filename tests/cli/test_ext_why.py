"""`hilt ext why`: who had a say in a tool call, in what order, what each changed, and how long it took."""

import json
from argparse import Namespace
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from hilt.cli.ext.site import Site, Told
from hilt.cli.ext.why import explain
from hilt.errors import HiltError
from hilt.sessions.calls import calls_of
from hilt.sessions.log import SessionLog
from hilt.sessions.records import NoteRecord
from support.agent import calls, says
from support.ext_site import ExtSite
from support.extending import Made, chaos
from support.hilt_process import living_in
from support.offerer import Ask
from support.offering import offering

ASKED = {"command": "echo one", "timeout": 20}
SAFE = {"command": "echo two", "timeout": 20}


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def guard(name: str, *do: str) -> Made:
    return chaos(name, "hello", "intercept:tool_call", {"on": "event_intercept", "do": list(do)}, "ready")


def shout(ask: Ask) -> Any:
    return {"content": ask.params["content"][0]["text"].upper()}


def why(site: ExtSite, call: str = "", session: str = "", cwd: Path | None = None) -> Told:
    """The verb without a process of its own: there are many questions."""
    with living_in(site), chdir(cwd or site.project):
        return explain(Site.here(), Namespace(call=call, session=session))


def run(site: ExtSite, *made: Made, flags: tuple[str, ...] = ()) -> str:
    """The id of the one call."""
    named = [flag for one in made for flag in ("--ext", str(site.make(one)))]
    site.run("-p", "go", *site.script(calls(("bash", ASKED)), says("done")), *named, *flags)
    return str(why(site).value["calls"][0]["id"])


def test_of_a_call_it_is_told_who_was_asked_what_each_changed_and_how_long_it_took(site: ExtSite) -> None:
    loud = offering("loud", ("interceptor", {"name": "i"}), answers={"interceptor/after": shout}, dialect="jsonrpc")
    made = (
        guard("first", "answer"),
        guard("safe", f"rewrite:{json.dumps(SAFE)}"),
        guard("last", "sleep:0.05", "answer"),
        loud,
    )
    id_ = run(site, *made)
    done, told = site.ext("why", id_[:-1]), site.json("why", id_)
    lines = done.out.splitlines()

    assert done.code == 0 and "bash, made by the model" in lines[0]
    assert [(one["extension"], one["decision"]) for one in told["guards"]][:3] == [
        ("first", "allow"),
        ("safe", "rewrite"),
        ("last", "allow"),
    ]
    assert all(one["ms"] > 0 for one in told["guards"]) and told["guards"][2]["ms"] >= 50
    assert told["args"] == ASKED and told["guards"][1]["changed"] == SAFE and told["outcome"] == "changed"
    assert [(one["extension"], one["decision"]) for one in told["reviews"]] == [("loud", "replace")]
    assert told["reviews"][0]["ms"] > 0 and told["original"].startswith("$ echo two") and told["status"] == "completed"
    text = [line.strip() for line in lines]
    assert '- command: "echo one"' in text and '+ command: "echo two"' in text
    for part in (
        "1. first allowed it (",
        "2. safe changed the arguments (",
        "loud changed the result (",
        "-$ echo two",
    ):
        assert any(part in line for line in lines), part
    assert {"-$ echo two", "+$ ECHO TWO", "permission: not asked for"} <= set(text)
    assert "result: completed: $ ECHO TWO" in done.out


def test_who_refused_a_call_and_why_is_told_be_it_a_guard_or_the_permission(site: ExtSite) -> None:
    refused = why(site, run(site, guard("strict", "block:not today"))).text
    denied = why(site, run(site, flags=("--permissions", "ask")))

    assert "  before: blocked" in refused and "1. strict refused it (" in refused
    assert "not a question: it was refused before" in refused and "result: blocked: not today" in refused
    assert denied.value["permission"]["approved"] is False and denied.value["status"] == "blocked"
    assert "permission: refused by the permission mode" in denied.text and "no extension was asked" in denied.text


def test_a_call_is_looked_for_in_the_newest_session_of_the_folder_and_then_in_all_others(site: ExtSite) -> None:
    first = run(site)
    session = why(site).value["session"]
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    site.run("-p", "go", *site.script(says("nothing to do")), cwd=str(elsewhere))

    assert why(site, first, cwd=elsewhere).value["session"] == session == why(site, first, session[:8]).value["session"]
    assert "has no tool calls" in why(site, cwd=elsewhere).text
    wrong = (
        (("nonsense",), 'no call "nonsense"'),
        (("x", session), "in the session"),
        (("", "zz"), "no session matches"),
    )
    for arguments, message in wrong:
        with pytest.raises(HiltError, match=message) as caught:
            why(site, *arguments)
        assert caught.value.hint


def test_records_of_other_versions_cost_nothing_but_themselves(site: ExtSite) -> None:
    id_ = run(site, guard("first", "answer"))
    [path] = site.sessions()
    with SessionLog.open(path) as log:
        for kind in ("interception", "permission", "result_interception", "result_changed", "extension_call"):
            log.append(NoteRecord(kind, {"id": id_, "what": ["is", "this"]}))
        log.append(NoteRecord("result_changed", {"id": id_, "by": ["old"], "original": {"content": [{"text": "was"}]}}))
        log.append(NoteRecord("extension_call", {"id": "ext_1", "name": "t", "extension": "e", "status": "failed"}))
        log.append(NoteRecord("extension_call", {"id": "ext_2", "name": "t", "extension": "e", "status": "failed"}))
        [call, made, _] = calls_of(log)
    assert call.guards[0].extension == "first" and (call.changed_by, call.original) == (["old"], "was")
    assert (made.by, made.status) == ("e", "failed")
    assert "after: changed by old" in why(site, id_).text and "made for extension e" in why(site, "ext_1").text
    with pytest.raises(HiltError, match=r"2 calls of session .* ext_1, ext_2"):
        why(site, "ext_")
