"""What an extension's answer to a command or an interception asks for, as values."""

from typing import TypeAlias, assert_never

from msgspec import UNSET, Struct

from hilt.errors import FrameError
from hilt.model.actions import Display, Insert, Noop, OpenPanel, Prompt, ToolPrompt
from hilt.model.extensions import Panel
from hilt.model.verdicts import Allow, Block, Interceptable, ReplaceText, Rewrite, SystemPrompt, Verdict
from hilt.wire.frames_types import CommandResponse, EventInterceptResponse, PanelSpec
from hilt.wire.freeform import unpack_object
from hilt.wire.limits import SYSTEM_PROMPT_LIMIT
from hilt.wire.line import Malformed

TOOL_CALL_REFUSED = "tool call refused by extension guard"
TURN_BLOCKED = "turn blocked by extension guard"
MESSAGE_SUPPRESSED = "message suppressed by extension guard"
"""Said when a guard blocks without a reason of its own."""


class CommandFailed(Struct, frozen=True):
    """The extension reports a failure, or its answer cannot be carried out."""

    message: str


CommandAnswer: TypeAlias = Prompt | Insert | Display | Noop | OpenPanel | ToolPrompt | CommandFailed


def command_answer(response: CommandResponse) -> CommandAnswer:
    if response.error:
        return CommandFailed(response.error)
    match response.action:
        case "" | "noop":
            return Noop()
        case "prompt":
            return Prompt(response.prompt) if response.prompt.strip() else Noop()
        case "insert":
            return Insert(response.insert)
        case "display":
            return Display(response.display)
        case "open_panel":
            return Noop() if response.open_panel is UNSET else OpenPanel(panel(response.open_panel))
        case "tool_prompt":
            return _tool_prompt(response)
        case unknown:
            return CommandFailed(f"unknown action {unknown[:64]}")


def panel(spec: PanelSpec) -> Panel:
    return Panel(spec.id, spec.title, spec.lines, spec.footer)


def verdict(response: EventInterceptResponse, event: Interceptable) -> Verdict | Malformed:
    """What the interceptor decided about this event; `Malformed` is an answer nobody can act on.

    Fields that belong to other events are ignored, and a refusal outweighs a rewrite.
    """
    match event:
        case "tool_call":
            return Block(response.reason or TOOL_CALL_REFUSED) if response.block else _rewrite(response)
        case "turn_start":
            return Block(response.reason or TURN_BLOCKED) if response.block else Allow()
        case "assistant_message":
            if response.block:
                return Block(response.reason or MESSAGE_SUPPRESSED)
            return ReplaceText(response.replace_text) if response.replace_text else Allow()
        case "before_agent_start":
            return _system_prompt(response)  # `block` has no meaning here
        case never:
            assert_never(never)


def _tool_prompt(response: CommandResponse) -> ToolPrompt | CommandFailed:
    if not response.tool_name:
        return CommandFailed("tool_prompt without a tool_name")
    try:
        return ToolPrompt(response.tool_name, unpack_object(response.tool_args), response.prompt)
    except FrameError as error:
        return CommandFailed(f"tool_args: {error.message}")


def _rewrite(response: EventInterceptResponse) -> Allow | Rewrite | Malformed:
    if response.modified_args is UNSET:
        return Allow()
    try:
        return Rewrite(unpack_object(response.modified_args))
    except FrameError as error:
        return _unusable(response, f"modified_args: {error.message}")


def _system_prompt(response: EventInterceptResponse) -> Allow | SystemPrompt | Malformed:
    if response.system_prompt is UNSET:
        return Allow()
    size = len(response.system_prompt.encode())
    if size > SYSTEM_PROMPT_LIMIT:
        return _unusable(response, f"system_prompt has {size:,} bytes; {SYSTEM_PROMPT_LIMIT:,} is the limit")
    return SystemPrompt(response.system_prompt)


def _unusable(response: EventInterceptResponse, reason: str) -> Malformed:
    return Malformed(reason, "event_intercept_response", response.id)
