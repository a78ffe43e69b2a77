"""What was said, as it is sent to the model, and how the agent goes on with it."""

from hilt.errors import ServiceFault
from hilt.extensions.capabilities import READ, SUBMIT, WRITE
from hilt.extensions.services.asking import USUAL, Asker, Backing, Service, Table
from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, Message
from hilt.wire.faults import INVALID_REQUEST
from hilt.wire.jsonrpc_light import light
from hilt.wire.jsonrpc_messages import bare, read_messages
from hilt.wire.jsonrpc_provider import tool_definition
from hilt.wire.jsonrpc_services import (
    ConversationMessagesResult,
    HasCompactorResult,
    LastAssistantTextResult,
    LlmSnapshotResult,
    SetConversationMessages,
    ToggleStepModeResult,
    TriggerCompactResult,
)
from hilt.wire.jsonrpc_types import Empty


async def messages(backing: Backing, _: Empty, __: Asker) -> ConversationMessagesResult:
    return ConversationMessagesResult(light(bare(backing.facilities.conversation.messages())))


async def set_messages(backing: Backing, params: SetConversationMessages, asker: Asker) -> Empty:
    """All of them or none: a message that cannot be read would be lost without anyone's knowing."""
    wanted, problems = read_messages(params.messages, backing.facilities.conversation.messages())
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ServiceFault(INVALID_REQUEST, f"setConversationMessages: {problems[0]}{more}")
    await backing.facilities.conversation.replace(wanted, asker.name)
    return Empty()


async def llm_snapshot(backing: Backing, _: Empty, __: Asker) -> LlmSnapshotResult:
    snapshot = backing.facilities.conversation.snapshot()
    return LlmSnapshotResult(
        snapshot.system, light(bare(snapshot.messages)), tuple(map(tool_definition, snapshot.tools))
    )


async def last_assistant_text(backing: Backing, _: Empty, __: Asker) -> LastAssistantTextResult:
    said = map(_first_text, reversed(backing.facilities.conversation.messages()))
    return LastAssistantTextResult(next(filter(None, said), ""))


def _first_text(message: Message) -> str:
    if not isinstance(message, AssistantMessage):
        return ""
    return next((block.text for block in message.content if isinstance(block, Text) and block.text), "")


async def wait_for_idle(backing: Backing, _: Empty, __: Asker) -> Empty:
    await backing.facilities.conversation.idle()
    return Empty()


async def has_compactor(backing: Backing, _: Empty, __: Asker) -> HasCompactorResult:
    return HasCompactorResult(backing.facilities.conversation.has_compactor())


async def trigger_compact(backing: Backing, _: Empty, __: Asker) -> TriggerCompactResult:
    # Between turns: it has the usual time to get there, and then as much to do it.
    compacted = await backing.facilities.conversation.compact()
    return TriggerCompactResult(compacted.before, compacted.after)


async def toggle_step_mode(backing: Backing, _: Empty, asker: Asker) -> ToggleStepModeResult:
    return ToggleStepModeResult(await backing.facilities.conversation.toggle_step(asker.name))


SERVICES: Table = {
    "host/conversationMessages": Service(messages, (READ,)),
    "host/setConversationMessages": Service(set_messages, (WRITE,), unreadable=INVALID_REQUEST),
    "host/llmSnapshot": Service(llm_snapshot, (READ,)),
    "host/lastAssistantText": Service(last_assistant_text, (READ,)),
    "host/waitForIdle": Service(wait_for_idle, seconds=None),
    "host/hasCompactor": Service(has_compactor),
    "host/triggerCompact": Service(trigger_compact, (WRITE,), 2 * USUAL, failing="compact failed"),
    "host/toggleStepMode": Service(toggle_step_mode, (SUBMIT,)),
}
