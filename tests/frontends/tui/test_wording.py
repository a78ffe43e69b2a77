"""What hilt says of its command line, said where there is none."""

import pytest

from hilt.frontends.tui.wording import applied


@pytest.mark.parametrize(
    ("said", "here"),
    [
        ("log in with `hilt login <provider>`", "log in with `/login`"),
        ("run `hilt login openai` or set OPENAI_API_KEY", "run `/login openai` or set OPENAI_API_KEY"),
        ("copy the key again: run `hilt login`", "copy the key again: run `/login`"),
        ("run `hilt ext list`", "run `hilt ext list`"),
    ],
)
def test_what_can_be_typed_at_once_is_named_so(said: str, here: str) -> None:
    assert applied(said) == here
