"""Every frame of the frames dialect, both ways, one frozen value each.

Owns field names, their order on the wire and what is left out when empty. A field with a default
is absent from the line while it holds that default; a field without one is always there. Free-form
JSON stays `Raw` until somebody asks for it (`freeform.unpack`).

The types are exact on purpose: an unknown key or one in other case is an error here, which sends
the line to `frames_repair`. What names and sizes are acceptable is the host's business.
"""

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

PROTOCOL_VERSION = 1

REFERENCE_VERSION = "0.1.62"
"""What `hello_ack.zot_version` states: the version whose behaviour is implemented."""

HOST_CAPABILITIES = (
    "call_tool",
    "host_request",
    "host_notify",
    "ext_request",
    "register",
    "tool_progress",
    "tool_cancel",
)
"""What `hello_ack.capabilities` announces beyond the first version of the protocol."""


class _Part(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An object inside a frame."""


class _Frame(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type"):
    """One line. `type` comes first, `id` second: shell extensions match them as text."""


# Parts shared by several frames


class Block(_Part, frozen=True):
    """A piece of a tool's result. `type` is `text` or `image`; others are shown as unknown."""

    type: str = ""
    text: str = ""
    mime_type: str = ""
    data: str = ""
    """Base64 with padding."""


class PanelSpec(_Part, frozen=True):
    id: str = ""
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


class ResultSummary(_Part, frozen=True):
    """What an observer of tool results is shown; large ones are cut and say so."""

    content: tuple[Block, ...] = ()
    is_error: bool = False
    truncated: bool = False


class HostFault(_Part, frozen=True):
    code: int
    message: str


# From the extension to the host


class Hello(_Frame, frozen=True, tag="hello"):
    """The first line of every extension."""

    name: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()


class RegisterCommand(_Frame, frozen=True, tag="register_command"):
    name: str = ""
    """Without the slash."""
    description: str = ""


class RegisterTool(_Frame, frozen=True, tag="register_tool"):
    name: str = ""
    description: str = ""
    schema: Raw | UnsetType = UNSET
    """JSON Schema of the arguments."""
    output_schema: Raw | UnsetType = UNSET
    namespace: str = ""
    namespace_description: str = ""
    namespace_instructions: str = ""
    exposure: str = ""
    """`direct` when empty."""
    deferred: bool = False
    interactive: bool = False
    """It waits for a person, so it has no deadline."""


class Subscribe(_Frame, frozen=True, tag="subscribe"):
    """Adds to what was subscribed before; there is no way back."""

    events: tuple[str, ...] = ()
    intercept: tuple[str, ...] = ()


class Ready(_Frame, frozen=True, tag="ready"):
    """The first registrations are complete."""


class CommandResponse(_Frame, frozen=True, tag="command_response"):
    """The answer to `command_invoked` and to `shortcut_invoked`."""

    id: str
    action: str = ""
    prompt: str = ""
    insert: str = ""
    display: str = ""
    open_panel: PanelSpec | UnsetType = UNSET
    error: str = ""
    """When not empty, `action` does not count."""
    tool_name: str = ""
    tool_args: Raw | UnsetType = UNSET


class ToolResult(_Frame, frozen=True, tag="tool_result"):
    """The answer to `tool_call`."""

    id: str
    content: tuple[Block, ...] = ()
    is_error: bool = False
    activate_tools: tuple[str, ...] = ()
    structured_content: Raw | UnsetType = UNSET


class EventInterceptResponse(_Frame, frozen=True, tag="event_intercept_response"):
    """The answer to `event_intercept`. With nothing but an id it allows."""

    id: str
    block: bool = False
    reason: str = ""
    modified_args: Raw | UnsetType = UNSET
    replace_text: str = ""
    system_prompt: str | UnsetType = UNSET
    """Empty is a prompt too, so absence needs a value of its own."""


class Notify(_Frame, frozen=True, tag="notify"):
    level: str = ""
    message: str = ""


class ClearNotes(_Frame, frozen=True, tag="clear_notes"):
    pass


class Submit(_Frame, frozen=True, tag="submit"):
    """Ask the model this, as if the user had typed it."""

    text: str = ""


class SubmitSlash(_Frame, frozen=True, tag="submit_slash"):
    text: str = ""


class OpenPanel(_Frame, frozen=True, tag="open_panel"):
    """Open a panel unasked. The key is `panel` here and `open_panel` in a command's answer."""

    panel: PanelSpec | UnsetType = UNSET


class PanelRender(_Frame, frozen=True, tag="panel_render"):
    panel_id: str = ""
    title: str = ""
    """Empty keeps the old one; lines and footer are always replaced."""
    lines: tuple[str, ...] = ()
    footer: str = ""


class ShutdownAck(_Frame, frozen=True, tag="shutdown_ack"):
    pass


class CallTool(_Frame, frozen=True, tag="call_tool"):
    """Run one of the host's tools; answered by `CallResult`."""

    id: str
    name: str = ""
    args: Raw | UnsetType = UNSET
    parent_id: str = ""
    """The `tool_call` this one is part of."""


class CallToolCancel(_Frame, frozen=True, tag="call_tool_cancel"):
    id: str


class HostRequest(_Frame, frozen=True, tag="host_request"):
    """Any `host/…` method of the jsonrpc dialect; answered by `HostResponse`."""

    id: str
    method: str = ""
    params: Raw | UnsetType = UNSET


class Register(_Frame, frozen=True, tag="register"):
    """A contribution of a kind that only the jsonrpc dialect has, with the fields it has there."""

    kind: str = ""
    """See `frames_kinds.KINDS` for the kinds and the field each of them needs."""
    name: str = ""
    title: str = ""
    content: str = ""
    order: int = 0
    token_hint: int = field(default=0, name="tokenHint")
    key: str = ""
    description: str = ""
    priority: int = 0
    threshold: int = 0
    api: str = ""
    models: Raw | UnsetType = UNSET
    """Of a provider: those that nobody else knows."""
    events: tuple[str, ...] | UnsetType = UNSET
    """Of an interceptor or an event handler: which it is for."""


class HostNotify(_Frame, frozen=True, tag="host_notify"):
    """Any notification of the jsonrpc dialect, such as `setWidget`; nobody answers it."""

    method: str = ""
    params: Raw | UnsetType = UNSET


class ExtResponse(_Frame, frozen=True, tag="ext_response"):
    """The answer to `ext_request`: a result, or an error."""

    id: str
    result: Raw | UnsetType = UNSET
    error: HostFault | UnsetType = UNSET


class ToolProgress(_Frame, frozen=True, tag="tool_progress"):
    """Output of a `tool_call` that still runs."""

    id: str
    text: str = ""


# Both ways


class PanelClose(_Frame, frozen=True, tag="panel_close"):
    """From the host: the user closed it. From the extension: close it."""

    panel_id: str = ""


# From the host to the extension


class HelloAck(_Frame, frozen=True, tag="hello_ack", kw_only=True):
    """The first line of the host."""

    protocol_version: int
    capabilities: tuple[str, ...] = ()
    zot_version: str
    provider: str
    model: str
    cwd: str
    extension_dir: str = ""
    data_dir: str = ""
    host: str = ""
    host_version: str = ""


class CommandInvoked(_Frame, frozen=True, tag="command_invoked"):
    id: str
    name: str
    args: str = ""
    """Trimmed at both ends; lines inside are kept."""


class ShortcutInvoked(_Frame, frozen=True, tag="shortcut_invoked"):
    """The user pressed a key that the extension registered; answered by `CommandResponse`."""

    id: str
    key: str


class ToolCall(_Frame, frozen=True, tag="tool_call"):
    id: str
    name: str
    args: Raw
    """Always there, and an object: `{}` when the model gave none."""


class ToolCancel(_Frame, frozen=True, tag="tool_cancel"):
    """The call's answer is no longer wanted."""

    id: str


class Event(_Frame, frozen=True, tag="event"):
    """Something happened. Which fields belong to which event: `frames_events`."""

    event: str
    step: int = 0
    stop: str = ""
    error: str = ""
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Raw | UnsetType = UNSET
    text: str = ""
    # Later additions follow, so that what older extensions match as text begins as it always did.
    tool_args_raw: str = ""
    """What the model wrote, when it was not JSON; `tool_args` is then absent."""
    tool_preview: str = ""
    status: str = ""
    executed: bool = False
    result: ResultSummary | UnsetType = UNSET
    decision: str = ""
    source: str = ""
    stage: str = ""
    reason: str = ""
    queued: bool = False
    image_count: int = 0
    compaction_id: str = ""
    message_count: int = 0
    token_estimate: int = 0
    agent_id: str = ""
    agent_run_id: str = ""
    name: str = ""
    session_id: str = ""
    cwd: str = ""
    sequence: int = 0


class EventIntercept(_Frame, frozen=True, tag="event_intercept"):
    """May this happen? Answered by `EventInterceptResponse`."""

    id: str
    event: str
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Raw | UnsetType = UNSET
    step: int = 0
    text: str = ""
    system_prompt: str | UnsetType = UNSET
    origin_extension: str = ""
    """Who started the call, when an extension did."""
    session_id: str = ""
    agent_run_id: str = ""
    cwd: str = ""
    provider: str = ""
    model: str = ""


class PanelKey(_Frame, frozen=True, tag="panel_key"):
    panel_id: str
    key: str
    text: str = ""
    """The character, when `key` is `rune`."""


class PanelResize(_Frame, frozen=True, tag="panel_resize"):
    panel_id: str
    width: int
    height: int


class CallResult(_Frame, frozen=True, tag="tool_result"):
    """The answer to `call_tool`."""

    id: str
    name: str
    content: tuple[Block, ...]
    is_error: bool = False
    truncated: bool = False


class HostResponse(_Frame, frozen=True, tag="host_response"):
    """The answer to `host_request`: a result, or an error."""

    id: str
    result: Raw | UnsetType = UNSET
    error: HostFault | UnsetType = UNSET


class ExtRequest(_Frame, frozen=True, tag="ext_request"):
    """A callback of the jsonrpc dialect, for what was registered by kind; answered by `ExtResponse`."""

    id: str
    method: str
    params: Raw


class ExtNotify(_Frame, frozen=True, tag="ext_notify"):
    """A notification of the jsonrpc dialect, such as `eventBus/event`."""

    method: str
    params: Raw


class Shutdown(_Frame, frozen=True, tag="shutdown"):
    """The end; the pipe closes right after it."""


ExtensionFrame: TypeAlias = (
    Hello
    | RegisterCommand
    | RegisterTool
    | Subscribe
    | Ready
    | CommandResponse
    | ToolResult
    | EventInterceptResponse
    | Notify
    | ClearNotes
    | Submit
    | SubmitSlash
    | OpenPanel
    | PanelRender
    | PanelClose
    | ShutdownAck
    | CallTool
    | CallToolCancel
    | HostRequest
    | HostNotify
    | ExtResponse
    | Register
    | ToolProgress
)
"""What an extension may send."""

HostFrame: TypeAlias = (
    HelloAck
    | CommandInvoked
    | ShortcutInvoked
    | ToolCall
    | ToolCancel
    | Event
    | EventIntercept
    | PanelKey
    | PanelResize
    | PanelClose
    | CallResult
    | HostResponse
    | ExtRequest
    | ExtNotify
    | Shutdown
)
"""What the host sends."""

Frame: TypeAlias = ExtensionFrame | HostFrame

ANSWERS = (CommandResponse, ToolResult, EventInterceptResponse, ExtResponse)
"""What an extension sends in answer to something. An id counts only together with the kind of answer."""
