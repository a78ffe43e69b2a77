"""Sessions that travel lose nothing but what must stay."""

import os
from pathlib import Path

import msgspec
import pytest

from hilt import __version__
from hilt.errors import SessionError
from hilt.model.content import Image, Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, ToolMessage, Usage, UserMessage, now
from hilt.sessions.blobs import LONGEST_RECORD
from hilt.sessions.envelope import fields_of, seal
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.portable import export, fork, import_
from hilt.sessions.records import (
    CompactionRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    TitleRecord,
    UnknownRecord,
)
from hilt.sessions.store import SessionStore
from hilt.sessions.undo import FileHistory
from support.session_files import answered, meta, resulted, said, texts

CWD = "/home/someone/project"


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


@pytest.fixture
def path(store: SessionStore) -> Path:
    facts = meta(CWD)
    return store.new_path(CWD, facts.id)


def converse(path: Path) -> None:
    with SessionLog.create(path, meta(CWD)) as log:
        log.append(said("Fix the parser, please!"))
        log.append(answered("I look", "1", "2"))
        log.append(resulted("1", "one"))
        log.append(resulted("2", "two"))
        log.append(answered("done"))


def test_an_export_leaves_the_folders_name_behind_and_comes_back_the_same(
    path: Path, store: SessionStore, tmp_path: Path
) -> None:
    converse(path)
    with SessionLog.open(path) as log:
        log.append(meta(CWD))  # a later meta line
        log.append(TitleRecord("Parser"))
        before, usage = log.messages(), log.usage
        target = export(log, tmp_path / "out.hiltsession")
    assert CWD.encode() not in target.read_bytes()
    assert target.read_bytes().count(b'"type":"meta"') == 1
    brought = import_(target, store, "/new/place")
    with SessionLog.open(brought) as log, SessionLog.open(path) as old:
        assert (log.messages(), log.usage, log.title, log.recovered) == (before, usage, "Parser", [])
        assert (log.meta.cwd, log.meta.version) == ("/new/place", __version__)
        assert log.meta.id != old.meta.id
        assert brought.stem.endswith(log.meta.id[:8])
        assert brought.parent == store.folder("/new/place")
        assert [entry.id for entry in log.branch()] == [entry.id for entry in old.branch()]


def test_an_export_into_a_directory_is_named_after_the_session(path: Path, tmp_path: Path) -> None:
    converse(path)
    with SessionLog.open(path) as log:
        target = export(log, tmp_path)
        assert target.name == f"{log.meta.created:%Y%m%d-%H%M%S}-{log.meta.id[:8]}-fix-the-parser-please.hiltsession"


def test_an_export_never_overwrites_unless_forced(path: Path, tmp_path: Path) -> None:
    converse(path)
    target = tmp_path / "out"
    target.write_text("precious")
    with SessionLog.open(path) as log:
        with pytest.raises(SessionError, match="exists already"):
            export(log, target)
        assert target.read_text() == "precious"
        export(log, target, force=True)
    assert target.read_bytes().startswith(b'{"type":"meta"')
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out", "sessions"]


def test_an_export_that_cannot_be_written_is_an_error_that_says_so(path: Path, tmp_path: Path) -> None:
    converse(path)
    (tmp_path / "file").touch()
    with SessionLog.open(path) as log, pytest.raises(SessionError, match="cannot be written"):
        export(log, tmp_path / "file" / "out")


def test_large_contents_travel_inside_the_export(path: Path, store: SessionStore, tmp_path: Path) -> None:
    image = Image("image/png", os.urandom(LONGEST_RECORD))
    with SessionLog.create(path, meta()) as log:
        log.append(MessageRecord(UserMessage((image,), now())))
        target = export(log, tmp_path / "out")
    for blob in store.blobs.iterdir():
        blob.unlink()
    other = SessionStore(tmp_path / "other")
    brought = import_(target, other, "/x")
    assert brought.stat().st_size < 10_000
    assert len(list(other.blobs.iterdir())) == 1
    with SessionLog.open(brought) as log:
        assert log.messages()[0].content == (image,)  # type: ignore[union-attr]  # a user message


def add_future(path: Path) -> None:
    """A record type, an envelope field and data fields that this version does not know."""
    with SessionLog.open(path) as log:
        log.append(UnknownRecord("hologram", msgspec.Raw(b'{"z":1,"a":[2]}')))
        log.append(said("last"))
    lines = path.read_bytes().splitlines()
    for at, line in enumerate(lines):
        fields = fields_of(line)
        fields["future"] = b'{"x":1}'
        fields["data"] = fields["data"][:-1] + b',"later":true}'
        lines[at] = seal(fields)
    path.write_bytes(b"\n".join(lines) + b"\n")


def test_what_this_version_does_not_know_survives_export_import_and_fork(
    path: Path, store: SessionStore, tmp_path: Path
) -> None:
    converse(path)
    add_future(path)
    count = len(path.read_bytes().splitlines())
    with SessionLog.open(path) as log:
        assert log.recovered == []
        exported = export(log, tmp_path / "out")
        forked = fork(log, store)
    for copy in (exported, import_(exported, store, "/y"), forked):
        lines = copy.read_bytes().splitlines()
        assert len(lines) == count
        assert all(b'"future":{"x":1}' in line and b'"later":true' in line for line in lines)
        assert sum(b'"type":"hologram"' in line and b'"data":{"z":1,"a":[2]' in line for line in lines) == 1


def test_snapshots_of_files_do_not_travel(path: Path, store: SessionStore, tmp_path: Path) -> None:
    converse(path)
    (tmp_path / "file").write_text("private")
    with SessionLog.open(path) as log:
        FileHistory(Journal(log)).remember("1", tmp_path / "file")
        target = export(log, tmp_path / "out")
    assert b"file_snapshot" not in target.read_bytes()
    target.write_bytes(path.read_bytes())  # one made by hand does not get in either
    with SessionLog.open(import_(target, store, "/x")) as log:
        assert all(entry.type != "file_snapshot" for entry in log.entries())
        assert FileHistory(Journal(log)).undo() == []


def test_an_import_cannot_reach_for_side_files_by_name(path: Path, store: SessionStore, tmp_path: Path) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("s" * (LONGEST_RECORD + 1)))
    stolen = tmp_path / "elsewhere" / "stolen"
    stolen.parent.mkdir()
    stolen.write_bytes(path.read_bytes())
    with SessionLog.open(import_(stolen, store, "/x")) as log:
        assert "missing or damaged" in texts(log)[0]


def test_a_fork_has_the_same_past_and_a_future_of_its_own(path: Path, store: SessionStore) -> None:
    with SessionLog.create(path, meta(CWD)) as log:
        first = log.append(said("a"))
        log.append(LabelRecord(first, "start"))
        point = log.append(answered("b"))
        log.append(said("c"))
        log.append(NoteRecord("late", {}))
        log.move(first)
        log.append(said("other"))
        forked = fork(log, store, point)
        parent = log.meta
    with SessionLog.open(forked) as log:
        assert texts(log) == ["a", "b"]
        assert [entry.id for entry in log.branch()] == [first, point]
        assert [entry.type for entry in log.entries()] == ["meta", "message", "label", "message"]
        assert (log.meta.parent, log.meta.fork_point, log.meta.cwd) == (parent.id, point, CWD)
        assert (log.head, log.recovered) == (point, [])
        log.append(said("mine"))
    with SessionLog.open(path) as log:
        assert texts(log) == ["a", "other"]


def test_a_fork_of_a_compacted_conversation_is_compacted_too(path: Path, store: SessionStore) -> None:
    with SessionLog.create(path, meta()) as log:
        log.append(said("a"))
        kept = log.append(said("b"))
        log.append(CompactionRecord("sum", kept, 3))
        forked = fork(log, store)
        expected = texts(log)
    with SessionLog.open(forked) as log:
        assert texts(log) == expected


def test_a_session_that_is_open_elsewhere_can_be_forked(path: Path, store: SessionStore) -> None:
    converse(path)
    with SessionLog.open(path) as held, SessionLog.open(path, writable=False) as log:
        forked = fork(log, store)
        assert forked != path
        held.append(said("goes on"))
    with SessionLog.open(forked) as log:
        assert len(log.messages()) == 4


def test_forking_at_an_entry_that_is_not_there_is_refused(path: Path, store: SessionStore) -> None:
    converse(path)
    with SessionLog.open(path) as log, pytest.raises(SessionError, match="no entry 'nope'"):
        fork(log, store, "nope")


def row(role: str, content: str, more: str = "") -> str:
    time = "2024-03-01T10:00:01.123456789Z"
    return f'{{"type":"message","message":{{"role":"{role}","content":[{content}],"time":"{time}"{more}}}}}'


def facts(model: str) -> str:
    time = "2024-03-01T10:00:00Z"
    return f'{{"type":"meta","meta":{{"id":"5e","cwd":"/secret","model":"{model}","provider":"p","started":"{time}"}}}}'


CALLS = '{"id":"c1","name":"bash","arguments":{"command":"ls"}},{"id":"c2","name":"read","arguments":{"path":"a"}}'
ZOT = [
    facts("m1"),
    row("user", '{"text":"look at this"},{"mime_type":"image/png","data":"aGk="}'),
    row("assistant", '{"reasoning_id":"r1","summary":"hm","encrypted_content":"e"},{"text":"I run"},' + CALLS),
    '{"type":"usage","usage":{},"cumulative":{"input_tokens":100,"output_tokens":10,"cost_usd":0.5}}',
    row("tool", '{"call_id":"c1","content":[{"text":"a"}]},{"call_id":"c2","content":[],"is_error":true}'),
    "not json",
    row("assistant", '{"text":"done"}'),
    '{"type":"usage","usage":{"input_tokens":300,"output_tokens":30,"cache_read_tokens":50,"cost_usd":0.75}}',
    '{"type":"rename","title":"Looking"}',
    facts("m2"),
    row("user", '{"text":"## Context Summary (compacted)"}', ',"meta":{"compaction":"true"}'),
]


def test_a_session_of_the_program_that_came_first_keeps_every_message(store: SessionStore, tmp_path: Path) -> None:
    source = tmp_path / "old.zotsession"
    source.write_text("\n".join(ZOT) + "\n")
    with SessionLog.open(import_(source, store, "/here")) as log:
        user, call, results, done, summary = log.messages()
        assert user == UserMessage((Text("look at this"), Image("image/png", b"hi")), user.time)
        assert isinstance(call, AssistantMessage)
        assert call.content == (
            Thinking("hm", "e", "r1", provider="p"),
            Text("I run"),
            ToolCall("c1", "bash", {"command": "ls"}),
            ToolCall("c2", "read", {"path": "a"}),
        )
        assert call.usage == Usage(100, 10, 0, 0, 0.5)
        assert isinstance(results, ToolMessage)
        assert [(result.name, result.is_error) for result in results.results] == [("bash", False), ("read", True)]
        assert isinstance(done, AssistantMessage)
        assert done.usage == Usage(200, 20, 50, 0, 0.25)
        assert isinstance(summary, UserMessage)
        assert summary.summary
        assert (log.title, log.model, log.meta.cwd) == ("Looking", ("p", "m2"), "/here")
        assert log.usage == Usage(300, 30, 50, 0, 0.75)


@pytest.mark.parametrize("content", [b"", b"hello", b'{"type":"meta"}\n', b"\xff\xfe\n", b"[1]\n"])
def test_what_is_not_a_session_is_not_imported(store: SessionStore, tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "x"
    source.write_bytes(content)
    with pytest.raises(SessionError) as caught:
        import_(source, store, "/x")
    assert caught.value.hint
    assert not store.root.exists()


def test_a_missing_source_is_an_error_that_names_it(store: SessionStore, tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="nowhere"):
        import_(tmp_path / "nowhere", store, "/x")
