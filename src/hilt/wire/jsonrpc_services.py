"""Params and results of the host's services, the `host/…` requests: one frozen value each, as in `jsonrpc_types`.

Params have defaults throughout: what may be missing is for the service to say. Results have them only where the
member is left out when there is nothing to say.
"""

from typing import Annotated, Any

from msgspec import field

from hilt.wire.jsonrpc_types import ADDED, Block, Part, ToolDefinition

# Tools


class ListTools(Part, frozen=True):
    filter: str = ""
    """`all` when empty, or `background_safe`."""


class ListedTool(Part, frozen=True):
    name: str
    description: str
    parameters: Any
    deferred: bool = False


class ListToolsResult(Part, frozen=True):
    tools: tuple[ListedTool, ...]


class ExecuteTool(Part, frozen=True):
    name: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    call_id: str = ""


class ExecuteToolResult(Part, frozen=True):
    content: tuple[Block, ...]
    is_error: bool = False
    error_code: str = ""
    error_hint: str = ""


class Described(Part, frozen=True):
    """A tool or a command by name."""

    name: str
    description: str


class ToolDefsResult(Part, frozen=True):
    tools: tuple[Described, ...]


class ActivateTool(Part, frozen=True):
    name: str = ""


class SetToolFilter(Part, frozen=True):
    names: tuple[str, ...] = ()
    """None lifts it."""


# Configuration and keys


class ConfigGet(Part, frozen=True):
    keys: tuple[str, ...] = ()


class ConfigGetResult(Part, frozen=True):
    values: dict[str, Any]
    """Without those that are not set."""


class ConfigReadExtension(Part, frozen=True):
    name: str = ""


class ConfigReadExtensionResult(Part, frozen=True):
    content: str


class AuthGetKey(Part, frozen=True):
    provider: str = ""


class AuthGetKeyResult(Part, frozen=True):
    key: str
    """Empty when there is none."""


# Models at work


class TokenUsage(Part, frozen=True):
    input: int
    output: int


class ChatMessage(Part, frozen=True):
    role: str = ""
    """`assistant`; anything else is the user."""
    content: str = ""


class Chat(Part, frozen=True):
    system: str = ""
    messages: tuple[ChatMessage, ...] = ()
    model: str = ""
    """`default` when empty, `small`, or which one."""
    max_tokens: int = 0


class ChatResult(Part, frozen=True):
    text: str
    usage: TokenUsage


class AgentRun(Part, frozen=True):
    system: str = ""
    task: str = ""
    tools: str = ""
    """`background_safe` when empty, or `all`."""
    model: str = ""
    max_turns: int = 0


class AgentRunResult(Part, frozen=True):
    text: str
    turns: int
    usage: TokenUsage
    error: Annotated[str, ADDED] = ""
    """Why it ended before it was done."""


class RunBackground(Part, frozen=True):
    prompt: str = ""


class IsBackgroundRunningResult(Part, frozen=True):
    running: bool


# The conversation


class ConversationMessagesResult(Part, frozen=True):
    messages: tuple[Any, ...]
    """Bare messages."""


class SetConversationMessages(Part, frozen=True):
    messages: tuple[Any, ...] = ()
    """Wrapped or bare ones; none clears."""


class LlmSnapshotResult(Part, frozen=True):
    system: str
    messages: tuple[Any, ...]
    tools: tuple[ToolDefinition, ...]


class LastAssistantTextResult(Part, frozen=True):
    text: str


# Sessions


class SessionInfo(Part, frozen=True):
    id: str
    title: str
    cwd: str
    created_at: str
    """RFC 3339, to the second."""
    path: str
    parent_id: str = ""


class SessionsResult(Part, frozen=True):
    sessions: tuple[SessionInfo, ...]


class LoadSession(Part, frozen=True):
    path: str = ""


class ForkSessionResult(Part, frozen=True):
    parent_id: str = field(name="parentID")
    message_count: int


class SessionTitleResult(Part, frozen=True):
    title: str


class SetSessionTitle(Part, frozen=True):
    title: str = ""


class SessionStatsResult(Part, frozen=True):
    turn_count: int
    total_input_tokens: int
    total_output_tokens: int
    total_cache_read_tokens: int
    total_cache_write_tokens: int
    total_cost: float
    model: str
    """`provider/id`."""


class AppendSessionEntry(Part, frozen=True):
    kind: str = ""
    data: Any = None


class AppendCustomMessage(Part, frozen=True):
    role: str = ""
    """`assistant`; anything else is the user."""
    content: str = ""


class SetLabel(Part, frozen=True):
    target_id: str = ""
    label: str = ""
    """Empty takes it away."""


class BranchSession(Part, frozen=True):
    entry_id: str = ""


class BranchSessionWithSummary(Part, frozen=True):
    entry_id: str = ""
    summary: str = ""


class EntryInfo(Part, frozen=True):
    id: str
    type: str
    timestamp: str
    children: int
    parent_id: str = ""


class SessionEntryInfosResult(Part, frozen=True):
    entries: tuple[EntryInfo, ...]
    """From the root to where the conversation is."""


class TreeNode(Part, frozen=True):
    id: str
    type: str
    timestamp: str
    children: int
    on_active_path: bool
    depth: int
    parent_id: str = ""
    preview: str = ""
    label: str = ""
    tokens_before: int = 0


class SessionFullTreeResult(Part, frozen=True):
    nodes: tuple[TreeNode, ...]
    """Depth first."""


# The catalogue of models


class AvailableModel(Part, frozen=True):
    id: str
    api: str
    display_name: str
    provider: str
    current: bool
    context_window: int = 0
    max_tokens: int = 0
    reasoning: bool = False
    cost_input: float = 0.0
    cost_output: float = 0.0


class AvailableModelsResult(Part, frozen=True):
    models: tuple[AvailableModel, ...]


class SwitchModel(Part, frozen=True):
    model_id: str = ""
    persist_default: bool = False


class SyncModelsResult(Part, frozen=True):
    updated: int


class ModelOverride(Part, frozen=True):
    name: str | None = None
    context_window: int | None = None
    max_tokens: int | None = None


class WriteModels(Part, frozen=True):
    overrides: dict[str, ModelOverride] = field(default_factory=dict)
    """By `provider/id`."""


class WriteModelsResult(Part, frozen=True):
    models_written: int


# Asking the user, and control


class PickerItem(Part, frozen=True):
    id: str = ""
    label: str = ""
    desc: str = ""


class ShowPicker(Part, frozen=True):
    title: str = ""
    items: tuple[PickerItem, ...] = ()


class ShowPickerResult(Part, frozen=True):
    selected: str
    """The item's id; empty when it was dismissed."""
    cancelled: bool = False
    """It was dismissed, or there is nobody who could pick. Sent only then: the reference has no word for it."""


class AskUser(Part, frozen=True):
    prompt: str = ""
    choices: tuple[str, ...] = ()


class AskUserResult(Part, frozen=True):
    selected: str
    cancelled: bool


class ToggleStepModeResult(Part, frozen=True):
    on: bool


class HasCompactorResult(Part, frozen=True):
    present: bool


class TriggerCompactResult(Part, frozen=True):
    before: int
    after: int
    """Messages."""


# What is registered


class CommandsResult(Part, frozen=True):
    commands: tuple[Described, ...]


class ShortcutInfo(Part, frozen=True):
    description: str


class ShortcutsResult(Part, frozen=True):
    shortcuts: dict[str, ShortcutInfo]
    """By key."""


class SectionInfo(Part, frozen=True):
    title: str
    token_hint: int = 0


class PromptSectionsResult(Part, frozen=True):
    sections: tuple[SectionInfo, ...]


class ExtensionInfo(Part, frozen=True):
    name: str
    kind: str
    """`builtin` or `external`."""
    version: str = ""
    runtime: str = ""
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    interceptors: tuple[str, ...] = ()
    event_handlers: tuple[str, ...] = ()
    shortcuts: tuple[str, ...] = ()
    message_hooks: tuple[str, ...] = ()
    compactor: str = ""


class ExtInfosResult(Part, frozen=True):
    extensions: tuple[ExtensionInfo, ...]


class ExtensionsDirResult(Part, frozen=True):
    path: str


# Undo


class UndoSnapshotsResult(Part, frozen=True):
    snapshots: dict[str, int]
    """Path to size in bytes."""


class UndoRestore(Part, frozen=True):
    path: str = ""


# The bus


class Publish(Part, frozen=True):
    topic: str = ""
    data: Any = None


class Subscribe(Part, frozen=True):
    topic: str = ""


class SubscribeResult(Part, frozen=True):
    subscription_id: int


class Unsubscribe(Part, frozen=True):
    subscription_id: int = 0
