"""What comes from the keyboard."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Key, Paste

from hilt.frontends.tui import keyboard
from hilt.frontends.tui.keyboard import Keyboard
from support.properties import patient

BEGIN, END = "\x1b[200~", "\x1b[201~"


def heard(*pieces: str) -> list[str]:
    """The keys by name, and pastes in angle brackets."""
    board = Keyboard()
    events = [event for piece in pieces for event in board.feed(piece)]
    return [f"<{one.text}>" if isinstance(one, Paste) else one.key for one in events if isinstance(one, Key | Paste)]


def test_alt_and_enter_is_not_enter() -> None:
    assert heard("a\x1b\rb\r") == ["a", "alt+enter", "b", "enter"]


def test_a_paste_is_one_event_between_the_keys_around_it() -> None:
    assert heard(f"a{BEGIN}one\rtwo\x1b[A{END}b") == ["a", "<one\rtwo\x1b[A>", "b"]


def test_two_pastes_are_two() -> None:
    assert heard(f"{BEGIN}1{END}{BEGIN}2{END}") == ["<1>", "<2>"]


def test_an_empty_paste_is_an_empty_one_and_keys_go_on() -> None:
    assert heard(f"{BEGIN}{END}x") == ["<>", "x"]


@patient
@given(st.text(st.sampled_from("ab\r\n\x1b[201~x日"), max_size=30), st.lists(st.integers(0, 60), max_size=8))
def test_a_paste_is_the_same_in_whatever_pieces_it_comes(text: str, cuts: list[int]) -> None:
    whole = f"q{BEGIN}{text}{END}z"
    places = sorted({0, len(whole), *(cut % len(whole) for cut in cuts)})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    pasted = text.split(END)[0]
    assert heard(*pieces)[:2] == ["q", f"<{pasted}>"]


def test_a_paste_whose_end_never_comes_does_not_swallow_what_is_typed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(keyboard, "monotonic", lambda: now[0])
    board = Keyboard()
    assert list(board.feed(f"{BEGIN}cut off")) == []
    assert list(board.tick()) == []
    now[0] += 3
    pasted = [event.text for event in board.tick() if isinstance(event, Paste)]
    assert pasted == ["cut off"]
    assert [event.key for event in board.feed("k") if isinstance(event, Key)] == ["k"]


def test_megabytes_go_around_the_parser() -> None:
    # Character by character, this many would take half a minute.
    text = "some text\r" * 2_000_000
    assert heard(BEGIN, *(text[at : at + 65_536] for at in range(0, len(text), 65_536)), END) == [f"<{text}>"]
