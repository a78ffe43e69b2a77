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
    """Without a terminal: a session of its own has none to ask at."""
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
        start_new_session=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_prints_the_answer_and_refuses_what_nobody_allows(tmp_path: Path, client: list[str]) -> None:
    hilt = Hilt(tmp_path)
    text = 'Grüße 🌍, "quoted" \\ and\n  a\u2028second line'
    turns = (
        calls(("bash", {"command": "touch ran"})),
        says(text, expect={"role": "tool", "contains": "the user said no"}),
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
def test_a_client_asks_at_the_terminal_and_a_yes_lets_it_run(tmp_path: Path, client: list[str]) -> None:
    import pexpect

    hilt = Hilt(tmp_path)
    program = tmp_path / "hilt"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hilt "$@"\n')
    program.chmod(0o755)
    script = hilt.script(calls(("bash", {"command": "touch ran"})), says("done then"))
    terminal = pexpect.spawn(
        client[0],
        [str(EXAMPLES / client[1]), "go", "--permissions", "ask", *script],
        env={**hilt.environment, "HILT": str(program)},
        cwd=str(hilt.project),
        timeout=DEADLINE,
        encoding="utf-8",
    )
    terminal.expect(r"Allow bash\?")
    terminal.expect("touch ran")
    terminal.expect("y/N")
    terminal.sendline("y")
    terminal.expect("done then")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0
    assert os.listdir(hilt.project) == ["ran"]
