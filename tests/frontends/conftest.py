"""What tests of `hilt rpc` with real extensions have in common."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hilt_process import Hilt, until
from support.leftovers import working_in


@pytest.fixture
def hilt(tmp_path: Path) -> Iterator[Hilt]:
    yield Hilt(tmp_path)
    until(lambda: not working_in(tmp_path), "the end of every process that worked here")
