"""Programs of which nobody can tell beforehand where they speak, and that print before they do."""

import json
import textwrap
from pathlib import Path

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt

# It reads and writes as `reader` and `writer`, after what comes first.
SPEAKING = """
def send(**message):
    writer.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    writer.flush()

for line in reader:
    message = json.loads(line)
    if message.get("method") == "initialize":
        tool = {"name": "t", "description": "says ok", "parameters": {"type": "object"}}
        send(method="register/tool", params=tool)
        send(id=message["id"], result={"name": "p", "version": "1"})
    elif message.get("method") == "tool/execute":
        send(id=message["id"], result={"content": [{"type": "text", "text": "ok"}]})
"""
ON_DESCRIPTORS = "reader, writer = os.fdopen(3), os.fdopen(4, 'w')"
ON_STDIO = "reader, writer = sys.stdin, sys.stdout"
SECTION = {"jsonrpc": "2.0", "method": "register/promptSection", "params": {"title": "Early", "content": "before"}}


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def program(folder: Path, *beginning: str) -> tuple[str, ...]:
    directory = folder / "p"
    directory.mkdir()
    (directory / "manifest.yaml").write_text("name: p\nversion: 1.0.0\nruntime: python\nentry: main.py\n")
    code = "\n".join(["import itertools, json, os, select, sys", *map(textwrap.dedent, beginning), SPEAKING])
    (directory / "main.py").write_text(code)
    return ("--ext", str(directory))


def works(hilt: Hilt, flags: tuple[str, ...]) -> list[str]:
    """Calls its tool, and gives the prompt sections there are."""
    with hilt.rpc(*hilt.script(calls(("t", {})), says("done")), *flags) as rpc:
        rpc.event("ext_status", extension="p", state="ready")
        rpc.settled()
        (result,) = [line for line in rpc.prompt("go") if line["type"] == "tool_result"]
        assert (result["content"][0]["text"], result["is_error"]) == ("ok", False)
        sections = rpc.ask("host", method="host/promptSections")["data"]["sections"]
    assert rpc.errors == ""
    return [section["title"] for section in sections]


# Hears the first line and waits a moment before it answers on 4: time enough for somebody to close 3 meanwhile.
HESITANT = f"""
{ON_DESCRIPTORS}
first = reader.readline()
select.select([reader], [], [], 0.2)
reader = itertools.chain([first], reader)
"""


def test_what_is_printed_before_the_descriptors_are_used_is_only_logged(hilt: Hilt) -> None:
    early = f"print({json.dumps(SECTION)!r}, flush=True)"
    assert "Early" not in works(hilt, program(hilt.folder, early, HESITANT))
    assert f"stdout: {json.dumps(SECTION)}" in (hilt.home / "logs" / "ext-p.log").read_text()


def test_a_program_that_prints_what_it_hears_is_not_taken_for_one_that_answers_there(hilt: Hilt) -> None:
    works(hilt, program(hilt.folder, HESITANT.replace("select.select", "print(first, flush=True)\nselect.select")))
    assert 'stdout: {"jsonrpc":"2.0","id":1,"method":"initialize"' in (hilt.home / "logs" / "ext-p.log").read_text()


def test_what_a_program_on_stdout_says_before_it_has_answered_counts(hilt: Hilt) -> None:
    early = f"print({json.dumps(SECTION)!r}, flush=True)"
    assert "Early" in works(hilt, program(hilt.folder, early, ON_STDIO))


def test_one_that_says_a_great_deal_on_stdout_before_it_answers_is_taken_at_its_word(hilt: Hilt) -> None:
    early = """
    note = {"jsonrpc": "2.0", "method": "log", "params": {"level": "debug", "message": "x" * 1000}}
    for _ in range(1500):
        print(json.dumps(note), flush=True)
    os.fdopen(3).read()  # until nobody thinks any more that it might speak there
    """
    works(hilt, program(hilt.folder, early, ON_STDIO))
