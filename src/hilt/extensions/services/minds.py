"""Models at work for whoever asks, beside the conversation."""

from hilt.errors import BudgetSpent, HiltError, ProviderError, ServiceFault
from hilt.extensions.capabilities import CALL
from hilt.extensions.services.asking import LONG, Asker, Backing, Service, Table, invalid
from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, Message, Usage, now, user_text
from hilt.model.services import AgentTask, ChatRequest
from hilt.wire.faults import INTERNAL
from hilt.wire.jsonrpc_services import (
    AgentRun,
    AgentRunResult,
    Chat,
    ChatMessage,
    ChatResult,
    IsBackgroundRunningResult,
    RunBackground,
    TokenUsage,
)
from hilt.wire.jsonrpc_types import Empty

_TURNS = 30
_TO_END = 5.0
"""Seconds an agent whose time is over has to say what it has."""


async def chat(backing: Backing, params: Chat, asker: Asker) -> ChatResult:
    if not params.messages:
        raise invalid("chat: messages must not be empty")
    messages = tuple(map(_message, params.messages))
    request = ChatRequest(messages, params.system, params.model, max(params.max_tokens, 0))
    try:
        reply = await backing.facilities.minds.chat(request, asker.name)
    except BudgetSpent as error:
        raise ServiceFault(INTERNAL, f"chat: {error.message}") from error
    except HiltError as error:
        stage = "chat error" if isinstance(error, ProviderError) else "resolve provider"
        raise ServiceFault(INTERNAL, f"{stage}: {error.message}", hint=error.hint) from error
    return ChatResult(reply.text, _used(reply.usage))


def _message(said: ChatMessage) -> Message:
    if said.role == "assistant":
        return AssistantMessage((Text(said.content),), now())
    return user_text(said.content)


def _used(usage: Usage) -> TokenUsage:
    return TokenUsage(usage.input + usage.cache_read + usage.cache_write, usage.output)


async def run(backing: Backing, params: AgentRun, asker: Asker) -> AgentRunResult:
    if not params.task:
        raise invalid("agent.run: task must not be empty")
    task = AgentTask(
        params.task,
        params.system,
        "all" if params.tools == "all" else "background_safe",
        params.model,
        params.max_turns if params.max_turns > 0 else _TURNS,
        LONG,
    )
    report = await backing.facilities.minds.run(task, asker.name)
    return AgentRunResult(report.text, report.turns, _used(report.usage), report.error)


async def run_background(backing: Backing, params: RunBackground, asker: Asker) -> Empty:
    if not params.prompt:
        raise invalid("runBackground: prompt must not be empty")
    await backing.facilities.minds.start(params.prompt, asker.name)
    return Empty()


async def cancel_background(backing: Backing, _: Empty, __: Asker) -> Empty:
    backing.facilities.minds.cancel()
    return Empty()


async def is_background_running(backing: Backing, _: Empty, __: Asker) -> IsBackgroundRunningResult:
    return IsBackgroundRunningResult(backing.facilities.minds.running())


SERVICES: Table = {
    "host/chat": Service(chat, seconds=LONG),
    "host/agent.run": Service(run, (CALL,), LONG + _TO_END, failing="agent"),
    "host/runBackground": Service(run_background, (CALL,), failing="run background"),
    "host/cancelBackground": Service(cancel_background, (CALL,)),
    "host/isBackgroundRunning": Service(is_background_running),
}
