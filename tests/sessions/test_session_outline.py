"""The tree of a session as extensions and clients are given it."""

import pytest

from hilt.errors import SessionError
from hilt.model.conversation import user_text
from hilt.sessions.log import SessionLog
from hilt.sessions.outline import outline_of, path_of
from hilt.sessions.records import CompactionRecord, EntryRecord, LabelRecord, NoteRecord, ReplacementRecord
from hilt.sessions.tree import render, tree_of
from support.session_files import answered, meta, resulted, said


def test_what_leads_to_the_present_place_comes_first_and_its_siblings_oldest_first() -> None:
    log = SessionLog.in_memory(meta())
    root = log.append(said("question"))
    first = log.append(answered("one"))
    log.move(root)
    second = log.append(answered("two"))
    log.append(NoteRecord("k", {}))
    below = log.append(said("below two"))
    log.move(root)
    third = log.append(answered("three"))
    log.move(below)
    nodes = outline_of(log)
    assert [(node.id, node.parent, node.depth, node.active) for node in nodes] == [
        (root, "", 0, True),
        (second, root, 1, True),
        (below, second, 2, True),
        (first, root, 1, False),
        (third, root, 1, False),
    ]
    assert [node.children for node in nodes] == [3, 1, 0, 0, 0]
    assert [node.id for node in path_of(log)] == [root, second, below]
    assert [node.children for node in path_of(log)] == [3, 1, 0]


def test_roots_come_oldest_first_wherever_the_conversation_is() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("a"))
    log.move("")
    second = log.append(said("b"))
    assert [node.id for node in outline_of(log)] == [first, second]
    log.move("")
    assert path_of(log) == ()


def test_each_entry_says_what_it_is_and_how_it_begins() -> None:
    log = SessionLog.in_memory(meta())
    question = log.append(said("x" * 61))
    log.append(answered("y" * 60, "1"))
    log.append(resulted("1", "output"))
    log.append(EntryRecord("ext:mark", {"a": 1}, "marker"))
    log.append(CompactionRecord("the sum", question, 500))
    log.append(ReplacementRecord((user_text("short"),), 70))
    log.append(LabelRecord(question, "start"))
    nodes = outline_of(log)
    assert [node.type for node in nodes] == ["user", "assistant", "tool_result", "ext:mark", "compact", "compact"]
    assert [node.preview for node in nodes] == ["x" * 60 + "...", "y" * 60, "", "", "", ""]
    assert [node.tokens_before for node in nodes] == [0, 0, 0, 0, 500, 70]
    assert [node.label for node in nodes] == ["start", "", "", "", "", ""]
    assert [node.type for node in path_of(log)] == [node.type for node in nodes]


def test_a_conversation_of_thousands_has_no_limit_of_depth() -> None:
    log = SessionLog.in_memory(meta())
    for number in range(3000):
        log.append(said(str(number)))
    assert outline_of(log)[-1].depth == 2999


def test_what_was_said_of_a_branch_when_it_was_left_is_shown_where_it_ends() -> None:
    log = SessionLog.in_memory(meta())
    root = log.append(said("question"))
    left = log.append(answered("wrong"))
    log.move(root, "a dead end\nreally", "guide")
    right = log.append(answered("right"))
    assert render(tree_of(log)) == [
        f"● {root} user: question",
        f"  ● {right} assistant: right",
        f"  ○ {left} assistant: wrong  (left: a dead end)",
    ]


def test_only_what_is_part_of_the_conversation_is_a_place_to_go_to() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("a"))
    beside = log.append(LabelRecord(first, "start"))
    assert log.place(first) == first
    for wrong in (beside, "nosuch", ""):
        with pytest.raises(SessionError, match="not found"):
            log.place(wrong)
