"""The golden conversations: well formed, complete, and kept to by the host."""

from pathlib import Path

import pytest

from support.replay import as_process, in_memory, replay
from support.transcript import paths, read


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
async def test_the_host_keeps_to_its_side_of_the_conversation(path: Path, tmp_path: Path) -> None:
    await replay(read(path), tmp_path, in_memory)
