"""What extensions can ask of an embedded host: their neighbours' tools, the bus, their settings, and a model if there
is one. What there is nothing behind, such as sessions, is refused by name."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from hilt.agent.activation import Activation
from hilt.agent.bus import Bus
from hilt.agent.dialogs import Dialogs
from hilt.agent.toolbox import Toolbox
from hilt.agent.topics import Topics
from hilt.errors import HiltError
from hilt.extensions.services.ports import Facilities
from hilt.home import Home
from hilt.model.conversation import Message
from hilt.model.services import ChatReply, ChatRequest
from hilt.packages.choices import NONE, Choices
from hilt.registry.registry import Registry

Chat: TypeAlias = Callable[[ChatRequest], Awaitable[ChatReply]]
"""One answer of a model, beside the conversation. Raises `HiltError` for what cannot be answered."""


def facilities(
    registry: Registry, activation: Activation, bus: Bus, home: Home, choices: Mapping[str, Choices], chat: Chat | None
) -> Facilities:
    missing: Any = _Absent
    return Facilities(
        tools=Toolbox(registry, activation),
        conversation=_NoConversation("conversation"),
        sessions=missing("sessions"),
        models=missing("models"),
        minds=_Minds("models", chat),
        dialogs=Dialogs(None),
        undo=missing("record of changed files"),
        topics=Topics(bus),
        settings=_Settings(home, choices),
    )


class _Absent:
    """A port with nothing behind it."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._refuse

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise HiltError(f"this host has no {self._what}", hint="it embeds extensions in another program")


class _NoConversation(_Absent):
    def messages(self) -> tuple[Message, ...]:
        return ()


class _Minds(_Absent):
    def __init__(self, what: str, chat: Chat | None) -> None:
        super().__init__(what)
        self._chat = chat

    async def chat(self, request: ChatRequest, source: str) -> ChatReply:  # noqa: ARG002 - as the port has it
        return await self._chat(request) if self._chat else self._refuse()

    def used(self, source: str) -> int:  # noqa: ARG002 - as the port has it
        return 0

    def running(self) -> bool:
        return False


class _Settings(_Absent):
    """Of an extension's own settings only: what else the user configured is hilt's."""

    def __init__(self, home: Home, choices: Mapping[str, Choices]) -> None:
        super().__init__("texts of the user's for extensions")
        self._home = home
        self._choices = choices

    def get(self, keys: Sequence[str], source: str) -> dict[str, Any]:
        own = self._choices.get(source, NONE).settings
        return {key: own[key] for key in keys if key in own}

    def directory(self) -> str:
        return str(self._home.extensions)
