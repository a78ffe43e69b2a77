"""Every behaviour in every SDK and every dialect, by the same program in the real agent.

And every transcript in the Python SDK: the replays of the other two are the tests of these SDKs themselves, which look
at the same table.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.ext_site import ExtSite
from support.hilt_process import Hilt
from support.sdk_behaviours import BEHAVIOURS, DIALECTS, SDKS, outcome
from support.sdk_programs import installed
from support.sdk_session import play
from support.sdk_table import PAGE, ROOT, missing_from, page


@pytest.mark.timeout(240)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sdk", SDKS)
def test_the_demo_program_does_the_same_in_every_sdk_and_dialect(
    sdk: str, dialect: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    outcomes = play(Hilt(tmp_path), installed(tmp_path / "demo", sdk, dialect))
    assert set(outcomes) == set(BEHAVIOURS)
    for name, came in outcomes.items():
        with subtests.test(name):
            assert came == outcome(name, dialect)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("sdk", "dialect"), list(zip(SDKS, DIALECTS, strict=True)))
def test_the_demo_program_keeps_all_rules_also_with_poorer_hosts(sdk: str, dialect: str, tmp_path: Path) -> None:
    told = ExtSite(tmp_path).json("conformance", str(installed(tmp_path / "demo", sdk, dialect)))
    assert told["passed"] == told["applicable"], told


@pytest.mark.timeout(120)
def test_every_transcript_is_played_by_the_python_sdk_or_left_out_for_a_reason(tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    environment = {**os.environ, "HILT_SDK_TABLE": str(table)}
    replay = "sdks/python/tests/test_transcripts.py"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", replay]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert missing_from(table, "python") == []


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: cd tests && python -m support.sdk_table"
