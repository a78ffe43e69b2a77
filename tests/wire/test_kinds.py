"""What the frame `register` can be for."""

import pytest
from msgspec import structs

from hilt.wire.frames_kinds import KINDS, register_problem
from hilt.wire.frames_types import Register


@pytest.mark.parametrize(("kind", "needed"), KINDS.items())
def test_each_kind_of_contribution_needs_its_name(kind: str, needed: str) -> None:
    assert register_problem(structs.replace(Register(kind), **{needed: "x"})) is None
    assert needed in (register_problem(Register(kind)) or "")


def test_an_unknown_kind_of_contribution_is_refused_with_the_known_ones() -> None:
    reason = register_problem(Register("tool", name="x"))
    assert reason and "'tool'" in reason and "prompt_section" in reason
