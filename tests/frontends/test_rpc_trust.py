"""`hilt rpc` in a folder that brings extensions: the question, its answer, and what becomes of those that run."""

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.extending import Made, chaos, tool
from support.hilt_process import Hilt, Rpc, until


def add(hilt: Hilt, made: Made) -> Path:
    return made.write(hilt.project / ".hilt" / "extensions")


def extensions(rpc: Rpc) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in rpc.ask("extensions")["data"]["extensions"]}


def settle(rpc: Rpc, name: str, state: str) -> dict[str, Any]:
    until(lambda: extensions(rpc)[name]["state"] == state, f"{name} is {state}")
    return extensions(rpc)[name]


def results(lines: list[dict[str, Any]]) -> list[str]:
    return [line["content"][0]["text"] for line in lines if line["type"] == "tool_result"]


def trusted(hilt: Hilt) -> bool:
    return (hilt.home / "trust.json").exists()


def copies(hilt: Hilt) -> Path:
    return hilt.home / "extensions" / ".trusted"


# The question


def test_it_is_asked_once_with_the_folder_and_every_command_whole(hilt: Hilt) -> None:
    long = "x" * 5000
    one, two = add(hilt, tool("one")), add(hilt, Made("two", {"exec": "./run", "args": [long]}))
    with hilt.rpc(*hilt.script(says("hello"), says("again"))) as rpc:
        asked = rpc.event("ui_request")
        assert (asked["kind"], asked["folder"]) == ("confirm", str(hilt.project))
        assert "Trust" in asked["title"] and str(hilt.project) in asked["title"]
        manifest = json.loads((one / "extension.json").read_text())
        assert asked["extensions"] == [
            {"name": "project:one", "command": [manifest["exec"], *manifest["args"]]},
            {"name": "project:two", "command": [str(two / "run"), long]},
        ]
        text = asked["preview"]["text"]
        assert "full access" in text and long in text and str(one) in text
        rpc.prompt("hi")
        rpc.prompt("hi again")
        assert rpc.types().count("ui_request") == 1
        told = extensions(rpc)
        assert {told[name]["state"] for name in told} == {"untrusted"}
        assert all("hilt ext trust" in told[name]["reason"] and told[name]["pid"] is None for name in told)
        assert rpc.close() == 0
    assert "trust" in rpc.errors + json.dumps(rpc.lines) and not trusted(hilt)


def test_a_yes_is_kept_starts_them_and_leaves_the_others_as_they_are(hilt: Hilt) -> None:
    tool("mine").write(hilt.home / "extensions")
    add(hilt, tool("one"))
    script = hilt.script(calls(("one", {}), ("mine", {})), says("done"))
    with hilt.rpc(*script) as rpc:
        before = settle(rpc, "mine", "ready")
        rpc.send(type="ui_response", id=ask(rpc), approved=True)
        settle(rpc, "project:one", "ready")
        assert extensions(rpc)["mine"] == before
        assert results(rpc.prompt("go")) == ["ok", "ok"]
    assert trusted(hilt)
    with hilt.rpc(*script) as rpc:
        settle(rpc, "project:one", "ready")
        assert "ui_request" not in rpc.types()


def ask(rpc: Rpc) -> str:
    """The id of the question that has been, or will be, put."""
    until(lambda: "ui_request" in rpc.types(), "a question")
    return str(next(line["id"] for line in rpc.lines if line["type"] == "ui_request"))


@pytest.mark.parametrize("answer", [{"approved": False}, {"cancelled": True}, {"approved": True, "cancelled": True}])
def test_anything_else_is_a_no_and_is_not_asked_again(hilt: Hilt, answer: dict[str, bool]) -> None:
    add(hilt, tool("one"))
    with hilt.rpc(*hilt.script(calls(("one", {})), says("done"))) as rpc:
        assert rpc.ask("ui_response", id=ask(rpc), **answer)["success"]
        assert "unknown tool" in results(rpc.prompt("go"))[0]
        assert extensions(rpc)["project:one"]["state"] == "untrusted"
        assert rpc.types().count("ui_request") == 1
    assert not trusted(hilt)


def test_no_answer_never_blocks_a_prompt_nor_the_end(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        ask(rpc)
        rpc.prompt("hi")
        assert rpc.close() == 0
    assert not trusted(hilt)


def test_what_changed_after_it_was_shown_is_not_what_was_agreed_to(hilt: Hilt) -> None:
    where = add(hilt, tool("one"))
    with hilt.rpc(*hilt.script(calls(("one", {})), says("done"))) as rpc:
        asked = ask(rpc)
        (where / "evil.py").touch()
        rpc.ask("ui_response", id=asked, approved=True)
        until(lambda: "evil.py added" in extensions(rpc)["project:one"]["reason"], "that it changed is said")
        assert "unknown tool" in results(rpc.prompt("go"))[0]


def test_a_store_that_cannot_be_written_is_told_and_the_session_goes_on(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        asked = ask(rpc)
        (hilt.home / "trust.json").write_text("{ damaged")
        rpc.ask("ui_response", id=asked, approved=True)
        told = rpc.wait(lambda line: "not trusted" in line.get("message", ""), "a notice")
        assert str(hilt.home / "trust.json") in told["message"]
        rpc.prompt("hi")
    assert (hilt.home / "trust.json").read_text() == "{ damaged"


def test_for_one_run_nothing_is_asked(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    with hilt.rpc("--trust", *hilt.script()) as rpc:
        settle(rpc, "project:one", "ready")
        assert "ui_request" not in rpc.types()
    assert not trusted(hilt)


def test_a_reload_of_what_is_not_trusted_says_why_and_how(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    with hilt.rpc(*hilt.script()) as rpc:
        answer = rpc.ask("reload_ext", name="project:one")
        assert not answer["success"] and "not trusted" in answer["error"]


# Those that run


def test_a_changed_one_is_not_reloaded_and_the_one_that_was_trusted_goes_on(hilt: Hilt) -> None:
    where = add(hilt, tool("one"))
    hilt.run("ext", "trust", "--yes")
    with hilt.rpc(*hilt.script(calls(("one", {})), says("done"))) as rpc:
        before = settle(rpc, "project:one", "ready")
        (where / "chaos.json").write_text(json.dumps(["hello:one", "register_tool:evil", "ready"]))
        answer = rpc.ask("reload_ext", name="project:one")
        assert not answer["success"] and "chaos.json changed" in answer["error"]
        everything = rpc.ask("reload_ext")["data"]
        assert "chaos.json changed" in everything["problems"][0]
        after = extensions(rpc)["project:one"]
        assert "changed since you trusted it" in after.pop("last_error")
        assert after == before
        assert results(rpc.prompt("go")) == ["ok"]


def test_one_that_was_looked_at_and_trusted_again_is_reloaded(hilt: Hilt) -> None:
    where = add(hilt, tool("one"))
    hilt.run("ext", "trust", "--yes")
    with hilt.rpc(*hilt.script(calls(("new", {})), says("done"))) as rpc:
        settle(rpc, "project:one", "ready")
        (where / "chaos.json").write_text(json.dumps(["hello:one", "register_tool:new", "ready"]))
        hilt.run("ext", "trust", "--yes")
        assert rpc.ask("reload_ext", name="project:one")["success"]
        assert results(rpc.prompt("go")) == ["ok"]


@pytest.mark.parametrize("name", ["project:one", ""])
def test_after_untrust_a_reload_stops_it(hilt: Hilt, name: str) -> None:
    add(hilt, tool("one"))
    hilt.run("ext", "trust", "--yes")
    with hilt.rpc(*hilt.script(calls(("one", {})), says("done"))) as rpc:
        pid = settle(rpc, "project:one", "ready")["pid"]
        hilt.run("ext", "untrust")
        assert rpc.ask("reload_ext", **({"name": name} if name else {}))["data"]["stopped"] == 1
        until(lambda: not Path(f"/proc/{pid}").exists(), "the end of its process")
        assert extensions(rpc)["project:one"]["state"] == "untrusted"
        assert "unknown tool" in results(rpc.prompt("go"))[0]


def test_who_watches_sees_the_projects_files_and_refuses_what_they_have_become(hilt: Hilt) -> None:
    where = add(hilt, tool("one"))
    (where / "helper.py").write_text("x = 1\n")
    hilt.run("ext", "trust", "--yes")
    with hilt.rpc("--watch-ext", *hilt.script()) as rpc:
        before = settle(rpc, "project:one", "ready")
        copy = Path(f"/proc/{before['pid']}/cwd").readlink()
        assert copy.parent == copies(hilt)
        (where / "helper.py").write_text("x = 2\n")
        told = rpc.wait(lambda line: "helper.py changed" in line.get("message", ""), "a notice")
        assert "trust" in told["message"] and told["level"] == "warn"
        after = extensions(rpc)["project:one"]
        assert "changed since you trusted it" in after.pop("last_error")
        assert after == before


def test_it_runs_from_the_copy_and_nothing_it_is_started_with_is_the_projects(hilt: Hilt) -> None:
    where = add(hilt, Made("one", {"exec": "./run"}))
    (where / "run").write_text('#!/bin/sh\necho \'{"type":"hello","name":"one"}\'\necho \'{"type":"ready"}\'\ncat\n')
    (where / "run").chmod(0o755)
    hilt.run("ext", "trust", "--yes")
    with hilt.rpc(*hilt.script()) as rpc:
        told = settle(rpc, "project:one", "ready")
        process = Path(f"/proc/{told['pid']}")
        assert (process / "cwd").readlink().parent == copies(hilt)
        assert str(hilt.project).encode() not in (process / "cmdline").read_bytes()
        assert (told["directory"], told["source"]) == (str(where), "project")


def test_files_swapped_all_the_while_it_is_started_never_run(hilt: Hilt) -> None:
    """A28: the bytes that run are those that were looked at, and those are the trusted ones."""
    where = add(hilt, chaos("one", "hello", "register_tool:good", "ready"))
    good, evil = (where / "chaos.json").read_text(), json.dumps(["touch:evil", "hello:one", "register_tool:evil"])
    hilt.run("ext", "trust", "--yes")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for text in (evil, good):
                fresh = where.parent / ".fresh"
                fresh.write_text(text)
                fresh.replace(where / "chaos.json")

    thread = threading.Thread(target=swap)
    with hilt.rpc(*hilt.script()) as rpc:
        settle(rpc, "project:one", "ready")
        thread.start()
        try:
            for _ in range(12):
                rpc.ask("reload_ext")
                assert extensions(rpc)["project:one"]["tools"] == ["good"]
        finally:
            over.set()
            thread.join(30)
    assert not [path for path in hilt.folder.rglob("evil") if path.is_file()]


def test_a_copy_that_was_tampered_with_is_put_right_before_it_runs_again(hilt: Hilt) -> None:
    add(hilt, tool("one"))
    hilt.run("ext", "trust", "--yes")
    (copy,) = copies(hilt).iterdir()
    (copy / "chaos.json").write_text(json.dumps(["hello:one", "register_tool:evil", "ready"]))
    with hilt.rpc(*hilt.script()) as rpc:
        assert settle(rpc, "project:one", "ready")["tools"] == ["one"]
        copy.rename(copy.with_name("aside"))
        shutil.copytree(copy.with_name("aside"), copy)
        (copy / "chaos.json").write_text(json.dumps(["hello:one", "register_tool:evil", "ready"]))
        assert rpc.ask("reload_ext", name="project:one")["success"]
        assert extensions(rpc)["project:one"]["tools"] == ["one"]


def test_one_of_the_other_dialect_is_listed_with_it_and_trusted_like_any_other(hilt: Hilt) -> None:
    pig, boar = hilt.home / "extensions" / "pig", hilt.project / ".piglet" / "extensions" / "boar"
    for place, runtime, entry in ((pig, "no-such-runtime", "main.ts"), (boar, sys.executable, "main.py")):
        place.mkdir(parents=True)
        (place / "manifest.yaml").write_text(f"name: {place.name}\nversion: 0.3\nruntime: {runtime}\nentry: {entry}\n")
        (place / entry).write_text("")
    with hilt.rpc(*hilt.script()) as rpc:
        asked = rpc.event("ui_request")
        assert asked["extensions"] == [{"name": "project:boar", "command": [sys.executable, str(boar / "main.py")]}]
        broken = settle(rpc, "pig", "failed")
        assert broken["dialect"] == "jsonrpc" and "no-such-runtime" in broken["reason"]
        barred = extensions(rpc)["project:boar"]
        assert (barred["dialect"], barred["state"]) == ("jsonrpc", "untrusted")


def test_where_nothing_can_be_trusted_the_reason_is_told_and_nothing_asked(hilt: Hilt) -> None:
    os.mkfifo(add(hilt, tool("one")) / "pipe")
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        rpc.wait(lambda line: "pipe is neither a file" in line.get("message", ""), "the reason")
        rpc.prompt("hi")
        assert extensions(rpc)["project:one"]["state"] == "untrusted"
        assert "ui_request" not in rpc.types()
