"""What an extension might try through the host's services, in either dialect: other people's keys, and endless tokens.

The real hilt, and programs that ask without being asked for.
"""

import json
import os
import signal
from pathlib import Path

import pytest

from support.agent import says
from support.asking import Desk, Fault, desk

KEY = "sk-of-the-user-0123456789abcdef"
EXTENSIONS = pytest.mark.parametrize("way", ["jsonrpc", "frames"])


def refused(it: Desk, method: str, **params: object) -> Fault:
    with pytest.raises(Fault) as fault:
        it.ask(method, **params)
    return fault.value


# A13: keys are asked for through the protocol


@EXTENSIONS
def test_no_spelling_of_a_provider_gives_a_key_that_nobody_granted(tmp_path: Path, way: str) -> None:
    granted = '[extensions.asker]\ngrants = ["auth:anthropic"]\n'
    keys = {"OPENAI_API_KEY": KEY, "GEMINI_API_KEY": KEY, "KIMI_API_KEY": KEY}
    with desk(tmp_path, way, config=granted, by_hand=True, **keys) as it:
        for provider in ("openai", "OpenAI", " openai", "gemini", "GOOGLE", "kimi", "moonshot"):
            fault = refused(it, "auth.getKey", provider=provider)
            assert fault.code in (-32602, -32603) and KEY not in fault.message, provider
        for params in ({"Provider": "openai"}, {"provider": "anthropic", "PROVIDER": "openai"}, {}, {"provider": "*"}):
            try:
                told = it.ask("auth.getKey", **params)
            except Fault as fault:
                told = fault.message
            assert KEY not in json.dumps(told), params


@EXTENSIONS
def test_a_refusal_does_not_say_whether_there_is_a_key(tmp_path: Path, way: str) -> None:
    told = []
    for number, keys in enumerate(({}, {"OPENAI_API_KEY": KEY})):
        folder = tmp_path / str(number)
        folder.mkdir()
        with desk(folder, way, by_hand=True, **keys) as it:
            told.append(refused(it, "auth.getKey", provider="openai").message)
    assert told[0] == told[1] and "permission denied" in told[0]


@EXTENSIONS
def test_keys_are_not_among_the_settings_either(tmp_path: Path, way: str) -> None:
    config = f'[extensions.other.settings]\napi_key = "{KEY}"\n\n[extensions.asker.settings]\nunits = "metric"\n'
    with desk(tmp_path, way, config=config, OPENAI_API_KEY=KEY) as it:
        asked = ["units", "api_key", "extensions", "extensions.other.settings.api_key", "OPENAI_API_KEY", "auth"]
        assert it.ask("config.get", keys=asked)["values"] == {"units": "metric"}


# A31: an extension uses up tokens


@EXTENSIONS
def test_tokens_run_out_however_they_are_spent_and_a_restart_brings_none(tmp_path: Path, way: str) -> None:
    turns = [says(f"answer {number}", usage={"input": 400, "output": 100}) for number in range(9)]
    asked = {"messages": [{"role": "user", "content": "q"}]}
    with desk(tmp_path, way, *turns, config="extension_tokens = 1000\n") as it:
        assert [it.ask("chat", **asked)["text"] for _ in range(2)] == ["answer 0", "answer 1"]
        for method, params in (
            ("chat", asked),
            ("agent.run", {"task": "go on"}),
            ("runBackground", {"prompt": "go on"}),
        ):
            assert "asker has used 1,000 tokens" in refused(it, method, **params).message
        (known,) = it.rpc.ask("extensions")["data"]["extensions"]
        assert known["tokens_used"] == 1000
        os.kill(known["pid"], signal.SIGKILL)
        it.rpc.event("ext_status", extension="asker", state="restarting")
        it.rpc.event("ext_status", extension="asker", state="ready")
        assert "asker has used 1,000 tokens" in refused(it, "chat", **asked).message
