"""What was said, thought, told and summed up, and the commands that the user runs."""

import pytest
from textual.strip import Strip

from hilt.frontends.tui.drawing.markdown import markdown
from hilt.frontends.tui.look import DARK, LIGHT, Look
from hilt.frontends.tui.transcript.answer import Answer, Thought
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.said import Said
from hilt.frontends.tui.transcript.shell import Shelled
from hilt.frontends.tui.transcript.told import Condensed, Told
from hilt.model.content import Image
from hilt.model.contributions import ToolOutput

LOOK = Look.of(DARK)
HOSTILE = "a\x1b]0;title\x07\x1b[2Jb ◈ approve \u202ereversed\u202c \x9b31m\rz"
LONG = "The quick *brown* fox jumps over the lazy dog again and again.\n\n" * 3_000


def rows(block: Block, width: int = 40) -> list[str]:
    return [strip.text.rstrip() for strip in block.rows(width, LOOK)]


def test_an_answer_looks_as_its_markdown_however_it_comes() -> None:
    text = "# Title\n\nSome *words* and\n\n- one\n- two\n\n```python\nx = 1\n```\n"
    whole, grown, late = Answer.of(text), Answer(), Answer()
    for at in range(0, len(text), 3):
        grown.feed(text[at : at + 3])
        grown.rows(40, LOOK)
        late.feed(text[at : at + 3])
    grown.finish()
    late.finish()
    expected = [strip.text.rstrip() for strip in markdown(text, 40, LOOK)]
    assert rows(whole) == rows(grown) == rows(late) == expected


def test_an_answer_that_was_forgotten_looks_as_before() -> None:
    answer = Answer()
    answer.feed("some **text** and ")
    before = rows(answer)
    answer.forget()
    assert rows(answer) == before
    answer.feed("more")
    assert rows(answer) == ["some text and more"]


def test_an_answer_without_words_takes_no_room() -> None:
    assert rows(Answer.of(" \n")) == []
    answer = Answer.of("something")
    answer.replace("")
    assert rows(answer) == []


def test_a_long_answer_is_laid_out_in_slices() -> None:
    answer = Answer.of(LONG)
    assert rows(answer) == ["… a long answer is being laid out"]
    assert answer.unready
    steps = 1
    while not answer.advance(0.002):
        steps += 1
    assert steps > 3
    drawn = answer.rows(40, LOOK)
    assert not answer.unready
    assert drawn[0].text.startswith("The quick brown fox")
    assert drawn[-1].text.rstrip() == drawn[len(drawn) - 1].text.rstrip() == "dog again and again."
    assert [row.text for row in drawn[5_000:5_003]] == [drawn[at].text for at in range(5_000, 5_003)]
    with pytest.raises(IndexError):
        drawn[len(drawn)]


def test_of_a_long_answer_few_rows_are_kept() -> None:
    answer = Answer.of(LONG)
    while not answer.advance(1.0):
        pass
    drawn = answer.rows(40, LOOK)
    for at in range(0, len(drawn), 40):
        assert drawn[at : at + 40]
    assert answer._flow
    assert sum(map(len, answer._flow._drawn.values())) < 2_000


def test_an_answer_takes_on_another_look() -> None:
    answer = Answer.of("# Title")
    dark, light = answer.rows(40, LOOK)[0], answer.rows(40, Look.of(LIGHT))[0]
    assert dark.text == light.text
    assert dark != light


def test_thinking_is_folded_with_its_length_and_time() -> None:
    thought = Thought(100.0)
    thought.feed("so let me see… " * 100)
    assert rows(thought) == ["▸ thinking… · 1,500 characters"]
    thought.tick(103.0)
    assert rows(thought) == ["▸ thinking 3.0 s… · 1,500 characters"]
    thought.finish(104.5)
    assert rows(thought) == ["▸ thought for 4.5 s · 1,500 characters"]
    thought.fold(folded=False)
    assert rows(thought)[0].startswith("▾ thought")
    assert rows(thought)[1].strip().startswith("so let me see")
    assert rows(Thought.of("hm")) == ["▸ thought · 2 characters"]


def test_what_the_user_said_stands_behind_a_bar() -> None:
    said = Said("do this\nand that")
    assert rows(said) == ["┃ do this", "┃ and that"]
    assert said.heading == "do this and that"
    assert said.folded is None


def test_an_extension_that_speaks_for_the_user_is_named() -> None:
    assert rows(Said("go on", "planner")) == ["┃ [planner] says", "┃ go on"]


def test_a_long_message_is_folded() -> None:
    said = Said("\n".join(map(str, range(100))))
    assert said.folded
    assert rows(said)[-2:] == ["┃ 19", "┃ … 80 more lines (ctrl+o)"]
    said.fold(folded=False)
    assert len(rows(said)) == 100


def test_pictures_of_a_message_are_told_in_words() -> None:
    said = Said("look", images=(Image("image/jpeg", b"x" * 40_000),))
    assert rows(said) == ["┃ look", "┃ [image: jpeg, 39 KB]"]


@pytest.mark.parametrize(
    ("level", "mark"), [("info", "·"), ("success", "✓"), ("warn", "!"), ("error", "✗"), ("?", "·")]
)
def test_a_notice_is_marked_by_its_level(level: str, mark: str) -> None:
    assert rows(Told(level, "one\ntwo")) == [f"{mark} one", "  two"]


def test_a_hint_is_set_apart() -> None:
    assert rows(Told("error", "it broke", hint="mend it")) == ["✗ it broke", "  → mend it"]


def test_what_a_command_displays_is_kept_as_it_is_with_its_colours() -> None:
    told = Told("shown", "  two  spaces\n\x1b[31mred\x1b[0m\n\x1b[2J\x1b]0;x\x07end", "todo")
    assert rows(told) == ["[todo]", "▏   two  spaces", "▏ red", "▏ end"], "each row has the rail of its owner"
    red = list(told.rows(40, LOOK)[2])[1].style
    assert red
    assert red.color
    assert red.color.number == 1
    assert rows(Told("shown", "x", "hilt")) == ["x"], "what hilt says needs no badge"


def test_a_display_without_end_is_cut() -> None:
    told = Told("shown", "line\n" * 100_000)
    assert len(rows(told)) == 2_001
    assert rows(told)[-1] == "… 98000 more lines, too many to show"


def test_a_summary_is_folded() -> None:
    condensed = Condensed("We *talked*.")
    assert rows(condensed) == ["▸ the conversation so far, in short"]
    condensed.fold(folded=False)
    assert rows(condensed) == ["▾ the conversation so far, in short", "  We talked."]


def test_a_command_of_the_user_shows_its_output_and_how_it_ended() -> None:
    shelled = Shelled("make", 5.0)
    assert rows(shelled) == ["! make · running"]
    shelled.progress("one\ntwo\n")
    shelled.tick(7.0)
    assert rows(shelled) == ["! make · running 2.0 s", "  one", "  two"]
    text = "$ make\n\none\ntwo\n\n[exit 2]  Took 3.0s"
    shelled.finished(ToolOutput.of(text, is_error=True, exit_code=2), 8.0)
    assert rows(shelled) == ["! make · exit 2 3.0 s", "  one", "  two"]
    assert shelled.heading == "! make"


def test_a_command_that_was_stopped_or_not_run_says_so() -> None:
    shelled = Shelled("sleep 9", private=True)
    assert rows(shelled, 60) == ["! sleep 9 · running · the model does not see it"]
    text = "$ sleep 9\n\n\n\n[stopped by the user]"
    shelled.finished(ToolOutput.of(text, is_error=True, exit_code=None, ending="cancelled"))
    assert rows(shelled, 60) == ["! sleep 9 · stopped · the model does not see it", "  [stopped by the user]"]
    shelled = Shelled("ls")
    shelled.failed("there is no shell here")
    assert rows(shelled) == ["! ls · not run", "  there is no shell here"]


@pytest.mark.parametrize("width", [8, 40])
def test_no_strangers_text_commands_the_terminal_or_is_too_wide(width: int) -> None:
    wide = "漢字👩‍👩‍👧" * 30
    shelled = Shelled(HOSTILE + wide)
    shelled.progress(HOSTILE + wide)
    blocks: list[Block] = [
        Answer.of(HOSTILE + wide),
        Thought.of(HOSTILE + wide),
        Said(HOSTILE + wide, HOSTILE, (Image(HOSTILE, b""),)),
        Told("error", HOSTILE + wide, HOSTILE, HOSTILE + wide),
        Told("shown", HOSTILE + wide, HOSTILE),
        Condensed(HOSTILE + wide),
        shelled,
    ]
    for block in blocks:
        for folded in (True, False):
            block.fold(folded=folded)
            for strip in block.rows(width, LOOK):
                assert strip.cell_length <= width
                assert strip.cell_length == Strip(list(strip)).cell_length
                assert not set(strip.text) & {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "◈", "\u202e"}
