"""What tests of dialogs have in common: both dialects."""

import pytest

from hilt.model.extensions import Dialect
from support import extending


@pytest.fixture(params=["frames", "jsonrpc"])
def dialect(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Dialect:
    """What the extensions of a test speak, once the one and once the other."""
    spoken: Dialect = request.param
    monkeypatch.setattr(extending, "SPOKEN", spoken)
    return spoken
