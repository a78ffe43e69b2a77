"""Arguments that are still being written, read as far as they go."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.tui.transcript.draft import Draft
from support.properties import patient

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(string.ascii_lowercase, min_size=1, max_size=4), VALUES, max_size=4)


def read(*pieces: str) -> dict[str, object]:
    draft = Draft()
    for piece in pieces:
        draft.add(piece)
    return draft.args


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("", {}),
        ("{", {}),
        ('{"pa', {}),
        ('{"path"', {}),
        ('{"path": ', {}),
        ('{"path": "src/a', {"path": "src/a"}),
        ('{"path": "a.py", "content": "one\\ntw', {"path": "a.py", "content": "one\ntw"}),
        ('{"path": "a.py", "content": "one\\', {"path": "a.py", "content": "one"}),
        ('{"path": "a.py", "content": "\\u00e', {"path": "a.py", "content": ""}),
        ('{"content": "smile \\ud83d', {"content": "smile "}),
        ('{"content": "smile \\ud83d\\ude0', {"content": "smile "}),
        ('{"content": "a \\\\', {"content": "a \\"}),
        ('{"edits": [{"oldText": "a", "newTe', {"edits": [{"oldText": "a"}]}),
        ('{"edits": [{"a": "a", "b": "b"}, {"a": "c', {"edits": [{"a": "a", "b": "b"}, {"a": "c"}]}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": "}{][,", "b": "x', {"a": "}{][,", "b": "x"}),
        ("no JSON at all", {}),
        ("[1, 2", {}),
        ("}}]]", {}),
    ],
)
def test_what_is_written_so_far_can_be_read(written: str, known: dict[str, object]) -> None:
    assert read(written) == known


@patient
@given(OBJECTS, st.data())
def test_any_beginning_of_arguments_is_read_without_a_wrong_value(args: dict[str, object], data: st.DataObject) -> None:
    written = json.dumps(args, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(0, len(written)))
    middle = data.draw(st.integers(0, cut))
    found = read(written[:middle], written[middle:cut])
    assert list(found) == list(args)[: len(found)]
    for key in list(found)[:-1]:
        assert found[key] == args[key], "only the last value can be incomplete"
    if cut == len(written):
        assert found == args


@patient
@given(st.lists(st.text(alphabet='{}[]",:\\u012 a\n', max_size=10), max_size=8))
def test_nothing_that_is_written_breaks_it(pieces: list[str]) -> None:
    assert isinstance(read(*pieces), dict)
