"""Short ways to say what the session tests say often."""

from pathlib import Path

from hilt.model.content import AssistantBlock, Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, StopReason, ToolMessage, ToolResult, Usage, now, user_text
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, Meta, ResultRecord, new_meta


def meta(cwd: str = "/home/someone/project") -> Meta:
    return new_meta(cwd, "demo", "demo-1")


def said(text: str) -> MessageRecord:
    return MessageRecord(user_text(text))


def answered(text: str, *calls: str, usage: Usage = Usage(10, 5)) -> MessageRecord:  # noqa: B008 - a frozen value
    content: list[AssistantBlock] = [Text(text)]
    content += [ToolCall(call, "bash", {"command": "true"}) for call in calls]
    stop: StopReason = "tool_use" if calls else "end"
    return MessageRecord(AssistantMessage(tuple(content), now(), "demo", "demo-1", usage, stop))


def resulted(call: str, text: str) -> ResultRecord:
    return ResultRecord(ToolResult(call, "bash", (Text(text),)))


def texts(log: SessionLog) -> list[str]:
    """What each message of the conversation says; a tool message says its results, joined by `|`."""
    return [
        "|".join(text_of(result.content) for result in message.results)
        if isinstance(message, ToolMessage)
        else text_of(message.content)
        for message in log.messages()
    ]


def write_session(path: Path, count: int, size: int = 0) -> list[str]:
    """A closed session of that many messages; the answer is what they say."""
    wanted = [f"message {number}" + "." * size for number in range(count)]
    with SessionLog.create(path, meta(), durability="os") as log:
        for text in wanted:
            log.append(said(text))
    return wanted


def reread(path: Path) -> list[str]:
    with SessionLog.open(path, writable=False) as log:
        return texts(log)
