"""The choke point before a terminal: nothing that could do more than be read gets through, and nothing stays hidden."""

import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.terminal import MARK, clean, one_line, visible
from support.properties import patient

ATTACKS = {
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "clipboard, ended by ST": "\x1b]52;c;ZXZpbA==\x1b\\",
    "clipboard, asked for": "\x1b]52;c;?\x07",
    "title": "\x1b]0;title\x07",
    "title, reported back as if typed": "\x1b[21t",
    "hyperlink": "\x1b]8;;https://evil.example\x1b\\",
    "palette": "\x1b]4;0;rgb:00/00/00\x07",
    "working directory": "\x1b]7;file://evil/\x07",
    "a notification": "\x1b]9;buy\x07",
    "a file to download": "\x1b]1337;File=name=eA==:AAAA\x07",
    "shell integration": "\x1b]133;D;0\x07",
    "clear": "\x1b[2J\x1b[H",
    "line above": "\x1b[1A\x1b[2K",
    "other screen": "\x1b[?1049h",
    "mouse": "\x1b[?1000h\x1b[?1006h",
    "bracketed paste": "\x1b[?2004h\x1b[200~",
    "end of paste": "\x1b[201~",
    "position report": "\x1b[6n",
    "device report": "\x1b[c\x1b[>c\x1b[=c\x1bZ",
    "scroll region": "\x1b[5;6r",
    "hidden cursor": "\x1b[?25l",
    "key remapping": '\x1b[0;59;"rm -rf /";13p',
    "keyboard mode": "\x1b[>1u\x1b[=5;1u",
    "key modifiers": "\x1b[>4;2m\x1b[?4m",
    "printer": "\x1b[5i",
    "window resized": "\x1b[8;1;1t",
    "repeat": "\x1b[99999b",
    "intermediates": "\x1b[!p\x1b[ q\x1b[1$p",
    "overlong": "\x1b[" + "1;" * 5000 + "H",
    "setting reported back": '\x1bP$q"p\x1b\\',
    "termcap": "\x1bP+q544e\x1b\\",
    "keys defined": "\x1bP0;1|17/6c73\x1b\\",
    "sixel": "\x1bPq#0;2;0;0;0#0!9~\x1b\\",
    "kitty image": "\x1b_Gf=100,a=T;AAAA\x1b\\",
    "privacy message": "\x1b^note\x1b\\",
    "start of string": "\x1bXnote\x1b\\",
    "tmux passthrough": "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\",
    "screen title": "\x1bktitle\x1b\\",
    "reset": "\x1bc",
    "charset": "\x1b(0\x1b)0\x0e\x0f",
    "save and restore": "\x1b7\x1b8\x1b[s\x1b[u",
    "8-bit CSI": "\x9b2J",
    "8-bit OSC": "\x9d52;c;ZXZpbA==\x9c",
    "8-bit OSC, ended by BEL": "\x9d0;x\x07",
    "8-bit DCS": "\x90q\x9c",
    "8-bit APC, PM, SOS": "\x9fx\x9c\x9ex\x9c\x98x\x9c",
    "8-bit index and next line": "\x84\x85\x8d",
    "nested": "\x1b]0;\x1b[31m\x1b]52;c;eA==\x07\x07",
    "twice escaped": "\x1b\x1b[2J\x1b\x1b]0;x\x07",
    "cancelled": "\x1b]0;x\x18\x1b[2J\x1a",
    "broken by a control": "\x1b\x00[2J\x1b[\x002J",
    "over the line": "\r\x1b[K",
    "backspaces": "\x08\x08\x08",
    "bell and answerback": "\x07\x05",
    "vertical": "\x0b\x0c",
    "flow": "\x13\x11",
    "concealed": "\x1b[8m\x1b[1;8m\x1b[38;5;1;8m\x1b[08m\x1b[38;2;1;2;3;8m",
    "unfinished": "\x1b]52;c;eA==",
    "unfinished CSI": "\x1b[38;5",
    "unfinished escape": "\x1b",
}
"""Real sequences, each of which makes some terminal do something."""

UNSEEN = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
    *(*range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)),
    *(0xE0001, *range(0xE0020, 0xE0080), *range(0xE0100, 0xE01F0)),
)
LETTERS = "".join(map(chr, UNSEEN)) + MARK
HOSTILE = st.lists(
    st.one_of(
        st.text(),
        st.characters(),
        st.sampled_from(list(ATTACKS.values())),
        st.sampled_from("\x1b\x9b\x9d\x90\x9c\x07\x08\r\n\t\x00\x7f\x85[]0123;:mHJKPX^_\\\ud83d\udc80"),
        st.sampled_from(LETTERS),
        st.sampled_from("👩💻❤🏳🏽سلامनक्षක්ර1#a \u20e3"),
        st.sampled_from(["\x1b[31m", "\x1b[m", "\x1b[1;32m", "\x1b[0m", "\x1b[38;5;8m"]),
    )
).map("".join)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
SGR = re.compile("\x1b\\[[0-9;:]*m")
WRITTEN = re.compile("‹U\\+([0-9A-F]{4,6})›")
JOINERS = "\u200b\u200c\u200d\ufe0e\ufe0f\u180b\u180c\u180d\u180e\u180f"


def assert_only_text(shown: str) -> None:
    assert not CONTROL.search(shown)
    assert MARK not in shown
    for at, letter in enumerate(shown):
        if letter in LETTERS:
            assert letter in JOINERS and shown[at - 1] not in "a \n›"


@patient
@given(HOSTILE)
def test_plain_output_has_only_text_line_breaks_and_tabs(text: str) -> None:
    assert_only_text(clean(text))


@patient
@given(HOSTILE)
def test_coloured_output_has_whole_colours_besides_and_each_line_ends_its_own(text: str) -> None:
    shown = clean(text, colour=True)
    assert_only_text(SGR.sub("", shown))
    for line in shown.split("\n"):
        colours = SGR.findall(line)
        assert not colours or colours[-1] in ("\x1b[m", "\x1b[0m")


@patient
@given(HOSTILE)
def test_what_is_to_be_approved_loses_nothing_and_hides_nothing(text: str) -> None:
    shown = visible(text)
    assert_only_text(shown)
    if "‹" not in text:
        assert WRITTEN.sub(lambda found: chr(int(found[1], 16)), shown) == text


@patient
@given(HOSTILE, st.booleans())
def test_a_second_time_changes_nothing_more(text: str, colour: bool) -> None:
    once = clean(text, colour=colour)
    assert clean(once, colour=colour) == once
    assert visible(visible(text)) == visible(text)
    assert visible(clean(text)) == clean(text)


@patient
@given(HOSTILE, st.integers(0, 40), st.booleans())
def test_what_is_cut_in_two_by_separate_writes_does_not_get_through_either(text: str, cut: int, colour: bool) -> None:
    assert_only_text(SGR.sub("", clean(text[:cut], colour=colour) + clean(text[cut:], colour=colour)))
    assert "\x1b" not in clean(text[:cut]) + clean(text[cut:])


@patient
@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    ordinary = "".join(letter for letter in text if letter not in LETTERS)
    assert clean(ordinary) == ordinary
    assert clean(ordinary, colour=True) == ordinary
    assert visible(ordinary) == ordinary


def test_no_mixture_of_real_attacks_gets_through() -> None:
    chance = random.Random(19)
    parts = [*ATTACKS.values(), *LETTERS, "plain", "\n", "\t", "👩", "ب", "\ud800", "\x1b[31m"]
    for _ in range(2000):
        text = "".join(chance.choices(parts, k=chance.randint(1, 12)))
        start, end = sorted(chance.choices(range(len(text) + 1), k=2))
        for piece in (text, text[start:end]):
            assert_only_text(clean(piece))
            assert_only_text(visible(piece))
            assert_only_text(SGR.sub("", clean(piece, colour=True)))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_commands_a_terminal_is_taken_out_and_shown_where_it_is_to_be_approved(attack: str) -> None:
    for colour in (False, True):
        shown = clean(f"a{attack}", colour=colour)
        assert not CONTROL.search(SGR.sub("", shown))
        assert "\x1b[8" not in shown and ";8m" not in shown
    assert WRITTEN.sub(lambda found: chr(int(found[1], 16)), visible(attack)) == attack


@pytest.mark.parametrize(
    ("attack", "harmless"),
    [
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"),
        ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x1b_Gf=100\x1b\\b", "ab"),
        ("a\x1b^note\x1b\\b", "ab"),
        ("a\x1bXnote\x1b\\b", "ab"),
        ("a\x1bcb", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\x9d52;c;ZXZpbA==\x9cb", "ab"),
        ("a\x90q\x9cb", "ab"),
        ("safe\rrm -rf", "saferm -rf"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
        ("a\x0bb\x0cc\x85d", "abcd"),
        ("abc\x08\x08\x08xyz", "abcxyz"),
        ("a\x00b\x7fc", "abc"),
        ("if \u202e}\u2066admin", "if ‹U+202E›}‹U+2066›admin"),
        ("pass\u200bword\ufeff", "pass‹U+200B›word‹U+FEFF›"),
        ("run\U000e0072\U000e006d", "run‹U+E0072›‹U+E006D›"),
        ("a\u2028b\u2029c", "a‹U+2028›b‹U+2029›c"),
        ("soft\u00adhyphen", "soft‹U+00AD›hyphen"),
        ("half \ud83d pair", "half \ufffd pair"),
        (f"hilt {MARK} Install? [y/N]", "hilt ‹U+25C8› Install? [y/N]"),
        ("an unfinished \x1b]0;title", "an unfinished 0;title"),
        ("an unfinished \x1b", "an unfinished "),
    ],
)
def test_what_is_left_of_an_attack_is_what_can_be_read(attack: str, harmless: str) -> None:
    assert clean(attack) == harmless
    assert clean(attack, colour=True) == harmless


def test_what_is_to_be_approved_keeps_its_line_breaks_tabs_and_trailing_spaces() -> None:
    assert visible("echo\t1 \nrm x\r\n\x1b[2K  ") == "echo\t1 \nrm x‹U+000D›\n‹U+001B›[2K  "
    assert visible("\x00\x7f\x9b\u202e\udcff") == "‹U+0000›‹U+007F›‹U+009B›‹U+202E›‹U+DCFF›"


def test_whatever_is_not_drawn_is_written_out() -> None:
    for code in UNSEEN:
        written = f"word‹U+{code:04X}›word"
        assert clean(f"word{chr(code)}word") == written
        assert visible(f"word{chr(code)}word") == written


def test_nothing_that_python_calls_a_format_character_is_drawn_as_nothing() -> None:
    drawn = {0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}  # signs of their scripts, with a shape
    drawn |= {*range(0x600, 0x606), 0x6DD, *range(0x13430, 0x13440)}
    formats = {code for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"}
    assert {code for code in formats if clean(chr(code)) == chr(code)} == drawn & formats


def test_a_string_without_an_end_swallows_neither_its_line_nor_the_next() -> None:
    assert clean("\x1b]0;never ended\nstill here") == "0;never ended\nstill here"
    assert clean("\x1b]0;never ended\nstill\x07 here") == "0;never ended\nstill here"


def test_colours_stay_only_when_asked_and_end_with_their_line() -> None:
    painted = "\x1b[1;31mred\nplain \x1b[32mgreen\x1b[0m\x1b[2J"
    assert clean(painted) == "red\nplain green"
    assert clean(painted, colour=True) == "\x1b[1;31mred\x1b[0m\nplain \x1b[32mgreen\x1b[0m"


def test_a_colour_that_conceals_or_never_ends_is_no_colour() -> None:
    assert clean("\x1b[" + "1;" * 40 + "mx", colour=True) == "x"
    for colour in ("38;5;8", "48;2;8;8;8", "38;5;8;1", "38:2::8:8:8", "58;5;8", "18", "4:3"):
        assert clean(f"\x1b[{colour}mx\x1b[0m", colour=True) == f"\x1b[{colour}mx\x1b[0m"
    for concealed in ("8", "08", "1;8", "38;5;8;8", "48;2;1;1;1;8", "38;8", "38;5;1;8;1"):
        assert clean(f"\x1b[{concealed}mx", colour=True) == "x"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "👩\u200d💻",
            "👩🏽\u200d🚀",
            "🏳\ufe0f\u200d🌈",
            "👩\u200d❤\ufe0f\u200d👨",
            "1\ufe0f\u20e3",
            "☎\ufe0e",
            "❤\ufe0f",
        ),
        *("می\u200cخواهم", "क्\u200dष", "क्\u200cष", "ක්\u200dර", "ന്\u200d", "র\u200d্য", "ខ្ញុំ\u200bចូល", "ᠭ\u180b"),
    ],
    ids=ascii,
)
def test_joiners_stay_where_an_emoji_or_a_script_needs_them(text: str) -> None:
    for shown in (clean, visible):
        assert shown(text) == text
        assert shown(f"a {text} b") == f"a {text} b"


@pytest.mark.parametrize(
    "text",
    [
        *("a\u200db", "👩\u200d", "👩\u200da", "\u200d💻", "a\ufe0f\u200d💻", "👩\u200d\u200d💻"),
        *("👩\ufe0f\ufe0f", "1\ufe0f", "葛\U000e0100", "🏴\U000e0067\U000e007f"),
        *("می\u200c\u200cخواهم", "می\u200c", "क्\u200d\u200d", "ខ\u200b", "a\u180b"),
    ],
    ids=ascii,
)
def test_joiners_are_written_out_where_they_hide_something(text: str) -> None:
    for shown in (clean, visible):
        assert WRITTEN.search(once := shown(text))
        assert shown(once) == once


@patient
@given(HOSTILE, st.integers(1, 50))
def test_one_line_is_one_line_and_no_wider_than_asked(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line and len(line) <= width


def test_a_cut_line_ends_in_an_ellipsis() -> None:
    assert one_line("one\ttwo\nthree", 40) == "one two three"
    assert one_line("abcdefgh", 5) == "abcd…"
    assert one_line("\x1b[0m" * 100 + "a tail behind what is not drawn", 20) == "…"
