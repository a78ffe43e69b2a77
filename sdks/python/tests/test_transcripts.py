"""Every conversation of spec/transcripts, with an extension that is written with the SDK."""

import json
import os
from pathlib import Path

import pytest

from transcript_player import Player

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "spec" / "transcripts"
NEEDS = {
    "raw": "no SDK would do this",
    "two_extensions": "there is one extension",
    "failing": "it does not start",
}
BY_DESIGN = {
    "frames/panel-that-is-not-open": "only panels that are open are drawn",
    "jsonrpc/handshake-before-initialize": "all is said after initialize: what is registered depends on the host",
}


def _named(path: Path) -> str:
    return f"{'jsonrpc' if path.parent.name == 'jsonrpc' else 'frames'}/{path.stem}"


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.rglob("*.jsonl")), ids=_named)
def test_the_extension_says_what_the_transcript_says(path: Path) -> None:
    name = _named(path)
    player = Player(path)
    reason = BY_DESIGN.get(name, "") or next((NEEDS[need] for need in player.about["needs"] if need in NEEDS), "")
    if not reason:
        player.play()
    _tabulate(name, reason)
    if reason:
        pytest.skip(reason)


def _tabulate(name: str, reason: str) -> None:
    """A line for the project's table of what every SDK does."""
    table = os.environ.get("HILT_SDK_TABLE")
    if table:
        dialect, _, transcript = name.partition("/")
        line = {"sdk": "python", "dialect": dialect, "transcript": transcript}
        line |= {"outcome": "skipped", "reason": reason} if reason else {"outcome": "passed"}
        with Path(table).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
