"""What the host can be asked for, each service a method: they wait for the answer and return what it says.

Services are those of docs/reference/host-services.md. All take a `timeout` in seconds, after which the request is taken
back; without one they wait as long as the host does. In a coroutine: `await ext.host.aio.chat(…)`.
"""

from __future__ import annotations

from hilt_sdk.values import HostError, NotOffered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from typing import Any

    from hilt_sdk.extension import Extension

    Object = dict[str, Any]


class ChatReply:
    """What a model said beside the conversation."""

    __slots__ = ("text", "usage")

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.text: str = told.get("text") or ""
        self.usage: Object = told.get("usage") or {}
        """Tokens: `input`, `output`."""


class AgentReply(ChatReply):
    """What an agent of its own said, and why it ended before it was done."""

    __slots__ = ("error", "turns")

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(told)
        self.turns: int = told.get("turns") or 0
        self.error: str = told.get("error") or ""


class HostServices:
    def __init__(self, ext: Extension) -> None:
        self._ext = ext

    @property
    def aio(self) -> Aio:
        """The same for coroutines."""
        return Aio(self)

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Any service by its name. Raises `HostError`, `NotOffered`, `NotConnected`, `TimeoutError`."""
        return self._ext._wire().request(method, dict(params or {}), timeout)

    def _ask(self, method: str, timeout: float | None, **params: Any) -> Object:
        """Members that are None are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        told = self.request(f"host/{method}", given, timeout=timeout)
        return told if isinstance(told, dict) else {}

    # Tools

    def list_tools(
        self,
        filter: str = "",  # noqa: A002  # its name there
        *,
        timeout: float | None = None,
    ) -> list[Object]:
        """Those there are, with their parameters; `filter` is `all` or `background_safe`."""
        return self._ask("listTools", timeout, filter=filter or None).get("tools") or []

    def tool_defs(self, *, timeout: float | None = None) -> list[Object]:
        """Names and descriptions of all tools."""
        return self._ask("toolDefs", timeout).get("tools") or []

    def execute_tool(
        self, name: str, args: Mapping[str, Any] | None = None, *, call_id: str = "", timeout: float | None = None
    ) -> Object:
        """Run one, as the service has it; `ext.call_tool` gives a `Result`."""
        return self._ask("executeTool", timeout, name=name, args=dict(args or {}), callId=call_id or None)

    def activate_tool(self, name: str, *, timeout: float | None = None) -> None:
        self._ask("activateTool", timeout, name=name)

    def set_tool_filter(self, names: Sequence[str] | None = None, *, timeout: float | None = None) -> None:
        """The model has these tools only; None lifts it."""
        self._ask("setToolFilter", timeout, names=None if names is None else list(names))

    # Configuration and keys

    def config(self, keys: Sequence[str], *, timeout: float | None = None) -> Object:
        """The values of those that are set."""
        return self._ask("config.get", timeout, keys=list(keys)).get("values") or {}

    def read_extension(self, name: str, *, timeout: float | None = None) -> str:
        """The text `NAME.md` in the data directory of an extension."""
        return str(self._ask("config.readExtension", timeout, name=name).get("content") or "")

    def auth_key(self, provider: str, *, timeout: float | None = None) -> str:
        """Empty when there is none."""
        return str(self._ask("auth.getKey", timeout, provider=provider).get("key") or "")

    def extensions_dir(self, *, timeout: float | None = None) -> str:
        return str(self._ask("extensionsDir", timeout).get("path") or "")

    # Models at work

    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        system: str = "",
        model: str = "",
        max_tokens: int = 0,
        timeout: float | None = None,
    ) -> ChatReply:
        """One answer of a model, beside the conversation."""
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(m) for m in messages]
        told = self._ask(
            "chat", timeout, messages=said, system=system or None, model=model or None, maxTokens=max_tokens or None
        )
        return ChatReply(told)

    def agent_run(
        self,
        task: str,
        *,
        system: str = "",
        tools: str = "",
        model: str = "",
        max_turns: int = 0,
        timeout: float | None = None,
    ) -> AgentReply:
        """An agent of its own that does a task."""
        told = self._ask(
            "agent.run",
            timeout,
            task=task,
            system=system or None,
            tools=tools or None,
            model=model or None,
            maxTurns=max_turns or None,
        )
        return AgentReply(told)

    def run_background(self, prompt: str, *, timeout: float | None = None) -> None:
        self._ask("runBackground", timeout, prompt=prompt)

    def cancel_background(self, *, timeout: float | None = None) -> None:
        self._ask("cancelBackground", timeout)

    def is_background_running(self, *, timeout: float | None = None) -> bool:
        return bool(self._ask("isBackgroundRunning", timeout).get("running"))

    # The conversation

    def conversation_messages(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("conversationMessages", timeout).get("messages") or []

    def set_conversation_messages(
        self, messages: Sequence[Mapping[str, Any]] | None, *, timeout: float | None = None
    ) -> None:
        """Go on with these in place of all that was said; None clears."""
        self._ask("setConversationMessages", timeout, messages=None if messages is None else list(messages))

    def llm_snapshot(self, *, timeout: float | None = None) -> Object:
        """What the model would be sent now: `system`, `messages`, `tools`."""
        return self._ask("llmSnapshot", timeout)

    def last_assistant_text(self, *, timeout: float | None = None) -> str:
        return str(self._ask("lastAssistantText", timeout).get("text") or "")

    def wait_for_idle(self, *, timeout: float | None = None) -> None:
        """Until nothing runs and nothing waits."""
        self._ask("waitForIdle", timeout)

    def has_compactor(self, *, timeout: float | None = None) -> bool:
        return bool(self._ask("hasCompactor", timeout).get("present"))

    def trigger_compact(self, *, timeout: float | None = None) -> Object:
        """Numbers of messages, `before` and `after`."""
        return self._ask("triggerCompact", timeout)

    def toggle_step_mode(self, *, timeout: float | None = None) -> bool:
        return bool(self._ask("toggleStepMode", timeout).get("on"))

    # Sessions

    def sessions(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("sessions", timeout).get("sessions") or []

    def load_session(self, path: str, *, timeout: float | None = None) -> None:
        self._ask("loadSession", timeout, path=path)

    def fork_session(self, *, timeout: float | None = None) -> Object:
        return self._ask("forkSession", timeout)

    def session_title(self, *, timeout: float | None = None) -> str:
        return str(self._ask("sessionTitle", timeout).get("title") or "")

    def set_session_title(self, title: str, *, timeout: float | None = None) -> None:
        self._ask("setSessionTitle", timeout, title=title)

    def session_stats(self, *, timeout: float | None = None) -> Object:
        return self._ask("sessionStats", timeout)

    def append_session_entry(self, kind: str, data: Any = None, *, timeout: float | None = None) -> None:
        """A record of the extension's own, which is no part of the conversation."""
        self._ask("appendSessionEntry", timeout, kind=kind, data=data)

    def append_custom_message(self, content: str, role: str = "user", *, timeout: float | None = None) -> None:
        self._ask("appendCustomMessage", timeout, role=role, content=content)

    def set_label(self, target_id: str, label: str = "", *, timeout: float | None = None) -> None:
        self._ask("setLabel", timeout, targetId=target_id, label=label or None)

    def branch_session(self, entry_id: str, *, timeout: float | None = None) -> None:
        self._ask("branchSession", timeout, entryId=entry_id)

    def branch_session_with_summary(self, entry_id: str, summary: str = "", *, timeout: float | None = None) -> None:
        self._ask("branchSessionWithSummary", timeout, entryId=entry_id, summary=summary or None)

    def reset_session_leaf(self, *, timeout: float | None = None) -> None:
        self._ask("resetSessionLeaf", timeout)

    def session_entry_infos(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("sessionEntryInfos", timeout).get("entries") or []

    def session_full_tree(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("sessionFullTree", timeout).get("nodes") or []

    # The catalogue of models

    def available_models(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("availableModels", timeout).get("models") or []

    def switch_model(self, model_id: str, *, persist: bool = False, timeout: float | None = None) -> None:
        self._ask("switchModel", timeout, modelId=model_id or None, persistDefault=persist or None)

    def sync_models(self, *, timeout: float | None = None) -> int:
        return int(self._ask("syncModels", timeout).get("updated") or 0)

    def write_models(self, overrides: Mapping[str, Any], *, timeout: float | None = None) -> int:
        return int(self._ask("writeModels", timeout, overrides=dict(overrides)).get("modelsWritten") or 0)

    # Asking the user

    def pick(self, title: str, items: Sequence[str | Mapping[str, Any]], *, timeout: float | None = None) -> str | None:
        """Have the user pick one: its id, or None when it was dismissed. A text is its own id."""
        listed = [{"id": item, "label": item} if isinstance(item, str) else dict(item) for item in items]
        told = self._ask("showPicker", timeout, title=title, items=listed)
        return None if told.get("cancelled") or not told.get("selected") else str(told["selected"])

    def ask(self, prompt: str, choices: Sequence[str], *, timeout: float | None = None) -> str | None:
        """Ask the user: the choice, or None when it was dismissed."""
        told = self._ask("askUser", timeout, prompt=prompt, choices=list(choices))
        return None if told.get("cancelled") or not told.get("selected") else str(told["selected"])

    def request_quit(self, *, timeout: float | None = None) -> None:
        self._ask("requestQuit", timeout)

    def abort(self, *, timeout: float | None = None) -> None:
        """Stop what runs, and wait until it has stopped."""
        self._ask("abort", timeout)

    # What is registered

    def commands(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("commands", timeout).get("commands") or []

    def shortcuts(self, *, timeout: float | None = None) -> Object:
        return self._ask("shortcuts", timeout).get("shortcuts") or {}

    def prompt_sections(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("promptSections", timeout).get("sections") or []

    def ext_infos(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("extInfos", timeout).get("extensions") or []

    # Undo

    def undo_snapshots(self, *, timeout: float | None = None) -> Object:
        return self._ask("undoSnapshots", timeout).get("snapshots") or {}

    def undo_restore(self, path: str, *, timeout: float | None = None) -> None:
        self._ask("undoRestore", timeout, path=path)

    # Messages among extensions

    def publish(self, topic: str, data: Any = None, *, timeout: float | None = None) -> None:
        self._ask("publish", timeout, topic=topic, data=data)

    def subscribe(self, topic: str, handler: Callable[[Any], object], *, timeout: float | None = None) -> int:
        """Have the handler called with all that is published from now on. A number for `unsubscribe`."""
        link = self._ext._wire()

        def hear(told: Any) -> None:
            """Before the next line is read, which may be the first of these."""
            if isinstance(told, dict):
                link.topics[told.get("subscriptionId") or 0] = handler

        told = link.request("host/subscribe", {"topic": topic}, timeout, hear)
        return int((told or {}).get("subscriptionId") or 0)

    def unsubscribe(self, subscription: int, *, timeout: float | None = None) -> None:
        """Where the host cannot end it, what comes is dropped."""
        link = self._ext._wire()
        link.topics.pop(subscription, None)
        if link.can("unsubscribe"):
            self._ask("unsubscribe", timeout, subscriptionId=subscription)


class Settings:
    """The extension's own settings, each read from the host when it is asked for."""

    def __init__(self, services: HostServices) -> None:
        self._services = services

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default when it is not set or the host has no settings."""
        try:
            values = self._services.config([key])
        except (HostError, NotOffered):
            return default
        return values.get(key, default)

    def __getitem__(self, key: str) -> Any:
        value = self.get(key, _UNSET)
        if value is _UNSET:
            raise KeyError(key)
        return value

    def __contains__(self, key: str) -> bool:
        return self.get(key, _UNSET) is not _UNSET


_UNSET: Any = object()


class Aio:
    """Methods of something that waits, for coroutines: each returns something to be awaited."""

    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._target, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            import asyncio

            return await asyncio.get_running_loop().run_in_executor(None, lambda: method(*args, **kwargs))

        return call
