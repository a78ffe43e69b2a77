"""The files that hold commands' whole output."""

import os
import time
from pathlib import Path

from hilt.tools.output import create


def test_outputs_that_nobody_wrote_to_for_a_week_are_removed_with_the_next_command(tmp_path: Path) -> None:
    old, recent = tmp_path / "bash-old.log", tmp_path / "bash-recent.log"
    for path, days in ((old, 8), (recent, 6)):
        path.write_text("output")
        then = time.time() - days * 24 * 3600
        os.utime(path, (then, then))
    os.close(create(tmp_path / "bash-new.log"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bash-new.log", "bash-recent.log"]
