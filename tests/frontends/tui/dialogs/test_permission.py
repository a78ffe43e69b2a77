"""Asking before a tool runs: what is shown, what each answer does, and what no key of a person's can do by accident."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hilt.frontends.terminal import MARK
from hilt.frontends.tui.dialogs.dialog import DEAF
from hilt.frontends.tui.dialogs.permission import Permission
from hilt.frontends.tui.look import DARK, Look
from hilt.model.contributions import Effect, Preview
from hilt.model.events import PermissionDecided, ToolResultAdded
from hilt.model.ports import PermissionRequest
from support.agent import calls, says
from support.extending import chaos, tool
from support.interface import interface


def bash(command: str) -> dict[str, Any]:
    return calls(("bash", {"command": command}))


def _page(dialog: Permission, width: int) -> list[str]:
    """Everything that scrolls, without the marks of rows that go on."""
    return [dialog.row(at, width).text[2:] for at in range(dialog.length(width))]


# Each answer


async def test_once_lets_this_call_run_and_asks_about_the_next(tmp_path: Path) -> None:
    turns = [bash("echo one > ran"), bash("echo two > ran"), says("done")]
    async with interface(tmp_path, turns=turns) as face:
        face.say()
        shown = await face.shows("Allow bash?", "echo one > ran")
        assert f"{MARK} Allow bash?" in shown and "It runs programs" in shown
        await face.answer("y")
        await face.shows("echo two > ran")
        assert (tmp_path / "ran").read_text() == "one\n"
        await face.answer("n")
        await face.shows("done")
        assert (tmp_path / "ran").read_text() == "one\n"
        assert face.it.result() == "the user declined"


async def test_always_this_tool_asks_no_more_about_it_but_about_others(tmp_path: Path) -> None:
    turns = [bash("echo one"), bash("rm -rf nothing"), calls(("write", {"path": "f", "content": "x"})), says("done")]
    async with interface(tmp_path, turns=turns) as face:
        face.say()
        await face.answer("t")
        await face.shows("Allow write?")
        assert [event.source for event in face.it.of(PermissionDecided)] == ["user", "remembered"]
        await face.answer("escape")
        await face.shows("done")
        assert not (tmp_path / "f").exists()


async def test_always_this_prefix_says_which_and_asks_about_other_commands(tmp_path: Path) -> None:
    turns = [bash("git status"), bash("git status --short"), bash("git log"), says("done")]
    async with interface(tmp_path, turns=turns) as face:
        face.say()
        await face.shows("3 p  Yes, always for: git status …")
        await face.answer("p")
        await face.shows("3 p  Yes, always for: git log …")
        assert [event.source for event in face.it.of(PermissionDecided)] == ["user", "remembered"]


async def test_a_command_without_a_prefix_is_remembered_whole_and_that_is_said(tmp_path: Path) -> None:
    turns = [bash("echo a; echo b"), bash("echo a; echo b"), bash("echo a"), says("done")]
    async with interface(tmp_path, turns=turns) as face:
        face.say()
        await face.shows("3 p  Yes, always exactly this")
        await face.answer("3")
        await face.until(lambda: len(face.it.of(ToolResultAdded)) == 2)
        assert [event.source for event in face.it.of(PermissionDecided)] == ["user", "remembered"]
        await face.answer("n")
        await face.shows("done")


async def test_for_the_session_asks_no_more(tmp_path: Path) -> None:
    turns = [bash("echo one"), calls(("write", {"path": "f", "content": "x"})), says("done")]
    async with interface(tmp_path, turns=turns) as face:
        face.say()
        await face.answer("s")
        await face.shows("done")
        assert [event.source for event in face.it.of(PermissionDecided)] == ["user", "remembered"]
        assert (tmp_path / "f").read_text() == "x"


async def test_a_reason_is_typed_and_the_model_reads_it(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("rm -rf build"), says("done")]) as face:
        face.say()
        await face.answer("r")
        await face.shows("No, because:")
        await face.press(*"ask first, yx")  # letters that would be answers
        await face.press("backspace", "enter")
        await face.shows("done")
        assert face.it.result() == "ask first, y"
        assert "ask first, y" in str(face.it.provider.requests[-1].messages)


async def test_escape_goes_back_from_the_reason_and_then_means_no(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.answer("6")
        await face.shows("No, because:")
        await face.press("x", "escape")
        await face.shows("1 y  Yes, once")
        await face.press("escape")
        await face.shows("done")
        assert "dismissed" in face.it.result() and not (tmp_path / "ran").exists()


async def test_arrows_and_enter_take_what_is_marked(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.answer("down", "down", "down", "down", "down", "down", "up")
        await face.shows("› 5 n  No")
        await face.press("enter")
        await face.shows("done")
        assert not (tmp_path / "ran").exists()


async def test_a_click_takes_an_answer(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.answer()
        row = next(at for at, text in enumerate(face.rows) if "Yes, once" in text)
        await face.pilot.click(offset=(12, row))
        await face.shows("done")
        assert (tmp_path / "ran").exists()


async def test_ctrl_c_is_a_no_and_does_not_leave(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.answer("ctrl+c")
        await face.shows("done")
        assert face.app.is_running and not (tmp_path / "ran").exists()


# What is shown


@pytest.mark.parametrize("size", [(80, 24), (40, 24), (40, 12), (200, 60)])
async def test_a_command_of_10_kb_is_there_to_the_last_character(tmp_path: Path, size: tuple[int, int]) -> None:
    # A18
    words = [f"word{number:04}" for number in range(1100)]
    command = f"true {' '.join(words)}"
    assert len(command) > 9900
    async with interface(tmp_path, turns=[bash(command), says("done")], size=size) as face:
        face.say()
        await face.shows("Allow bash?", "more lines below: PgDn", "1 y  Yes, once", "6 r  No, and say why")
        dialog = face.dialog
        assert isinstance(dialog, Permission)
        width = size[0] - 4
        # What is cut at the end of a row goes on behind the mark of the next.
        await face.until(lambda: "".join(_page(dialog, width)).rstrip() == command)
        await face.answer("pagedown")
        await face.shows("↑", " above")
        await face.press("end")
        await face.shows(words[-1], "1 y  Yes, once", "6 r  No, and say why")
        await face.press("home")
        await face.shows(words[0])


async def test_what_hides_in_a_command_is_written_out(tmp_path: Path) -> None:
    command = "echo a\x1b[2J\rls \u202e\u200b b\n◈ hilt asks"
    async with interface(tmp_path, turns=[bash(command), says("done")]) as face:
        face.say()
        shown = await face.shows("Allow bash?")
        assert "echo a‹U+001B›[2J‹U+000D›ls ‹U+202E›‹U+200B› b" in shown
        assert "‹U+25C8› hilt asks" in shown and shown.count(MARK) == 1


async def test_a_new_file_is_shown_whole_with_the_numbers_of_its_lines(tmp_path: Path) -> None:
    turns = [calls(("write", {"path": "new.py", "content": "one\ntwo\x1b[2J\u202e\n"})), says("done")]
    async with interface(tmp_path, turns=turns, size=(160, 30)) as face:
        face.say()
        shown = await face.shows("Allow write?", "+++ ")
        rows = [" ".join(row.split()) for row in shown.splitlines()]
        assert rows.index("1 + one") < rows.index("2 + two‹U+001B›[2J‹U+202E›") and "new.py" in shown


async def test_an_edit_is_shown_as_the_diff_that_it_makes(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("one\ntwo\nthree\n")
    edit = calls(("edit", {"path": "f.py", "edits": [{"oldText": "two", "newText": "2"}]}))
    async with interface(tmp_path, turns=[edit, says("done")], size=(80, 30)) as face:
        face.say()
        shown = await face.shows("Allow edit?", "It changes files")
        rows = [" ".join(row.split()) for row in shown.splitlines()]
        assert rows.index("f.py") < rows.index("one") < rows.index("- two") < rows.index("+ 2") < rows.index("three")


async def test_arguments_of_a_tool_of_an_extension_are_shown_whole_with_its_owner(tmp_path: Path) -> None:
    turns = [calls(("t", {"deep": {"list": [1, "two"]}, "text": "x" * 300})), says("done")]
    async with interface(tmp_path, tool("t"), turns=turns, size=(80, 40)) as face:
        face.say()
        shown = await face.shows("Allow t?", "A tool of t", '"two"')
        assert "p  Yes" not in shown
        assert shown.count("x") >= 300


@pytest.mark.usefixtures("dialect")
async def test_who_changed_what_is_said_with_the_difference(tmp_path: Path) -> None:
    # A17
    new = json.dumps({"command": "echo safe > ran\nsecond"})
    rewriting = {"on": "event_intercept", "do": f"rewrite:{new}"}
    guard = chaos("guard", "hello", "intercept:tool_call", "ready", rewriting)
    turns = [bash("echo wild > ran\nsecond"), says("done")]
    async with interface(tmp_path, guard, turns=turns, size=(80, 40)) as face:
        face.say()
        shown = await face.shows("Allow bash?", "Changed by guard")
        rows = [row.strip() for row in shown.splitlines()]
        assert rows.index("- echo wild > ran") < rows.index("+ echo safe > ran") < rows.index("│ echo safe > ran")
        await face.answer("y")
        await face.shows("done")
        assert (tmp_path / "ran").read_text() == "safe\n"


async def test_a_guard_that_gave_no_verdict_is_named(tmp_path: Path) -> None:
    guard = chaos("guard", "hello", "intercept:tool_call", "ready", {"on": "event_intercept", "do": "exit:1"})
    from hilt.agent.interception import GuardRules

    rules = GuardRules(on_failure="ask")
    async with interface(tmp_path, guard, turns=[bash("echo x"), says("done")], mode="yolo", guards=rules) as face:
        face.say()
        await face.shows("Allow bash?", "Nobody checked it: guard")
        await face.answer("n")
        await face.shows("done")


async def test_step_mode_is_the_reason_given(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[calls(("read", {"path": "f"})), says("done")], mode="yolo") as face:
        (tmp_path / "f").write_text("x")
        face.it.session.parts.permissions.toggle_step()
        face.say()
        await face.shows("Allow read?", "It reads", "step mode is on")
        await face.answer("y")
        await face.shows("done")


async def test_a_huge_diff_holds_up_nobody(tmp_path: Path) -> None:
    content = "".join(f"line {number} of a file that is long\n" for number in range(5000))
    request = PermissionRequest("c", "write", Effect.WRITE, {}, Preview("command", content))
    async with interface(tmp_path) as face:
        dialog = Permission(request, Look.of(DARK))
        face.app.push_screen(dialog)
        await face.shows("Allow write?", "more lines below")
        first = dialog.length(76)
        assert first < 5000  # the rest is drawn later, a little at a time
        await face.until(lambda: dialog.length(76) > 5000 and "more than" not in face.text)
        await face.press("end")
        await face.answer("end")
        await face.shows("line 4999")


# What is typed by accident


async def test_what_is_typed_as_it_appears_does_not_count(tmp_path: Path) -> None:
    # A23: also Enter, and also what would be a no
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.shows("Allow bash?", "does not count")  # for a moment only, whatever is typed
        for name in ("y", "enter", "1", "t", "s", "escape", "ctrl+c"):
            await face.typed(name, DEAF - 0.01)
        assert not face.it.of(PermissionDecided) and not (tmp_path / "ran").exists()
        await face.shows("Allow bash?")
        await face.typed("n", 10)
        await face.shows("done")
        assert face.it.result() == "the user declined"


async def test_whoever_goes_on_typing_answers_nothing(tmp_path: Path) -> None:
    """Keys that follow each other closely were begun before it was read; a pause ends that."""
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        dialog = await face.until(lambda: face.dialog)
        for number in range(1, 9):
            await face.typed("y", number * (DEAF - 0.05))
        assert face.dialog is dialog and not face.it.of(PermissionDecided)
        await face.typed("n", 8 * (DEAF - 0.05) + DEAF)
        await face.shows("done")
        assert not (tmp_path / "ran").exists()


async def test_it_is_deaf_again_when_it_was_covered(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.answer()
        before = face.dialog
        face.app.push_screen(Permission(_REQUEST, Look.of(DARK)))
        # What lies on top of a question of hilt's goes below it, and the question begins anew.
        dialog = await face.until(lambda: face.dialog if "echo x > ran" in face.text else None)
        assert dialog is not before
        await face.typed("y", DEAF - 0.01)
        assert not face.it.of(PermissionDecided)
        await face.answer("n")
        await face.until(lambda: face.it.of(PermissionDecided))
        assert not (tmp_path / "ran").exists()


_REQUEST = PermissionRequest("c9", "other", Effect.EXECUTE, {}, Preview("command", "another one"))


async def test_keys_that_do_not_count_do_not_reach_the_input_either(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x"), says("done")]) as face:
        face.say()
        await face.until(lambda: face.dialog)
        for letter in "hey":
            await face.typed(letter, DEAF / 2)
        await face.answer("n")
        await face.shows("done")
        assert "hey" not in face.text


async def test_cancelling_the_turn_takes_the_question_back(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[bash("echo x > ran"), says("done")]) as face:
        face.say()
        await face.shows("Allow bash?")
        face.client.cancel()
        await face.until(lambda: face.dialog is None)
        assert not (tmp_path / "ran").exists()


async def test_calls_at_the_same_time_are_asked_one_after_the_other(tmp_path: Path) -> None:
    async with interface(tmp_path) as face:
        async with asyncio.TaskGroup() as group:
            for word in ("one", "two", "three"):
                group.create_task(face.it.session.call_tool("bash", {"command": f"echo {word}"}, "test"))
            await face.shows("echo one", "1 of 3")
            await face.answer("n")
            await face.shows("echo two", "1 of 2")
            await face.answer("y")
            shown = await face.shows("echo three")
            assert " of " not in shown.split("\n")[0]
            await face.answer("n")
        assert face.dialog is None


async def test_nobody_agrees_to_what_does_not_fit_on_the_screen(tmp_path: Path) -> None:
    turns = [calls(("bash", {"command": "touch agreed"})), says("so be it")]
    async with interface(tmp_path, turns=turns, size=(20, 4)) as face:
        face.say()
        await face.until(lambda: face.dialog is not None and not face.dialog.window, "there is no room for the command")
        await face.answer("y", "enter", "1", "s")
        assert face.dialog is not None
        await face.press("n")
        await face.until(lambda: face.dialog is None)
    assert not (tmp_path / "agreed").exists()
