"""Patterns: what their mismatches say agrees with what matches. How they match is tested with the transcripts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.authoring.matching import BadPattern, example, matched, mismatches, nearness, variables_in
from support.properties import patient

NAMES = st.sampled_from(["a", "b", "c"])
PLAIN = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "xy"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
TEXTS = st.sampled_from(["x", "y"]).map(lambda text: {"$contains": text})
EXPRESSIONS = st.sampled_from(["x", "^x$", "x?y"]).map(lambda text: {"$regex": text})
PATTERNS: st.SearchStrategy[Any] = st.recursive(
    PLAIN | TEXTS | EXPRESSIONS | st.sampled_from(["$any", "$v"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner | st.just("$absent"), max_size=3)
        | inner.map(lambda part: {"$has": part})
    ),
    max_leaves=8,
)


@patient
@given(VALUES, PATTERNS)
def test_there_are_differences_exactly_where_nothing_matches(value: Any, pattern: Any) -> None:
    fits = matched(value, pattern, {"$v": "x"}) is not None

    assert (mismatches(value, pattern, {"$v": "x"}) == []) is fits
    assert 0.0 <= nearness(value, pattern, {"$v": "x"}) <= 1.0
    assert nearness(value, pattern, {"$v": "x"}) == 1.0 or not fits


@patient
@given(VALUES)
def test_a_value_contains_itself_and_is_its_own_example(value: Any) -> None:
    assert matched(value, value, {}) == {} and example(value) == value


@pytest.mark.parametrize(
    ("value", "pattern", "told"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1]: expected 3, got 2"]),
        ({"a": 1}, {"a": "$absent", "b": 2}, ["a: expected nothing, got 1", "b: expected 2, got nothing"]),
        ({"a": True}, {"a": 1}, ["a: expected 1, got true"]),
        ("abc", {"$regex": "^b"}, ['the whole: expected {"$regex":"^b"}, got "abc"']),
        ({"id": "8"}, {"id": "$t"}, ['id: expected "7", got "8"']),
        ([1], [1, 2], ["the whole: expected [1,2], got [1]"]),
    ],
)
def test_a_difference_names_the_place_and_both_sides(value: Any, pattern: Any, told: list[str]) -> None:
    assert mismatches(value, pattern, {"$t": "7"}) == told


@pytest.mark.parametrize("pattern", [{"$regex": "("}, {"$regex": 1}, {"a": {"$contains": 1}}, [{"$has": 1, "b": 2}]])
def test_what_is_no_pattern_is_refused(pattern: Any) -> None:
    with pytest.raises(BadPattern):
        list(variables_in(pattern))
