"""What the services need of the agent, by role. `source`, where it makes a difference, is the name of whoever asks.

All of them raise `HiltError` for what cannot be done, with a message for the one who asked. None blocks the loop.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from hilt.model.conversation import Message
from hilt.model.extensions import ExtensionStatus, PickerItem
from hilt.model.services import (
    AgentReport,
    AgentTask,
    ChatReply,
    ChatRequest,
    Compacted,
    Forked,
    LlmSnapshot,
    ModelListing,
    ModelOverride,
    SessionNode,
    SessionRow,
    SessionStats,
    ToolListing,
)


class Tools(Protocol):
    """Calling one is `Agent.call_tool`."""

    def list(self) -> tuple[ToolListing, ...]:
        """All of them, by name."""

    def activate(self, name: str) -> bool:
        """Show a deferred tool whole to the model. False when there is none of that name that is deferred."""

    def narrow(self, names: tuple[str, ...], source: str) -> None:
        """Let the model have these only; none lifts it. Ends with whoever asked for it."""


class Conversation(Protocol):
    def messages(self) -> tuple[Message, ...]: ...

    async def replace(self, messages: Sequence[Message], source: str) -> None:
        """Go on with these in place of all that was said so far; the log keeps both."""

    def snapshot(self) -> LlmSnapshot: ...

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""

    async def compact(self) -> Compacted:
        """Between turns, in its turn."""

    def has_compactor(self) -> bool:
        """Whether an extension offers one."""

    async def toggle_step(self, source: str) -> bool:
        """Have every tool call wait for the user, or no longer. Whether it is so now."""


class Sessions(Protocol):
    """Those on the disk, and the tree of the present one."""

    async def list(self) -> tuple[SessionRow, ...]:
        """Newest first."""

    async def load(self, path: str) -> None:
        """Go on in another one. Only those in hilt's own directory are opened."""

    async def fork(self) -> Forked:
        """Go on in a copy of the present branch."""

    def title(self) -> str:
        """As somebody gave it; empty otherwise."""

    async def set_title(self, title: str) -> None: ...

    def stats(self) -> SessionStats: ...

    def append_entry(self, kind: str, data: Any, source: str) -> None:
        """A record of the extension's own: kept, and no part of the conversation."""

    async def append_message(self, role: str, text: str, source: str) -> None:
        """Something said, in the conversation at once and for good."""

    def set_label(self, target: str, label: str) -> None: ...

    async def branch(self, entry: str, summary: str, source: str) -> None:
        """Go on from another entry; the summary, if there is one, is kept with the branch that was left."""

    async def reset(self, source: str) -> None:
        """Begin an empty conversation in the same session."""

    def path(self) -> tuple[SessionNode, ...]:
        """From the root to where the conversation is."""

    async def tree(self) -> tuple[SessionNode, ...]:
        """All of it, depth first; what leads to the present place comes before its siblings, those oldest first."""


class Models(Protocol):
    def list(self) -> tuple[ModelListing, ...]:
        """By provider and id."""

    async def switch(self, model: str, source: str, *, keep: bool) -> None:
        """`provider/id`; `keep` makes it the default from now on."""

    async def sync(self) -> int:
        """Read the user's file of models again. How many models there are."""

    async def write(self, overrides: Mapping[str, ModelOverride]) -> int:
        """Put these into the user's file of models, by `provider/id`. How many it has then."""

    def provider(self, name: str) -> str:
        """What a provider is called here, however it was written: `gemini` is `google`."""

    def key(self, provider: str) -> str:
        """The API key, or nothing."""


class Minds(Protocol):
    """Models at work beside the conversation. What they use counts towards the session's cost, and towards what this
    source may use."""

    async def chat(self, request: ChatRequest, source: str) -> ChatReply: ...

    async def run(self, task: AgentTask, source: str) -> AgentReport:
        """Ends after the task's `seconds` with what it has. Cancelling it ends what it does."""

    async def start(self, prompt: str, source: str) -> None:
        """In the background; what becomes of it is told to all. Refused while one of the same name runs."""

    def cancel(self) -> None:
        """All that run in the background."""

    def running(self) -> bool: ...

    def used(self, source: str) -> int:
        """Tokens, in this session."""


class Dialogs(Protocol):
    """Asking the user. Where nobody can be asked, the answer is at once that it was dismissed."""

    async def pick(self, title: str, items: tuple[PickerItem, ...], source: str) -> str | None:
        """The id of what was picked; None when it was dismissed."""

    async def ask(self, prompt: str, choices: tuple[str, ...], source: str) -> str | None: ...


class Undo(Protocol):
    def snapshots(self) -> Mapping[str, int]:
        """The files that were changed, and how large each was before its last change."""

    async def restore(self, path: str) -> bool:
        """Put one back as it was before its last change. False when nothing is known of it."""


class Topics(Protocol):
    """Messages among extensions. Publishing waits for nobody."""

    def publish(self, topic: str, data: Any) -> None: ...

    def subscribe(self, topic: str, deliver: Callable[[Any], None]) -> Callable[[], None]:
        """From now on; what is returned ends it. `deliver` must neither block nor raise."""


class Settings(Protocol):
    def get(self, keys: Sequence[str], source: str) -> dict[str, Any]:
        """What the user configured, read anew; keys that are not set are left out, secrets too."""

    def read(self, name: str) -> str:
        """The text an extension's user wrote for it, `<name>.md` in its data directory; empty when there is none."""

    def directory(self) -> str:
        """Where extensions are installed."""


class Registered(Struct, frozen=True):
    """What one extension registered under names that mean something to itself only."""

    runtime: str = ""
    """What runs it, as its manifest says."""
    interceptors: tuple[str, ...] = ()
    event_handlers: tuple[str, ...] = ()
    message_hooks: tuple[str, ...] = ()


class Neighbours(Protocol):
    """All extensions of this host; `extensions.host.RunningExtensions` is one."""

    def statuses(self) -> tuple[ExtensionStatus, ...]: ...

    def registered(self, name: str) -> Registered:
        """Of the extension of this name; nothing when there is none that runs."""


class Facilities(Struct, frozen=True):
    """What the agent offers."""

    tools: Tools
    conversation: Conversation
    sessions: Sessions
    models: Models
    minds: Minds
    dialogs: Dialogs
    undo: Undo
    topics: Topics
    settings: Settings
