"""A real extension that answers for models, seen through the real `hilt`: chosen, talked to, killed, asked beside."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.api_server import ApiServer, Reply
from support.hilt_process import Hilt, until

PROVIDER = """
import json, os, sys

inward, outward = os.fdopen(3), os.fdopen(4, "w")
CONFIG = json.load(open("config.json"))
MODELS = [{"id": "big", "name": "Big", "contextWindow": 9000}]


def send(**message):
    outward.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    outward.flush()


def answer(params):
    said, number = params["messages"][-1], params["requestId"]
    text = said["content"] if isinstance(said["content"], str) else said["content"][0]["text"]

    def piece(type_, **more):
        send(method="provider/delta", params={"requestId": number, "type": type_, **more})

    if text == "die":
        piece("text_delta", delta="half of an ans")
        os._exit(3)
    if text == "hang":
        piece("text_delta", delta="well")
        return None
    if text.startswith("run "):
        content = [{"id": "c1", "name": "bash", "arguments": {"command": text[4:]}}]
    else:
        content = [{"text": f"{params['model']['id']} heard: {text}"}]
        piece("text_delta", delta=content[0]["text"])
    usage = {"inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 0, "cacheWriteTokens": 0, "cost": 0}
    stop = "toolUse" if text.startswith("run ") else "stop"
    about = {"model": params["model"]["id"], "provider": CONFIG["api"], "stopReason": stop}
    return {"content": content, "usage": usage, **about}


for line in inward:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        send(method="register/provider", params={"api": CONFIG["api"], "models": MODELS if CONFIG["models"] else []})
        send(method="register/command", params={"name": "ask", "description": "asks the model", "immediate": True})
        send(id=message["id"], result={"name": "answers", "version": "1"})
    elif method == "command/execute":
        asked = message["id"]
        said = {"role": "user", "content": message["params"]["args"]}
        send(id=7, method="host/chat", params={"messages": [said]})
    elif method is None:
        told = message.get("result", message.get("error"))
        send(method="notify", params={"message": json.dumps(told)})
        send(id=asked, result={})
    elif method == "provider/stream":
        if (reply := answer(message["params"])) is not None:
            send(id=message["id"], result={"message": reply})
"""
QUICK = "[retry]\nattempts = 2\nbase_delay = 0.01\n"


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    hilt = Hilt(tmp_path)
    hilt.home.mkdir()
    (hilt.home / "config.toml").write_text(QUICK)
    return hilt


def extension(hilt: Hilt, api: str = "myapi", *, models: bool = True) -> tuple[str, str]:
    """The flag that runs it."""
    folder = hilt.folder / "answers"
    folder.mkdir()
    (folder / "manifest.yaml").write_text(f"name: answers\nversion: 0.1.0\nruntime: {sys.executable}\nentry: main.py\n")
    (folder / "main.py").write_text(PROVIDER)
    (folder / "config.json").write_text(json.dumps({"api": api, "models": models}))
    return "--ext", str(folder)


@pytest.mark.parametrize(
    ("flags", "config", "model"),
    [
        (["--provider", "myapi"], "", "big"),
        (["--model", "myapi/big"], "", "big"),
        (["--model", "myapi/any"], "", "any"),
        ([], 'provider = "myapi"\nmodel = "other"\n', "other"),
    ],
)
def test_a_model_that_only_an_extension_has_is_chosen_like_any_other(
    hilt: Hilt, flags: list[str], config: str, model: str
) -> None:
    (hilt.home / "config.toml").write_text(config + QUICK)
    done = hilt.run("-p", "hello", *flags, *extension(hilt))
    assert (done.out, done.code) == (f"{model} heard: hello\n", 0), done.err


def test_a_continued_session_goes_on_with_the_extensions_model(hilt: Hilt) -> None:
    flag = extension(hilt)
    assert hilt.run("-p", "hello", "--model", "myapi/any", *flag).code == 0
    assert hilt.run("-p", "again", "-c", *flag).out == "any heard: again\n"
    gone = hilt.run("-p", "again", "-c")
    assert gone.code != 0 and 'provider "myapi" is not known' in gone.err


def test_with_an_extension_that_answers_for_an_api_no_key_is_needed(hilt: Hilt) -> None:
    flag = extension(hilt, "openai", models=False)
    assert hilt.run("-p", "hello", "--model", "gpt-5", *flag).out == "gpt-5 heard: hello\n"
    assert hilt.run("-p", "hello", "--provider", "kimi", *flag).out == "kimi-for-coding heard: hello\n"
    done = hilt.run("-p", "hello", "--provider", "anthropic", *flag)
    assert done.code == 1 and "there is no API key for anthropic" in done.err and "hilt login anthropic" in done.err


def test_a_whole_turn_with_a_tool_call_goes_through_the_extension(hilt: Hilt) -> None:
    done = hilt.run("--json", "run echo from the shell", "--provider", "myapi", *extension(hilt))
    types = [event["type"] for event in done.events]
    assert types.count("turn_start") == 2 and "tool_result" in types
    usage = [event for event in done.events if event["type"] == "usage"][-1]["cumulative"]
    assert (usage["input"], usage["output"]) == (200, 20)
    said = [event for event in done.events if event["type"] == "assistant_message"][-1]
    assert "big heard: $ echo from the shell" in json.dumps(said)


def test_one_that_is_killed_in_mid_stream_gives_a_clear_error_and_a_session_that_goes_on(hilt: Hilt) -> None:
    with hilt.rpc("--provider", "myapi", *extension(hilt)) as rpc:
        told = rpc.prompt("die")
        error = next(line for line in told if line["type"] == "error")
        assert "extension answers" in error["message"] and told[-1]["stop"] == "error"
        until(lambda: rpc.ask("extensions")["data"]["extensions"][0]["state"] == "ready", "the restart")
        told = rpc.prompt("hello")
        assert any("big heard: hello" in json.dumps(line) for line in told) and told[-1]["stop"] == "end"


async def test_the_built_in_adapter_goes_on_when_the_extension_is_gone(hilt: Hilt) -> None:
    flag = extension(hilt, "openai", models=False)
    chunk = {"choices": [{"delta": {"content": "built in"}, "finish_reason": "stop"}]}
    reply = Reply.sse(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n")
    async with ApiServer(reply) as server:
        address = ("--provider", "ollama", "--model", "m", "--base-url", server.url)
        done = await asyncio.to_thread(hilt.run, "--json", "die", *address, *flag)
    assert "built in" in done.out
    assert any("extension answers no longer answers for ollama" in str(event) for event in done.events)


def test_cancelling_ends_the_answer_and_the_next_one_is_whole(hilt: Hilt) -> None:
    with hilt.rpc("--provider", "myapi", *extension(hilt)) as rpc:
        rpc.send(type="prompt", message="hang")
        rpc.event("text_delta")
        rpc.ask("abort")
        assert rpc.event("done")["stop"] == "aborted"
        assert rpc.prompt("hello")[-1]["stop"] == "end"


def test_models_are_listed_with_who_answers_and_can_be_switched_to(hilt: Hilt) -> None:
    with hilt.rpc("--provider", "demo", *extension(hilt)) as rpc:
        until(lambda: rpc.ask("extensions")["data"]["extensions"][0]["state"] == "ready", "the start")
        listed = {(one["provider"], one["id"]): one["extension"] for one in rpc.ask("get_models")["data"]["models"]}
        assert listed["myapi", "big"] == "answers" and listed["demo", "demo"] == ""
        assert rpc.ask("set_model", model="myapi/big")["data"] == {"model": "big", "provider": "myapi"}
        assert "myapi, by extension answers" in rpc.ask("command", name="model")["data"]["display"]
        assert any("big heard: hi" in json.dumps(line) for line in rpc.prompt("hi"))


@pytest.mark.parametrize("limit", ["extension_tokens = 220\n", "[extensions.rpc]\ntokens = 220\n"])
def test_answers_and_agents_beside_the_conversation_are_the_extensions_too(hilt: Hilt, limit: str) -> None:
    (hilt.home / "config.toml").write_text(f"{limit}{QUICK}")  # A31
    with hilt.rpc("--provider", "myapi", *extension(hilt)) as rpc:

        def host(method: str, **params: Any) -> dict[str, Any]:
            return rpc.ask("host", method=f"host/{method}", params=params)

        chat = host("chat", messages=[{"role": "user", "content": "one"}])
        assert chat["data"] == {"text": "big heard: one", "usage": {"input": 100, "output": 10}}, chat
        run = host("agent.run", task="two")
        assert run["data"]["text"] == "big heard: two" and run["data"]["turns"] == 1
        refused = host("chat", messages=[{"role": "user", "content": "three"}])
        assert not refused["success"] and "extension_tokens" in refused["error"]
        state = rpc.ask("get_state")["data"]
        assert state["usage"]["input"] == 200 and state["message_count"] == 0


def test_what_an_extension_has_models_use_is_shown_with_it_and_ends_at_its_limit(hilt: Hilt) -> None:
    (hilt.home / "config.toml").write_text(f"{QUICK}\n[extensions.answers]\ntokens = 110\n")  # A31
    with hilt.rpc("--provider", "myapi", *extension(hilt)) as rpc:
        rpc.send(type="command", name="ask", args="one")
        assert "big heard: one" in rpc.event("ext_notify")["message"]
        rpc.response("command")
        (status,) = rpc.ask("extensions")["data"]["extensions"]
        assert status["tokens_used"] == 110
        assert "tokens used: 110" in rpc.ask("command", name="ext")["data"]["display"]
        rpc.send(type="command", name="ask", args="two")
        refusal = rpc.event("ext_notify")["message"]
        assert "[extensions.answers]" in refusal and "110" in refusal
