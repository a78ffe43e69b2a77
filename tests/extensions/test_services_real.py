"""Every service of the host, asked for by a client, by a jsonrpc extension and by a frames extension: the real hilt."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from support.agent import calls, says
from support.asking import WAYS, Desk, Fault, desk
from support.hilt_process import Hilt, until

WAY = pytest.mark.parametrize("way", WAYS)


def refused(it: Desk, method: str, **params: object) -> Fault:
    with pytest.raises(Fault) as fault:
        it.ask(method, **params)
    return fault.value


@WAY
def test_tools_are_listed_called_activated_and_narrowed(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way) as it:
        (it.hilt.project / "a.txt").write_text("hello\n")
        listed = {tool["name"]: tool for tool in it.ask("listTools")["tools"]}
        assert {"read", "bash", "ask"} <= set(listed) and listed["read"]["parameters"]["type"] == "object"
        assert "read" in (safe := {tool["name"] for tool in it.ask("listTools", filter="background_safe")["tools"]})
        assert not {"bash", "ask", "write"} & safe
        assert [one["name"] for one in it.ask("toolDefs")["tools"]] == sorted(listed)
        told = it.ask("executeTool", name="read", args={"path": "a.txt"})
        assert "hello" in told["content"][0]["text"] and not told.get("isError")
        assert it.ask("executeTool", name="read", args={"path": "nope.txt"})["isError"] is True
        assert refused(it, "executeTool", name="nope").code == -32604
        assert refused(it, "activateTool", name="read").code == -32604
        assert it.ask("setToolFilter", names=["read"]) == {}
        assert [tool["name"] for tool in it.ask("llmSnapshot")["tools"]] == ["read"]
        assert it.ask("setToolFilter") == {}
        assert len(it.ask("llmSnapshot")["tools"]) > 1


@WAY
def test_models_answer_and_agents_work_beside_the_conversation(tmp_path: Path, way: str) -> None:
    turns = says("a chat"), calls(("read", {"path": "a.txt"})), says("an agent"), says("behind")
    with desk(tmp_path, way, *turns) as it:
        (it.hilt.project / "a.txt").write_text("hello\n")
        assert it.ask("chat", messages=[{"role": "user", "content": "q"}])["text"] == "a chat"
        ran = it.ask("agent.run", task="look")
        assert ran["text"] == "an agent" and ran["turns"] == 2 and "error" not in ran
        assert it.ask("runBackground", prompt="look behind") == {}
        until(lambda: not it.ask("isBackgroundRunning")["running"], "the end of the agent in the background")
        assert it.ask("cancelBackground") == {}
        assert it.ask("conversationMessages") == {"messages": []}


@WAY
def test_the_conversation_is_read_compacted_and_replaced(tmp_path: Path, way: str) -> None:
    said = [says(f"answer {number}") for number in range(6)]
    with desk(tmp_path, way, says("hello"), *said, says("a summary")) as it:
        assert it.ask("waitForIdle") == {}
        it.rpc.prompt("hi")
        it.rpc.rest()
        messages = it.ask("conversationMessages")["messages"]
        assert [one["role"] for one in messages] == ["user", "assistant"]
        assert it.ask("lastAssistantText") == {"text": "hello"}
        snapshot = it.ask("llmSnapshot")
        assert snapshot["messages"] == messages and "Be kind." in snapshot["system"]
        assert it.ask("hasCompactor") == {"present": False}
        for number in range(6):
            it.rpc.prompt(f"question {number}")
            it.rpc.rest()
        told = it.ask("triggerCompact")
        assert told["before"] == 14 and told["after"] < 14
        assert len(it.ask("conversationMessages")["messages"]) == told["after"]
        assert it.ask("setConversationMessages", messages=messages[:1]) == {}
        assert [one["content"] for one in it.ask("conversationMessages")["messages"]] == ["hi"]
        assert refused(it, "setConversationMessages", messages=[{"type": "odd", "data": {}}]).code == -32600
        assert it.ask("setConversationMessages") == {}
        assert it.ask("conversationMessages") == {"messages": []}
        assert it.ask("toggleStepMode") == {"on": True}
        toggling = it.begin("toggleStepMode")
        if way != "client":  # whose asking is a tool call, and so a step
            it.rpc.send(type="ui_response", id=it.rpc.event("ui_request")["id"], approved=True)
        assert it.told(toggling) == {"on": False}


@WAY
def test_a_session_is_titled_added_to_labelled_and_branched(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way, says("hello")) as it:
        it.rpc.prompt("hi")
        it.rpc.rest()
        assert it.ask("sessionTitle") == {"title": ""}
        assert it.ask("setSessionTitle", title="T") == {}
        assert it.ask("sessionTitle") == {"title": "T"}
        stats = it.ask("sessionStats")
        assert stats["turnCount"] == 1 and stats["model"].startswith("script/")
        assert it.ask("appendSessionEntry", kind="ext:k", data={"a": 1}) == {}
        assert it.ask("appendCustomMessage", role="user", content="by the way") == {}
        assert it.ask("conversationMessages")["messages"][-1]["content"] == "by the way"
        entries = it.ask("sessionEntryInfos")["entries"]
        assert [one["type"] for one in entries][:2] == ["user", "assistant"]
        assert it.ask("setLabel", targetId=entries[0]["id"], label="L") == {}
        assert re.match(r"set label: entry \W?nope\W? not found", refused(it, "setLabel", targetId="nope").message)
        nodes = it.ask("sessionFullTree")["nodes"]
        (labelled,) = [one for one in nodes if one.get("label")]
        assert labelled["id"] == entries[0]["id"] and labelled["preview"] == "hi" and labelled["onActivePath"]
        assert it.ask("branchSessionWithSummary", entryId=entries[0]["id"], summary="S") == {}
        until(lambda: len(it.ask("conversationMessages")["messages"]) == 1, "the branch")
        assert it.ask("branchSession", entryId=entries[1]["id"]) == {}
        until(lambda: len(it.ask("conversationMessages")["messages"]) == 2, "the other branch")
        assert it.ask("resetSessionLeaf") == {}
        until(lambda: it.ask("conversationMessages") == {"messages": []}, "the empty conversation")


@WAY
def test_it_goes_on_in_a_fork_and_in_the_first_session_again(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way, says("hello")) as it:
        it.rpc.prompt("hi")
        it.rpc.rest()
        (first,) = it.ask("sessions")["sessions"]
        forked = it.ask("forkSession")
        assert forked == {"parentID": first["id"], "messageCount": 2}
        until(lambda: len(it.ask("sessions")["sessions"]) == 2, "the fork")
        assert it.ask("setSessionTitle", title="fork") == {}
        (fork,) = [one for one in it.ask("sessions")["sessions"] if one["id"] != first["id"]]
        assert fork["parentId"] == first["id"] and fork["title"] == "fork"
        assert it.ask("loadSession", path=first["path"]) == {}
        until(lambda: it.ask("sessionTitle") == {"title": ""}, "the first session")
        assert "load session: " in refused(it, "loadSession", path="/etc/passwd").message


@WAY
def test_settings_and_keys_are_read_and_models_listed_switched_and_written(tmp_path: Path, way: str) -> None:
    config = 'small_model = "script/tiny"\n[extensions.asker.settings]\nlimit = 5\n'
    with desk(tmp_path, way, config=config, OPENAI_API_KEY="sk-of-the-user-0123456789") as it:
        values = it.ask("config.get", keys=["smallModel", "limit", "nothing"])["values"]
        assert values == {"smallModel": "script/tiny"} | ({} if way == "client" else {"limit": 5})
        assert it.ask("config.readExtension", name="asker") == {"content": ""}
        assert "invalid extension name" in refused(it, "config.readExtension", name="../x").message
        assert it.ask("extensionsDir")["path"].startswith(str(it.hilt.home))
        assert it.ask("auth.getKey", provider="anthropic") == {"key": ""}
        # It was given: whatever hilt writes has it hidden.
        assert it.ask("auth.getKey", provider="OpenAI") == {"key": "[key hidden]"}
        models = it.ask("availableModels")["models"]
        (current,) = [one for one in models if one["current"]]
        assert current["provider"] == "script"
        assert "switch model: " in refused(it, "switchModel", modelId="nobody/nothing").message
        assert refused(it, "switchModel").message == "modelId is required"
        assert it.ask("switchModel", modelId=f"script/{current['id']}") == {}
        known = it.ask("syncModels")["updated"]
        override = {"openai/brand-new": {"name": "New", "contextWindow": 9000}}
        assert it.ask("writeModels", overrides=override) == {"modelsWritten": 1}
        assert it.ask("syncModels")["updated"] == known + 1


@WAY
def test_the_user_is_asked_and_the_dismissal_is_an_answer(tmp_path: Path, way: str) -> None:
    source = "rpc" if way == "client" else "asker"
    with desk(tmp_path, way) as it:
        dismissed = {"selected": "", "cancelled": True}
        for answer, told in (({"selected": "b"}, {"selected": "b"}), ({"cancelled": True}, dismissed)):
            asked = it.begin("showPicker", title="T", items=[{"id": "a", "label": "A"}, {"id": "b", "label": "B"}])
            request = it.rpc.event("ui_request")
            assert request["extension"] == source
            it.rpc.send(type="ui_response", id=request["id"], **answer)
            assert it.told(asked) == told
        asked = it.begin("askUser", prompt="P", choices=["yes", "no"])
        it.rpc.send(type="ui_response", id=it.rpc.event("ui_request")["id"], selected="no")
        assert it.told(asked) == {"selected": "no", "cancelled": False}
        assert refused(it, "askUser", prompt="P").code == -32602
        asked = it.begin("requestQuit")
        assert it.rpc.event("ext_quit")["extension"] == source
        assert it.told(asked) == {}
        assert it.ask("abort") == {}  # it ends the turn, if there is one, and not what asks for it


@WAY
def test_what_is_registered_is_told_and_what_there_is_not_is_not_found(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way) as it:
        commands = [one["name"] for one in it.ask("commands")["commands"]]
        assert commands == sorted(commands) and "help" in commands
        assert it.ask("shortcuts") == {"shortcuts": {"ctrl+g": {"description": "Goes."}}}
        (section,) = it.ask("promptSections")["sections"]
        assert section["title"] == "Ours"
        builtin, own = it.ask("extInfos")["extensions"]
        assert builtin["name"] == "builtin" and "bash" in builtin["tools"]
        assert (own["name"], own["kind"], own["version"], own["tools"]) == ("asker", "external", "1", ["ask"])
        fault = refused(it, "nothing")
        assert (fault.code, fault.message) == (-32601, "method not found: host/nothing")


@WAY
def test_a_file_is_put_back(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way, calls(("write", {"path": "a.txt", "content": "new\n"})), says("done")) as it:
        file = it.hilt.project / "a.txt"
        file.write_text("old\n")
        it.rpc.prompt("write")
        it.rpc.rest()
        assert it.ask("undoSnapshots") == {"snapshots": {str(file): 4}}
        assert file.read_text() == "new\n"
        assert it.ask("undoRestore", path=str(file)) == {}
        assert file.read_text() == "old\n"
        fault = refused(it, "undoRestore", path="/nowhere")
        assert (fault.code, fault.message) == (-32604, "no snapshot for path: /nowhere")


@WAY
def test_what_is_published_is_heard_until_the_subscription_ends(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way) as it:
        number = it.ask("subscribe", topic="news")["subscriptionId"]
        assert it.ask("publish", topic="news", data={"n": 1}) == {}
        until(lambda: it.heard() == [{"n": 1}], "what was published")
        assert it.ask("unsubscribe", subscriptionId=number) == {}
        assert it.ask("publish", topic="news", data={"n": 2}) == {}
        again = it.ask("subscribe", topic="news")["subscriptionId"]
        assert again != number
        assert it.ask("publish", topic="news", data={"n": 3}) == {}
        until(lambda: it.heard()[-1] == {"n": 3}, "what was published")
        assert it.heard() == [{"n": 1}, {"n": 3}]
        assert refused(it, "unsubscribe", subscriptionId=number).code == -32604


@pytest.mark.parametrize("way", ["jsonrpc", "frames"])
def test_one_that_nobody_was_asked_about_has_neither_keys_nor_the_conversation_until_they_are_granted(
    tmp_path: Path, way: str
) -> None:
    """A13, A14."""
    granted = '[extensions.asker]\ngrants = ["auth:anthropic"]\n'
    with desk(tmp_path, way, config=granted, by_hand=True, OPENAI_API_KEY="sk-of-the-user-0123456789") as it:
        for method, permission in (
            ("auth.getKey", "auth:openai"),
            ("conversationMessages", "conversation:read"),
            ("setConversationMessages", "conversation:write"),
        ):
            fault = refused(it, method, **({"provider": "openai"} if method == "auth.getKey" else {}))
            assert fault.code == -32603 and "nobody has agreed to full access" in fault.message
            assert f"hilt ext grant asker {permission}" in fault.message
            told = [line["message"] for line in it.rpc.lines if line["type"] == "notice"]
            assert any(permission in message for message in told), "whoever can grant it"
        assert it.ask("auth.getKey", provider="anthropic") == {"key": ""}
        assert it.ask("toolDefs")["tools"]


@pytest.mark.parametrize("way", ["jsonrpc", "frames"])
def test_a_question_whose_asker_has_died_is_withdrawn(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way) as it:
        (known,) = it.rpc.ask("extensions")["data"]["extensions"]
        it.begin("askUser", prompt="P", choices=["yes"])
        request = it.rpc.event("ui_request")
        os.kill(known["pid"], signal.SIGKILL)
        it.rpc.event("ui_withdrawn", id=request["id"])


EARLY = """
import json, os
source, sink = os.fdopen(3, "rb"), os.fdopen(4, "wb", 0)
def send(**message):
    sink.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
opening = json.loads(source.readline())
told = {}
for number, method in enumerate(METHODS, 1):
    send(id=number, method="host/" + method)
    told[method] = json.loads(source.readline())
with open("told", "w") as file:
    json.dump(told, file)
send(id=opening["id"], result={"name": "early", "version": "1"})
for line in source:
    pass
"""
ASKED_EARLY = [
    "listTools",
    "toolDefs",
    "config.get",
    "extensionsDir",
    "isBackgroundRunning",
    "conversationMessages",
    "llmSnapshot",
    "lastAssistantText",
    "waitForIdle",
    "sessions",
    "sessionTitle",
    "sessionStats",
    "sessionEntryInfos",
    "sessionFullTree",
    "availableModels",
    "hasCompactor",
    "commands",
    "shortcuts",
    "promptSections",
    "extInfos",
    "undoSnapshots",
    "publish",
    "subscribe",
]


def test_services_are_to_be_had_before_the_handshake_is_complete(tmp_path: Path) -> None:
    """Also without any params, and one after the other."""
    hilt, extension = Hilt(tmp_path), tmp_path / "early"
    extension.mkdir()
    (extension / "manifest.yaml").write_text("name: early\nruntime: python\nentry: main.py\n")
    (extension / "main.py").write_text(f"METHODS = {ASKED_EARLY}\n{EARLY}")
    with hilt.rpc(*hilt.script(), "--ext", str(extension)) as rpc:
        rpc.event("ext_status", extension="early", state="ready")
        told = json.loads((extension / "told").read_text())
    faults = {method: answer["error"]["message"] for method, answer in told.items() if "error" in answer}
    assert set(faults) == {"publish", "subscribe"} and all("topic" in message for message in faults.values())
    assert "read" in [tool["name"] for tool in told["listTools"]["result"]["tools"]]
    assert told["waitForIdle"]["result"] == {}
    assert [one["name"] for one in told["extInfos"]["result"]["extensions"]] == ["builtin", "early"]
