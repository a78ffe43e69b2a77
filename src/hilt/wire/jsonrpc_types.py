"""What the messages of the jsonrpc dialect carry: opening and end, registrations, callbacks, notices.

One frozen value for the params and one for the result of each method; `jsonrpc_services` has those of the host's
services and `jsonrpc_methods` the table of all. Owns spelling, order and what is left out: a member with a default
is absent while it holds that default, one without is always there. What extensions send has defaults throughout,
for they leave out what they please; whether a name may be empty is the host's business.

The types are exact on purpose: other spellings are for `jsonrpc_reading`. `ADDED` marks what hilt adds.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

PROTOCOL_VERSION = "5"

HOST_CAPABILITIES = (
    "panel/open",
    "panel/render",
    "panel/close",
    "tool/progress",
    "interceptor/event",
    "interceptor/content",
    "register/late",
    "register/models",
    "host/unsubscribe",
    "setStatus",
)
"""What `initialize.params.capabilities` announces beyond the reference. `interceptor/content`: `interceptor/after`
carries the result itself; `register/late`: registrations count at any time; `register/models`: a provider may
bring models of its own."""

ADDED = Meta(extra_json_schema={"x-hilt-added": True})


class Part(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """Params, a result, or an object inside one."""


class Empty(Part, frozen=True):
    """Nothing to say: `{}`."""


# Parts shared by several methods


class Block(Part, frozen=True):
    """A piece of a tool's result. `type` is `text` or `image`; others are shown as unknown."""

    type: str = ""
    text: str = ""
    data: str = ""
    """Base64 with padding."""
    mime: str = ""
    index: Annotated[int | UnsetType, ADDED] = UNSET
    """Of an image too large to send: which block of the result it is. Sent back, it stands for that one."""


class Action(Part, frozen=True):
    """What the host should do, as the answer to an event or a shortcut."""

    type: str = ""
    payload: Any = None


class Cost(Part, frozen=True, omit_defaults=False):
    """US dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


# Opening and end


class Initialize(Part, frozen=True):
    """The first line of the host."""

    protocol_version: str
    cwd: str
    """The project's directory; the process runs in the extension's own."""
    config_dir: str = ""
    capabilities: Annotated[tuple[str, ...], ADDED] = ()
    host: Annotated[str, ADDED] = ""
    host_version: Annotated[str, ADDED] = ""


class InitializeResult(Part, frozen=True):
    """The registrations that came before it are complete."""

    name: str = ""
    version: str = ""


class CancelRequest(Part, frozen=True):
    """Nobody waits for the answer to this request of the sender's any more."""

    id: int


# Registrations


class RegisterTool(Part, frozen=True):
    name: str = ""
    description: str = ""
    parameters: Any = None
    """JSON Schema of the arguments."""
    prompt_hint: str = ""
    deferred: bool = False
    interrupt_behavior: str = ""
    """`cancel` when empty; `block` keeps it running when the turn is interrupted."""


class RegisterCommand(Part, frozen=True):
    name: str = ""
    """Without the slash."""
    description: str = ""
    immediate: bool = False
    """It may run beside a turn."""


class RegisterPromptSection(Part, frozen=True):
    title: str = ""
    content: str = ""
    order: int = 0
    token_hint: int = 0


class RegisterInterceptor(Part, frozen=True):
    name: str = ""
    priority: int = 0
    events: Annotated[tuple[str, ...] | UnsetType, ADDED] = UNSET
    """Of `tool_call`, `turn_start`, `assistant_message`, `before_agent_start`; absent means `tool_call`."""


class RegisterEventHandler(Part, frozen=True):
    name: str = ""
    priority: int = 0
    events: tuple[str, ...] = ()
    """None means all."""


class RegisterShortcut(Part, frozen=True):
    key: str = ""
    description: str = ""


class RegisterMessageHook(Part, frozen=True):
    name: str = ""
    priority: int = 0


class RegisterInputTransformer(Part, frozen=True):
    name: str = ""
    priority: int = 0


class RegisterCompactor(Part, frozen=True):
    name: str = ""
    threshold: int = 0
    """Tokens."""


class ProviderModel(Part, frozen=True):
    """A model that nobody but the provider knows."""

    id: str = ""
    name: str = ""
    context_window: int = 0
    max_tokens: int = 0
    reasoning: bool = False
    cost: Cost = Cost()


class RegisterProvider(Part, frozen=True):
    api: str = ""
    models: Annotated[tuple[ProviderModel, ...], ADDED] = ()


# Callbacks


class ToolExecute(Part, frozen=True):
    call_id: str
    name: str
    args: dict[str, Any]
    """`{}` when the model gave none."""


class ToolExecuteResult(Part, frozen=True):
    content: tuple[Block, ...] = ()
    is_error: bool = False
    error_code: str = ""
    """Such as `FILE_NOT_FOUND`."""
    error_hint: str = ""


class CommandExecute(Part, frozen=True):
    name: str
    args: str


class InterceptorBefore(Part, frozen=True):
    """May this tool be called so?"""

    name: str
    """Which of the extension's interceptors is meant."""
    tool_name: str
    args: dict[str, Any]
    """As rewritten so far."""
    call_id: Annotated[str, ADDED] = ""
    origin: Annotated[str, ADDED] = ""
    """The extension that started it, when one did."""


class InterceptorBeforeResult(Part, frozen=True):
    allow: bool = False
    args: dict[str, Any] | None = None
    """What to call it with instead."""
    preview: str = ""
    """What the model is told when it is not allowed."""


class InterceptorAfter(Part, frozen=True):
    """This is what the tool returned."""

    name: str
    tool_name: str
    details: Any = None
    """The tool's own facts about its result; when it has none, `{"content": […]}` with the result itself."""
    call_id: Annotated[str, ADDED] = ""
    content: Annotated[tuple[Block, ...], ADDED] = ()
    is_error: Annotated[bool, ADDED] = False


class InterceptorAfterResult(Part, frozen=True):
    details: Any = None
    content: Annotated[Any, ADDED] = None
    """A text or blocks: the result as it shall be. Absent leaves it to `details`."""
    is_error: Annotated[bool | UnsetType, ADDED] = UNSET


class InterceptorEvent(Part, frozen=True):
    """May this happen? For all that can be intercepted beside tool calls."""

    name: str
    event: str
    step: int = 0
    text: str = ""
    system_prompt: str | UnsetType = UNSET
    """Empty is a prompt too, so absence needs a value of its own."""
    session_id: str = ""
    run_id: str = ""
    cwd: str = ""
    provider: str = ""
    model: str = ""


class InterceptorEventResult(Part, frozen=True):
    allow: bool = True
    reason: str = ""
    text: str = ""
    """`assistant_message`: show this instead."""
    system_prompt: str | UnsetType = UNSET
    """`before_agent_start`: use exactly this."""


class EventDispatch(Part, frozen=True):
    """Something happened. What each event carries: `jsonrpc_events`."""

    type: str
    data: dict[str, Any]


class ActionResult(Part, frozen=True):
    action: Action | None = None


class ShortcutHandle(Part, frozen=True):
    key: str


class OnMessage(Part, frozen=True):
    message: str


class OnMessageResult(Part, frozen=True):
    injection: str = ""


class Transform(Part, frozen=True):
    input: str


class TransformResult(Part, frozen=True):
    output: str = ""
    handled: bool = False


class Compact(Part, frozen=True):
    messages: tuple[Any, ...]
    """Wrapped ones: `{"type", "data"}`."""


class CompactResult(Part, frozen=True):
    messages: tuple[Any, ...] = ()


class BusEvent(Part, frozen=True):
    topic: str
    subscription_id: int
    data: Any


# Provider streaming


class StreamModel(Part, frozen=True):
    id: str
    name: str
    api: str
    provider: str
    reasoning: bool
    context_window: int
    max_tokens: int
    cost: Cost
    base_url: str = ""
    headers: dict[str, str] = {}


class ToolDefinition(Part, frozen=True):
    name: str
    description: str
    parameters: Any
    """JSON Schema, or null."""


class StreamOptions(Part, frozen=True):
    temperature: float | UnsetType = UNSET
    max_tokens: int = 0
    thinking: str = ""
    """`off`, `low`, `medium`, `high`."""
    headers: dict[str, str] = {}


class ProviderStream(Part, frozen=True):
    request_id: int
    """What deltas refer to; not the request's own id."""
    model: StreamModel
    system: str
    messages: tuple[Any, ...]
    """Bare messages."""
    options: StreamOptions
    tools: tuple[ToolDefinition, ...] = ()


class ProviderStreamResult(Part, frozen=True):
    message: Any = None
    """A bare assistant message: it alone decides what was said."""
    error: str = ""


class DeltaTool(Part, frozen=True):
    id: str = ""
    name: str = ""
    arguments: str = ""
    """JSON text."""


class ProviderDelta(Part, frozen=True):
    request_id: int = 0
    type: str = ""
    """`text_delta`, `thinking_delta`, `toolcall_delta`, `toolcall_end`, `error`."""
    index: int = 0
    delta: str = ""
    tool: DeltaTool | None = None


# Notices from the extension


class Notify(Part, frozen=True):
    message: str = ""
    level: str = ""


class ShowMessage(Part, frozen=True):
    text: str = ""


class Log(Part, frozen=True):
    level: str = ""
    message: str = ""


class SendMessage(Part, frozen=True):
    content: str = ""


class Steer(Part, frozen=True):
    content: str = ""


class AbortWithMarker(Part, frozen=True):
    reason: str = ""


class SetInputText(Part, frozen=True):
    text: str = ""


class SetWidget(Part, frozen=True):
    key: str = ""
    placement: str = ""
    """`above-input` or `below-status`."""
    content: str = ""


class ShowOverlay(Part, frozen=True):
    key: str = ""
    title: str = ""
    content: str = ""
    anchor: str = ""
    width: str = ""


class CloseOverlay(Part, frozen=True):
    key: str = ""


class SetStatus(Part, frozen=True):
    key: str = ""
    text: str = ""


class ToolProgress(Part, frozen=True):
    """Output of a `tool/execute` that still runs."""

    call_id: str = ""
    text: str = ""


# Panels, spelt as in the frames dialect


class PanelContent(Part, frozen=True):
    """What `panel/open` and `panel/render` show. In a render an empty title keeps the old one."""

    panel_id: str = field(default="", name="panel_id")
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


class PanelClose(Part, frozen=True):
    panel_id: str = field(default="", name="panel_id")


class PanelKey(Part, frozen=True):
    panel_id: str = field(name="panel_id")
    key: str
    text: str = ""
    """The character, when `key` is `rune`."""


class PanelResize(Part, frozen=True):
    panel_id: str = field(name="panel_id")
    width: int
    height: int


class PanelClosed(Part, frozen=True):
    """The user closed it."""

    panel_id: str = field(name="panel_id")
