"""The example clients, run end to end against the real `hilt rpc`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.agent import calls, says
from support.hilt_process import DEADLINE, Ended, Hilt

EXAMPLES = Path(__file__).parents[2] / "examples" / "rpc"


def _needs(*programs: str) -> list[pytest.MarkDecorator]:
    """Skipped where a program is missing, but never in CI, which has them all."""
    missing = [program for program in programs if shutil.which(program) is None]
    return [
        pytest.mark.skipif(bool(missing) and "CI" not in os.environ, reason=f"{', '.join(missing)} is not installed")
    ]


CLIENTS = [
    pytest.param([sys.executable, "client.py"], id="python"),
    pytest.param(["node", "client.mjs"], id="node", marks=_needs("node")),
    pytest.param(["sh", "client.sh"], id="sh", marks=_needs("sh", "jq")),
]


def run(hilt: Hilt, client: list[str], prompt: str, *flags: str, **environment: str) -> Ended:
    program = hilt.folder / "hilt"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hilt "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        [client[0], str(EXAMPLES / client[1]), prompt, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=hilt.project,
        env={**hilt.environment, "HILT": str(program), **environment},
        timeout=DEADLINE,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_prints_the_answer_and_refuses_what_it_is_asked_to_allow(tmp_path: Path, client: list[str]) -> None:
    hilt = Hilt(tmp_path)
    text = 'Grüße 🌍, "quoted" \\ and\n  a\u2028second line'
    turns = (
        calls(("bash", {"command": "touch ran"})),
        says(text, expect={"role": "tool", "contains": "this client allows nothing"}),
    )
    flags = ("--permissions", "ask", *hilt.script(*turns))
    done = run(hilt, client, "say it", *flags, HILT_RPC_TOKEN="open sesame")
    assert done == Ended(0, text + "\n", "")
    assert not (hilt.project / "ran").exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reports_a_failed_turn(tmp_path: Path, client: list[str]) -> None:
    hilt = Hilt(tmp_path)
    done = run(hilt, client, "fail", *hilt.script({"error": "the model is on strike"}))
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: the model is on strike\n"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reports_a_prompt_that_is_not_taken(tmp_path: Path, client: list[str]) -> None:
    done = run(Hilt(tmp_path), client, "")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ") or "\nerror: " in done.err


@pytest.mark.parametrize("name", ["client.py", "client.mjs", "client.sh"])
def test_a_client_is_short_enough_to_read_at_a_glance(name: str) -> None:
    assert (EXAMPLES / name).read_text().count("\n") <= 32
