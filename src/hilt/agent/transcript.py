"""The conversation in memory and its record on disk, kept in step.

Every change is recorded before it counts, so an event that shows a message is emitted only
after its record is written. Which file that is may change between turns; see `moving`.
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
    tool_calls,
)
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord, MessageRecord, ReplacementRecord, ResultRecord
from hilt.sessions.replay import join, summary_message


class Transcript:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._messages: list[Message] = []
        self._told = ""
        self.reload()
        self.usage = self.log.usage
        """Cumulative over the session, what compaction and branching left behind included."""

    @property
    def log(self) -> SessionLog:
        """As of now: to be asked for each time, and not kept."""
        return self._journal.log

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    def reload(self) -> None:
        """Read the current branch again, after the log's head has moved."""
        self._messages = pair_calls(self.log.messages())

    def resume(self, messages: list[Message], usage: Usage | None = None) -> None:
        """Go on from where the log is now, with what was read of it; `usage` when it is another one."""
        self._messages = messages
        if usage is not None:
            self.usage, self._told = usage, ""

    def add(self, message: UserMessage | AssistantMessage) -> None:
        """Also while calls are under way: their results are put with them, in front of this."""
        self._journal.append(MessageRecord(message))
        self._messages.append(message)
        if isinstance(message, AssistantMessage):
            self.usage += message.usage

    def add_result(self, result: ToolResult) -> None:
        """One whose call is no longer part of the conversation is on record, and not sent."""
        self._journal.append(ResultRecord(result))
        join(self._messages, result, now())

    def compact(self, summary: str, kept: Sequence[Message], usage: Usage) -> bool:
        """Replace everything before what is kept by a summary. The log keeps the original.

        False, and nothing is done, when what is to be kept is no longer there: somebody has replaced it meanwhile.
        """
        cut = next((at for at, message in enumerate(self._messages) if message is kept[0]), -1)
        if cut < 0:
            return False
        tail, tokens = self._messages[cut:], estimated_tokens(self._messages)
        if first := self._entry_of(tail):
            self._journal.append(CompactionRecord(summary, first, tokens, usage))
        else:  # it begins within what was put in place of others, which is one entry
            short = (summary_message(summary, now()), *map(_past, tail))
            self._journal.append(ReplacementRecord(short, tokens, usage=usage))
        self.usage += usage
        self.reload()
        return True

    def replace(self, messages: Sequence[Message], extension: str) -> None:
        """Go on with these in place of everything before. The log keeps the original.

        Calls and results are paired. What is under way stays, since its results are still to come.
        """
        fit = self._fit(messages)
        self._journal.append(ReplacementRecord(tuple(fit), estimated_tokens(self._messages), extension))
        self._messages = fit

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
        """The log entry with which the tail of the conversation begins; empty when it has none of its own."""
        spoken = sum(not isinstance(message, ToolMessage) for message in tail)
        branch = self.log.branch()
        replaced = [at for at, entry in enumerate(branch) if entry.type == ReplacementRecord.TYPE]
        since = branch[replaced[-1] + 1 :] if replaced else branch
        entries = [entry.id for entry in since if entry.type == MessageRecord.TYPE]
        return entries[-spoken] if 0 < spoken <= len(entries) else ""

    def _fit(self, messages: Sequence[Message]) -> list[Message]:
        given = [_past(message) for message in messages if not _empty(message)]
        at, waiting = self._under_way()
        if not waiting:
            return pair_calls(given)
        if not any(call.id in waiting for message in given for call in tool_calls(message)):
            given += self._messages[at : at + 2] if len(self._messages) > at + 1 else self._messages[at:]
        paired: list[Message] = []
        for message in pair_calls(given):
            if isinstance(message, ToolMessage):
                known = tuple(result for result in message.results if result.call_id not in waiting)
                paired += [structs.replace(message, results=known)] if known else []
            else:
                paired.append(message)
        return paired

    def _under_way(self) -> tuple[int, set[str]]:
        """The last message with calls, and those of them that have no result yet."""
        for at in range(len(self._messages) - 1, -1, -1):
            if calls := tool_calls(self._messages[at]):
                answers = self._messages[at + 1] if at + 1 < len(self._messages) else None
                known = {result.call_id for result in answers.results} if isinstance(answers, ToolMessage) else set()
                return at, {call.id for call in calls} - known
        return 0, set()


def _empty(message: Message) -> bool:
    return not (message.results if isinstance(message, ToolMessage) else message.content)


def _past(message: Message) -> Message:
    """What it used was counted when it was said; of how full the window is it tells nothing any more."""
    return structs.replace(message, usage=Usage()) if isinstance(message, AssistantMessage) else message
