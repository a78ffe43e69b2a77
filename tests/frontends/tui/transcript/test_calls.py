"""Tool calls on screen: how they stand, what they did, who had a say in them."""

import pytest
from textual.strip import Strip

from hilt.frontends.tui.look import DARK, Look
from hilt.frontends.tui.transcript.call import Call, State
from hilt.model.content import Args, Image, Text
from hilt.model.events import Decided, Intercepted, ToolResultAdded, ToolStatus

LOOK = Look.of(DARK)
HOSTILE = "a\x1b]0;title\x07\x1b[2Jb ◈ approve \u202ereversed\u202c \x9b31m\rz"


def rows(call: Call, width: int = 80) -> list[str]:
    strips = call.rows(width, LOOK)
    check(strips, width)
    return [strip.text for strip in strips]


def check(strips: list[Strip], width: int) -> None:
    """No row is too wide, and nothing in it commands a terminal, hides, or can pass for hilt's own questions."""
    for strip in strips:
        assert strip.cell_length <= width
        assert strip.cell_length == Strip(list(strip)).cell_length
        assert not set(strip.text) & {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "◈", "\u202e", "\u202c"}


def called(name: str, args: Args, owner: str = "", by: str = "") -> Call:
    call = Call("1", name, owner, by)
    call.called(args)
    call.start(10.0)
    return call


def result(call: Call, text: str = "", status: ToolStatus = "completed", **more: object) -> None:
    is_error = status != "completed"
    told = {"args": call.args, **more}
    call.finished(ToolResultAdded("1", call.name, is_error, (Text(text),), "", status, **told), 10.2)  # type: ignore[arg-type]  # they are its fields


STATES: list[tuple[ToolStatus, str]] = [
    ("completed", "✓ bash ls · done"),
    ("failed", "✗ bash ls · failed"),
    ("blocked", "⊘ bash ls · blocked"),
    ("cancelled", "⊘ bash ls · cancelled"),
    ("timed_out", "✗ bash ls · timed out"),
]


@pytest.mark.parametrize(("status", "head"), STATES)
def test_how_a_call_ended_is_said_by_a_mark_and_a_word(status: ToolStatus, head: str) -> None:
    call = called("bash", {"command": "ls"})
    result(call, "why", status)
    assert rows(call) == [head, "  why"]


def test_a_call_that_is_under_way_says_so() -> None:
    call = Call("1", "bash")
    assert rows(call) == ["○ bash · being written"]
    call.draft('{"command": "make te')
    assert rows(call) == ["○ bash make te · being written"]
    call.called({"command": "make test"})
    call.start(5.0)
    assert rows(call) == ["◐ bash make test · running"]
    call.abandoned()
    assert rows(call) == ["? bash make test · no result"]


def test_time_is_told_from_a_second_on_while_it_runs_and_at_the_end() -> None:
    call = called("bash", {"command": "make"})
    call.tick(10.9)
    assert rows(call)[0].endswith("· running")
    call.tick(13.2)
    assert rows(call)[0].endswith("· running 3.2 s")
    version = call.version
    call.tick(13.21)
    assert call.version == version, "nothing to draw again: it would look the same"
    call.finished(ToolResultAdded("1", "bash", False, (Text("x"),), args=call.args), 75.0)
    assert rows(call)[0] == "✓ bash make · done 1 min 5 s"


@pytest.mark.parametrize(
    ("name", "args", "about"),
    [
        ("bash", {"command": "git status\n  --short"}, "git status --short"),
        ("read", {"path": "a.py"}, "a.py"),
        ("read", {"path": "a.py", "offset": 10, "limit": 40}, "a.py:10-49"),
        ("read", {"path": "a.py", "offset": 10}, "a.py:10-"),
        ("read", {"path": "a.py", "limit": 5}, "a.py:1-5"),
        ("write", {"path": "a.py", "content": "1\n2\n"}, "a.py (2 lines)"),
        ("edit", {"path": "a.py", "edits": [{}, {}]}, "a.py (2 edits)"),
        ("bash", {"command": 7}, "command=7"),
        ("read", {"path": "a.py", "offset": "x"}, "a.py"),
        ("add", {"text": "buy milk", "n": 3}, 'text="buy milk" n=3'),
        ("add", {}, ""),
    ],
)
def test_a_call_is_told_in_a_few_words(name: str, args: Args, about: str) -> None:
    assert rows(called(name, args)) == [f"◐ {name} {about} · running".replace("  ", " ")]


def test_the_tool_of_an_extension_carries_its_name_and_is_not_taken_for_ours() -> None:
    call = called("bash", {"command": "ls"}, owner="todo", by="planner")
    assert rows(call) == ['◐ bash [todo] for [planner] command="ls" · running']


def test_live_output_is_its_last_rows() -> None:
    call = called("bash", {"command": "make"})
    for number in range(30):
        call.progress(f"line {number}\n")
    assert rows(call)[1:] == [f"  line {number}" for number in range(22, 30)]


def test_output_of_any_size_costs_little_while_it_comes() -> None:
    call = called("bash", {"command": "yes"})
    piece = "y\n" * 16_384
    for _ in range(3_200):
        call.progress(piece)
    assert rows(call) == ["◐ bash yes · running", *["  y"] * 8]
    assert len(call._output._tail.text) < 70_000  # type: ignore[union-attr]  # it runs


def test_a_long_result_is_folded_and_can_be_unfolded() -> None:
    call = called("tool", {})
    result(call, "".join(f"line {number}\n" for number in range(130)))
    assert rows(call)[1] == "  line 0"
    assert rows(call)[-2:] == ["  line 9", "  … 120 more lines (ctrl+o)"]
    call.fold(folded=False)
    assert len(rows(call)) == 131


def test_of_a_command_the_end_of_the_output_is_shown() -> None:
    call = called("bash", {"command": "make"})
    text = "".join(f"line {number}\n" for number in range(30))
    result(call, f"$ make\n\n{text.rstrip()}\n\n[exit 2]  Took 0.1s", "failed", details={"exit_code": 2})
    assert rows(call)[:2] == ["✗ bash make · failed, exit 2", "  … 20 earlier lines (ctrl+o)"]
    assert rows(call)[-1] == "  line 29"


def test_what_else_a_command_reports_is_kept() -> None:
    call = called("bash", {"command": "make"})
    result(call, "$ make\n\nout\n\n[timed out after 3s; killed]  Took 3.0s", "timed_out", details={"exit_code": None})
    assert rows(call)[1:] == ["  out", "  [timed out after 3s; killed]  Took 3.0s"]
    call = called("bash", {"command": "make"})
    result(call, "somebody wrote this\n\n[exit 0]  Took 0.0s", details={"exit_code": 0})
    assert rows(call)[1:] == ["  somebody wrote this", "  ", "  [exit 0]  Took 0.0s"]


def test_a_command_that_does_not_fit_is_whole_when_unfolded() -> None:
    command = "for file in *; do\n  echo $file\ndone"
    call = called("bash", {"command": command})
    assert rows(call) == ["◐ bash for file in *; do echo $file done · running"]
    call.fold(folded=False)
    assert [row.strip() for row in rows(call)[1:]] == ["for file in *; do", "echo $file", "done"]


def test_an_edit_shows_what_changed() -> None:
    call = called("edit", {"path": "a.py", "edits": [{"oldText": "b", "newText": "c"}]})
    diff = " a\n-b\n+c\n d"
    result(call, diff, details={"diff": diff, "path": "/p/a.py"})
    assert rows(call) == ["✓ edit a.py (1 edit) · done", "    a", "  - b".ljust(80), "  + c".ljust(80), "    d"]


def test_a_written_file_shows_its_diff_with_line_numbers() -> None:
    call = called("write", {"path": "a.py", "content": "x = 1\ny = 2\n"})
    diff = "--- /dev/null\n+++ /p/a.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2"
    result(call, "Created a.py (2 lines, 12 bytes)", details={"diff": diff})
    assert [row.rstrip() for row in rows(call)[1:]] == ["  @@ -0,0 +1,2 @@", "  1 + x = 1", "  2 + y = 2"]


@pytest.mark.parametrize(
    ("diff", "body"),
    [
        ("--- /p/a.py\n+++ /p/a.py", ["  what the tool says"]),  # it had this content already
        ("--- /p/a.py (binary, 9 bytes, all replaced)\n+++ /p/a.py\n+x", ["  + x"]),
    ],
)
def test_the_names_in_the_diff_of_a_written_file_are_not_taken_for_lines_of_it(diff: str, body: list[str]) -> None:
    call = called("write", {"path": "a.py", "content": "x"})
    result(call, "what the tool says", details={"diff": diff})
    assert [row.rstrip() for row in rows(call)[1:]] == body


def test_what_an_extension_made_of_a_result_is_shown_in_place_of_the_diff() -> None:
    call = called("edit", {"path": "a.py", "edits": [{"oldText": "b", "newText": "c"}]})
    result(call, "nothing to see", details={"diff": "-b\n+c"}, changed_by=("veil", "tint"))
    assert rows(call)[1:] == ["  ✎ the result was changed by [veil] [tint]", "  nothing to see"]


def test_a_file_can_be_read_while_it_is_being_written() -> None:
    call = Call("1", "write")
    call.draft('{"path": "a.py", "content": "')
    for number in range(40):
        call.draft(f"line {number}\\n")
    call.draft("the la")
    shown = [row.rstrip() for row in rows(call)]
    assert shown[0] == "○ write a.py (41 lines) · being written"
    assert shown[1:] == [*[f"  + line {number}" for number in range(33, 40)], "  + the la"]
    call = Call("1", "edit")
    call.draft('{"path": "a.py", "edits": [{"oldText": "old\\nlines", "newText": "new')
    assert [row.rstrip() for row in rows(call)[1:]] == ["  - old", "  - lines", "  + new"]


def test_who_rewrote_the_arguments_is_told_with_what_they_changed() -> None:
    call = called("bash", {"command": "rm -rf /", "timeout": 5})
    first = Decided("softly", "rewrite", 1.0, changed={"command": "rm -i /", "timeout": 5})
    second = Decided("slowly", "rewrite", 1.0, "take your time", changed={"command": "rm -i /", "timeout": 50})
    call.intercepted(Intercepted("tool_call", "changed", (first, Decided("quiet", "allow", 0.1), second), id="1"))
    assert [row.rstrip() for row in rows(call)] == [
        "◐ bash rm -i / · running",
        "  ✎ [softly] rewrote the arguments",
        '    - "command": "rm -rf /",',
        '    + "command": "rm -i /",',
        "  ✎ [slowly] rewrote the arguments: take your time",
        '    - "timeout": 5',
        '    + "timeout": 50',
    ]


def test_who_refused_a_call_and_why_is_told_once() -> None:
    call = called("bash", {"command": "ls"})
    call.intercepted(Intercepted("tool_call", "blocked", (Decided("guard", "block", 1.0, "not today"),), id="1"))
    result(call, "not today (refused by guard guard)", "blocked")
    assert rows(call) == ["⊘ bash ls · blocked", "  ⊘ [guard] refused it: not today"]


def test_the_users_refusal_is_told_with_the_reason() -> None:
    call = called("bash", {"command": "ls"})
    call.decided(approved=False, reason="use make instead")
    result(call, "The user refused: use make instead", "blocked")
    assert rows(call) == ["⊘ bash ls · blocked", "  ⊘ you refused it: use make instead"]


@pytest.mark.parametrize(
    ("applied", "told"),
    [("allow", "it ran unchecked"), ("ask", "so you were asked"), ("block", "so it was refused")],
)
def test_a_guard_without_a_verdict_is_told(applied: str, told: str) -> None:
    call = called("bash", {"command": "ls"})
    silent = Decided("guard", "fail", 5000.0, "no answer in 5 s", applied=applied)  # type: ignore[arg-type]  # one of them
    call.intercepted(Intercepted("tool_call", "allowed", (silent,), id="1"))
    assert rows(call)[1] == f"  ! [guard] gave no verdict (no answer in 5 s): {told}"


def test_pictures_in_a_result_are_told_in_words_until_they_are_ready() -> None:
    call = called("shot", {}, owner="eye")
    picture = Image("image/png\x1b[2J", b"\x89PNG nothing more")
    call.finished(ToolResultAdded("1", "shot", False, (Text("here"), picture)), 11.0)
    assert rows(call)[1:] == ["  here", "  [image: png, 17 bytes]"]


@pytest.mark.parametrize("width", [8, 10, 40, 80])
def test_no_strangers_text_commands_the_terminal_or_is_too_wide(width: int) -> None:
    for state in (*(status for status, _ in STATES), None):
        call = Call("1", HOSTILE, HOSTILE, HOSTILE)
        call.draft(f'{{"k": "{HOSTILE}')
        rows(call, width)
        call.called({HOSTILE: HOSTILE, "漢字": "漢字" * 50}, HOSTILE if state else "")
        call.start(1.0)
        rewritten = Decided(HOSTILE, "rewrite", 1.0, HOSTILE, changed={HOSTILE: "漢" * 90})
        others = (Decided(HOSTILE, "fail", 1.0, HOSTILE, "ask"), Decided(HOSTILE, "block", 1.0, HOSTILE))
        call.intercepted(Intercepted("tool_call", "changed", (rewritten, *others), id="1"))
        call.decided(approved=False, reason=HOSTILE)
        call.progress(HOSTILE * 20)
        rows(call, width)
        if state:
            result(call, f"{HOSTILE}\n漢字" * 20, state, changed_by=(HOSTILE,), details={"diff": HOSTILE})
        for folded in (True, False):
            call.fold(folded=folded)
            rows(call, width)


def test_an_edits_diff_cannot_command_the_terminal() -> None:
    for name in ("edit", "write"):
        call = called(name, {"path": HOSTILE})
        result(call, "x", details={"diff": f"-{HOSTILE}\n+{HOSTILE}\n {HOSTILE}\n{HOSTILE}"})
        rows(call, 40)


def test_how_it_stands_is_seen_also_in_forty_columns() -> None:
    call = called("bash", {"command": "find . -name '*.py' -exec grep -l something {} +"})
    call.tick(14.0)
    [head] = rows(call, 40)
    assert head.startswith("◐ bash find . -name")
    assert head.endswith("… · running 4.0 s")
    states: list[State] = ["drafted", "unknown"]
    assert all(rows(Call("1", "n", "owner")) for _ in states)
