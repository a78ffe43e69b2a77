"""`hilt rpc` with extensions: listing and reloading them, their panels, shortcuts and notes, and what they replace."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.extending import Made, chaos, tool
from support.hilt_process import Hilt, Rpc, until

PANEL = {"id": "p", "title": "Tasks", "lines": ["one"], "footer": "esc closes"}
SECRET, HIDDEN = "the word is SECRET", "the word is hidden"


def write(hilt: Hilt, *made: Made) -> list[Path]:
    return [one.write(hilt.home / "extensions") for one in made]


def extensions(rpc: Rpc) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in rpc.ask("extensions")["data"]["extensions"]}


def settle(rpc: Rpc, **states: str) -> None:
    """Wait until each has come to its state."""

    def settled() -> bool:
        told = extensions(rpc)
        return all(told[name]["state"] == state for name, state in states.items())

    until(settled, str(states))


def results(lines: list[dict[str, Any]]) -> list[str]:
    return [line["content"][0]["text"] for line in lines if line["type"] == "tool_result"]


def events(rpc: Rpc, type_: str) -> list[dict[str, Any]]:
    return [line for line in rpc.lines if line["type"] == type_]


# Listing


def test_extensions_are_listed_with_all_that_is_known_of_them(hilt: Hilt) -> None:
    offers = ("register_tool:look", "register_command:go", "intercept:tool_call")
    _, well, _ = write(
        hilt,
        chaos("sick", "log:oh no", "exit:3"),
        chaos("well", "hello", *offers, "ready", version="1.2.3"),
        Made("off", {"exec": "./run", "enabled": False}),
    )
    with hilt.rpc(*hilt.script()) as rpc:
        settle(rpc, sick="failed", well="ready")
        told = extensions(rpc)
        assert list(told) == ["sick", "well", "off"]
        assert Path(f"/proc/{told['well'].pop('pid')}/cwd").readlink() == well
        assert 0 < told["well"].pop("start_ms") < 20_000
        assert 0 < told["well"].pop("prompt_tokens") < 100
        assert told["well"] == {
            "name": "well",
            "version": "1.2.3",
            "dialect": "frames",
            "state": "ready",
            "source": "user",
            "directory": str(well),
            "sandbox": "off",
            "restarts": 0,
            "tools": ["look"],
            "commands": ["go"],
            "guards": ["tool_call"],
            "also": [],
            "events_lost": 0,
            "mistakes": 0,
            "unchecked": 0,
            "tokens_used": 0,
            "calls": 0,
            "mean_ms": 0.0,
            "worst_ms": 0.0,
            "busy_ms": 0.0,
            "log": str(hilt.home / "logs" / "ext-well.log"),
        }
        assert told["sick"]["pid"] is None
        assert "exited with code 3" in told["sick"]["last_error"]
        assert "exited with code 3" in told["sick"]["reason"] and "oh no" in told["sick"]["reason"]
        assert told["off"]["state"] == "disabled" and "enabled" in told["off"]["reason"]
        shown = rpc.ask("command", name="ext")["data"]["display"]
        assert "well 1.2.3: ready\n  offers look, /go, guards tool_call" in shown
        assert "sick: failed (exited with code 3" in shown and "off: disabled" in shown
        owners = {one["name"]: one["owner"] for one in rpc.ask("commands")["data"]["commands"]}
        assert (owners["go"], owners["ext"]) == ("well", "hilt")
        assert rpc.close() == 0
    (complaint,) = rpc.errors.splitlines()
    assert "sick" in complaint and "exited with code 3" in complaint


def test_a_prompt_is_answered_while_an_extension_is_still_starting(hilt: Hilt) -> None:
    (slow,) = write(hilt, chaos("slow", "wait_for:go", "hello", "ready"))
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        rpc.prompt("hi")
        assert extensions(rpc)["slow"]["state"] == "starting"
        (slow / "go").touch()
        settle(rpc, slow="ready")


def test_without_extensions_there_are_none_and_reloading_looks_for_new_ones(hilt: Hilt) -> None:
    with hilt.rpc(*hilt.script(calls(("late", {})), says("done"))) as rpc:
        assert extensions(rpc) == {}
        write(hilt, tool("late"))
        assert rpc.ask("reload_ext")["data"] == {
            "stopped": 0,
            "loaded": 1,
            "ready": 1,
            "problems": [],
            "message": "reloaded: 0 stopped, 1 loaded (1 ready)",
        }
        assert results(rpc.prompt("go")) == ["ok"]


# Reloading


def test_one_is_reloaded_as_it_now_is_on_the_disk_and_answered_when_it_is_ready(hilt: Hilt) -> None:
    write(hilt, tool("a"), tool("b"))
    with hilt.rpc(*hilt.script(calls(("new", {}), ("a", {}), ("b", {})), says("done"))) as rpc:
        settle(rpc, a="ready", b="ready")
        before = extensions(rpc)
        write(hilt, chaos("a", "hello", "register_tool:new", "ready", version="2"))
        assert rpc.ask("reload_ext", name="a")["data"]["message"] == "reloaded: 1 stopped, 1 loaded (1 ready)"
        after = extensions(rpc)
        assert (after["a"]["version"], after["a"]["state"], after["a"]["tools"]) == ("2", "ready", ["new"])
        assert after["a"]["pid"] != before["a"]["pid"] and after["b"] == before["b"]
        new, old, other = results(rpc.prompt("go"))
        assert (new, other) == ("ok", "ok") and 'unknown tool "a"' in old
        until(lambda: not Path(f"/proc/{before['a']['pid']}").exists(), "the end of the old process")


def test_all_are_reloaded_those_gone_are_stopped_and_one_that_is_broken_goes_on_as_it_was(hilt: Hilt) -> None:
    kept, gone, broken = write(hilt, tool("kept"), tool("gone"), tool("broken"))
    with hilt.rpc(*hilt.script(calls(("kept", {}), ("gone", {}), ("broken", {})), says("done"))) as rpc:
        settle(rpc, kept="ready", gone="ready", broken="ready")
        before = extensions(rpc)
        (gone / "extension.json").unlink()
        (broken / "extension.json").write_text('{"name":"broken","exec":7}')
        (kept / "chaos.json").write_text(json.dumps(["hello:kept", "register_tool:kept", "ready"]))
        answer = rpc.ask("command", name="reload-ext")["data"]
        assert answer["action"] == "display" and '"exec"' in answer["display"] and "broken" in answer["display"]
        after = extensions(rpc)
        assert "gone" not in after
        assert after["kept"]["pid"] != before["kept"]["pid"] and after["kept"]["state"] == "ready"
        assert (after["broken"]["pid"], after["broken"]["state"]) == (before["broken"]["pid"], "ready")
        first, second, third = results(rpc.prompt("go"))
        assert (first, third) == ("ok", "ok") and 'unknown tool "gone"' in second


@pytest.mark.parametrize(
    ("now", "name", "complaints"),
    [
        ({"exec": "./not-there"}, "a", ["a", "not-there"]),
        ({"exec": "sh", "args": ["-c", "echo oops >&2; exit 4"]}, "a", ["a", "exited with code 4", "oops"]),
        ({}, "nobody", ["no extension nobody", "a"]),
    ],
)
def test_a_reload_that_fails_says_why_and_what_ran_goes_on(
    hilt: Hilt, now: dict[str, Any], name: str, complaints: list[str]
) -> None:
    write(hilt, tool("a"))
    with hilt.rpc(*hilt.script(calls(("a", {})), says("done"))) as rpc:
        settle(rpc, a="ready")
        before = extensions(rpc)
        if now:
            write(hilt, Made("a", now))
        answer = rpc.ask("reload_ext", name=name)
        assert not answer["success"] and all(words in answer["error"] for words in complaints)
        after = extensions(rpc)
        assert bool(after["a"].pop("last_error", "")) == bool(now), "nothing is wrong with it if another was meant"
        assert after == before
        assert results(rpc.prompt("go")) == ["ok"]


def test_a_reload_revives_one_that_had_failed(hilt: Hilt) -> None:
    write(hilt, chaos("a", "exit:3"))
    with hilt.rpc(*hilt.script(calls(("a", {})), says("done"))) as rpc:
        settle(rpc, a="failed")
        write(hilt, tool("a"))
        assert rpc.ask("input", text="/reload-ext a")["data"]["display"] == "reloaded: 0 stopped, 1 loaded (1 ready)"
        assert "reason" not in extensions(rpc)["a"]
        assert results(rpc.prompt("go")) == ["ok"]


# Panels


def opens(name: str, panel: dict[str, Any], *more: Any) -> Made:
    """An extension with a command of its name that opens a panel."""
    answer = {"action": "open_panel", "open_panel": panel}
    reaction = {"on": "command_invoked", "do": f"answer:{json.dumps(answer)}"}
    return chaos(name, "hello", f"register_command:{name}", "record:heard", "ready", reaction, *more)


def heard(hilt: Hilt, name: str) -> list[dict[str, Any]]:
    """What the extension was told of panels."""
    rows = [json.loads(row) for row in (hilt.home / "extensions" / name / "heard").read_text().splitlines()]
    frames = [json.loads(row["line"]) for row in rows if "line" in row]
    return [frame for frame in frames if frame["type"].startswith("panel_")]


def test_a_panel_gets_keys_its_size_and_its_end_and_others_are_refused(hilt: Hilt) -> None:
    write(hilt, opens("a", PANEL))
    with hilt.rpc(*hilt.script()) as rpc:
        size = {"width": 1, "height": 1}
        for type_, fields in (("panel_key", {"key": "up"}), ("panel_close", {}), ("panel_resize", size)):
            refused = rpc.ask(type_, panel_id="p", **fields)
            assert not refused["success"] and 'no panel "p" is open' in refused["error"]
        assert rpc.ask("command", name="a")["data"] == {"action": "open_panel", "open_panel": PANEL}
        assert rpc.ask("get_state")["data"]["panel"]["panel_id"] == "p"
        assert rpc.ask("panel_key", panel_id="p", key="down")["success"]
        assert rpc.ask("panel_key", panel_id="p", key="rune", text="é")["success"]
        assert not rpc.ask("panel_key", panel_id="other", key="down")["success"]
        assert not rpc.ask("panel_resize", panel_id="p", width=0, height=5)["success"]
        assert rpc.ask("panel_resize", panel_id="p", width=72, height=18)["success"]
        assert rpc.ask("panel_close", panel_id="p")["success"]
        assert rpc.ask("get_state")["data"]["panel"] is None
        assert not rpc.ask("panel_key", panel_id="p", key="down")["success"]
        rpc.event("ext_panel_close")
        until(lambda: len(heard(hilt, "a")) == 4, "four frames")
    assert heard(hilt, "a") == [
        {"type": "panel_key", "panel_id": "p", "key": "down"},
        {"type": "panel_key", "panel_id": "p", "key": "rune", "text": "é"},
        {"type": "panel_resize", "panel_id": "p", "width": 72, "height": 18},
        {"type": "panel_close", "panel_id": "p"},
    ]
    (shown,), (closed,) = events(rpc, "ext_panel"), events(rpc, "ext_panel_close")
    assert shown == {
        "type": "ext_panel",
        "extension": "a",
        "panel_id": "p",
        **{k: PANEL[k] for k in PANEL if k != "id"},
    }
    assert closed == {"type": "ext_panel_close", "extension": "a", "panel_id": "p"}


def listed(rpc: Rpc) -> list[tuple[str, str, bool, str]]:
    """The panels there are, the one with the focus last."""
    panels = rpc.ask("get_state")["data"]["panels"]
    return [(one["extension"], one["panel_id"], one["focused"], one.get("bereaved", "")) for one in panels]


def test_several_panels_are_open_and_each_hears_its_own_keys(hilt: Hilt) -> None:
    write(hilt, opens("a", PANEL), opens("b", {"id": "p"}))
    with hilt.rpc(*hilt.script()) as rpc:
        assert rpc.ask("command", name="a")["success"] and rpc.ask("command", name="b")["success"]
        assert listed(rpc) == [("a", "p", False, ""), ("b", "p", True, "")]
        assert rpc.ask("get_state")["data"]["panel"]["extension"] == "b"
        assert rpc.ask("panel_key", panel_id="p", key="up")["success"]
        assert rpc.ask("panel_key", panel_id="p", extension="a", key="down")["success"]
        assert rpc.ask("panel_resize", panel_id="p", extension="a", width=9, height=8)["success"]
        assert rpc.ask("panel_focus", panel_id="p", extension="a")["success"]
        assert listed(rpc) == [("b", "p", False, ""), ("a", "p", True, "")]
        for type_ in ("panel_focus", "panel_close"):
            refused = rpc.ask(type_, panel_id="p", extension="c")
            assert not refused["success"] and 'no panel "p" of c is open' in refused["error"]
        assert rpc.ask("panel_close", panel_id="p", extension="b")["success"]
        assert listed(rpc) == [("a", "p", True, "")]
        until(lambda: len(heard(hilt, "a")) == 2 and len(heard(hilt, "b")) == 2, "what each was told")
    down, size = {"key": "down"}, {"width": 9, "height": 8}
    assert heard(hilt, "a") == [
        {"type": "panel_key", "panel_id": "p", **down},
        {"type": "panel_resize", "panel_id": "p", **size},
    ]
    assert [frame["type"] for frame in heard(hilt, "b")] == ["panel_key", "panel_close"]


def test_a_panel_whose_owner_dies_is_closed_with_a_reason_and_shown_again_when_that_is_back(hilt: Hilt) -> None:
    write(hilt, opens("a", PANEL), opens("b", {"id": "q"}, {"on": "panel_key", "do": "exit:5"}))
    with hilt.rpc(*hilt.script()) as rpc:
        assert rpc.ask("command", name="a")["success"] and rpc.ask("command", name="b")["success"]
        rpc.send(type="panel_key", panel_id="q", key="enter")
        died = rpc.event("ext_panel_close", extension="b")
        assert died["panel_id"] == "q" and "exited with code 5" in died["reason"]
        assert rpc.ask("get_state")["data"]["panel"] is None
        assert listed(rpc) == [("a", "p", False, ""), ("b", "q", True, died["reason"])]
        refused = rpc.ask("panel_key", panel_id="q", key="up")
        assert not refused["success"] and "exited with code 5" in refused["error"]
        settle(rpc, b="ready")
        until(lambda: len([one for one in events(rpc, "ext_panel") if one["panel_id"] == "q"]) == 2, "it is back")
        assert rpc.ask("get_state")["data"]["panel"]["panel_id"] == "q"


# Shortcuts, notes, text for the input


def test_a_shortcut_does_what_it_stands_for_in_any_spelling_and_others_are_refused(hilt: Hilt) -> None:
    key = json.dumps({"kind": "shortcut", "key": "Ctrl+G", "description": "go"})
    response = json.dumps({"type": "command_response", "id": "$ID", "action": "insert", "insert": "git status"})
    write(hilt, chaos("a", "hello", f"register:{key}", "ready", {"on": "shortcut_invoked", "do": f"frame:{response}"}))
    with hilt.rpc(*hilt.script()) as rpc:
        settle(rpc, a="ready")
        for spelling in ("Ctrl+G", "ctrl+g", "CTRL+G"):
            assert rpc.ask("shortcut", key=spelling)["data"] == {"action": "insert", "insert": "git status"}
        assert events(rpc, "ext_insert") == [{"type": "ext_insert", "extension": "a", "text": "git status"}] * 3
        refused = rpc.ask("shortcut", key="ctrl+x")
        assert not refused["success"] and "ctrl+x" in refused["error"]


def test_notes_are_events_and_part_of_the_state_until_the_next_prompt(hilt: Hilt) -> None:
    warn = 'notify:{"level":"warn","message":"mind the gap"}'
    write(hilt, chaos("a", "hello", warn, "notify:hello", "ready"))
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        settle(rpc, a="ready")
        notes = [{"extension": "a", "level": "warn", "message": "mind the gap"}]
        notes.append({"extension": "a", "level": "info", "message": "hello"})
        until(lambda: rpc.ask("get_state")["data"]["notes"] == notes, "two notes")
        assert events(rpc, "ext_notify") == [{"type": "ext_notify", **note} for note in notes]
        rpc.prompt("hi")
        assert rpc.ask("get_state")["data"]["notes"] == []
        assert events(rpc, "ext_clear_notes") == [{"type": "ext_clear_notes", "extension": "a"}]
        rpc.close()
    assert "mind the gap" not in rpc.errors


def test_a_conflict_and_a_broken_manifest_are_notices(hilt: Hilt) -> None:
    _, _, bad = write(
        hilt, tool("a", "register_command:go"), tool("b", "register_command:go"), Made("bad", {"args": 7})
    )
    with hilt.rpc(*hilt.script()) as rpc:
        conflict = rpc.wait(lambda line: line.get("message", "").startswith("conflict"), "a conflict")
        assert conflict["type"] == "notice" and "a and b both offer /go; a keeps it" in conflict["message"]
        (broken,) = [line for line in events(rpc, "notice") if str(bad) in line["message"]]
        assert '"args"' in broken["message"] and broken["level"] == "warn"
        listed = extensions(rpc)["bad"]
        assert (listed["state"], listed["pid"]) == ("failed", None) and '"args"' in listed["reason"]


# What they make of the model's words


@pytest.mark.parametrize(
    ("verb", "shown", "replaced"),
    [
        (f"replace:{HIDDEN}", HIDDEN, {"suppressed": False}),
        ("block:confidential", "", {"suppressed": True, "reason": "confidential"}),
    ],
)
def test_what_is_shown_in_place_of_a_reply_is_told_and_the_original_stays(
    hilt: Hilt, verb: str, shown: str, replaced: dict[str, Any]
) -> None:
    write(hilt, chaos("censor", "hello", "intercept:assistant_message", "ready", {"on": "event_intercept", "do": verb}))
    with hilt.rpc(*hilt.script(says(SECRET), says("again"))) as rpc:
        settle(rpc, censor="ready")
        told = rpc.prompt("hi")
        (event,) = [line for line in told if line["type"] == "assistant_replace"]
        assert event == {"type": "assistant_replace", "text": shown, "extension": "censor", **replaced}
        content = [line["content"] for line in told if line["type"] == "assistant_message"]
        assert content == ([[{"type": "text", "text": shown}]] if shown else [])
        user, said = rpc.ask("get_messages")["data"]["messages"]
        assert "shown" not in user
        assert (said["content"], said["shown"]) == ([{"type": "text", "text": SECRET}], shown)
        session = rpc.ask("get_state")["data"]["session"]["id"]
        rpc.close()
    with hilt.rpc(*hilt.script(says("again")), "--no-ext", "--session", session) as rpc:
        _, kept = rpc.ask("get_messages")["data"]["messages"]
        assert kept == said


def test_a_turn_that_an_extension_blocks_fails_with_its_reason(hilt: Hilt) -> None:
    write(
        hilt, chaos("purse", "hello", "intercept:turn_start", "ready", {"on": "event_intercept", "do": "block:spent"})
    )
    with hilt.rpc(*hilt.script(says("never"))) as rpc:
        settle(rpc, purse="ready")
        told = rpc.prompt("hi")
        (error,) = [line for line in told if line["type"] == "error"]
        assert error["message"] == "spent" and error["code"] == "turn_blocked" and "purse" in error["hint"]
        assert told[-1]["stop"] == "error" and "never" not in json.dumps(told)


# Calls that are under way


def test_a_call_is_aborted_at_once_and_the_extension_goes_on(hilt: Hilt) -> None:
    (stuck,) = write(hilt, tool("stuck", {"on": "tool_call", "times": 1, "do": ["touch:reached", "hang"]}))
    with hilt.rpc(*hilt.script(calls(("stuck", {})), calls(("stuck", {})), says("done"))) as rpc:
        rpc.send(type="prompt", message="go")
        until(lambda: (stuck / "reached").exists(), "the call")
        rpc.send(type="abort")
        assert rpc.event("tool_result")["is_error"]
        assert rpc.event("done")["stop"] == "aborted"
        pid = extensions(rpc)["stuck"]["pid"]
        assert results(rpc.prompt("again")) == ["ok"]
        assert extensions(rpc)["stuck"]["pid"] == pid
        os.kill(pid, 0)
