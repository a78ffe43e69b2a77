"""The tree shows every branch and which one is current."""

from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord, LabelRecord, NoteRecord
from hilt.sessions.tree import plain, render, tree_of
from support.session_files import answered, meta, resulted, said


def test_a_chain_is_not_indented_and_a_fork_is_with_the_current_branch_first() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("question\nmore"))
    left = log.append(answered("left"))
    log.append(NoteRecord("k", {}))
    under = log.append(said("under left"))
    log.move(first)
    right = log.append(answered("", "call-1"))
    result = log.append(resulted("call-1", "output"))
    log.append(LabelRecord(left, "tried"))
    assert render(tree_of(log)) == [
        f"● {first} user: question",
        f"  ● {right} assistant: bash",
        f"  ● {result} tool: bash: output",
        f"  ○ {left} assistant: left  [tried]",
        f"  ○ {under} user: under left",
    ]


def test_clearing_gives_the_tree_a_second_root() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("a"))
    log.move("")
    second = log.append(said("b"))
    tree = tree_of(log)
    assert tree.roots == (second, first)
    assert not tree.nodes[first].on_current_path


def test_a_label_can_be_changed_and_taken_away() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("a"))
    log.append(LabelRecord(first, "one"))
    log.append(LabelRecord(first, "two"))
    assert tree_of(log).nodes[first].label == "two"
    log.append(LabelRecord(first, ""))
    assert tree_of(log).nodes[first].label == ""


def test_plain_values_name_parents_children_and_depth() -> None:
    log = SessionLog.in_memory(meta())
    first = log.append(said("x" * 200))
    second = log.append(CompactionRecord("the sum", first, 5))
    rows = plain(tree_of(log))
    assert [(row["id"], row["parent"], row["children"], row["depth"]) for row in rows] == [
        (first, "", [second], 0),
        (second, first, [], 0),
    ]
    assert len(rows[0]["preview"]) == 80
    assert (rows[1]["role"], rows[1]["preview"]) == ("compaction", "the sum")


def test_a_conversation_thousands_of_messages_deep_is_no_deeper_than_any_other() -> None:
    log = SessionLog.in_memory(meta())
    for number in range(5_000):
        log.append(said(str(number)))
    tree = tree_of(log)
    assert len(render(tree)) == 5_000
    assert {row["depth"] for row in plain(tree)} == {0}
