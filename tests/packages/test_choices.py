from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.packages.choices import NONE, STRICTNESS, Choices, permissions_of, sandbox_of
from hilt.packages.manifest import Manifest, SandboxLevel
from support.properties import patient

LISTED, UNLISTED = Manifest("demo", permissions=("net", "env:A_TOKEN")), Manifest("demo")
levels = st.sampled_from(STRICTNESS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"grants": ["everything"]},
        {"revoked": ["fs.read:../x"]},
        {"off": ["tools"]},
        {"off": ["tool:"]},
        {"off": [""]},
        {"sandbox": "none"},
        {"nice": -5},
        {"nice": 20},
        {"trusted": True},
        {"enabled": "yes"},
    ],
)
def test_a_choice_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Choices)


def test_the_users_word_is_the_last_on_what_a_manifest_asks_for() -> None:
    assert permissions_of(LISTED, NONE).allows("net") and not permissions_of(LISTED, NONE).allows("env:A_TOKEN")
    assert permissions_of(LISTED, Choices(grants=("env:A_TOKEN",))).allows("env:A_TOKEN")
    assert not permissions_of(LISTED, Choices(revoked=("net",))).allows("net")


@pytest.mark.parametrize(
    ("manifest", "choices", "stranger", "level"),
    [
        (UNLISTED, NONE, False, "off"),
        (UNLISTED, NONE, True, "off"),
        (LISTED, NONE, False, "standard"),
        (LISTED, NONE, True, "strict"),
        (UNLISTED, Choices(revoked=("net",)), False, "standard"),
        (UNLISTED, Choices(revoked=("net",)), True, "strict"),
        (LISTED, Choices(sandbox="off"), True, "off"),
        (UNLISTED, Choices(sandbox="strict"), False, "strict"),
    ],
)
def test_how_strictly_one_is_confined(
    manifest: Manifest, choices: Choices, stranger: bool, level: SandboxLevel
) -> None:
    assert sandbox_of(manifest, choices, stranger=stranger) == level


@patient
@given(asked=st.none() | st.sampled_from(("standard", "strict")), chosen=st.none() | levels, stranger=st.booleans())
def test_a_manifest_can_ask_for_a_stricter_sandbox_and_never_for_a_looser_one(
    asked: SandboxLevel | None, chosen: SandboxLevel | None, stranger: bool
) -> None:
    choices = Choices(sandbox=chosen)
    level = sandbox_of(msgspec.structs.replace(LISTED, sandbox=asked), choices, stranger=stranger)
    without = sandbox_of(LISTED, choices, stranger=stranger)
    assert STRICTNESS.index(level) >= STRICTNESS.index(without)
    assert (level == "off") == (chosen == "off")
