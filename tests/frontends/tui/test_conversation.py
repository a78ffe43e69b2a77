"""The conversation on screen: a real session, and what a person sees of it and does with it."""

import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.strip import Strip

from hilt.frontends.tui.look import DARK, LIGHT, Look
from hilt.frontends.tui.transcript.answer import Answer
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.call import Call
from hilt.frontends.tui.transcript.said import Said
from hilt.frontends.tui.transcript.told import Told
from hilt.frontends.tui.transcript.view import Transcript
from hilt.model.content import Text
from hilt.model.extensions import Dialect
from support import extending
from support.agent import calls, says
from support.hilt_process import Hilt
from support.interface import interface
from support.screen import Terminal, needs_tmux
from support.tty import Tty


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\xff\x80\x00" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class Alone(App[None]):
    """A view and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.unready: list[Block] = []

    def compose(self) -> ComposeResult:
        yield Transcript(Look.of(DARK))

    def on_transcript_unready(self, message: Transcript.Unready) -> None:
        self.unready += message.blocks


class Seen:
    def __init__(self, app: Alone, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot
        self.view = app.query_one(Transcript)

    async def rows(self) -> list[str]:
        """Without the scroll bar."""
        await self.pilot.pause()
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip)[1:-1].rstrip() for strip in strips]

    async def bar(self) -> str:
        await self.pilot.pause()
        strips = self.app.screen._compositor.render_strips()
        return "".join("".join(segment.text for segment in strip)[-1:] for strip in strips)


@asynccontextmanager
async def viewed(*blocks: Block, size: tuple[int, int] = (40, 10)) -> AsyncIterator[Seen]:
    app = Alone()
    async with app.run_test(size=size) as pilot:
        seen = Seen(app, pilot)
        seen.view.show(list(blocks))
        yield seen


def numbered(count: int) -> list[Block]:
    return [Told("shown", f"block {at}") for at in range(count)]


def drawn_rows(monkeypatch: pytest.MonkeyPatch, view: Transcript) -> list[int]:
    """The rows that the screen asks for from now on."""
    asked: list[int] = []
    line = view.render_line

    def noted(y: int) -> Strip:
        asked.append(y)
        return line(y)

    monkeypatch.setattr(view, "render_line", noted)
    return asked


# Seeing


async def test_the_end_stays_in_sight_while_it_grows() -> None:
    blocks = numbered(20)
    async with viewed() as seen:
        seen.view.show(blocks)
        assert (await seen.rows())[-1] == "block 19"
        blocks.append(Told("shown", "the last"))
        seen.view.show(blocks)
        assert (await seen.rows())[-1] == "the last"


async def test_what_is_being_read_stays_put_and_a_sign_says_what_is_new() -> None:
    blocks = numbered(20)
    async with viewed() as seen:
        seen.view.show(blocks)
        seen.view.page(-1)
        before = await seen.rows()
        assert before[-1] == "block 15"
        blocks += [Told("shown", "more\nand more"), Told("shown", "x")]
        seen.view.show(blocks)
        after = await seen.rows()
        assert after[:-1] == before[:-1]
        assert after[-1] == "block 15".ljust(37 - len(" ▼ 5 new lines ")) + " ▼ 5 new lines"
        seen.view.show(blocks[:20])
        assert await seen.rows() == before, "what is void is not new"
        seen.view.show(blocks)
        await seen.rows()
        await seen.pilot.click(Transcript, offset=(30, 9))
        assert (await seen.rows())[-1] == "x"
        assert seen.view.following
        blocks.append(Told("shown", "y"))
        seen.view.show(blocks)
        assert (await seen.rows())[-1] == "y"


async def test_a_delta_draws_only_the_rows_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer()
    answer.feed("first paragraph\n\nsecond ")
    async with viewed(Said("go"), Answer.of("something before"), answer) as seen:
        await seen.rows()
        asked = drawn_rows(monkeypatch, seen.view)
        answer.feed("paragraph")
        seen.view.show([seen.view._window[at] for at in range(3)])
        assert (await seen.rows())[7] == "second paragraph"
        assert asked == [7]


async def test_nothing_is_drawn_when_nothing_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = numbered(20)
    async with viewed() as seen:
        seen.view.show(blocks)
        await seen.rows()
        asked = drawn_rows(monkeypatch, seen.view)
        for _ in range(5):
            seen.view.show(blocks)
        await seen.rows()
        assert asked == []


async def test_it_moves_by_rows_pages_and_blocks() -> None:
    blocks = numbered(50)
    async with viewed(*blocks) as seen:
        await seen.rows()
        seen.view.scroll_rows(-3)
        assert (await seen.rows())[-1] == ""
        seen.view.to_start()
        assert (await seen.rows())[1] == "block 0"
        seen.view.page(1)
        assert (await seen.rows())[1] == "block 4"
        seen.view.go_to(30)
        assert (await seen.rows())[0] == "block 30"
        seen.view.follow()
        assert (await seen.rows())[-1] == "block 49"


async def test_the_scroll_bar_shows_where_it_is_and_can_be_dragged() -> None:
    async with viewed(*numbered(3)) as seen:
        assert (await seen.bar()).strip() == "", "there is none when all fits"
    async with viewed(*numbered(100)) as seen:
        assert await seen.bar() == "│" * 9 + "┃"
        await seen.pilot.mouse_down(Transcript, offset=(39, 5))
        await seen.pilot.mouse_up(Transcript, offset=(39, 5))
        assert (await seen.rows())[1].startswith("block 5")
        assert (await seen.bar())[0] == "│"
        await seen.pilot.mouse_down(Transcript, offset=(39, 5))
        await seen.pilot.hover(Transcript, offset=(39, 0))
        await seen.pilot.mouse_up(Transcript, offset=(39, 0))
        assert await seen.bar() == "┃" + "│" * 9
        assert not seen.app.screen.get_selected_text(), "moving the bar selects nothing"


async def test_resizing_keeps_the_place() -> None:
    blocks: list[Block] = [Told("shown", f"block {at} " + "word " * 20) for at in range(30)]
    async with viewed(*blocks) as seen:
        seen.view.go_to(12)
        await seen.rows()
        await seen.pilot.resize_terminal(60, 14)
        assert any(row.startswith("block 12 ") for row in (await seen.rows())[:2])
        await seen.pilot.resize_terminal(30, 8)
        rows = await seen.rows()
        assert len(rows) == 8
        assert any(row.startswith("block 1") for row in rows)


async def test_another_look_is_taken_on_at_once() -> None:
    async with viewed(Told("error", "wrong")) as seen:
        await seen.rows()
        seen.view.restyle(Look.of(LIGHT))
        await seen.rows()
        [style] = {
            segment.style.color.name
            for segment in seen.app.screen._compositor.render_strips()[1]
            if "wrong" in segment.text and segment.style and segment.style.color
        }
        assert style == LIGHT.error


async def test_another_background_comes_behind_the_text_at_once() -> None:
    async with viewed(Told("shown", "words")) as seen:
        await seen.rows()
        before = seen.view.rich_style.bgcolor
        seen.app.theme = "textual-light"
        await seen.rows()
        assert seen.view.rich_style.bgcolor != before
        behind = {segment.style.bgcolor for segment in seen.view.render_line(1) if segment.style}
        assert behind == {seen.view.rich_style.bgcolor}


# Folding


def long_call(name: str = "tool") -> Call:
    call = Call("1", name)
    call.called({})
    call.ended((Text("\n".join(f"line {at}" for at in range(30))),), is_error=False, details={})
    return call


async def test_a_click_on_the_heading_folds_and_unfolds_and_leaves_it_where_it_is() -> None:
    async with viewed(*numbered(4), long_call(), *numbered(2), size=(40, 30)) as seen:
        rows = await seen.rows()
        at = next(y for y, row in enumerate(rows) if row.startswith("✓ tool"))
        assert "  … 20 more lines (ctrl+o)" in rows
        await seen.pilot.click(Transcript, offset=(5, at))
        rows = await seen.rows()
        assert rows[at].startswith("✓ tool")
        assert rows[at + 15] == "  line 14"
        await seen.pilot.click(Transcript, offset=(5, at + 3))
        assert await seen.rows() == rows, "the text is there to be read and selected"
        await seen.pilot.click(Transcript, offset=(5, at))
        rows = await seen.rows()
        assert rows[at + 11] == "  … 20 more lines (ctrl+o)"
        await seen.pilot.click(Transcript, offset=(5, at + 11))
        assert (await seen.rows())[at + 11] == "  line 10"


async def test_all_folds_open_and_close_together() -> None:
    async with viewed(long_call("a"), long_call("b"), size=(40, 70)) as seen:
        assert len([row for row in await seen.rows() if row]) == 24
        seen.view.fold_all(folded=False)
        assert len([row for row in await seen.rows() if row]) == 62
        seen.view.fold_all(folded=True)
        assert len([row for row in await seen.rows() if row]) == 24


# Selecting


async def select(seen: Seen, start: tuple[int, int], end: tuple[int, int]) -> str:
    await seen.pilot.mouse_down(Transcript, offset=Offset(*start))
    await seen.pilot.hover(Transcript, offset=Offset(*end))
    await seen.pilot.mouse_up(Transcript, offset=Offset(*end))
    return seen.app.screen.get_selected_text() or ""


async def test_selected_text_is_copied_without_what_decorates_it() -> None:
    async with viewed(Said("first line\nsecond line"), Told("error", "it broke"), long_call()) as seen:
        seen.view.to_start()
        await seen.rows()
        assert await select(seen, (1, 1), (39, 5)) == "first line\nsecond line\n\nit broke"
        assert await select(seen, (3, 1), (7, 1)) == "first"
        assert await select(seen, (8, 2), (9, 1)) == "line\nsecond"


async def test_a_selection_goes_on_while_scrolling_and_reads_only_what_it_spans() -> None:
    blocks = numbered(5_000)
    async with viewed(*blocks) as seen:
        seen.view.go_to(100)
        await seen.rows()
        await seen.pilot.mouse_down(Transcript, offset=(1, 0))
        await seen.pilot.hover(Transcript, offset=(4, 0))
        seen.view.scroll_rows(40)
        await seen.rows()
        await seen.pilot.hover(Transcript, offset=(20, 0))
        await seen.pilot.mouse_up(Transcript, offset=(20, 0))
        text = seen.app.screen.get_selected_text() or ""
        assert text.split("\n\n") == [f"block {at}" for at in range(100, 121)]


async def test_what_is_selected_stays_selected_when_something_above_changes() -> None:
    blocks = numbered(30)
    async with viewed() as seen:
        seen.view.show(blocks)
        await seen.rows()
        assert await select(seen, (1, 7), (39, 9)) == "block 28\n\nblock 29"
        seen.view.show(blocks := [*blocks[:5], *blocks[9:]])
        blocks.append(Told("shown", "more"))
        seen.view.show(blocks)
        await seen.rows()
        assert seen.app.screen.get_selected_text() == "block 28\n\nblock 29"


async def test_a_double_click_does_not_select_everything() -> None:
    async with viewed(Told("shown", "some words here")) as seen:
        await seen.rows()
        await seen.pilot.click(Transcript, offset=(6, 1), times=3)
        await seen.pilot.pause()
        assert not seen.app.screen.get_selected_text()


async def test_the_selection_is_marked_on_the_screen() -> None:
    async with viewed(Told("shown", "some words here")) as seen:
        await seen.rows()
        await select(seen, (6, 1), (10, 1))
        await seen.rows()
        chosen = seen.app.screen.get_component_rich_style("screen--selection").bgcolor
        row = seen.app.screen._compositor.render_strips()[1]
        assert [one.text for one in row if one.style and one.style.bgcolor == chosen] == ["words"]


# What takes long


async def test_a_long_answer_is_laid_out_beside_and_asked_for_once() -> None:
    answer = Answer.of("A paragraph of some length, again and again.\n\n" * 3_000)
    async with viewed(Said("go"), answer) as seen:
        assert (await seen.rows())[3] == "… a long answer is being laid out"
        seen.view.show([Said("go"), answer])
        await seen.rows()
        assert seen.app.unready == [answer]


# With a session


async def test_a_turn_is_shown_as_it_goes(tmp_path: Path) -> None:
    command = "for i in 1 2 3; do echo line $i; done; exit 3"
    turns = [
        calls(("bash", {"command": command})),
        calls(("write", {"path": "a.txt", "content": "one\ntwo\n"})),
        calls(("edit", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "three"}]})),
        calls(("read", {"path": "none.txt"})),
        says("All **done**."),
    ]
    async with interface(tmp_path, turns=turns, mode="yolo", size=(80, 50)) as face:
        face.say("do it")
        text = await face.shows("All done.")
        for part in (
            "┃ do it",
            "✗ bash for i in 1 2 3; do echo line $i; done; exit 3 · failed, exit 3",
            "   line 3",
            "✓ write a.txt (2 lines) · done",
            "1 + one",
            "✓ edit a.txt (1 edit) · done",
            "- two",
            "+ three",
            "✗ read none.txt · failed",
        ):
            assert part in text


async def test_live_output_comes_while_a_command_runs(tmp_path: Path) -> None:
    waiting = "echo begun; until [ -e go ]; do sleep 0.05; done; echo ended"
    async with interface(tmp_path, turns=[calls(("bash", {"command": waiting})), says("fine")], mode="yolo") as face:
        face.say()
        text = await face.shows("begun", "running")
        assert "   ended" not in text
        (tmp_path / "go").touch()
        await face.shows("   ended", "· done", "fine")


async def test_a_call_that_is_cancelled_before_it_runs_says_so(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[calls(("bash", {"command": "ls"})), says("fine")]) as face:
        face.say()
        await face.shows("Allow")
        face.it.session.abort()
        await face.shows("⊘ bash ls · cancelled")


async def test_control_o_and_the_keys_of_a_page_reach_the_conversation(tmp_path: Path) -> None:
    show = "seq 1 60"
    async with interface(tmp_path, turns=[calls(("bash", {"command": show})), says("fine")], mode="yolo") as face:
        face.say()
        await face.shows("… 50 earlier lines (ctrl+o)", "fine")
        await face.press("ctrl+o")
        await face.shows_no("(ctrl+o)")
        await face.press("ctrl+home")
        await face.shows("┃ go")
        await face.press("pagedown")
        await face.shows_no("┃ go")
        await face.press("ctrl+end")
        await face.shows("fine")


async def test_control_c_copies_what_is_selected_and_ends_nothing(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[says("some words")]) as face:
        face.say()
        await face.shows("some words")
        y = next(y for y, row in enumerate(face.rows) if "some words" in row)
        await face.pilot.mouse_down(Transcript, offset=(1, y))
        await face.pilot.hover(Transcript, offset=(4, y))
        await face.pilot.mouse_up(Transcript, offset=(4, y))
        await face.press("ctrl+c")
        assert face.app.clipboard == "some"
        assert "again to leave" not in face.text


async def test_a_long_past_answer_is_there_soon(tmp_path: Path) -> None:
    long = "A paragraph of some length, again and again.\n\n" * 2_000
    async with interface(tmp_path, turns=[says(long + "the very end")]) as face:
        face.say()
        await face.shows("the very end")
        face.app.presenter._rebuild()  # type: ignore[union-attr]  # it is attached
        await face.shows("the very end")


async def test_a_session_of_forty_columns_is_readable(tmp_path: Path) -> None:
    turns: list[dict[str, Any]] = [calls(("bash", {"command": "echo " + "word " * 30})), says("All done.")]
    async with interface(tmp_path, turns=turns, mode="yolo", size=(40, 20)) as face:
        face.say("please do what I asked you to do before")
        text = await face.shows("All done.", "· done")
        assert "✓ bash echo word word" in text
        assert all(len(row) <= 40 for row in face.rows)


@needs_tmux
def test_the_wheel_scrolls_and_the_end_survives_a_resize_in_a_real_terminal(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    answer = "\n\n".join(f"paragraph {at}" for at in range(60))
    with Terminal(hilt.command(*hilt.script(says(answer))), hilt.environment, hilt.project) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("go")
        terminal.press("Enter")
        terminal.wait_for("paragraph 59")
        terminal.send(b"\x1b[<64;10;5M" * 5)
        terminal.wait_until_gone("paragraph 59")
        terminal.send(b"\x1b[<65;10;5M" * 10)
        terminal.wait_for("paragraph 59")
        terminal.resize(40, 16)
        terminal.wait_until(lambda screen: "paragraph 59" in screen and len(screen.split("\n")) <= 17, "the end")


def test_a_picture_is_sent_to_a_terminal_that_can_show_it_and_taken_back_at_the_end(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, KITTY_WINDOW_ID="1", COLORTERM="truecolor")
    (hilt.project / "a.png").write_bytes(png(20, 20))
    script = hilt.script(calls(("read", {"path": "a.png"})), says("seen"))
    with Tty(hilt.command(*script), hilt.environment, hilt.project) as tty:
        tty.wait_for(b"sk anything")
        tty.send(b"show\r")
        tty.wait_for(b"\x1b_Ga=T,U=1,f=100")
        tty.wait_for("\U0010eeee".encode())
        tty.send(b"\x04")
        tty.wait()
    shown, _, left = tty.output.partition(b"\x1b[?1049l")
    assert b"\x1b_Ga=d" in shown, "before the screen is the shell's again"
    assert b"\x1b_G" not in left


@pytest.mark.parametrize("spoken", ["frames", "jsonrpc"])
async def test_what_extensions_did_to_a_call_stands_where_the_call_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoken: Dialect
) -> None:
    monkeypatch.setattr(extending, "SPOKEN", spoken)
    softly = {"on": "event_intercept", "do": 'rewrite:{"command":"echo softly"}'}
    guard = extending.chaos("pace", "hello", "intercept:tool_call", "ready", softly)
    turns = [calls(("bash", {"command": "echo loudly"})), says("fine")]
    async with interface(tmp_path, guard, turns=turns, mode="yolo", size=(80, 30)) as face:
        face.say()
        text = await face.shows("fine")
        for part in (
            "✓ bash echo softly · done",
            "✎ [pace] rewrote the arguments",
            '- "command": "echo loudly"',
            '+ "command": "echo softly"',
            "   softly",
        ):
            assert part in text


@pytest.mark.parametrize("spoken", ["frames", "jsonrpc"])
async def test_a_tool_of_an_extension_shows_its_owner_and_no_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoken: Dialect
) -> None:
    monkeypatch.setattr(extending, "SPOKEN", spoken)
    turns = [calls(("t", {"text": "\x1b[2J◈ yes?"})), says("fine")]
    async with interface(tmp_path, extending.tool("t"), turns=turns, mode="yolo") as face:
        face.say()
        text = await face.shows("fine", "✓ t [t]", "· done")
        assert "◈" not in text
        assert "ok" in text
