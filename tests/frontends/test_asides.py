"""What is told on stderr beside the answer: what extensions want of a face that cannot give it."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from hilt.frontends.asides import Asides
from hilt.frontends.plain import Progress
from hilt.model.events import (
    BackgroundChanged,
    Displayed,
    Event,
    Inserted,
    OverlayClosed,
    OverlayShown,
    QuitAsked,
    StatusShown,
    WidgetShown,
)
from hilt.model.masking import Mask

KEY = "sk-0123456789abcdef"
EVIL = f"\x1b[2J{KEY}\nhilt: forged"


async def shown(sink: Callable[[Event], Any], capsys: pytest.CaptureFixture[str], *events: Event) -> str:
    for event in events:
        await sink(event)
    return capsys.readouterr().err


def plain() -> Progress:
    return Progress(sys.stderr, Mask((KEY,)), answers=lambda: "owner")


async def test_one_prompt_is_seen_through_although_an_extension_wants_to_quit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for sink in (plain(), Asides(Mask((KEY,)), notes=True)):
        told = await shown(sink, capsys, QuitAsked(EVIL))
        assert "wants hilt to end" in told and "\x1b" not in told and KEY not in told
        assert not told.partition("\n")[2].startswith("hilt:")


async def test_words_of_another_extension_are_no_part_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert await shown(plain(), capsys, Displayed("owner", "mine"), Displayed("me", "a\nb")) == "[me] a\n[me] b\n"


async def test_a_client_decides_for_itself_whether_to_quit(capsys: pytest.CaptureFixture[str]) -> None:
    assert await shown(Asides(Mask(()), notes=False), capsys, QuitAsked("me")) == ""


async def test_what_is_for_a_screen_is_not_shown_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    on_screen = (
        WidgetShown("me", "w", "above-input", "x"),
        OverlayShown("me", "o", "T", "x"),
        OverlayClosed("me", "o"),
        StatusShown("me", "s", "x"),
        BackgroundChanged("tidy", "started", "me"),
    )
    assert await shown(plain(), capsys, *on_screen) == ""
    assert await shown(plain(), capsys, Inserted("me", EVIL, replace=True)) == (
        "[me] for your input: [key hidden]\n[me] for your input: hilt: forged\n"
    )
