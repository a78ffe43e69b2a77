"""Models that an extension answers for: the real hilt, over each of its faces, in both dialects."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from hilt.model.extensions import Dialect
from support.hilt_process import Hilt, Rpc, until, wait_gone
from support.offerer import Ask
from support.offering import heard, offering

OWN = ("provider", {"api": "mine", "models": [{"id": "m1", "name": "M1", "contextWindow": 8192}]})
QUICK = "[retry]\nattempts = 3\nbase_delay = 0.01\n"


def converse(ask: Ask) -> Any:
    """Reads the file it is asked about, then says what is in it."""
    results = [one for one in ask.params["messages"] if one.get("toolCallId")]
    if results:
        ask.say("the file ")
        ask.say("says")
        return ask.message({"text": "it holds " + results[-1]["content"][0]["text"].strip()})
    ask.say("hm", "thinking")
    ask.say("loo", index=1)
    ask.say("king", index=1)
    ask.say('{"path":', "toolcall", index=2, tool={"id": "c1", "name": "read", "arguments": ""})
    ask.say('"a.txt"}', "toolcall", index=2)
    usage = {"inputTokens": 7, "outputTokens": 3}
    call = {"id": "c1", "name": "read", "arguments": {"path": "a.txt"}}
    return ask.message({"thinking": "hm"}, {"text": "looking"}, call, stop="toolUse", usage=usage)


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    it = Hilt(tmp_path)
    (it.project / "a.txt").write_text("pearls\n")
    it.home.mkdir()
    (it.home / "config.toml").write_text(QUICK)
    return it


def written(hilt: Hilt, *offers: Any, name: str = "p", **more: Any) -> Path:
    return offering(name, *(offers or (OWN,)), **more).write(hilt.folder)


def ready(rpc: Rpc, name: str = "p") -> None:
    rpc.event("ext_status", extension=name, state="ready")


@pytest.mark.usefixtures("dialect")
def test_a_conversation_with_tools_goes_through_an_extension_over_every_face(hilt: Hilt) -> None:
    flags = ("--ext", str(written(hilt, answers={"provider/stream": converse})), "--model", "mine/m1")
    assert hilt.run("-p", "what is in it", *flags).out == "it holds pearls\n"
    told = hilt.run("--json", "what is in it", *flags).events
    check_story(told)
    with hilt.rpc(*flags) as rpc:
        check_story(rpc.prompt("what is in it"))
        state = rpc.ask("get_state")["data"]
        assert (state["provider"], state["model"], state["context"]["window"]) == ("mine", "m1", 8192)
        assert (state["usage"]["input"], state["usage"]["output"]) == (7, 3)


def check_story(told: list[dict[str, Any]]) -> None:
    def joined(kind: str) -> str:
        return "".join(line["delta"] for line in told if line["type"] == kind)

    print([line for line in told])
    assert joined("thinking_delta") == "hm" and joined("text_delta") == "lookingthe file says"
