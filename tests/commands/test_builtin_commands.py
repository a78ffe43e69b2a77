"""The built-in slash commands, as a client of `hilt rpc` runs them."""

from pathlib import Path

from support.agent import calls, says
from support.hilt_process import Hilt, Rpc


def shown(rpc: Rpc, name: str, args: str = "") -> str:
    response = rpc.ask("command", name=name, args=args)
    assert response["success"], response
    return str(response["data"].get("display", response["data"]))


def refused(rpc: Rpc, name: str, args: str = "") -> str:
    response = rpc.ask("command", name=name, args=args)
    assert not response["success"]
    return str(response["error"])


def test_commands_that_only_look_show_what_there_is(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    skill = hilt.project / ".hilt" / "skills" / "brew" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: brew\ndescription: make tea\n---\nBoil water.\n")
    with hilt.rpc(*hilt.script(says("hello", usage={"input": 12, "output": 3}))) as rpc:
        assert shown(rpc, "sessions") == "no sessions in this directory yet"
        assert shown(rpc, "session", "tree") == "this session is empty"
        rpc.prompt("hi there")
        lines = shown(rpc, "help").split("\n")
        assert len(lines) == len(rpc.ask("commands")["data"]["commands"])
        assert any(line.startswith("/model [id] ") and "switch" in line for line in lines)
        assert "model: script (script)" in shown(rpc, "model")
        assert shown(rpc, "cost").startswith("input 12, output 3,")
        own, built_in = shown(rpc, "skills").split("\n")
        assert own == "brew (project): make tea" and built_in.startswith("hilt-extensions (built in): ")
        assert "hi there" in shown(rpc, "sessions")
        tree = shown(rpc, "session", "tree").split("\n")
        assert len(tree) == 2 and tree[0].endswith("user: hi there") and tree[1].endswith("assistant: hello")


def test_commands_that_change_something_say_or_show_it(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    write = calls(("write", {"path": "a.txt", "content": "new\n"}))
    (hilt.project / "a.txt").write_text("old\n")
    with hilt.rpc(*hilt.script(write, says("written"))) as rpc:
        renamed = rpc.ask("command", name="rename", args="tea time")["data"]
        assert (renamed["action"], renamed["title"]) == ("rename", "tea time")
        assert [action["action"] for action in renamed["actions"]] == ["rename", "display"]
        for name, field, value in (("jail", "jail", True), ("unjail", "jail", False), ("yolo", "permissions", "yolo")):
            assert rpc.ask("command", name=name)["success"]
            assert rpc.ask("get_state")["data"][field] == value
        rpc.ask("command", name="permissions", args="accept-edits")
        state = rpc.ask("get_state")["data"]
        assert state["permissions"] == "accept-edits" and state["session"]["title"] == "tea time"
        rpc.prompt("write")
        assert (hilt.project / "a.txt").read_text() == "new\n"
        rpc.rest()
        assert rpc.ask("command", name="undo")["data"] == {"action": "undo"}
        told = [line["text"] for line in rpc.lines if line["type"] == "ext_display"]
        assert "a.txt" in told[-1]
        assert (hilt.project / "a.txt").read_text() == "old\n"
        rpc.ask("command", name="undo")
        assert [line["text"] for line in rpc.lines if line["type"] == "ext_display"][-1] == "there is nothing to undo"
        assert rpc.ask("command", name="clear")["success"]
        assert rpc.ask("get_state")["data"]["message_count"] == 0
        assert rpc.ask("command", name="model", args="demo")["data"] == {"action": "switch_model", "model": "demo"}
        assert rpc.ask("get_state")["data"]["model"] == "demo"
        assert rpc.ask("command", name="compact")["data"] == {"action": "compact"}
        assert "nothing to compact" in rpc.event("error")["message"]


def test_a_session_is_exported_imported_and_forked_from_inside(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        rpc.prompt("hi")
        assert "out.hiltsession" in shown(rpc, "session", "export out.hiltsession")
        assert (hilt.project / "out.hiltsession").is_file()
        assert "imported as" in shown(rpc, "session", "import out.hiltsession")
        assert "forked to" in shown(rpc, "session", "fork")
        assert len(hilt.sessions()) == 3
        assert "exists already" in refused(rpc, "session", "export out.hiltsession")
        assert "nosuch" in refused(rpc, "session", "import nosuch")


def test_another_session_and_another_branch_are_gone_on_with_from_inside(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        rpc.prompt("the first")
    [first] = hilt.sessions()
    with hilt.rpc(*hilt.script(says("good day"), says("again"))) as rpc:
        rpc.prompt("the second")
        rpc.rest()
        opened = rpc.ask("command", name="session", args=f"open {first.stem}")
        assert opened["data"] == {"action": "open_session", "session": first.stem}
        state = rpc.ask("get_state")["data"]
        assert (state["session"]["path"], state["message_count"]) == (str(first.resolve()), 2)
        assert [line for line in rpc.lines if line["type"] == "state"][-1]["session"] == state["session"]["id"]
        entry = rpc.ask("session_tree")["data"]["tree"][0]["id"]
        assert rpc.ask("command", name="session", args=f"label {entry} the beginning")["success"]
        assert rpc.ask("command", name="session", args=f"branch {entry} not needed")["success"]
        rpc.prompt("differently")
        lines = shown(rpc, "session", "tree").split("\n")
        assert lines[0].endswith("user: the first  [the beginning]")
        assert lines[-1].endswith("assistant: hello  (left: not needed)")
        assert "nosuch" in refused(rpc, "session", "branch nosuch")
        assert "nosuch" in refused(rpc, "session", "open nosuch")
        assert "not among" in refused(rpc, "session", f"open {__file__}")


def test_a_command_used_wrongly_says_how_it_is_used(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        assert "export [path]" in refused(rpc, "session")
        assert "export [path]" in refused(rpc, "session", "import")
        assert "needs a title" in refused(rpc, "rename", "  ")
        assert "ask, accept-edits or yolo" in refused(rpc, "permissions", "all")
        assert "unknown model" in refused(rpc, "model", "nosuch")
        assert "/frobnicate" in refused(rpc, "frobnicate")
