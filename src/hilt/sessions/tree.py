"""A session as a tree: every branch that was ever taken, and which one is current.

Entries and their records in; nodes, lines of text or plain values out. The nodes stand side by side and
name their children, because a conversation is a chain thousands of links deep.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from hilt.model.content import text_of
from hilt.model.conversation import AssistantMessage, tool_calls
from hilt.sessions.index import Entry, first_line, lineage
from hilt.sessions.log import SessionLog
from hilt.sessions.records import (
    CONVERSATION,
    CompactionRecord,
    EntryRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    Record,
    ReplacementRecord,
    ResultRecord,
)


class Node(Struct, frozen=True):
    id: str
    parent: str
    type: str
    role: str
    """`user`, `assistant`, `tool`, `compaction`, `replacement` or `entry`."""
    time: str
    preview: str
    label: str
    children: tuple[str, ...]
    """Oldest first, but for the one on the current path, which comes before all."""
    on_current_path: bool
    summary: str = ""
    """What was said of the branch that ends here, when it was left."""


class Tree(Struct, frozen=True):
    roots: tuple[str, ...]
    nodes: dict[str, Node]

    def walk(self) -> Iterator[tuple[int, Node]]:
        """Depth first, each node with how many forks lie above it."""
        waiting = [(0, root) for root in reversed(self.roots)]
        while waiting:
            depth, name = waiting.pop()
            node = self.nodes[name]
            yield depth, node
            # A chain does not indent; only a fork does.
            below = depth + (len(node.children) > 1)
            waiting.extend((below, child) for child in reversed(node.children))


def tree_of(log: SessionLog) -> Tree:
    return build(((entry, log.read(entry)) for entry in log.entries()), log.head)


def build(records: Iterable[tuple[Entry, Record]], head: str) -> Tree:
    entries: dict[str, tuple[Entry, Record]] = {}
    labels: dict[str, str] = {}
    summaries: dict[str, str] = {}
    parents: dict[str, str] = {}
    for entry, record in records:
        parents[entry.id] = entry.parent
        if entry.type in CONVERSATION:
            entries[entry.id] = (entry, record)
        elif isinstance(record, LabelRecord):
            labels[record.target] = record.label
        elif isinstance(record, LeafRecord) and record.summary:
            summaries[entry.parent] = record.summary
    current = set(lineage(head, parents))
    children: dict[str, list[str]] = {name: [] for name in ("", *entries)}
    above = {name: _nearest(entry.parent, entries, parents) for name, (entry, _) in entries.items()}
    for name, parent in above.items():
        children[parent].append(name)
    for siblings in children.values():
        siblings.sort(key=lambda name: name not in current)
    nodes = {
        name: Node(
            name,
            above[name],
            entry.type,
            _role(entry),
            entry.time,
            preview(record),
            labels.get(name, ""),
            tuple(children[name]),
            name in current,
            first_line(summaries.get(name, "")),
        )
        for name, (entry, record) in entries.items()
    }
    return Tree(tuple(children[""]), nodes)


def render(tree: Tree) -> list[str]:
    """One line per node: `●` is on the current path, `○` is not."""
    return [
        f"{'  ' * depth}{'●' if node.on_current_path else '○'} {node.id} {node.role}: {node.preview}"
        + (f"  [{node.label}]" if node.label else "")
        + (f"  (left: {node.summary})" if node.summary else "")
        for depth, node in tree.walk()
    ]


def plain(tree: Tree) -> list[dict[str, Any]]:
    """The nodes as JSON-able values, depth first."""
    return [
        {
            "id": node.id,
            "parent": node.parent,
            "type": node.type,
            "role": node.role,
            "time": node.time,
            "preview": node.preview,
            "label": node.label,
            "children": list(node.children),
            "on_current_path": node.on_current_path,
            "summary": node.summary,
            "depth": depth,
        }
        for depth, node in tree.walk()
    ]


def preview(record: Record) -> str:
    """What a record says, in at most 80 characters."""
    match record:
        case MessageRecord(message=message):
            seen = message.seen if isinstance(message, AssistantMessage) else message.content
            text = text_of(seen, "\n") or ", ".join(call.name for call in tool_calls(message))
            return first_line(text)
        case ResultRecord(result=result):
            return first_line(f"{result.name}: {text_of(result.content)}")
        case CompactionRecord(summary=summary):
            return first_line(summary)
        case ReplacementRecord(messages=messages, extension=extension):
            count = f"{len(messages)} message{'s' * (len(messages) != 1)}"
            return first_line(f"{count} in place of all before" + (f", by {extension}" if extension else ""))
        case EntryRecord(kind=kind, extension=extension):
            return first_line(f"{kind} of {extension}" if extension else kind)
    return ""


def _role(entry: Entry) -> str:
    return entry.role or ("tool" if entry.type == ResultRecord.TYPE else entry.type)


def _nearest(parent: str, entries: dict[str, tuple[Entry, Record]], parents: dict[str, str]) -> str:
    """The closest ancestor that is part of a conversation; other versions may put records in between."""
    return next((name for name in lineage(parent, parents) if name in entries), "")
