"""The skill about extensions: what it tells a model to do works, from an empty directory to a tested extension."""

import json
import os
import re
import sys
from pathlib import Path

from hilt.context.shipped_skills import SHIPPED
from support.agent import calls, says
from support.hilt_process import Hilt

_SAME_HOME = {"HOME": os.environ.get("HOME", "/")}
"""A manager of versions looks there for which `python3` is meant."""
_PROGRAM = '''from hilt_sdk import Extension

ext = Extension("shout", "0.1.0")


@ext.tool
def shout(text: str) -> str:
    """Say a text louder.

    Args:
        text: what to say
    """
    return text.upper()


if __name__ == "__main__":
    ext.run()
'''
_FIXTURE = '{"call": "shout", "args": {"text": "hey"}, "result": "HEY"}\n'
_STEPS = """\
{"call": "weather", "args": {"city": "Rome"}, "result": "Rome: sunny"}
{"run": "/hi Ada", "shows": "hello, Ada"}
{"intercept": "bash", "args": {"command": "rm -rf /"}, "verdict": "block"}
"""
_TEST = """import unittest

from hilt_sdk.testing import Host
from shout import ext


class Shouts(unittest.TestCase):
    def test_it_is_louder(self) -> None:
        with Host(ext) as host:
            self.assertEqual(host.call("shout", text="hey").text, "HEY")
"""


def test_a_model_that_follows_the_skill_ends_with_a_tested_extension(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, **_SAME_HOME)
    script = hilt.script(
        calls(("skill", {"name": "hilt-extensions"})),
        calls(("bash", {"command": "hilt ext new shout --lang python --kind tool"})),
        calls(("write", {"path": "shout/shout.py", "content": _PROGRAM})),
        calls(("write", {"path": "shout/tests/shout.jsonl", "content": _FIXTURE})),
        calls(("write", {"path": "shout/tests/test_shout.py", "content": _TEST})),
        calls(("bash", {"command": 'cd shout && hilt ext test . && hilt ext call . shout \'{"text": "hey"}\''})),
        calls(("bash", {"command": "cd shout && hilt ext conformance . && hilt ext validate ."})),
        says("It is done."),
    )
    done = hilt.run("--json", "-p", "write me an extension that shouts", *script)
    results = [event for event in done.events if event["type"] == "tool_result"]
    assert [one["is_error"] for one in results] == [False] * 7, json.dumps(results[5:], indent=1)
    assert "2 passed" in str(results[5]) and "HEY" in str(results[5])
    assert "nothing to complain about" in str(results[6])


def test_the_program_in_the_skill_works(tmp_path: Path) -> None:
    """Its one look at the SDK is code that runs, and what it speaks of exists."""
    body = SHIPPED[0].path.read_text()
    program = re.search(r"```python\n(.*?)```", body, re.DOTALL)
    assert program
    hilt = Hilt(tmp_path, **_SAME_HOME)
    assert hilt.run("ext", "new", "weather").code == 0
    (hilt.project / "weather" / "weather.py").write_text(program[1])
    (hilt.project / "weather" / "tests" / "weather.jsonl").write_text(_STEPS)
    (hilt.project / "weather" / "tests" / "test_weather.py").unlink()
    done = hilt.run("ext", "test", "weather")
    assert done.code == 0, done
    for verb in re.findall(r"`hilt ext (\w+)", body):
        assert hilt.run("ext", verb, "--help").code == 0, verb


def test_hilt_is_at_hand_in_commands_however_it_was_started(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, PATH="/usr/bin:/bin")
    script = hilt.script(calls(("bash", {"command": "command -v hilt"})), says("done"))
    done = hilt.run("--json", "-p", "go", *script)
    (result,) = [event for event in done.events if event["type"] == "tool_result"]
    assert str(Path(sys.executable).parent / "hilt") in str(result)
