"""The table of all SDKs: every behaviour and transcript, in each SDK and dialect. As a program it writes the page."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from support.sdk_behaviours import BEHAVIOURS, DIALECTS, REASONS, SDKS

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT / "spec" / "transcripts"
PAGE = ROOT / "docs" / "reference" / "sdk-table.md"
_HEAD = """\
# What each SDK does

One extension that uses everything is written in each SDK, and run by the real agent in each dialect. What happens is
the same nine times. The table is made by `python -m support.sdk_table` in `tests`, and holds as long as the tests pass.
The names themselves are [side by side](sdks.md).

"""
_FOOT = """
Each SDK also replays the [conversations](../../spec/transcripts/README.md) that tests of hosts and SDKs share:
{count}. It leaves out those that do what no extension written with it would:

{reasons}
"""


def transcripts() -> list[tuple[str, str]]:
    """Each with its dialect, in order."""
    found = sorted(TRANSCRIPTS.rglob("*.jsonl"))
    return [("jsonrpc" if path.parent.name == "jsonrpc" else "frames", path.stem) for path in found]


def missing_from(table: Path, sdk: str) -> list[str]:
    """What is wrong with the lines of an SDK's replay: nothing may be missing, or left out for no reason."""
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    known: dict[tuple[str, str], dict[str, Any]] = {}
    problems = []
    for row in rows:
        if row["sdk"] != sdk:
            problems.append(f"{row['sdk']} is not {sdk}")
        known[row["dialect"], row["transcript"]] = row
    for dialect, name in transcripts():
        row = known.pop((dialect, name), None)
        if row is None:
            problems.append(f"{dialect}/{name} was not played")
        elif row["outcome"] != "passed" and row.get("reason") not in REASONS:
            problems.append(f"{dialect}/{name} was left out: {row.get('reason')}")
    return problems + [f"{dialect}/{name} is no transcript" for dialect, name in known]


def page() -> str:
    head = f"| | {' | '.join(f'{sdk}, {dialect}' for sdk in ('Python', 'TypeScript', 'Go') for dialect in DIALECTS)} |"
    rows = [head, "|---" * (1 + len(SDKS) * len(DIALECTS)) + "|"]
    rows += [f"| {name} |{' ✓ |' * (len(SDKS) * len(DIALECTS))}" for name in BEHAVIOURS]
    counts = Counter(dialect for dialect, _ in transcripts())
    count = " and ".join(f"{number} in {dialect}" for dialect, number in sorted(counts.items()))
    reasons = "\n".join(f"- {reason}" for reason in sorted(REASONS))
    return _HEAD + "\n".join(rows) + "\n" + _FOOT.format(count=count, reasons=reasons)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
