"""What is offered while typing: commands, their arguments, files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.tui.editor.completion import Completion
from hilt.frontends.tui.editor.files import begun, written
from hilt.frontends.tui.scene import Part
from hilt.model.actions import Action
from hilt.model.contributions import Command
from hilt.registry.snapshot import Owner
from support.input_box import command, input_box
from support.interface import interface
from support.properties import patient

COMMANDS = [
    command("help", description="list the commands"),
    command("model", "[id]", "switch to another"),
    command("session", "open <id> | tree | fork", "work with this session"),
    command("rename", "<title>", "give it a title"),
    command("zoo", description="of an extension", owner="zebra"),
    command("audit", "[path]", "check it all", owner="guard"),
]


async def test_a_slash_opens_the_commands_with_built_ins_first_and_owners_named() -> None:
    async with input_box(commands=COMMANDS) as box:
        before = box.rows[:10]
        await box.press("/")
        assert [row.rstrip() for row in box.rows[-8:-1]] == [
            " ▸ /help                             list the commands",
            "   /model [id]                       switch to another",
            "   /session open <id> | tree | fork  work with this session",
            "   /rename <title>                   give it a title",
            "   extensions " + "─" * 66,
            "   /audit [path]                     guard  check it all",
            "   /zoo                              zebra  of an extension",
        ]
        assert box.rows[:10] == before  # nothing has moved


async def test_it_is_filtered_as_one_types_by_beginnings_then_by_letters() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.write("/mo")
        assert box.rows[-2].startswith(" ▸ /model")
        assert "/help" not in box.screen
        await box.press("ctrl+u")
        await box.write("/rnm")
        assert box.rows[-2].startswith(" ▸ /rename")
        await box.press("q")
        assert "▸" not in box.screen


async def test_tab_completes_and_adds_a_space() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.press("/", "down", "tab")
        assert box.text == "/model "
        assert box.sent == []


async def test_enter_runs_the_highlighted_command_at_once() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.write("/he")
        await box.press("enter")
        assert (box.sent, box.text) == (["/help"], "")


async def test_a_command_that_needs_an_argument_is_completed_by_enter() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.write("/ren")
        await box.press("enter")
        assert (box.sent, box.text) == ([], "/rename ")


async def test_esc_closes_the_list_first_and_it_stays_closed_for_this_word() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.press("/", "escape", "h")
        assert "▸" not in box.screen
        assert box.text == "/h"
        await box.press("enter")
        assert box.sent == ["/h"]
        await box.press("/")
        assert "▸" in box.screen


async def test_up_from_the_first_is_the_last_and_a_long_list_scrolls() -> None:
    many = [command(f"c{number:02}") for number in range(30)]
    async with input_box(commands=many) as box:
        await box.press("/")
        assert box.rows[-11] == " ▸ /c00"
        assert box.rows[-12] == "line 12 of the conversation"
        await box.press("up")
        assert box.rows[-2] == " ▸ /c29"
        assert box.rows[-11] == "   /c20"
        await box.press("down")
        assert box.rows[-11] == " ▸ /c00"


async def test_a_key_that_follows_at_once_counts_on_the_list() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.press("/", "h", "enter", "/", "a", "u", "tab", *"src", "enter")
        assert box.sent == ["/help", "/audit src"]


async def test_a_path_or_several_words_open_no_list() -> None:
    async with input_box(commands=COMMANDS) as box:
        for text in ("/usr/bin", "/help me", "x /he", "/he\nlp"):
            box.editor.put(text, replace=True)
            await box.pilot.pause()
            assert "▸" not in box.screen, text


async def test_the_words_of_a_usage_are_offered_for_the_argument() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.write("/session ")
        assert [row.rstrip() for row in box.rows[-4:-1]] == [" ▸ open <id>", "   tree", "   fork"]
        await box.write("tr")
        await box.press("enter")
        assert box.sent == ["/session tree"]
        await box.write("/session o")
        await box.press("enter")
        assert box.text == "/session open "


async def test_a_hostile_command_cannot_command_the_terminal() -> None:
    hostile = command("evil", "[\x1b[2J]", "a\nb\x1b]0;t\x07\u202e◈", owner="bad\x1b[31m")
    async with input_box(commands=[hostile]) as box:
        await box.press("/")
        assert box.rows[-2].rstrip() == " ▸ /evil []  bad  a b‹U+202E›‹U+25C8›"


async def test_on_forty_columns_names_come_before_what_explains_them() -> None:
    async with input_box(commands=COMMANDS, size=(40, 16)) as box:
        await box.press("/")
        assert box.rows[-6].startswith("   /session open <id> …  work with")
        assert all(len(row) <= 40 for row in box.rows)


async def test_an_at_offers_files_and_tab_puts_one_in() -> None:
    async with input_box(files=["src/", "src/main.py", "docs/my notes.md"]) as box:
        await box.write("see @ma")
        await box.until(lambda: "src/main.py" in box.screen)
        await box.press("tab")
        assert box.text == "see @src/main.py "
        await box.write("@note")
        await box.press("enter")
        assert box.text == 'see @src/main.py @"docs/my notes.md" '
        assert box.files.looked == 1
        await box.press("enter")
        assert box.sent == ['see @src/main.py @"docs/my notes.md"']


async def test_of_a_long_path_the_end_is_shown() -> None:
    async with input_box(files=["深い/" * 20 + "the_file.py"], size=(40, 12)) as box:
        await box.press("@")
        await box.until(lambda: "the_file.py" in box.screen)
        assert box.rows[-2].startswith(" ▸ …")


async def test_after_a_directory_one_goes_on_typing() -> None:
    async with input_box(files=["src/", "src/main.py"]) as box:
        await box.write("@s")
        await box.until(lambda: "main" in box.screen)
        await box.press("tab", "m", "tab")
        assert box.text == "@src/main.py "


async def test_a_path_typed_to_its_end_is_sent_by_enter() -> None:
    async with input_box(files=["one.py"]) as box:
        await box.write("see @one.py")
        await box.until(lambda: "▸ one.py" in box.screen)
        await box.press("enter")
        assert box.sent == ["see @one.py"]


async def test_a_choice_can_be_clicked_on() -> None:
    async with input_box(commands=COMMANDS) as box:
        await box.press("/")
        await box.pilot.click(Completion, offset=(6, 3))
        assert (box.text, box.sent) == ("/rename ", [])


async def test_esc_closes_the_files_and_the_text_stays() -> None:
    async with input_box(files=["one.py"]) as box:
        await box.write("@on")
        await box.until(lambda: "one.py" in box.screen)
        await box.press("escape", "enter")
        assert box.sent == ["@on"]


async def test_a_name_that_would_not_be_drawn_as_it_is_is_not_offered() -> None:
    async with input_box(files=["good.py", "b\x1b[2Jad.py", "b\nad.py", "b\u202ead.py", "b\udcffad.py"]) as box:
        await box.write("@.py")
        await box.until(lambda: "good.py" in box.screen)
        assert box.rows[-2].rstrip() == " ▸ good.py"
        assert "ad.py" not in box.screen


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("@", (0, "")),
        ("see @src/m", (4, "src/m")),
        ('@"my no', (0, "my no")),
        ("me@here.org", None),
        ("@done now", None),
        ('@"done" ', None),
        ("(@x", None),
    ],
)
def test_a_path_begins_at_the_start_or_behind_a_space(before: str, found: tuple[int, str] | None) -> None:
    assert begun(before) == found


@patient
@given(st.text(st.characters(exclude_characters='"\n', exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1))
def test_what_is_put_in_for_a_file_is_found_again(name: str) -> None:
    text = written(name).rstrip(" ").removesuffix('"')
    assert begun(text) == (0, name)


async def test_a_command_that_comes_to_be_while_its_name_is_typed_is_offered(tmp_path: Path) -> None:
    async def run(_: str) -> tuple[Action, ...]:
        return ()

    async with interface(tmp_path) as face:
        await face.press(*"/late")
        assert "▸" not in face.text
        command = Command("later", "comes late", run)
        with face.it.session.parts.registry.publish(Owner("sloth"), (command,)):
            face.app.scene.mark(Part.STATUS)  # as when an extension has become ready
            await face.shows("▸ /later")
