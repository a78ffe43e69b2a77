"""Extensions from the command line: where they are found, what a person is told, and what reaches the model."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.api_server import ApiServer
from support.chat_server import PROVIDER, answers, asks_for
from support.extending import Made, chaos, tool
from support.hilt_process import Hilt

SECRET, HIDDEN = "the word is SECRET", "the word is hidden"


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def ext(hilt: Hilt, *made: Made) -> list[str]:
    """Flags for these, in this order."""
    return [word for one in made for word in ("--ext", str(one.write(hilt.folder / "flagged")))]


def results(events: list[dict[str, Any]]) -> list[str]:
    return [event["content"][0]["text"] for event in events if event["type"] == "tool_result"]


def called(*names: str) -> tuple[dict[str, Any], ...]:
    return calls(*((name, {}) for name in names)), says("done")


# Where they are found


def test_extensions_of_the_flags_the_home_and_the_project_are_found_in_this_order(hilt: Hilt) -> None:
    tool("one").write(hilt.home / "extensions")
    tool("two").write(hilt.project / ".hilt" / "extensions")
    script = hilt.script(*called("one", "two", "three"))
    done = hilt.run("--json", "go", "--trust", *script, *ext(hilt, tool("three")))

    assert (done.code, results(done.events), done.err) == (0, ["ok"] * 3, "")
    started = [event["extension"] for event in done.events if event.get("state") == "starting"]
    assert started == ["three", "one", "project:two"]


def test_without_extensions_only_those_that_a_flag_names_run(hilt: Hilt) -> None:
    tool("one", "touch:was-here").write(hilt.home / "extensions")
    tool("two", "touch:was-here").write(hilt.project / ".hilt" / "extensions")
    script = hilt.script(*called("one", "two", "three"))
    done = hilt.run("--json", "go", "--no-ext", *script, *ext(hilt, tool("three")))

    one, two, three = results(done.events)
    assert 'unknown tool "one"' in one and 'unknown tool "two"' in two and three == "ok"
    assert {event["extension"] for event in done.events if event["type"] == "ext_status"} == {"three"}
    assert not list(hilt.folder.rglob("was-here"))


def test_one_that_is_disabled_runs_only_when_a_flag_names_it(hilt: Hilt) -> None:
    off = tool("off", enabled=False)
    off.write(hilt.home / "extensions")
    without = hilt.run("--json", "go", *hilt.script(*called("off")))
    named = hilt.run("--json", "go", "--no-ext", *hilt.script(*called("off")), *ext(hilt, off))

    assert 'unknown tool "off"' in results(without.events)[0]
    assert results(named.events) == ["ok"]


def test_a_program_without_a_manifest_is_named_after_its_file_and_a_relative_flag_is_seen_from_where_it_was_typed(
    hilt: Hilt,
) -> None:
    program = hilt.folder / "here" / "my tool.sh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho \'{"type":"hello","name":"x"}\'\necho \'{"type":"ready"}\'\ncat >/dev/null\n')
    program.chmod(0o755)
    done = hilt.run(
        "--json",
        "hi",
        *hilt.script(says("hello")),
        "--cwd",
        str(hilt.project),
        "--ext",
        "here/my tool.sh",
        cwd=str(hilt.folder),
    )

    states = [(event["extension"], event["state"]) for event in done.events if event["type"] == "ext_status"]
    assert done.code == 0 and states[:2] == [("my-tool", "starting"), ("my-tool", "ready")]


# What is wrong with them


def test_a_name_that_two_extensions_claim_is_a_conflict_that_names_both_and_the_first_keeps_it(hilt: Hilt) -> None:
    both: list[Any] = ["hello", "register_tool:shared", "register_command:shared", "ready"]
    first = chaos("first", *both, {"on": "tool_call", "do": "answer:from first"})
    second = chaos("second", *both, {"on": "tool_call", "do": "answer:from second"})
    script = hilt.script(*called("shared"))
    done = hilt.run("-p", "go", *script, *ext(hilt, first, second))

    assert (done.code, done.out) == (0, "done\n")
    assert "from first" in done.err and "from second" not in done.err
    for claimed in ("tool shared", "/shared"):
        assert f"hilt: conflict: first and second both offer {claimed}; first keeps it\n" in done.err


def test_built_ins_keep_their_names_and_the_conflict_is_told(hilt: Hilt) -> None:
    greedy = chaos("greedy", "hello", "register_tool:bash", "register_command:help", "ready")
    steps = (calls(("bash", {"command": "echo built in"})), says("done", expect={"contains": "built in"}))
    done = hilt.run("--json", "go", *hilt.script(*steps), *ext(hilt, greedy))

    assert done.code == 0 and "built in" in results(done.events)[0]
    told = [event["message"] for event in done.events if event["type"] == "notice"]
    assert len(told) == 2
    for message, claimed in zip(sorted(told), ("/help", "tool bash"), strict=True):
        assert "conflict" in message and "greedy" in message and "hilt" in message and claimed in message


def test_of_two_with_one_name_the_first_runs_and_the_conflict_names_both_places(hilt: Hilt) -> None:
    mine = tool("same").write(hilt.home / "extensions")
    theirs = tool("same", "touch:was-here").write(hilt.project / ".hilt" / "extensions")
    done = hilt.run("-p", "go", *hilt.script(*called("same")))

    assert (done.code, done.out) == (0, "done\n")
    (conflict,) = [line for line in done.err.split("\n") if "conflict" in line]
    assert str(mine) in conflict and str(theirs) in conflict
    assert not (theirs / "was-here").exists()


def test_a_broken_manifest_is_told_with_its_path_and_its_fields_and_the_others_run(hilt: Hilt) -> None:
    bad = Made("bad", {"exec": 7, "priority": "high"}).write(hilt.home / "extensions")
    torn = Made("torn", {}).write(hilt.home / "extensions")
    (torn / "extension.json").write_text('{"name":')
    script = hilt.script(*called("well"))
    done = hilt.run("-p", "go", *script, *ext(hilt, tool("well")))

    assert (done.code, done.out) == (0, "done\n")
    assert "  ok\n" in done.err
    (wrong,) = [line for line in done.err.split("\n") if "bad" in line]
    assert str(bad / "extension.json") in wrong and '"exec"' in wrong and '"priority"' in wrong
    (cut,) = [line for line in done.err.split("\n") if "torn" in line]
    assert str(torn / "extension.json") in cut
    assert "Traceback" not in done.err


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_one_that_cannot_start_is_told_by_name_with_its_last_words_and_the_answer_comes(hilt: Hilt, face: str) -> None:
    broken = chaos("broken", "log:no module named leftpad", "exit:3")
    done = hilt.run(face, "go", *hilt.script(*called("well")), *ext(hilt, broken, tool("well")))

    assert done.code == 0 and "done" in done.out
    (told,) = [line for line in done.err.split("\n") if "broken" in line]
    assert "exited with code 3" in told and "no module named leftpad" in told
    if face == "--json":
        assert results(done.events) == ["ok"]
        (failed,) = [event for event in done.events if event.get("state") == "failed"]
        assert failed["extension"] == "broken" and "exited with code 3" in failed["reason"]


# What they show


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_notes_are_on_stderr_with_extension_and_level_line_by_line(hilt: Hilt, face: str) -> None:
    notes = ('notify:{"level":"warn","message":"one\\ntwo"}', 'notify:{"level":"success","message":"done"}')
    talker = chaos("talker", "hello", *notes, "notify:\x1b[31mred", "ready")
    done = hilt.run(face, "hi", *hilt.script(says("hello")), *ext(hilt, talker))

    assert done.code == 0
    assert done.err.startswith("[talker] warn: one\n[talker] warn: two\n[talker] success: done\n[talker] info: ")
    assert "\x1b" not in done.err
    if face == "-p":
        assert done.out == "hello\n"
    else:
        told = [(event["level"], event["message"]) for event in done.events if event["type"] == "ext_notify"]
        assert told[:2] == [("warn", "one\ntwo"), ("success", "done")]


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_a_command_that_fails_ends_with_1_and_says_why(hilt: Hilt, face: str) -> None:
    failing = {"on": "command_invoked", "do": 'answer:{"error":"not on a Sunday"}'}
    done = hilt.run(
        face, "/go", *hilt.script(), *ext(hilt, chaos("x", "hello", "register_command:go", "ready", failing))
    )

    assert done.code == 1
    assert "/go: not on a Sunday" in done.err


def test_a_command_that_prompts_is_answered_by_the_model(hilt: Hilt) -> None:
    asking = {"on": "command_invoked", "do": 'answer:{"action":"prompt","prompt":"what about $ARGS?"}'}
    maker = chaos("x", "hello", "register_command:ask", "ready", asking)
    script = hilt.script(says("fine", expect={"role": "user", "contains": 'what about "lunch"?'}))
    done = hilt.run("-p", "/ask lunch", *script, *ext(hilt, maker))

    assert (done.code, done.out) == (0, "fine\n")


# What they make of the model's words


def censor(verb: str) -> Made:
    return chaos(
        "censor", "hello", "intercept:assistant_message", "ready", {"on": "event_intercept", "inline": True, "do": verb}
    )


def stored(hilt: Hilt) -> dict[str, Any]:
    """The assistant's message in the session's file."""
    (path,) = hilt.sessions()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    (found,) = [record for record in records if '"the word is' in json.dumps(record) and "shown" in json.dumps(record)]
    return dict(found)


def test_with_p_a_text_that_is_replaced_is_printed_as_replaced_and_kept_as_said(hilt: Hilt) -> None:
    done = hilt.run("-p", "hi", *hilt.script(says(SECRET)), *ext(hilt, censor(f"replace:{HIDDEN}")))

    assert (done.code, done.out) == (0, HIDDEN + "\n")
    assert "censor replaced what the model said" in done.err and "SECRET" not in done.err
    record = json.dumps(stored(hilt))
    assert SECRET in record and HIDDEN in record


def test_with_p_a_text_that_is_suppressed_is_not_printed_and_it_is_told_who_did_that(hilt: Hilt) -> None:
    done = hilt.run("-p", "hi", *hilt.script(says(SECRET)), *ext(hilt, censor("block:confidential")))

    assert (done.code, done.out) == (0, "")
    assert "censor" in done.err and "confidential" in done.err and "SECRET" not in done.err
    assert SECRET in json.dumps(stored(hilt))


def test_with_p_words_before_a_tool_call_are_replaced_too(hilt: Hilt) -> None:
    first = {
        "content": [{"type": "text", "text": SECRET}, {"type": "tool_call", "name": "bash", "args": {"command": ":"}}]
    }
    done = hilt.run("-p", "hi", *hilt.script(first, says(SECRET)), *ext(hilt, censor(f"replace:{HIDDEN}")))

    assert (done.code, done.out) == (0, HIDDEN + "\n")
    assert HIDDEN in done.err and "SECRET" not in done.err


@pytest.mark.parametrize(
    ("verb", "replaced", "shown"),
    [
        (f"replace:{HIDDEN}", {"text": HIDDEN, "suppressed": False, "extension": "censor"}, [HIDDEN]),
        ("block:no", {"text": "", "suppressed": True, "extension": "censor", "reason": "no"}, []),
    ],
)
def test_in_json_the_replacement_is_an_event_and_the_message_comes_as_it_is_to_be_shown(
    hilt: Hilt, verb: str, replaced: dict[str, Any], shown: list[str]
) -> None:
    done = hilt.run("--json", "hi", *hilt.script(says(SECRET)), *ext(hilt, censor(verb)))

    assert done.code == 0
    (told,) = [event for event in done.events if event["type"] == "assistant_replace"]
    assert told == {"type": "assistant_replace", **replaced}
    messages = [event["content"] for event in done.events if event["type"] == "assistant_message"]
    assert messages == [[{"type": "text", "text": text}] for text in shown]
    assert done.events[-1] == {"type": "done", "stop": "end"}


# What reaches the model


async def test_a_deferred_tool_is_known_by_name_and_one_line_until_it_is_activated(hilt: Hilt) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}
    later = {"name": "convert", "description": "convert a value\nat length", "schema": schema, "deferred": True}
    direct = {"name": "measure", "description": "measure it", "schema": schema}
    registered = [f"register_tool:{json.dumps(one)}" for one in (later, direct)]
    flags = ext(hilt, chaos("units", "hello", *registered, "ready"))
    async with ApiServer(
        asks_for("activate_tools", names=["convert"]), asks_for("convert", value=1), answers("done")
    ) as server:
        done = await asyncio.to_thread(
            lambda: hilt.run("--json", "go", *PROVIDER, "--base-url", f"{server.url}/v1", *flags)
        )

    assert (done.code, results(done.events)) == (0, ["active now: convert", "ok"])
    before, *after = [
        {one["function"]["name"]: one["function"] for one in seen.json["tools"]} for seen in server.requests
    ]
    assert before["measure"]["parameters"] == schema
    assert "convert" not in before
    assert "- convert: convert a value" in before["activate_tools"]["description"]
    assert "at length" not in json.dumps(before) and len(after) == 2
    for offered in after:
        assert offered["convert"]["parameters"] == schema
        assert "activate_tools" not in offered


RULES = json.dumps({"kind": "prompt_section", "title": "House rules", "content": "Wipe your feet."})
BRIEF = {"on": "event_intercept", "do": 'answer:{"system_prompt":"Be brief."}'}


@pytest.mark.parametrize(
    ("items", "sent"),
    [
        ([f"register:{RULES}"], r"You are somebody\..*\n\n# House rules\n\nWipe your feet\."),
        (["intercept:before_agent_start", BRIEF], r"Be brief\."),
    ],
)
async def test_the_system_prompt_is_sent_as_an_extension_wants_it(hilt: Hilt, items: list[Any], sent: str) -> None:
    flags = ("--system-prompt", "You are somebody.", *ext(hilt, chaos("prompter", "hello", *items, "ready")))
    async with ApiServer(answers("yes")) as server:
        done = await asyncio.to_thread(
            lambda: hilt.run("-p", "hi", *PROVIDER, "--base-url", f"{server.url}/v1", *flags)
        )

    assert (done.code, done.out) == (0, "yes\n")
    told = server.requests[0].json["messages"][0]
    assert told["role"] == "system" and re.fullmatch(sent, told["content"], re.DOTALL)
