"""`hilt ext replay`: a trace played to an extension again; what it does differently is shown, and nothing else."""

import json
import textwrap
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hilt.authoring.comparing import Places, changes, comparable
from hilt.cli.ext.replaying import replay_trace
from hilt.cli.ext.site import Site
from hilt.errors import UsageError
from hilt.model.extensions import Dialect
from support.agent import calls, says
from support.ext_site import ExtSite
from support.extending import Made, chaos
from support.hilt_process import living_in

CURIOUS = """
    import json, sys, time

    def say(**frame):
        print(json.dumps(frame), flush=True)

    def hear():
        return json.loads(sys.stdin.readline())

    say(type="hello", name="curious", version="1")
    told = hear()
    say(type="register_tool", name="where", description="Says where it is.", schema={"type": "object"})
    say(type="ready")
    open(told["data_dir"] + "/was-here", "a").write("once")
    for number in range(1000):
        frame = hear()
        if frame["type"] == "shutdown":
            break
        say(type="host_request", id=f"{time.time()}", method="host/config.get", params={"keys": ["KEY"]})
        answer = hear()
        keys = answer.get("result", answer.get("error"))
        said = {"at": told["cwd"], "data": told["data_dir"], "keys": keys, "time": time.time(), "pid": number}
        text = json.dumps({"at": said["at"], "data": said["data"]}) + time.strftime(" at %Y-%m-%dT%H:%M:%SZ")
        say(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text}], structured_content=said)
"""


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path)


def curious(change: Callable[[str], str] = str) -> Made:
    return Made("curious", {"exec": "python3", "args": ["-S", "x.py"]}, {"x.py": change(textwrap.dedent(CURIOUS))})


def replayed(site: ExtSite, against: Path, **given: Any) -> dict[str, Any]:
    """What the verb has to say, without a process of its own; it starts one anyway."""
    usual = {"file": str(site.project / "t.jsonl"), "extension": "", "process": 0, "timeout": 5.0}
    usual |= {"ignore": ["version", "capabilities"]}
    with living_in(site):
        told = replay_trace(Site.here(), Namespace(against=str(against), **(usual | given)))
    assert told.code == bool(told.value["findings"]) == (not told.value["ok"])
    return {**told.value, "text": told.text}


def kinds(outcome: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["kind"], one["what"]) for one in outcome["findings"]]


def write_trace(site: ExtSite, name: str, dialect: Dialect, *lines: tuple[str, dict[str, Any]]) -> None:
    """A trace of what hilt (`>`) and the extension (`<`) said."""
    way = {">": "to_extension", "<": "from_extension", "*": "lifecycle"}
    head = {"time": "2026-01-01T00:00:00.000000Z", "at": 0.5, "extension": name, "pid": 9, "dialect": dialect}
    text = "".join(json.dumps({**head, "direction": way[sign], "frame": frame}) + "\n" for sign, frame in lines)
    (site.project / "t.jsonl").write_text(text)


HELLO = ("<", {"type": "hello", "name": "x"})
ACK = (">", {"type": "hello_ack", "protocol_version": 1, "cwd": "/nowhere/at/all"})
READY = ("<", {"type": "ready"})


def test_one_that_has_not_changed_shows_no_difference_wherever_and_whenever_it_runs(site: ExtSite) -> None:
    script = site.script(calls(("where", {}), ("where", {})), says("done"))
    there = site.folder / "there"
    there.mkdir()
    trace = str(site.project / "t.jsonl")
    site.run("-p", "go", *script, "--ext", str(site.make(curious())), "--trace", trace, cwd=str(there))
    same = replayed(site, site.make(curious()))

    assert same["findings"] == [] and same["notes"] == [] and "no difference" in same["text"]
    assert (site.folder / "sources/curious/was-here").read_text() == "once"  # now it is told of other places
    assert (same["sent"], same["same"]) == (6, 7)  # hello_ack, two calls and the answers within, shutdown

    other = site.make(curious(lambda text: text.replace('"KEY"', '"OTHER"').replace("Says", "Tells")))
    asked = replayed(site, other)
    assert kinds(asked)[0] == ("changed", "register_tool where")
    assert {kind for kind, what in kinds(asked) if what == "host_request host/config.get"} == {"changed"}
    assert 'host/config.get {"keys":["OTHER"]}, to which the trace has no answer' in asked["notes"][0]
    results = [one for one in asked["findings"] if one["what"] == "tool_result to tool_call where"]
    assert len(results) == 2 and "not asked when the trace was written" in json.dumps(results[0]["now"])
    assert '    - description: "Says where it is."\n    + description: "Tells where it is."' in asked["text"]


@pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])
def test_what_an_extension_of_either_dialect_does_differently_is_told_apart(site: ExtSite, dialect: Dialect) -> None:
    def made(*items: Any, answer: str = "answer:sunny") -> Path:
        called = {"on": "tool_call", "do": [answer]}
        parts = ("hello", "register_tool:weather", "register_command:rain", *items, "ready")
        return site.make(chaos("w", *parts, called, dialect=dialect))

    script = site.script(calls(("weather", {"city": "Rome"})), says("done"))
    recorded = site.run("-p", "go", *script, "--ext", str(made("notify:old")), "--trace", "t.jsonl")
    assert recorded.code == 0
    same = replayed(site, made("notify:old"))
    other = replayed(site, made("notify:old", "notify:new", "register_tool:more", answer="answer:rainy"))
    less = site.make(chaos("w", "hello", "register_tool:weather", "ready", dialect=dialect))
    fewer = replayed(site, less, timeout=1.0, ignore=["text", "content"])

    assert same["findings"] == []
    [changed, *new] = other["findings"]
    assert changed["kind"] == "changed" and changed["line"] > 0 and len(changed["differences"]) == 1
    difference = changed["differences"][0]
    assert difference["path"].endswith("content[0].text")
    assert (difference["before"], difference["after"]) == ("sunny", "rainy")
    assert [one["kind"] for one in new] == ["new", "new"] and "more" in other["text"]
    assert [kind for kind, _ in kinds(fewer)] == ["missing", "missing"]
    assert all("did not come within 1 s" in what for _, what in kinds(fewer))


def test_answers_may_come_in_any_order_and_their_own_ids_and_the_time_of_day_do_not_count(site: ExtSite) -> None:
    made = site.make(
        chaos(
            "x",
            "hello",
            "ready",
            {"on": "tool_call", "match": {"id": "1"}, "do": ["await:tool_call", "answer:first"]},
            {"on": "tool_call", "match": {"id": "2"}, "do": ["host_request:host/toolDefs", "answer:second"]},
        )
    )
    asked = {"type": "host_request", "id": "their own", "method": "host/toolDefs"}
    call: list[dict[str, Any]] = [{"type": "tool_call", "id": id_, "name": "t", "args": {}} for id_ in ("1", "2")]
    texts = {"1": "first", "2": "second"}
    result = [{"type": "tool_result", "id": id_, "content": [{"type": "text", "text": texts[id_]}]} for id_ in texts]
    answer = (">", {"type": "host_response", "id": "their own", "result": {"tools": []}})
    end = (">", {"type": "shutdown"}), ("<", {"type": "shutdown_ack"}), ("*", {"type": "exit", "code": 0})
    steps = (">", call[0]), (">", call[1]), ("<", result[0]), ("<", asked), answer, ("<", result[1])
    write_trace(site, "x", "frames", HELLO, ACK, READY, *steps, *end)
    outcome = replayed(site, made)
    assert outcome["findings"] == [] and outcome["same"] == 6 and outcome["sent"] == 5

    trace = site.project / "t.jsonl"
    trace.write_text(trace.read_text().replace('"first"}]}', '"fir… [9 more characters]"}]}, "cut": 300000'))
    part = replayed(site, made)
    assert part["findings"] == [] and part["same"] == 5 and "is not whole in the trace" in part["notes"][0]


def test_one_that_falls_silent_talks_without_end_or_dies_does_not_hold_the_replay_up(site: ExtSite) -> None:
    calls_ = [(">", {"type": "tool_call", "id": str(n), "name": "t", "args": {}}) for n in range(9)]
    answers = [("<", {"type": "tool_result", "id": str(n), "content": []}) for n in range(9)]
    rounds = [step for pair in zip(calls_, answers, strict=True) for step in pair]
    write_trace(site, "x", "frames", HELLO, ACK, READY, *rounds, ("*", {"type": "exit", "code": 0}))
    talks = ["notify:and another thing $N", "sleep:0.01", "again:100000"]
    silent = replayed(site, site.make(chaos("x", "hello", "ready", {"on": "tool_call", "do": []})), timeout=0.2)
    endless = replayed(site, site.make(chaos("x", "hello", "ready", {"on": "tool_call", "do": talks})), timeout=0.2)
    dead = replayed(site, site.make(chaos("x", "hello", "ready", {"on": "tool_call", "do": ["log:argh", "exit:3"]})))

    for outcome in (silent, endless):
        *missing, stopped = [one for one in kinds(outcome) if one[0] in ("missing", "stopped")]
        assert 3 <= len(missing) <= 4 and all(what.endswith("did not come within 0.2 s") for _, what in missing)
        assert stopped == ("stopped", "it has not said what was expected 3 times in a row")
    assert ("exit", "it exited with code 3; then it exited with code 0") in kinds(dead)
    assert ("stopped", "it closed its output") in kinds(dead) and "argh" in dead["text"]


def test_whose_part_is_played_is_clear_or_asked_for(site: ExtSite) -> None:
    write_trace(site, "x", "frames", ("*", {"type": "started"}), HELLO, ACK, READY)
    trace = site.project / "t.jsonl"
    first = trace.read_text()
    write_trace(site, "y", "frames", HELLO, ACK)
    trace.write_text(first + trace.read_text() + first.replace('"pid": 9', '"pid": 10') + "{torn")
    extension = site.make(chaos("x", "hello", "ready"))

    assert replayed(site, extension)["same"] == 2 == replayed(site, extension, extension="x", process=10)["same"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"extension": "z"}, "it has x, y"),
        ({"process": 77}, "it has 9, 10"),
        ({"file": "no"}, "No such"),
    ]
    for given, message in wrong:
        with pytest.raises(UsageError) as caught:
            replayed(site, extension, **given)
        assert message in f"{caught.value.message} {caught.value.hint}"
    done = site.ext("replay", str(trace), "--against", str(extension), "--extension", "y", "--ignore", "capabilities")
    assert done.code == 1 and '~ line 5: hello x\n    + version: "1.0.0"\n' in done.out


def test_what_a_trace_hides_and_where_things_were_is_taken_for_what_it_is_now() -> None:
    places = Places.of({"cwd": "/a/b", "data_dir": "/a/b/data"}, {"cwd": "/new", "datadir": "/a/b"})
    frame = {"x": ["in /a/b/data/f and /a/b/g", "/a/bc"], "y": 1}
    assert places.here(frame) == {"x": ["in /a/b/f and /new/g", "/a/bc"], "y": 1}
    assert places.there(places.here(frame)) == frame
    recorded = comparable({"type": "notify", "message": "key [key hidden].", "took_ms": 3, "level": None}, ())
    now = comparable({"type": "notify", "message": "key abc.", "elapsed": 4, "flag": False}, ())
    assert changes(recorded, now) == [] and changes(recorded, {**now, "message": "key abc!"}) != []
    assert changes({"n": True}, {"n": 1}) != [] and changes({"l": [1, 2]}, {"l": [1]})[0].path == "l[1]"
