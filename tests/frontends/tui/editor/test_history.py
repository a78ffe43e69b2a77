"""What was sent before."""

import fcntl
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.terminal import clean
from hilt.frontends.tui.editor import history, history_file
from hilt.frontends.tui.editor.history import KEPT, History
from hilt.frontends.tui.editor.history_file import HistoryFile
from hilt.model.masking import Mask
from support.properties import patient


def plain(text: str) -> str:
    return text


def told(path: Path) -> list[str]:
    """As the file has it."""
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def test_a_prompt_is_kept_for_the_next_session_in_a_file_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    HistoryFile(path, plain).append("one\ntwo “three” 日本")
    assert HistoryFile(path, plain).read() == ["one\ntwo “three” 日本"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_is_not_written_down(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    HistoryFile(path, Mask(["sk-secret-123"]).text).append("use sk-secret-123 please")
    assert b"sk-secret" not in path.read_bytes()
    assert HistoryFile(path, plain).read() == ["use [key hidden] please"]


def test_lines_that_cannot_be_used_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    bad = [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b'{"text": 5}',
        b'{"other": 1}',
        b"[" * 100_000,
        b'{"text": "\\ud800"}',
        b"null",
    ]
    path.write_bytes(b'{"text": "first"}\n' + b"\n".join(bad) + b'\n{"text": "last"}\n{"text": "cut o')
    assert [text for text in HistoryFile(path, plain).read() if text in ("first", "last")] == ["first", "last"]
    assert "cut o" not in HistoryFile(path, plain).read()


def test_what_follows_a_line_that_was_cut_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"text": "cut o')
    HistoryFile(path, plain).append("next")
    assert HistoryFile(path, plain).read() == ["next"]


def test_what_somebody_wrote_into_the_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps({"text": "a\x1b[2J\u202eb"}) + "\n")
    assert HistoryFile(path, plain).read() == ["a‹U+202E›b"]


def test_the_file_is_cut_to_the_newest_when_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps({"text": f"n{number}"}) + "\n" for number in range(2 * KEPT + 10)))
    newest = [f"n{number}" for number in range(KEPT + 10, 2 * KEPT + 10)]
    assert HistoryFile(path, plain).read() == newest
    assert told(path) == newest
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["history.jsonl"]


def test_of_a_huge_file_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "_LARGEST", 10_000)
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps({"text": "x" * 50_000}) + "\n" + json.dumps({"text": "new"}) + "\n")
    assert HistoryFile(path, plain).read() == ["new"]
    assert path.stat().st_size < 100


def test_a_very_long_text_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    HistoryFile(path, plain).append("x" * 200_000)
    assert path.stat().st_size == 0


def test_while_another_program_has_the_file_nothing_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    file = HistoryFile(path, plain)
    with path.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        file.append("one")
        assert path.read_bytes() == b""
    file.append("two")
    assert told(path) == ["one", "two"]


def test_when_the_file_is_written_anew_at_that_moment_the_line_goes_into_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, new = tmp_path / "history.jsonl", tmp_path / "new"
    file = HistoryFile(path, plain)
    file.append("one")
    new.write_text('{"text":"other"}\n')
    lock = fcntl.flock

    def late(fd: int, how: int) -> None:
        if new.exists():
            new.replace(path)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    file.append("two")
    assert told(path) == ["other", "two"]


@pytest.mark.parametrize("kind", ["folder", "missing", "fifo", "link"])
def test_without_a_file_that_can_be_used_it_is_remembered_in_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history.jsonl"
    match kind:
        case "folder":
            path.mkdir()
        case "missing":
            path = tmp_path / "nowhere" / "history.jsonl"
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to(tmp_path / "elsewhere")
    file = HistoryFile(path, plain)
    file.append("kept")
    assert HistoryFile(path, plain).read() == []
    assert not (tmp_path / "elsewhere").exists()


words = st.text(min_size=1, max_size=20).map(clean).filter(bool)


@patient
@given(st.lists(st.lists(words, max_size=6), min_size=1, max_size=4), st.binary(max_size=20))
def test_several_programs_write_at_once_and_every_line_is_whole(
    tmp_path_factory: pytest.TempPathFactory, written: list[list[str]], cut: bytes
) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    path.write_bytes(cut.replace(b"\n", b""))  # somebody died while writing
    files = [HistoryFile(path, plain) for _ in written]

    def write(file: HistoryFile, texts: list[str], number: int) -> None:
        for text in texts:
            file.append(f"{number} {text}")

    threads = [
        threading.Thread(target=write, args=(*pair, at)) for at, pair in enumerate(zip(files, written, strict=True))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    for file in files:
        file.append("last")  # with what found the file taken
    found = [text for text in HistoryFile(path, plain).read() if text != "last"]
    for number, texts in enumerate(written):
        mine = [text for text in found if text.startswith(f"{number} ")]
        expected = [f"{number} {text}" for text in texts]
        assert sorted(set(mine)) == sorted(set(expected))


async def test_what_was_sent_before_there_was_a_file_is_written_when_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    HistoryFile(path, plain).append("yesterday")
    past = History()
    past.add("early")
    await past.keep_in(HistoryFile(path, plain))
    past.add("late")
    assert list(past.entries) == told(path) == ["yesterday", "early", "late"]


def test_the_same_twice_in_a_row_is_remembered_once_and_nothing_is_not() -> None:
    past = History()
    for text in ("a", "a", "  ", "", "b", "a"):
        past.add(text)
    assert list(past.entries) == ["a", "b", "a"]


def test_memory_has_a_limit() -> None:
    past = History()
    for number in range(KEPT + 5):
        past.add(f"n{number}")
    assert len(past.entries) == KEPT
    assert past.entries[-1] == f"n{KEPT + 4}"


def test_memory_is_bounded_also_by_size_and_the_last_one_is_always_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_CHARACTERS", 100)
    past = History()
    for letter in "abcd":
        past.add(letter * 40)
    assert list(past.entries) == ["c" * 40, "d" * 40]
    past.add("e" * 500)
    assert list(past.entries) == ["e" * 500]


steps = st.lists(st.tuples(st.sampled_from([-1, 1]), st.text(max_size=3)), max_size=20)


@patient
@given(st.lists(st.text(min_size=1, max_size=3), max_size=5), st.text(max_size=3), steps)
def test_on_a_walk_every_text_is_as_it_was_left(entries: list[str], draft: str, steps: list[tuple[int, str]]) -> None:
    past = History()
    for entry in entries:
        past.add(entry)
    walk, texts = past.walk(draft), [*past.entries, draft]
    at = len(texts) - 1
    for step, edited in steps:
        got = walk.go(step, edited)
        if 0 <= at + step < len(texts):
            texts[at] = edited
            at += step
            assert got == texts[at]
        else:
            assert got is None
    before = [*past.entries, ""]
    assert walk.left == [pair for place, pair in enumerate(zip(texts, before, strict=True)) if place != at]
