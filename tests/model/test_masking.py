"""Secrets are blanked wherever they stand, and nothing else is."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.encode import json_line
from hilt.model.masking import MASK, Mask
from support.properties import patient

KEY = "sk-ant-0123456789"


@patient
@given(st.text(), st.text())
def test_a_known_key_is_gone_from_any_text_around_it(before: str, after: str) -> None:
    assert KEY not in Mask([KEY]).text(before + KEY + after)


@patient
@given(st.dictionaries(st.text(), st.text()), st.text())
def test_a_masked_json_line_is_still_json_and_has_no_key(more: dict[str, str], around: str) -> None:
    line = Mask([KEY]).line(msgspec.json.encode({**more, "text": around + KEY + around}))
    assert KEY.encode() not in line
    assert msgspec.json.decode(line)["text"] == (around + KEY + around).replace(KEY, MASK)


def test_a_key_with_characters_that_json_escapes_is_blanked_in_json_too() -> None:
    odd = 'pa"ss\\word-1234'
    line = Mask([odd]).line(msgspec.json.encode({"text": f"it is {odd}!"}))
    assert msgspec.json.decode(line) == {"text": f"it is {MASK}!"}


def test_a_key_that_contains_another_is_blanked_whole() -> None:
    assert Mask([KEY, KEY + "-longer"]).text(f"{KEY}-longer {KEY}") == f"{MASK} {MASK}"


def test_short_strings_are_not_taken_for_keys() -> None:
    assert Mask(["ollama", ""]).text("ollama runs") == "ollama runs"


def test_a_key_learned_later_is_blanked_from_then_on() -> None:
    mask = Mask()
    assert mask.text(KEY) == KEY
    mask.add(KEY)
    assert mask.text(KEY) == MASK


def test_a_key_that_is_no_text_is_blanked_as_it_is_written_and_breaks_nothing() -> None:
    odd = "no-text-\udcff-\t-1234"  # as an environment variable with a byte that is no UTF-8 is read
    line = Mask([odd]).line(json_line({"text": f"it is {odd}!"}))
    assert msgspec.json.decode(line) == {"text": f"it is {MASK}!"}


def test_only_a_tail_that_may_become_a_key_is_cut_off() -> None:
    mask = Mask([KEY])
    assert mask.cut("nothing here") == ("nothing here", "")
    assert mask.cut(f"a {KEY[:-1]}") == ("a ", KEY[:-1])
    assert mask.cut(f"a {KEY[:-1]}x") == (f"a {KEY[:-1]}x", "")
    assert mask.cut(f"{KEY} and sk-") == (f"{MASK} and ", "sk-")
    assert mask.cut(f"{KEY} and sk-", ended=True) == (f"{MASK} and sk-", "")


def test_a_key_whose_end_could_begin_it_again_is_blanked_at_once() -> None:
    assert Mask(["abab1abab"]).cut("abab1abab") == (MASK, "")
