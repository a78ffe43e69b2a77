"""A conversation that was replaced, and what extensions keep in a session: read back, and carried along."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hilt.model.conversation import Message, Usage, pair_calls, user_text
from hilt.sessions import portable
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord, EntryRecord, Record, ReplacementRecord, TitleRecord, UnknownRecord
from hilt.sessions.store import SessionStore
from hilt.sessions.tree import render, tree_of
from support.properties import patient
from support.session_files import answered, meta, reread, resulted, said, texts

MEMORY = Path("/dev/shm")  # thousands of files cost no disk time there


def replaced(*messages: Message) -> ReplacementRecord:
    return ReplacementRecord(messages, 100, "tidy")


def test_a_replacement_stands_for_everything_before_it_and_what_comes_later_follows(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    with SessionLog.create(path, meta()) as log:
        log.append(said("long"))
        log.append(answered("longer"))
        log.append(replaced(user_text("short")))
        log.append(said("later"))
        assert texts(log) == ["short", "later"]
    assert reread(path) == ["short", "later"]


def test_a_branch_that_leaves_before_a_replacement_has_the_original() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("long"))
    log.append(replaced(user_text("short")))
    log.move(first)
    assert texts(log) == ["long"]


def test_a_result_belongs_to_its_call_also_when_the_call_is_part_of_a_replacement() -> None:
    log = SessionLog.in_memory(meta())
    asked = answered("", "1", "2").message
    log.append(said("go"))
    log.append(answered("", "1", "2"))
    log.append(resulted("1", "one"))
    log.append(ReplacementRecord((user_text("go on"), asked)))
    log.append(resulted("2", "two"))
    log.append(resulted("1", "one"))
    assert texts(log) == ["go on", "", "one|two"]


def test_what_is_said_while_calls_are_under_way_does_not_come_between_them_and_their_results() -> None:
    log = SessionLog.in_memory(meta())
    log.append(answered("", "1", "2"))
    log.append(resulted("2", "two"))
    log.append(said("by the way"))
    log.append(EntryRecord("ext:mark", {"a": 1}, "marker"))
    log.append(resulted("1", "one"))
    assert texts(log) == ["", "one|two", "by the way"]
    assert pair_calls(log.messages()) == log.messages()


def test_a_compaction_after_a_replacement_keeps_what_was_said_since() -> None:
    log = SessionLog.in_memory(meta())
    log.append(said("long"))
    log.append(replaced(user_text("short")))
    kept = log.append(said("kept"))
    log.append(CompactionRecord("the sum", kept, 5))
    assert texts(log)[1:] == ["kept"]
    assert "the sum" in texts(log)[0]


def test_what_a_replacement_cost_is_counted_and_its_messages_are_not_counted_twice() -> None:
    log = SessionLog.in_memory(meta())
    log.append(answered("a", usage=Usage(10, 5)))
    log.append(ReplacementRecord((answered("a", usage=Usage(10, 5)).message,), 7, usage=Usage(3, 1)))
    assert log.usage == Usage(13, 6)


def test_replacements_and_entries_are_in_the_tree_and_travel_with_the_session(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    path = store.new_path("/project", "0" * 32)
    with SessionLog.create(path, meta()) as log:
        log.append(said("long"))
        log.append(replaced(user_text("short"), user_text("and sweet")))
        log.append(EntryRecord("ext:mark", {"page": 3}, "marker"))
        log.append(said("later"))
        exported = portable.export(log, tmp_path / "out.hiltsession")
        forked = portable.fork(log, store)
        lines = render(tree_of(log))
    assert [line.split(" ", 2)[2] for line in lines] == [
        "user: long",
        "replacement: 2 messages in place of all before, by tidy",
        "entry: ext:mark of marker",
        "user: later",
    ]
    imported = portable.import_(exported, store, "/elsewhere")
    for copy in (exported, forked, imported):
        with SessionLog.open(copy, writable=False) as log:
            assert texts(log) == ["short", "and sweet", "later"]
            kept = [record for entry in log.entries() if isinstance(record := log.read(entry), EntryRecord)]
            assert kept == [EntryRecord("ext:mark", {"page": 3}, "marker")]


def test_a_replacement_in_a_shape_of_another_version_leaves_the_original_as_it_is() -> None:
    log = SessionLog.in_memory(meta())
    log.append(said("long"))
    log.append(UnknownRecord(ReplacementRecord.TYPE, Raw(b'{"messages":{"in":"another way"}}')))
    log.append(said("later"))
    assert texts(log) == ["long", "later"]


def test_a_large_replacement_is_kept_in_a_side_file(tmp_path: Path) -> None:
    path = tmp_path / "0123456789abcdef" / "one.jsonl"
    text = "x" * (5 << 20)
    with SessionLog.create(path, meta()) as log:
        log.append(replaced(user_text(text)))
    assert path.stat().st_size < 1 << 20
    assert reread(path) == [text]


_RECORDS = st.lists(st.sampled_from(["say", "answer", "call", "result", "replace", "entry", "compact", "title"]))


@patient
@given(kinds=_RECORDS, cut=st.integers(0, 5000))
def test_a_file_cut_off_anywhere_says_what_it_said_at_that_time(kinds: list[str], cut: int) -> None:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder, "one.jsonl")
        history = [[], *write(path, kinds)]
        whole = path.read_bytes() if path.exists() else b""
        path.write_bytes(whole[:cut])
        lines = whole[:cut].split(b"\n")
        # A last line that lacks nothing but its end is whole.
        records = len(lines) - (lines[-1] not in whole.split(b"\n") or not lines[-1]) - 1
        if records >= 0:
            with SessionLog.open(path) as log:
                assert texts(log) == history[records]
                assert pair_calls(paired := pair_calls(log.messages())) == paired


def write(path: Path, kinds: list[str]) -> Iterator[list[str]]:
    """What the conversation says after each record."""
    with SessionLog.create(path, meta(), durability="os") as log:
        for number, kind in enumerate(kinds):
            first = log.branch()[-1].id if log.branch() else ""
            records: dict[str, Record] = {
                "say": said(f"{number}"),
                "answer": answered(f"{number}"),
                "call": answered(f"{number}", str(number)),
                "result": resulted(str(number - 1), f"{number}"),
                "replace": replaced(*log.messages()[-2:]),
                "entry": EntryRecord("k", number, "e"),
                "compact": CompactionRecord(f"{number}", first, 0),
                "title": TitleRecord(f"{number}"),
            }
            log.append(records[kind])
            yield texts(log)
