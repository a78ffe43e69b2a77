"""Lists that get shorter as you type."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.dialogs.matching import Matched, matches
from hilt.frontends.tui.dialogs.picker import Chosen, Item, KeyedPicker, Listing, Picker
from hilt.frontends.tui.look import DARK, LIGHT, Look
from support.interface import Window
from support.properties import patient

LOOK = Look.of(DARK)
MODELS = [
    Item("gpt-5.5", "gpt-5.5", "OpenAI", group="openai"),
    Item("gpt-5.5-mini", "gpt-5.5-mini", "OpenAI, small", group="openai"),
    Item("opus", "claude-opus-4.8", "Anthropic", mark="✓", group="anthropic"),
    Item("sonnet", "claude-sonnet-4.8", "Anthropic", group="anthropic"),
]


@dataclass
class Shown(Window):
    results: list[Any] = field(default_factory=list)

    @property
    def items(self) -> list[str]:
        """The rows between the filter and the keys."""
        rows = self.rows
        first = next(at for at, row in enumerate(rows) if row.startswith("  / "))
        return [row.strip() for row in rows[first + 1 : -1] if row.strip() and not row.strip().startswith(("↑", "↓"))]


@asynccontextmanager
async def picking(picker: Listing[Any], size: tuple[int, int] = (80, 24)) -> AsyncIterator[Shown]:
    app = HiltApp()
    async with app.run_test(size=size) as pilot:
        shown = Shown(app, pilot)
        app.push_screen(picker, shown.results.append)
        await shown.until(lambda: shown.dialog and any(row.startswith("  / ") for row in shown.rows))
        yield shown


async def test_all_of_it_is_shown_under_its_groups_and_enter_takes_the_current_one() -> None:
    async with picking(Picker("Model", MODELS, LOOK, current="opus")) as shown:
        labels = [row.split("  ")[0] for row in shown.items]
        assert labels == ["openai", "gpt-5.5", "gpt-5.5-mini", "anthropic", "› ✓", "claude-sonnet-4.8"]
        await shown.press("enter")
        await shown.until(lambda: shown.results == ["opus"])


async def test_typing_narrows_without_regard_to_case_and_punctuation_and_backspace_widens() -> None:
    async with picking(Picker("Model", MODELS, LOOK)) as shown:
        await shown.press(*"SONNET48")
        await shown.shows("1/4")
        assert len(shown.items) == 1 and "claude-sonnet-4.8" in shown.items[0]
        await shown.press(*["backspace"] * 8)
        await shown.until(lambda: len(shown.items) == 6)
        await shown.press(*"zzz")
        await shown.shows("nothing matches")
        await shown.press("enter")
        assert shown.results == []
        await shown.press("ctrl+u", *"mini", "enter")
        await shown.until(lambda: shown.results == ["gpt-5.5-mini"])


async def test_moving_stays_within_the_list_and_passes_over_headings() -> None:
    picker = Picker("Model", MODELS, LOOK)
    async with picking(picker) as shown:
        visited = []
        for key in ("up", "down", "down", "down", "down", "home", "end", "pageup", "pagedown"):
            await shown.press(key)
            visited.append(picker.current)
        assert visited == [
            "gpt-5.5",
            "gpt-5.5-mini",
            "opus",
            "sonnet",
            "sonnet",
            "gpt-5.5",
            "sonnet",
            "gpt-5.5",
            "sonnet",
        ]


async def test_a_click_takes_an_item_and_a_click_on_a_heading_nothing() -> None:
    async with picking(Picker("Model", MODELS, LOOK)) as shown:
        rows = shown.rows
        await shown.pilot.click(offset=(6, next(at for at, row in enumerate(rows) if row.strip() == "anthropic")))
        assert shown.results == [] and shown.dialog
        await shown.pilot.click(offset=(6, next(at for at, row in enumerate(rows) if "claude-opus" in row)))
        await shown.until(lambda: shown.results == ["opus"])


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_it_is_closed_without_anything(key: str) -> None:
    async with picking(Picker("Model", MODELS, LOOK)) as shown:
        await shown.press("g", key)
        await shown.until(lambda: shown.results == [None])
        assert shown.dialog is None and shown.app.is_running


async def test_further_keys_count_where_they_cannot_be_meant_for_the_filter() -> None:
    keys = {"r": "rename", "ctrl+d": "delete"}
    async with picking(KeyedPicker("Sessions", MODELS, LOOK, keys=keys)) as shown:
        await shown.shows("r rename", "Ctrl-d delete")
        await shown.press("down", "r")
        await shown.until(lambda: shown.results == [Chosen("gpt-5.5-mini", "r")])
    async with picking(KeyedPicker("Sessions", MODELS, LOOK, keys=keys)) as shown:
        await shown.press("o", "r")
        await shown.shows("/ or")
        await shown.press("backspace", "ctrl+d")
        await shown.until(lambda: shown.results == [Chosen("opus", "ctrl+d")])
    async with picking(KeyedPicker("Sessions", MODELS, LOOK, keys=keys)) as shown:
        await shown.press("enter")
        await shown.until(lambda: shown.results == [Chosen("gpt-5.5", "enter")])


async def test_a_thousand_items_stay_quick_and_the_current_one_is_in_sight() -> None:
    items = [Item(str(n), f"item number {n}", f"description {n * 7919 % 1000}") for n in range(1000)]
    picker = Picker("Many", items, LOOK, current="700")
    async with picking(picker, (80, 50)) as shown:
        await shown.shows("item number 700", "above", "below")
        began = time.process_time()
        picker._filter.add("99")
        picker._narrow()
        picker.rows(80, 16)
        assert time.process_time() - began < 0.1  # a few milliseconds; a frame is 33
        await shown.press("ctrl+u", "end")
        await shown.shows("item number 999")
        assert len(shown.items) == 13  # of 14 rows, the last says that there are more


async def test_other_items_leave_the_filter_and_the_place_alone() -> None:
    picker = Picker("Live", MODELS, LOOK)
    async with picking(picker) as shown:
        await shown.press(*"claude", "down")
        assert picker.current == "sonnet"
        picker.replace([*MODELS[3:], Item("haiku", "claude-haiku")])
        await shown.shows("2/2")
        assert picker.current == "sonnet"
        picker.replace([])
        await shown.shows("there is nothing here")
        await shown.press("enter", "down", "up", "end")
        assert picker.current == "" and shown.results == []


@pytest.mark.parametrize("size", [(40, 24), (40, 8), (20, 6), (200, 50)])
async def test_it_fits_whatever_the_size(size: tuple[int, int]) -> None:
    items = [Item(str(n), f"日本語 label {n}" * 3, "a description 👩‍👩‍👧 " * 10, mark="●") for n in range(50)]
    async with picking(Picker("Wide 日本語 title " * 10, items, LOOK, owner="ext"), size) as shown:
        await shown.press("down")
        assert all(strip.cell_length <= size[0] for strip in shown.app.screen._compositor.render_strips())
        assert "› ●" in shown.text


async def test_pasted_text_narrows_too_and_is_cleaned() -> None:
    async with picking(Picker("Model", MODELS, LOOK)) as shown:
        from textual.events import Paste

        shown.app.post_message(Paste("\x1b[31mopus\n"))
        await shown.shows("/ opus", "1/4")


async def test_a_theme_changes_what_is_open() -> None:
    picker = Picker("Model", MODELS, LOOK)
    async with picking(picker) as shown:
        shown.app.restyle(LIGHT)
        await shown.until(lambda: picker.look.palette is LIGHT)
        await shown.shows("Model")


async def test_one_that_is_closed_while_it_is_covered_goes_as_soon_as_it_is_uncovered() -> None:
    covered, above = Picker("Below", MODELS, LOOK), Picker("Above", MODELS, LOOK)
    async with picking(covered) as shown:
        shown.app.push_screen(above)
        await shown.shows("Above")
        covered.close("opus")
        covered.close("sonnet")  # too late
        await shown.shows("Above")
        assert shown.results == []
        await shown.press("escape")
        await shown.until(lambda: shown.dialog is None)
        assert shown.results == ["opus"] and shown.app.is_running


def test_the_best_match_comes_first() -> None:
    texts = [
        Matched.of("a gpt"),
        Matched.of("unrelated", "about gpt"),
        Matched.of("xgptx"),
        Matched.of("gpt"),
        Matched.of("go play tennis"),
        Matched.of("nothing"),
    ]
    assert matches("gpt", texts) == [3, 0, 2, 1, 4]


def test_every_word_must_fit_in_any_order() -> None:
    texts = [Matched.of("claude-sonnet-4.8"), Matched.of("claude-opus-4.8"), Matched.of("sonnet")]
    assert matches("4.8 son", texts) == [0]
    assert matches("  ", texts) == [0, 1, 2] and matches("--", texts) == [0, 1, 2]


@patient
@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=20))
def test_whatever_is_typed_a_text_is_found_by_itself_and_nothing_is_found_twice(typed: str, labels: list[str]) -> None:
    texts = [Matched.of(label) for label in labels]
    found = matches(typed, texts)
    assert len(found) == len(set(found)) and all(0 <= at < len(labels) for at in found)
    for at, label in enumerate(labels):
        assert at in matches(label, texts)


async def test_a_list_with_nothing_in_it_says_so_and_a_hint_without_room_ends_in_an_ellipsis() -> None:
    async with picking(Picker("skills", [], LOOK, hint="put your own in .hilt/skills/<name>/SKILL.md")) as shown:
        assert shown.items == ["there is nothing here"]
        assert shown.rows[-1].rstrip().endswith("…")
        await shown.press("enter", "escape")
        await shown.until(lambda: shown.results == [None])
