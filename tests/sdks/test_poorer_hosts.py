"""The demo program with hosts that have less: what they lack, and what is wrong, each SDK says in the same words."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.sdk_behaviours import SDKS
from support.sdk_programs import installed

Line = dict[str, Any]
_REGISTERS = ("hello", "register", "subscribe")
ZOT: list[Line | str] = [
    {"type": "hello_ack", "protocol_version": 1, "zot_version": "0.1.62", "provider": "p", "model": "m", "cwd": "/"},
    {"type": "tool_call", "id": "1", "name": "nobody", "args": {}},
    {"type": "tool_call", "id": "2", "name": "echo", "args": {"text": 5}},
    {"type": "tool_call", "id": "3", "name": "echo", "args": {"text": "a", "town": 1}},
    {"type": "tool_call", "id": "4", "name": "echo", "args": {"times": 2}},
    {"type": "tool_call", "id": "5", "name": "echo", "args": {"text": "x", "times": None}},
    {"type": "tool_call", "id": "6", "name": "echo", "args": []},
    {"type": "command_invoked", "id": "7", "name": "nobody"},
    {"type": "command_invoked", "id": "8", "name": "submit"},
    {"type": "command_invoked", "id": "9", "name": "say"},
    "no JSON",
]
PIGLET: list[Line | str] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "5", "cwd": "/"}},
    {"jsonrpc": "2.0", "id": 2, "method": "no/thing", "params": {}},
    {"jsonrpc": "2.0", "id": 3, "method": "tool/execute", "params": []},
    {"jsonrpc": "2.0", "id": 4, "method": "tool/execute", "params": {"name": "nobody"}},
    {"jsonrpc": "2.0", "id": 5, "method": "command/execute", "params": {"name": "count", "args": ""}},
    {"jsonrpc": "2.0", "id": 6, "method": "command/execute", "params": {"name": "say", "args": ""}},
    {"jsonrpc": "2.0", "id": 7, "method": "command/execute", "params": {"name": "fail", "args": ""}},
]
ZOT_LACKS = (
    "events beyond the first five (user_prompt_submit, tool_result)",
    "interception of the system prompt",
    "interception of results",
    "prompt sections (Demo rules)",
    "shortcuts (ctrl+g)",
    "message hooks (demo)",
    "input transformers (demo)",
    "compactors (demo)",
    "providers (echoes)",
    "models of a provider's own",
)
PIGLET_LACKS = (
    "interception of turns",
    "interception of answers",
    "interception of the system prompt",
    "interception of results",
    "models of a provider's own",
)


def _said(place: Path, dialect: str, lines: list[Line | str]) -> tuple[list[str], list[str]]:
    """What it answers, in any order, and what it writes to its log of its own accord."""
    told = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    environment = {**os.environ, "HILT_SDK_DIALECT": dialect}
    ran = subprocess.run(
        ["./start.sh"], cwd=place, env=environment, input=told, capture_output=True, text=True, timeout=30, check=True
    )
    heard = [json.loads(line) for line in ran.stdout.splitlines()]
    kept = [one for one in heard if not str(one.get("type") or one.get("method") or "").startswith(_REGISTERS)]
    log = [line for line in ran.stderr.splitlines() if " does not offer " in line or line.endswith("was left out")]
    return sorted(json.dumps(one, sort_keys=True) for one in kept), [line for line in log if line.startswith("demo: ")]


@pytest.mark.timeout(240)
def test_what_poorer_hosts_lack_and_what_is_wrong_is_said_in_the_same_words_by_all(tmp_path: Path) -> None:
    zot, piglet = [], []
    for sdk in SDKS:
        place = installed(tmp_path / sdk, sdk, "frames")
        zot.append(_said(place, "frames", ZOT))
        piglet.append(_said(place, "jsonrpc", PIGLET))
    for (said, log), name, lacks in ((zot[0], "zot 0.1.62", ZOT_LACKS), (piglet[0], "piglet", PIGLET_LACKS)):
        assert sum(f"demo: {name} does not offer: {', '.join(lacks)}" in line for line in said) == 1
        assert [line for line in log if not line.endswith("left out")] == [
            f"demo: {name} does not offer {words}" for words in lacks
        ]
    for others in (zot, piglet):
        for said, _ in others[1:]:
            assert said == others[0][0]
    for _, log in zot:
        assert log.count("demo: a line of the host is no JSON, and was left out") == 1
        assert log[: len(ZOT_LACKS)] == zot[0][1][: len(ZOT_LACKS)]
