"""Themes: which one it begins with, the user's own, what is wrong with one, and choosing another while it runs."""

from pathlib import Path

import pytest

from hilt.errors import ConfigError
from hilt.frontends.tui import themes
from hilt.frontends.tui.look import DARK, LIGHT, SYSTEM
from support.agent import says
from support.hilt_process import Hilt
from support.program import program


def own(folder: Path, text: str, name: str = "mine") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)
    return folder


def test_one_of_the_users_begins_with_another_and_changes_a_few_colours(tmp_path: Path) -> None:
    own(tmp_path, 'base = "light"\naccent = "#102030"\ndim = "bright_black"\n')
    palette = themes.find("mine", tmp_path)
    assert (palette.accent, palette.dim, palette.text, palette.dark) == ("#102030", "bright_black", LIGHT.text, False)
    assert themes.names(tmp_path) == ("dark", "light", "system", "mine")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('accent = "mauve"', "is no colour"),
        ('accent = "#12345"', "is no colour"),
        ("accent = 7", "is no colour"),
        ('shade = "#102030"', "there is no colour 'shade'"),
        ('dark = "#102030"', "there is no colour 'dark'"),
        ('base = "mine"', "is no built-in theme"),
        ("base = 7", "is no built-in theme"),
        ("base = [1]", "is no built-in theme"),
        ("accent =", "mine.toml"),
        ("a = " + "[" * 10_000, "mine.toml"),
        ("# " + "x" * 70_000, "larger than"),
    ],
)
def test_what_is_wrong_with_one_is_said_with_the_file(tmp_path: Path, text: str, told: str) -> None:
    own(tmp_path, text)
    with pytest.raises(ConfigError, match=told) as raised:
        themes.find("mine", tmp_path)
    assert "mine.toml" in raised.value.message and raised.value.hint


@pytest.mark.parametrize("name", ["", "none", "../mine", "/etc/passwd", ".hidden", "a/b", "x" * 1000, "\x1b[2J"])
def test_one_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path, name: str) -> None:
    own(tmp_path, "")
    with pytest.raises(ConfigError) as raised:
        themes.find(name, own(tmp_path / "themes", "", "yours"))
    assert "dark, light, system, yours" in raised.value.hint


@pytest.mark.parametrize(
    ("environment", "config", "wanted"),
    [
        ({}, "", "dark"),
        ({"COLORFGBG": "0;15"}, "", "light"),
        ({"COLORFGBG": "15;0"}, "", "dark"),
        ({"COLORFGBG": "15;default"}, "", "dark"),
        ({"COLORFGBG": "0;15"}, 'theme = "system"', "system"),
        ({"HILT_THEME": "mine"}, 'theme = "system"', "mine"),
        ({}, "theme = 7", "dark"),
        ({}, "theme =", "dark"),
    ],
)
def test_it_begins_with_what_the_user_or_else_the_terminal_says(
    tmp_path: Path, environment: dict[str, str], config: str, wanted: str
) -> None:
    if config:
        (tmp_path / "config.toml").write_text(config)
    assert themes.wanted(environment, tmp_path) == wanted


def test_a_folder_that_cannot_be_read_leaves_the_built_in_ones(tmp_path: Path) -> None:
    (tmp_path / "themes").write_text("a file")
    assert themes.names(tmp_path / "themes") == ("dark", "light", "system")


# While it runs


async def test_another_theme_is_put_on_at_once_and_kept(hilt: Hilt) -> None:
    own(hilt.home / "themes", 'base = "light"\naccent = "#102030"\n')
    async with program(hilt, *hilt.script(says("hello"))) as window:
        assert window.app.look.palette == DARK
        window.say("hi")
        await window.shows("hello")
        window.say("/theme")
        await window.shows("theme", "dark", "light", "system", "mine", "yours")
        await window.type("mine", "enter")
        await window.until(lambda: window.app.look.palette.accent == "#102030", "it is put on")
        assert 'theme = "mine"' in (hilt.home / "config.toml").read_text()
        drawn = {segment.style for row in window.app.screen._compositor.render_strips() for segment in row}
        texts = {style.color.name for style in drawn if style and style.color}
        assert LIGHT.text in texts and DARK.text not in texts
    async with program(hilt, *hilt.script(says("hello"))) as window:
        assert window.app.look.palette.accent == "#102030"


async def test_the_list_shows_each_theme_as_one_walks_through_it_and_esc_goes_back(hilt: Hilt) -> None:
    own(hilt.home / "themes", "accent = 7")  # not to be used
    async with program(hilt, *hilt.script()) as window:
        window.say("/theme")
        await window.shows("dark", "light")
        await window.press("down")
        await window.until(lambda: window.app.look.palette == LIGHT, "light is shown")
        await window.press("down")
        await window.until(lambda: window.app.look.palette == SYSTEM, "system is shown")
        await window.press("down", "escape")
        await window.until(lambda: window.dialog is None and window.app.look.palette == DARK, "it is as before")
        assert not (hilt.home / "config.toml").exists()


async def test_a_theme_is_named_at_once_and_one_that_is_none_is_refused(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script()) as window:
        window.say("/theme light")
        await window.until(lambda: window.app.look.palette == LIGHT, "it is put on")
        window.say("/theme plaid")
        await window.shows('there is no theme "plaid"', "one of dark, light, system")
        assert window.app.look.palette == LIGHT


async def test_a_choice_that_cannot_be_kept_holds_for_now(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script()) as window:
        (hilt.home / "config.toml").mkdir()
        window.say("/theme light")
        await window.shows("for now:")
        assert window.app.look.palette == LIGHT


async def test_a_theme_that_is_wrong_never_keeps_it_from_opening(hilt: Hilt) -> None:
    own(hilt.home / "themes", "accent = 7")
    hilt.environment["HILT_THEME"] = "mine"
    async with program(hilt, *hilt.script()) as window:
        await window.shows("mine.toml: accent: 7 is no colour")
        assert window.app.look.palette == DARK
