"""What is read back of a damaged file is what was written, less what was damaged.

`HILT_DAMAGE_RECORDS` sets how long the files are of which every byte is damaged once; `make soak` has long ones.
"""

import os
from pathlib import Path

import pytest

from hilt.errors import SessionError
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord
from support.fault_fs import RecordingFiles
from support.session_files import meta, reread, said, texts, write_session

RECORDS = 50
EVERY_BYTE = int(os.environ.get("HILT_DAMAGE_RECORDS", "16"))
PARTS = 4


@pytest.fixture
def path(quick_path: Path) -> Path:
    return quick_path / "one.jsonl"


def append_and_reread(path: Path, text: str = "after") -> list[str]:
    with SessionLog.open(path, durability="os") as log:
        log.append(said(text))
        assert log.trouble == ""
        expected = texts(log)
    assert reread(path) == expected
    return expected


def is_subsequence(some: list[str], whole: list[str]) -> bool:
    remaining = iter(whole)
    return all(text in remaining for text in some)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_file_cut_at_any_byte_reads_back_as_a_prefix_and_takes_new_records(path: Path, part: int) -> None:
    wanted = write_session(path, EVERY_BYTE)
    content = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == 0x0A]
    for cut in range(part, len(content) + 1, PARTS):
        path.write_bytes(content[:cut])
        # Every whole line counts, and so does one that lacks only its end.
        whole = sum(end <= cut for end in ends) + (cut + 1 in ends) - 1
        assert append_and_reread(path) == [*wanted[: max(whole, 0)], "after"], f"cut at {cut}"
        torn = path.with_name("one.jsonl.torn")
        is_torn = cut not in (0, *ends) and cut + 1 not in ends
        assert torn.exists() == is_torn, f"cut at {cut}"
        if is_torn:
            start = max([0, *(end for end in ends if end < cut)])
            assert torn.read_bytes() == content[start:cut] + b"\n"
            torn.unlink()


def test_a_torn_tail_is_moved_aside_before_anything_is_appended(path: Path) -> None:
    write_session(path, 2)
    good = path.read_bytes()
    path.write_bytes(good + b'{"type":"message","id":"ab')
    with SessionLog.open(path) as log:
        assert path.read_bytes() == good
        torn = path.with_name("one.jsonl.torn")
        assert torn.read_bytes() == b'{"type":"message","id":"ab\n'
        assert torn.stat().st_mode & 0o777 == 0o600
        assert log.recovered == [f"an unfinished record (26 bytes) was moved to {torn}"]


def test_a_torn_tail_is_on_the_disk_elsewhere_before_it_is_cut_off(path: Path) -> None:
    write_session(path, 1)
    path.write_bytes(path.read_bytes() + b'{"type":')
    files = RecordingFiles()
    SessionLog.open(path, fs=files).close()
    assert files.order == ["write", f"fsync {path}.torn", "ftruncate", "fdatasync"]


def test_a_reader_leaves_a_torn_tail_where_it_is(path: Path) -> None:
    write_session(path, 2)
    content = path.read_bytes() + b'{"type":"mess'
    path.write_bytes(content)
    with SessionLog.open(path, writable=False) as log:
        assert texts(log) == ["message 0", "message 1"]
        assert log.recovered == ["an unfinished record (13 bytes) at the end was left out"]
    assert path.read_bytes() == content


def test_a_last_record_that_lacks_only_its_end_is_kept(path: Path) -> None:
    write_session(path, 2)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert append_and_reread(path) == ["message 0", "message 1", "after"]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_changed_byte_costs_the_records_it_touches_and_invents_none(path: Path, part: int) -> None:
    wanted = write_session(path, EVERY_BYTE)
    content = path.read_bytes()
    for at in range(part, len(content), PARTS):
        changed = bytearray(content)
        changed[at] ^= 1 << (at // PARTS % 8)
        path.write_bytes(changed)
        found = reread(path)
        # A lost line end joins two lines, and both are lost.
        assert len(found) >= EVERY_BYTE - 1 - (content[at] == 0x0A), f"byte {at}"
        assert is_subsequence(found, wanted), f"byte {at}"
        if at // PARTS % 5 == 0:
            assert append_and_reread(path) == [*found, "after"], f"byte {at}"
            path.with_name("one.jsonl.torn").unlink(missing_ok=True)


def test_a_missing_line_leaves_all_others_in_one_conversation(path: Path) -> None:
    wanted = write_session(path, RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    for missing in range(1, len(lines)):
        path.write_bytes(b"".join(lines[:missing] + lines[missing + 1 :]))
        left = wanted[: missing - 1] + wanted[missing:]
        assert append_and_reread(path) == [*left, "after"]
    with SessionLog.open(path) as log:  # the last one dropped cannot be told; the one before it can
        assert log.recovered == []
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    with SessionLog.open(path) as log:
        assert log.recovered == ["1 record missing from the file"]


def test_a_lost_meta_line_loses_no_message_and_is_replaced(path: Path) -> None:
    wanted = write_session(path, 3)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert append_and_reread(path) == [*wanted, "after"]
    with SessionLog.open(path) as log:
        assert log.meta.id == "one"
        assert log.recovered == ["1 record missing from the file"]


def test_a_doubled_line_is_read_once(path: Path) -> None:
    wanted = write_session(path, RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    for doubled in range(len(lines)):
        path.write_bytes(b"".join(lines[: doubled + 1] + lines[doubled:]))
        assert append_and_reread(path) == [*wanted, "after"]
    with SessionLog.open(path) as log:
        assert log.recovered == ["1 doubled line read once"]


def test_an_unreadable_line_stays_in_the_file_and_hides_nothing(path: Path) -> None:
    wanted = write_session(path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\x00garbage\xff\n"
    path.write_bytes(b"".join(lines))
    with SessionLog.open(path) as log:
        assert texts(log) == [wanted[0], *wanted[2:]]
        assert log.recovered == ["1 unreadable line kept in the file, and left out"]
        log.append(said("after"))
    assert b"\x00garbage\xff\n" in path.read_bytes()


@pytest.mark.parametrize("size", [1, 511, 4096])
def test_zeros_left_by_a_power_loss_cost_nothing_but_themselves(path: Path, size: int) -> None:
    wanted = write_session(path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    for at in range(1, len(lines) + 1):
        path.write_bytes(b"".join([*lines[:at], bytes(size), *lines[at:]]))
        assert append_and_reread(path) == [*wanted, "after"]
        path.write_bytes(b"".join([*lines[:at], bytes(size), b"\n", *lines[at:]]))
        assert append_and_reread(path) == [*wanted, "after"]


def test_a_record_overwritten_with_zeros_costs_only_itself(path: Path) -> None:
    wanted = write_session(path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = bytes(len(lines[2]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    assert append_and_reread(path) == [wanted[0], *wanted[2:], "after"]


def test_dos_line_ends_and_empty_lines_are_read(path: Path) -> None:
    wanted = write_session(path, 4)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    with SessionLog.open(path) as log:
        assert (texts(log), log.recovered) == (wanted, [])
    assert append_and_reread(path) == [*wanted, "after"]


def test_a_kept_tail_whose_first_record_was_lost_begins_with_the_next(path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        kept = log.append(said("b"))
        log.append(said("c"))
        log.append(CompactionRecord("sum", kept, 1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"id":"%b"' % kept.encode() not in line))
    assert reread(path) == ["## Context Summary (compacted)\n\nsum", "c"]


def test_a_parent_that_comes_later_or_is_the_record_itself_makes_no_circle(path: Path) -> None:
    data = b'{"message":{"role":"user","content":[{"type":"text","text":"%b"}],"time":"2024-01-01T00:00:00Z"}}'
    rows = [
        b'{"type":"message","id":"a","parent":"a","data":%b}' % (data % b"self"),
        b'{"type":"message","id":"b","parent":"c","data":%b}' % (data % b"next"),
        b'{"type":"message","id":"c","parent":"b","data":%b}' % (data % b"last"),
    ]
    path.write_bytes(b"\n".join(rows) + b"\n")
    assert reread(path) == ["self", "next", "last"]


def test_a_file_of_which_nothing_can_be_read_is_refused_and_not_touched(path: Path) -> None:
    write_session(path, 3)
    ruined = path.read_bytes().replace(b'"', b"'")
    path.write_bytes(ruined)
    with pytest.raises(SessionError, match="not a hilt session"):
        SessionLog.open(path)
    assert path.read_bytes() == ruined
