"""The conversation in memory and its record on disk, kept in step.

Every change is recorded before it counts, so an event that shows a message is emitted only
after its record is written.
"""

import asyncio
from collections.abc import Sequence

from msgspec import structs

from hilt.agent.compaction import estimated_tokens
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    now,
    pair_calls,
)
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord, MessageRecord, ResultRecord


class Transcript:
    def __init__(self, log: SessionLog) -> None:
        self.log = log
        self._messages: list[Message] = []
        self._told = ""
        self.reload()
        self.usage = log.usage
        """Cumulative over the session, what compaction and branching left behind included."""

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    def reload(self) -> None:
        """Read the current branch again, after the log's head has moved."""
        self._messages = pair_calls(self.log.messages())

    def add(self, message: UserMessage | AssistantMessage) -> None:
        self.log.append(MessageRecord(message))
        self._messages.append(message)
        if isinstance(message, AssistantMessage):
            self.usage += message.usage

    def add_result(self, result: ToolResult) -> None:
        self.log.append(ResultRecord(result))
        if isinstance(last := self._messages[-1], ToolMessage):
            self._messages[-1] = structs.replace(last, results=(*last.results, result))
        else:
            self._messages.append(ToolMessage((result,), now()))

    def compact(self, summary: str, cut: int, usage: Usage) -> None:
        """Replace everything before `cut` by a summary. The log keeps the original."""
        first = self._entry_of(self._messages[cut:])
        self.log.append(CompactionRecord(summary, first, estimated_tokens(self._messages), usage))
        self.usage += usage
        self.reload()

    def clear(self) -> None:
        self.log.move("")
        self.reload()

    def new_trouble(self) -> str:
        """What the log could not save, once for each reason, however many records it comes to hold back."""
        trouble = self.log.trouble
        reason = trouble.partition(" not saved to ")[2] or trouble
        is_new, self._told = reason != self._told, reason
        return trouble if is_new else ""

    async def settle(self) -> None:
        """Wait until the disk has it, off the loop: a slow disk must not hold up a cancel."""
        await asyncio.to_thread(self.log.sync)

    def _entry_of(self, tail: Sequence[Message]) -> str:
        """The log entry with which the tail of the conversation begins."""
        spoken = sum(not isinstance(message, ToolMessage) for message in tail)
        entries = [entry.id for entry in self.log.branch() if entry.type == MessageRecord.TYPE]
        return entries[-spoken]
