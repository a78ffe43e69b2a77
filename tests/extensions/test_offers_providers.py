"""Models that an extension answers for: the real hilt, over each of its faces, in both dialects."""

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.parts import ActiveModel
from hilt.errors import UsageError
from hilt.extensions import supervisor
from hilt.model.models import ModelInfo
from hilt.model.ports import Provider
from hilt.providers.sourced import Sourced
from support.extending import extended
from support.hilt_process import Hilt, Rpc, until
from support.offerer import SILENT, Ask, Refused
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
        rpc.settled()
        check_story(rpc.prompt("what is in it"))
        state = rpc.ask("get_state")["data"]
        assert (state["provider"], state["model"], state["context"]["window"]) == ("mine", "m1", 8192)
        assert (state["usage"]["input"], state["usage"]["output"]) == (7, 3)


@pytest.mark.usefixtures("dialect")
def test_what_is_part_of_hilt_answers_for_itself(hilt: Hilt) -> None:
    directory = written(hilt, ("provider", {"api": "demo"}), answers={"provider/stream": converse})
    done = hilt.run("-p", "hi", "--provider", "demo", "--ext", str(directory))
    assert done.code == 0 and "not a language model" in done.out
    assert "extension p: provider demo: that is part of hilt" in done.err
    assert heard(directory, "provider/stream") == []


def check_story(told: list[dict[str, Any]]) -> None:
    def joined(kind: str) -> str:
        return "".join(line["delta"] for line in told if line["type"] == kind)

    assert joined("thinking_delta") == "hm" and joined("text_delta") == "lookingthe file says"
    assert joined("tool_use_args") == '{"path":"a.txt"}'
    calls = [line for line in told if line["type"] in ("tool_use_start", "tool_call")]
    assert [(call["id"], call["name"]) for call in calls] == [("c1", "read")] * 2
    # What was shown while it was written does not count: the message at the end does.
    assert told[-1] == {"type": "done", "stop": "end"}
    said = [line["content"] for line in told if line["type"] == "assistant_message"]
    assert said[-1] == [{"type": "text", "text": "it holds pearls"}]


@pytest.mark.usefixtures("dialect")
def test_an_extension_is_sent_the_conversation_as_it_was_said(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": converse})
    hilt.run("-p", "what is in it", "--ext", str(extension), "--model", "mine/m1", "--reasoning", "high")
    first, second = (one["params"] for one in heard(extension, "provider/stream"))
    assert first["model"]["api"] == "mine" and first["options"] == {"thinking": "high"}
    assert "read" in [tool["name"] for tool in first["tools"]] and first["system"] == second["system"]
    assert first["requestId"] != second["requestId"]
    user, assistant, result = second["messages"]
    assert user["content"] == "what is in it" and first["messages"] == [user]
    assert [sorted(block.keys() - {"type"}) for block in assistant["content"]] == [
        ["thinking"],
        ["text"],
        ["arguments", "id", "name"],
    ]
    assert assistant["model"] and result["toolCallId"] == "c1" and result["content"][0]["text"] == "pearls\n"


@pytest.mark.usefixtures("dialect")
def test_an_extension_that_claims_a_known_api_answers_for_its_models_without_a_key(hilt: Hilt) -> None:
    extension = written(hilt, ("provider", {"api": "openai"}), answers={"provider/stream": converse})
    done = hilt.run("-p", "what is in it", "--ext", str(extension), "--model", "gpt-4o")
    assert (done.code, done.out) == (0, "it holds pearls\n")
    model = heard(extension, "provider/stream")[0]["params"]["model"]
    assert (model["api"], model["provider"], model["id"]) == ("openai", "openai", "gpt-4o")
    assert model["contextWindow"] > 0 and model["cost"]["input"] > 0


@pytest.mark.usefixtures("dialect")
def test_a_model_of_an_extension_is_listed_and_chosen_at_any_time(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": converse})
    with hilt.rpc("--provider", "demo", "--ext", str(extension)) as rpc:
        ready(rpc)
        listed = [model for model in rpc.ask("get_models")["data"]["models"] if model["extension"]]
        assert [(model["provider"], model["id"], model["extension"]) for model in listed] == [("mine", "m1", "p")]
        assert rpc.ask("set_model", model="mine/m1")["data"] == {"model": "m1", "provider": "mine"}
        check_story(rpc.prompt("what is in it"))
        rpc.rest()
        assert rpc.ask("input", text="/model mine/unlisted")["success"]
        rpc.prompt("again")
        rpc.rest()
        assert heard(extension, "provider/stream")[-1]["params"]["model"]["id"] == "unlisted"
        assert rpc.ask("input", text="/model demo")["success"]
        asked = len(heard(extension, "provider/stream"))
        rpc.prompt("hello")
        assert len(heard(extension, "provider/stream")) == asked


def charge(ask: Ask) -> Any:
    cost = 0.25 if ask.number else 0
    return ask.message({"text": "that will be"}, usage={"inputTokens": 1_000_000, "outputTokens": 0, "cost": cost})


@pytest.mark.usefixtures("dialect")
def test_what_an_answer_cost_is_what_the_extension_says_or_else_what_its_model_costs(hilt: Hilt) -> None:
    models = [{"id": "m1", "cost": {"input": 2.0}}, {"id": "free"}]
    extension = written(hilt, ("provider", {"api": "mine", "models": models}), answers={"provider/stream": charge})
    with hilt.rpc("--ext", str(extension), "--model", "mine/m1") as rpc:

        def cost() -> float:
            found: float = next(line for line in rpc.prompt("hi") if line["type"] == "usage")["cost_usd"]
            rpc.rest()
            return found

        assert cost() == 2.0
        assert cost() == 0.25
        assert rpc.ask("set_model", model="mine/free")["success"]
        assert cost() == 0.25
        assert rpc.ask("get_state")["data"]["usage"]["cost_usd"] == 2.5


def boast(ask: Ask) -> Any:
    number = [10**30, -(10**30), 1_000_000][ask.number]
    cost = float(number) if ask.number < 2 else 0
    return ask.message({"text": "said"}, usage={"inputTokens": number, "outputTokens": number, "cost": cost})


@pytest.mark.usefixtures("dialect")
def test_no_answer_costs_less_than_nothing_or_more_than_can_be_written(hilt: Hilt) -> None:
    models = [{"id": "m1", "cost": {"input": -7.0}}, {"id": "m2", "contextWindow": 10**30, "maxTokens": -5}]
    extension = written(hilt, ("provider", {"api": "mine", "models": models}), answers={"provider/stream": boast})
    with hilt.rpc("--ext", str(extension), "--model", "mine/m1") as rpc:
        spent = []
        for _ in range(3):
            assert rpc.prompt("hi")[-1] == {"type": "done", "stop": "end"}
            rpc.rest()
            state = rpc.ask("get_state")["data"]
            spent.append((state["usage"]["input"], state["usage"]["cost_usd"]))
        large = next(model for model in rpc.ask("get_models")["data"]["models"] if model["id"] == "m2")
        assert 0 < large["context_window"] < 2**53 and large["max_output"] == 0
        tokens, cost = spent[0]
        assert 0 < tokens < 2**53 and 0 < cost < 2**53
        assert spent[1:] == [(tokens, cost), (tokens + 1_000_000, cost)]


def go_on(ask: Ask) -> Any:
    return ask.message({"text": f"{len(ask.params['messages'])} of {ask.params['model']['id']}"})


@pytest.mark.usefixtures("dialect")
def test_a_session_goes_on_with_the_model_of_an_extension(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": go_on})
    assert hilt.run("-p", "one", "--ext", str(extension), "--model", "mine/m1").out == "1 of m1\n"
    assert hilt.run("-c", "-p", "two", "--ext", str(extension)).out == "3 of m1\n"
    alone = hilt.run("-c", "-p", "three")
    assert alone.code == 1 and "mine" in alone.err


def pass_on(ask: Ask) -> Any:
    kind, params = ask.params["args"]["kind"], ask.params["args"]["params"]
    return {"content": [{"type": "text", "text": ask.host(kind, **params)["text"]}]}


@pytest.mark.usefixtures("dialect")
def test_what_other_extensions_ask_models_goes_through_the_extension_that_answers(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": converse})
    tool = ("tool", {"name": "ask", "description": "Asks.", "parameters": {"type": "object"}})
    asker = written(hilt, tool, name="asker", answers={"tool/execute": pass_on})
    flags = ("--ext", str(extension), "--ext", str(asker), "--model", "mine/m1")

    def asked(kind: str, **params: Any) -> str:
        args = {"name": "ask", "args": {"kind": kind, "params": params}}
        told = rpc.ask("host", method="host/executeTool", params=args)
        return str(told["data"]["content"][0]["text"])

    with hilt.rpc(*flags) as rpc:
        ready(rpc, "asker")
        assert asked("chat", messages=[{"role": "user", "content": "hi"}], system="be brief") == "looking"
        assert heard(extension, "provider/stream")[-1]["params"]["system"] == "be brief"
        assert asked("agent.run", task="what is in it", tools="all") == "looking\nit holds pearls"
        assert len(heard(extension, "provider/stream")) == 3


def stumble(ask: Ask) -> Any:
    ask.say(f"try {ask.number}")
    match ask.number:
        case 0:
            raise Refused("too busy")
        case 1:
            return {"message": None, "error": "still busy"}
    return ask.message({"text": "done"})


@pytest.mark.usefixtures("dialect")
def test_a_failed_answer_is_asked_for_again_under_another_number(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": stumble})
    told = hilt.run("--json", "hi", "--ext", str(extension), "--model", "mine/m1").events
    retries = [line["reason"] for line in told if line["type"] == "retry"]
    assert retries == ["extension p: too busy", "extension p: still busy"]
    numbers = [one["params"]["requestId"] for one in heard(extension, "provider/stream")]
    assert len(set(numbers)) == 3
    said = [line["content"] for line in told if line["type"] == "assistant_message"]
    assert said == [[{"type": "text", "text": "done"}]]


def misspeak(ask: Ask) -> Any:
    match ask.params["messages"][-1]["content"]:
        case "no message":
            return {"message": "hello"}
        case "nothing":
            return {}
        case "error piece":
            ask.say("the line broke", type="error")
            ask.wait_for_cancel()
            return SILENT
        case "odd pieces":
            ask.tell("provider/delta", requestId="?", type=7)
            ask.tell("provider/delta", requestId=12345678, type="text_delta", delta="not for anyone")
            ask.say("x", type="unheard_of")
            ask.say(type="done")
            return ask.message({"text": "all the same"})
        case _:
            return ask.message({"text": "x" * (5 * 1024 * 1024)})


@pytest.mark.usefixtures("dialect")
def test_an_unusable_answer_is_an_error_that_names_the_extension(hilt: Hilt) -> None:
    (hilt.home / "config.toml").write_text("[retry]\nattempts = 1\n")
    extension = written(hilt, answers={"provider/stream": misspeak})
    with hilt.rpc("--ext", str(extension), "--model", "mine/m1") as rpc:

        def failed(text: str) -> dict[str, Any]:
            errors = [line for line in rpc.prompt(text) if line["type"] == "error"]
            rpc.rest()
            assert len(errors) == 1 and "extension p" in errors[0]["message"]
            return errors[0]

        assert "`message` must be an object" in failed("no message")["message"]
        assert "`message` must be an object" in failed("nothing")["message"]
        assert "the line broke" in failed("error piece")["message"]
        until((extension / "cancelled").exists, "the end of the one that failed")
        long = failed("a line too long")
        assert "too long" in long["message"] and "compact" not in long.get("hint", "")
        assert rpc.prompt("odd pieces")[-1] == {"type": "done", "stop": "end"}


def linger(ask: Ask) -> Any:
    if "wait" in str(ask.params["messages"][-1]):
        ask.say("one moment")
        ask.wait_for_cancel()
        return ask.message({"text": "too late"})
    return ask.message({"text": "here"})


@pytest.mark.usefixtures("dialect")
def test_a_cancelled_answer_is_given_up_by_the_extension_too(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": linger})
    with hilt.rpc("--ext", str(extension), "--model", "mine/m1") as rpc:
        rpc.settled()
        rpc.send(type="prompt", message="wait")
        rpc.event("text_delta", delta="one moment")
        rpc.send(type="abort")
        rpc.event("done", stop="aborted")
        until((extension / "cancelled").exists, "word of it")
        asked, cancelled = heard(extension, "provider/stream"), heard(extension, "$/cancelRequest")
        assert [one["params"]["id"] for one in cancelled] == [asked[0]["id"]]
        rpc.rest()
        rpc.prompt("hello")
        texts = [[block["text"] for block in message["content"]] for message in messages(rpc)]
        assert texts == [["wait"], ["one moment"], ["hello"], ["here"]]


def messages(rpc: Rpc) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rpc.ask("get_messages")["data"]["messages"]
    return found


def collapse(ask: Ask) -> Any:
    if ask.life == 0:
        ask.say("half a ")
        ask.say("sentence")
        ask.wait_for("seen")
        ask.die()
    return ask.message({"text": "risen"})


@pytest.mark.usefixtures("dialect")
def test_a_provider_killed_in_mid_sentence_costs_that_answer_and_what_was_said_is_kept(hilt: Hilt) -> None:
    (hilt.home / "config.toml").write_text("[retry]\nattempts = 1\n")
    extension = written(hilt, answers={"provider/stream": collapse})
    with hilt.rpc("--ext", str(extension), "--model", "mine/m1") as rpc:
        rpc.settled()
        rpc.send(type="prompt", message="hi")
        rpc.event("text_delta", delta="sentence")
        (extension / "seen").touch()
        error = rpc.event("error")
        assert "extension p" in error["message"] and "SIGKILL" in error["message"]
        rpc.event("done", stop="error")
        assert messages(rpc)[-1]["content"] == [{"type": "text", "text": "half a sentence"}]
        rpc.event("ext_status", extension="p", state="ready")
        rpc.prompt("again")
        assert messages(rpc)[-1]["content"] == [{"type": "text", "text": "risen"}]


def test_a_provider_that_is_restarted_in_time_is_asked_again_in_the_same_turn(hilt: Hilt) -> None:
    (hilt.home / "config.toml").write_text("[retry]\nattempts = 4\nbase_delay = 0.7\n")
    extension = written(hilt, answers={"provider/stream": collapse}, dialect="jsonrpc")
    (extension / "seen").touch()
    done = hilt.run("-p", "hi", "--ext", str(extension), "--model", "mine/m1")
    assert (done.code, done.out) == (0, "risen\n")


def flood(ask: Ask) -> Any:
    """As fast as it can, and says how far it is."""
    for number in range(100_000):
        ask.say(f"{number:040}")
        if number % 1000 == 0:
            ask.touch(f"at-{number}")
    ask.touch("through")
    return ask.message({"text": "x"})


def test_a_flood_waits_for_a_reader_who_takes_a_rest_and_nothing_is_lost(hilt: Hilt) -> None:
    extension = written(hilt, answers={"provider/stream": flood}, dialect="jsonrpc")
    with hilt.started("--json", "hi", "--ext", str(extension), "--model", "mine/m1") as process:
        assert process.stdout
        until((extension / "at-0").exists, "the first piece")
        rested: list[int] = []

        def at_rest() -> bool:
            """Whether it has got no further for a while."""
            rested.append(len(list(extension.glob("at-*"))))
            return len(rested) > 30 and len(set(rested[-30:])) == 1

        until(at_rest, "a pause of the extension")
        assert not (extension / "through").exists()
        peak = int(Path(f"/proc/{process.pid}/status").read_text().split("VmHWM:")[1].split()[0])
        told = [json.loads(line) for line in process.stdout]
        assert process.wait(30) == 0
    text = "".join(line["delta"] for line in told if line["type"] == "text_delta")
    assert text == "".join(f"{number:040}" for number in range(100_000))
    assert peak < 150 * 1024, f"{peak} kB of memory"


def summarise(ask: Ask) -> Any:
    return ask.message({"text": "in short" if "condense" in ask.params["system"] else "heard"})


@pytest.mark.usefixtures("dialect")
def test_a_conversation_too_long_for_a_line_is_an_error_that_compacting_helps(hilt: Hilt) -> None:
    own = ("provider", {"api": "mine", "models": [{"id": "m1"}]})
    extension = written(hilt, own, answers={"provider/stream": summarise})
    with hilt.rpc("--ext", str(extension), "--model", "mine/m1") as rpc:
        for letter in "ab":
            rpc.settled()
            rpc.prompt(letter * 1_500_000)
            rpc.rest()
        told = rpc.prompt("c" * 1_500_000)
        assert not [line for line in told if line["type"] == "retry"]
        error = next(line for line in told if line["type"] == "error")
        assert error["code"] == "context_overflow" and "extension p" in error["message"]
        assert "compact" in error["hint"] and "4,194,303" in error["message"]
        rpc.rest()
        assert rpc.ask("compact")["success"]
        rpc.event("compact_done")
        rpc.rest()
        assert rpc.prompt("and now")[-1] == {"type": "done", "stop": "end"}
        assert heard(extension, "provider/stream")[-1]["params"]["messages"][0]["content"].endswith("in short")


def no_adapter() -> Provider:
    raise UsageError("no extension answers for mine at present")


@pytest.mark.usefixtures("dialect")
async def test_a_provider_that_is_gone_for_good_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_CRASHES", 1)  # the first one ends it
    made = offering("p", OWN, answers={"provider/stream": collapse})
    async with extended(tmp_path, made) as it:
        await it.ready("p")
        (tmp_path / "extensions/p/seen").touch()
        sourced = Sourced("mine", it.session.parts.registry, lambda: it.host, it.session.bus.emit, no_adapter)
        await it.session.switch(ActiveModel(sourced, ModelInfo("m1", "mine", api="mine", extension="p")))
        outcome = await it.say()
        assert outcome.stop == "error" and "extension p" in outcome.error
        await it.state("p", "failed")
        outcome = await it.say()
        assert outcome.error == "extension p, which answers for mine/m1, does not do so now: it is failed"
        assert outcome.hint == "`/reload-ext p` starts it anew, `/model` chooses another"
        assert (await it.host.reload("p")).problems == ()
        assert (await it.say()).text == "risen"
