"""What an extension may do through the host, whatever dialect it speaks: the one place that says what needs which
permission, and in what words it is refused.

Knows values, not wires: actions, verdicts, events, contributions. What the host's services need is in their own table
(`services.table`). What files, programs and hosts it can reach is the sandbox's business; what the permissions are is
`packages.permissions`'.
"""

from collections.abc import Mapping
from types import MappingProxyType

from hilt.errors import ExtensionError
from hilt.model.actions import (
    Abort,
    Action,
    AttachImage,
    DetachImage,
    Insert,
    Prompt,
    Quit,
    Rename,
    SendMessage,
    SetInput,
    Steer,
    Submit,
    ToolPrompt,
)
from hilt.model.contributions import (
    Compactor,
    Contribution,
    InputTransformer,
    Interceptor,
    MessageHook,
    ModelSource,
    PromptSection,
    ResultInterceptor,
    ToolOutput,
)
from hilt.model.verdicts import Block, Interceptable, Question, ReplaceText, Rewrite, SystemPrompt, Verdict
from hilt.packages.permissions import Permissions, meaning

READ, WRITE = "conversation:read", "conversation:write"
SUBMIT = "ui:submit"
CALL = "tools:call"
FILES_READ, FILES_WRITE = "fs.read", "fs.write"

_SAID = frozenset(
    {
        "user_prompt_submit",
        "assistant_message",
        "before_agent_start",
        "tool_result",
        "tool_confirmation_requested",
        "EventPromptBuild",
        "EventMessagePre",
        "EventStreamDelta",
        "EventStreamDone",
        "EventToolUpdate",
        "EventToolEnd",
        "EventTurnEnd",
        "EventAgentEnd",
    }
)
"""Events of either dialect, observed or intercepted, that carry what was said. A tool's result is part of that: often
it is a file. So is what the user is shown before a change: it has the lines that would go."""

_WORDED: Mapping[Interceptable, str] = MappingProxyType({"assistant_message": WRITE, "before_agent_start": WRITE})
"""Where deciding at all, be it by a refusal or by not answering, changes the conversation."""

_TOLD_TOPICS = frozenset({"bash.tail"})
"""Topics on which hilt itself publishes what tools return."""


class Capabilities:
    """What one extension was granted. Every refusal says which permission is missing and how to grant it."""

    def __init__(self, permissions: Permissions, name: str) -> None:
        self._permissions = permissions
        self._name = name

    def allows(self, permission: str, *, asking: bool = False) -> bool:
        """Whether it may do this one thing. `asking` the host for it is more than being told of what happens: without
        a list of permissions it takes a consent that speaks of full access."""
        return self._permissions.may_ask(permission) if asking else self._permissions.allows(permission)

    def require(self, *permissions: str) -> None:
        """Raises `ExtensionError` for the first that it lacks."""
        if refusal := self.refusal(*permissions):
            raise ExtensionError(self._name, refusal)

    def refusal(self, *permissions: str, asking: bool = False) -> str:
        """Why it may not do what needs all of these; empty if it may. The same words each time."""
        for permission in permissions:
            if not self.allows(permission, asking=asking):
                denied = f"permission denied: {self._name} may not {meaning(permission)}"
                return f"{denied}: {self._lack(permission)} (hilt ext grant {self._name} {permission})"
        return ""

    def _lack(self, permission: str) -> str:
        mine = self._permissions
        if mine.full and not mine.consented and permission not in mine.revoked:
            return "its manifest has no list of permissions, and nobody has agreed to full access"
        return f'it lacks "{permission}"'


def needed_to_do(action: Action) -> tuple[str, ...]:
    """To have it done without the user: whatever types for them, ends what they do, or runs a tool. Showing something
    needs nothing."""
    match action:
        case Submit() | Prompt() | Insert() | SendMessage() | Steer() | SetInput() | AttachImage() | DetachImage():
            return (SUBMIT,)
        case Abort() | Quit():
            return (SUBMIT,)
        case ToolPrompt():
            return (CALL, SUBMIT)
        case Rename():
            return (WRITE,)
        case _:
            return ()


def needed_to_hear(event: str) -> tuple[str, ...]:
    """To be told of it, or to be asked about it. Guards of tool calls need nothing."""
    return (READ,) if event in _SAID else ()


def needed_to_follow(topic: str) -> tuple[str, ...]:
    """To be told what is published on a topic. What extensions tell each other is theirs to tell."""
    return (READ,) if topic in _TOLD_TOPICS else ()


def needed_to_offer(contribution: Contribution) -> tuple[str, ...]:
    """For it to be used. A tool, a command and a shortcut wait until they are called."""
    match contribution:
        case MessageHook() | InputTransformer() | Compactor():
            return (READ, WRITE)
        case ModelSource():
            return (READ, WRITE, CALL)  # whoever answers as the model says which tools are called
        case ResultInterceptor():
            return (READ,)
        case Interceptor(event=event):
            return needed_to_hear(event)
        case PromptSection():
            return (WRITE,)
        case _:
            return ()


def needed_to_amend(result: ToolOutput, amended: ToolOutput) -> tuple[str, ...]:
    """For a result interceptor's answer to count. Details are facts for screens, which the model never sees."""
    same = (result.content, result.is_error) == (amended.content, amended.is_error)
    return () if same else (WRITE,)


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
