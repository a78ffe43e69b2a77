"""What an extension may do through the host, whatever dialect it speaks: the one place that says what needs which
permission, and in what words it is refused.

Knows values, not wires: actions, verdicts, events. What files, programs and hosts it can reach is the sandbox's
business; what the permissions are is `packages.permissions`'.
"""

from collections.abc import Mapping
from types import MappingProxyType

from hilt.errors import ExtensionError
from hilt.model.actions import Action, Insert, Prompt, Submit, ToolPrompt
from hilt.model.verdicts import Block, Interceptable, Question, ReplaceText, Rewrite, SystemPrompt, Verdict
from hilt.packages.permissions import Permissions, meaning

READ, WRITE = "conversation:read", "conversation:write"
SUBMIT = "ui:submit"
CALL = "tools:call"

_SAID = frozenset(
    {"user_prompt_submit", "assistant_message", "before_agent_start", "tool_result", "tool_confirmation_requested"}
)
"""Events, observed or intercepted, that carry what was said. A tool's result is part of that: often it is a file. So is
what the user is shown before a change: it has the lines that would go."""

_WORDED: Mapping[Interceptable, str] = MappingProxyType({"assistant_message": WRITE, "before_agent_start": WRITE})
"""Where deciding at all, be it by a refusal or by not answering, changes the conversation."""


class Capabilities:
    """What one extension was granted. Every refusal says which permission is missing and how to grant it."""

    def __init__(self, permissions: Permissions, name: str) -> None:
        self._permissions = permissions
        self._name = name

    def require(self, *permissions: str) -> None:
        """Raises `ExtensionError` for the first that it lacks."""
        if refusal := self.refusal(*permissions):
            raise ExtensionError(self._name, refusal)

    def refusal(self, *permissions: str) -> str:
        """Why it may not do what needs all of these; empty if it may. The same words each time."""
        for permission in permissions:
            if not self._permissions.allows(permission):
                lacks = f'it lacks "{permission}" (hilt ext grant {self._name} {permission})'
                return f"permission denied: {self._name} may not {meaning(permission)}: {lacks}"
        return ""


def needed_to_do(action: Action) -> tuple[str, ...]:
    """To have it done without the user: whatever types for them, or runs a tool. Showing something needs nothing."""
    match action:
        case Submit() | Prompt() | Insert():
            return (SUBMIT,)
        case ToolPrompt():
            return (CALL, SUBMIT)
        case _:
            return ()


def needed_to_hear(event: str) -> tuple[str, ...]:
    """To be told of it, or to be asked about it. Guards of tool calls need nothing."""
    return (READ,) if event in _SAID else ()


def needed_to_judge(event: Interceptable) -> tuple[str, ...]:
    """For its silence to count there: without it, it is asked, and that is all."""
    return (_WORDED[event],) if event in _WORDED else ()


def needed_to_decide(question: Question, verdict: Verdict) -> tuple[str, ...]:
    """For the verdict to count. Refusing a call or a turn needs nothing, nor does an answer that changes nothing."""
    match verdict:
        case Rewrite(args=args):
            # Whoever chooses what a shell runs is no longer confined to its sandbox.
            return (CALL,) if args != question.tool_args else ()
        case ReplaceText(text=text):
            return (WRITE,) if text != question.text else ()
        case SystemPrompt(text=text):
            return (WRITE,) if text != question.system_prompt else ()
        case Block():
            return needed_to_judge(question.event)
        case _:
            return ()
