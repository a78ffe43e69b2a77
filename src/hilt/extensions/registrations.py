"""What one process of an extension has registered, and what of that is acceptable: sound, permitted, switched on, and
without anything that cannot be seen."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from msgspec import UNSET, Struct

from hilt.extensions.capabilities import WRITE, Capabilities, needed_to_hear, needed_to_offer
from hilt.extensions.descriptions import cleaned, cleaned_schema, hides, schema_problem, without_nulls
from hilt.extensions.offered import (
    EXPOSURES,
    OfferedCommand,
    OfferedSection,
    OfferedShortcut,
    OfferedTool,
    command_problem,
    shortcut_problem,
    tool_problem,
)
from hilt.extensions.switches import Switches
from hilt.model.actions import Action
from hilt.model.contributions import (
    Command,
    Compactor,
    Contribution,
    Effect,
    Exposure,
    InputTransformer,
    Invocation,
    MessageHook,
    ModelSource,
    PromptSection,
    ResultInterceptor,
    Shortcut,
    Tool,
    ToolOutput,
)
from hilt.model.verdicts import Interceptable
from hilt.wire.freeform import unpack_object

INTERCEPTABLE: tuple[Interceptable, ...] = ("tool_call", "turn_start", "assistant_message", "before_agent_start")
_SECTIONS = 32
_SECTION = 32 * 1024
_SHORTCUTS = 64
_EVENTS = 64
_HINT = 2048
"""Characters."""
_WATCHES = 64
_OFFERS = 16
"""Of each of the other kinds."""
_CHARACTERS = 4
"""Of a token, on average."""
_LISTED = 120
"""Characters that the model reads of a tool that is not active yet, at most."""

Offer: TypeAlias = ResultInterceptor | MessageHook | InputTransformer | Compactor | ModelSource
Kind: TypeAlias = Literal["result", "hook", "transformer", "compactor", "provider"]

_LEFT_OUT: Mapping[Kind, str] = MappingProxyType(
    {
        "result": "it is not shown what tools return",
        "hook": "its message hook is left out",
        "transformer": "its input transformer is left out",
        "compactor": "its compactor is left out",
        "provider": "its provider is left out",
    }
)
"""What follows where a permission is missing."""

_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "hook": "message hook",
        "transformer": "input transformer",
        "compactor": "compactor",
        "provider": "models of",
    }
)


class Watch(Struct, frozen=True):
    """What an extension wants to decide."""

    event: Interceptable
    name: str = ""
    """Of the interceptor, where an extension has several."""
    priority: int | None = None
    """None leaves it to the manifest."""


class Callee(Protocol):
    """The process, as what it registers needs it."""

    async def call_tool(
        self, tool: str, invocation: Invocation, *, interactive: bool, detached: bool = False
    ) -> ToolOutput: ...

    async def run_command(self, command: str, args: str) -> tuple[Action, ...]: ...

    async def press(self, key: str) -> tuple[Action, ...]: ...


class Registrations:
    """Each method answers why it refuses, or None. What is registered again replaces what was there."""

    def __init__(
        self, callee: Callee, capabilities: Capabilities, switches: Switches, report: Callable[[str], None]
    ) -> None:
        """`report` is told of what was put right."""
        self._callee = callee
        self._capabilities = capabilities
        self._switches = switches
        self._report = report
        self._tools: dict[str, Tool] = {}
        self._commands: dict[str, Command] = {}
        self._shortcuts: dict[str, Shortcut] = {}
        self._sections: dict[str, PromptSection] = {}
        self._watches: dict[tuple[Interceptable, str], Watch] = {}
        self._offers: dict[tuple[Kind, str], Offer] = {}
        self.events: set[str] = set()
        """What it is told of, as its dialect calls it."""
        self.happenings: frozenset[str] = frozenset()
        """What it is told of by method."""
        self._prompt_tokens: int | None = None
        """As long as nothing is registered that changes it."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    @property
    def watches(self) -> tuple[Watch, ...]:
        return tuple(self._watches.values())

    def watching(self, event: Interceptable, name: str) -> bool:
        return (event, name) in self._watches

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(command.name for command in self._commands.values())

    @property
    def prompt_tokens(self) -> int:
        """About what the model reads of it in every call."""
        if self._prompt_tokens is None:
            length = sum(map(_length, self._tools.values()))
            length += sum(len(one.title) + len(one.content) for one in self._sections.values())
            self._prompt_tokens = length // _CHARACTERS
        return self._prompt_tokens

    @property
    def others(self) -> tuple[str, ...]:
        """What it offers beside tools, commands and guards, in a word or two each."""
        named = [f"section {title}" for title in self._sections]
        named += [f"shortcut {shortcut.key}" for shortcut in self._shortcuts.values()]
        named += [f"{_KINDS[kind]} {name}".rstrip() for kind, name in self._offers if kind != "result"]
        return (*named, *(("events",) if self.events or self.happenings else ()))

    def contributions(self) -> tuple[Contribution, ...]:
        return (
            *self._tools.values(),
            *self._commands.values(),
            *self._shortcuts.values(),
            *self._sections.values(),
            *self._offers.values(),
        )

    def tool(self, offered: OfferedTool) -> str | None:
        if problem := tool_problem(offered, len(self._tools.keys() - {offered.name})):
            return problem
        schema = _schema(offered)
        if problem := schema_problem(schema):
            return f"tool {offered.name}: {problem}"
        if self._switches.off("tool", offered.name):
            return None
        schema = without_nulls(schema)
        visible = cleaned_schema(schema)
        if visible != schema:
            self._report(_taken_out(f"the schema of tool {offered.name}"))
        self._prompt_tokens = None
        self._tools[offered.name] = Tool(
            offered.name,
            self._visible(offered.description, f"the description of tool {offered.name}"),
            visible,
            partial(self._callee.call_tool, offered.name, interactive=offered.interactive, detached=offered.detached),
            Effect.EXECUTE,
            exposure=_exposure(offered),
            interactive=offered.interactive,
            instructions=self._visible(_instructions(offered), f"the instructions of tool {offered.name}"),
            hint=self._visible(offered.hint[:_HINT], f"the hint of tool {offered.name}"),
        )
        return None

    def command(self, offered: OfferedCommand) -> str | None:
        key = offered.name.lower()
        if problem := command_problem(offered, len(self._commands.keys() - {key})):
            return problem
        if hides(offered.name):
            return f"command name {offered.name!a} has invisible characters"
        if self._switches.off("command", key):
            return None

        async def run(args: str) -> tuple[Action, ...]:
            return await self._callee.run_command(offered.name, args)

        described = self._visible(offered.description, f"the description of /{offered.name}")
        self._commands[key] = Command(offered.name, described, run, immediate=offered.immediate)
        return None

    def subscribe(self, events: tuple[str, ...], intercept: tuple[str, ...]) -> str | None:
        asked = set(intercept)
        why = {event: self._capabilities.refusal(*needed_to_hear(event)) for event in (*events, *asked)}
        refused = {event: refusal for event, refusal in why.items() if refusal}
        heard = [event for event in events if event not in refused]
        self.events.update(heard[: _EVENTS - len(self.events)])
        self._keep_watches(Watch(event) for event in INTERCEPTABLE if event in asked - refused.keys())
        problems = list(dict.fromkeys(refused.values()))
        if refused:
            problems.append(f"it is not told of {', '.join(sorted(refused))}")
        if unknown := sorted(asked - set(INTERCEPTABLE)):
            problems.append(f"cannot intercept {', '.join(unknown)[:200]}; there are {', '.join(INTERCEPTABLE)}")
        return "; ".join(problems) or None

    def watch(self, watches: Iterable[Watch]) -> str | None:
        """Interceptors that go by a name."""
        watches = tuple(watches)
        refused = [self._capabilities.refusal(*needed_to_hear(watch.event)) for watch in watches]
        allowed = [watch for watch, refusal in zip(watches, refused, strict=True) if not refusal]
        if len({*self._watches, *((watch.event, watch.name) for watch in allowed)}) > _WATCHES:
            return f"an extension can have {_WATCHES} interceptors"
        self._keep_watches(allowed)
        return next(filter(None, refused), None)

    def _keep_watches(self, watches: Iterable[Watch]) -> None:
        kept = (watch for watch in watches if not self._switches.off("guard", watch.event))
        self._watches |= {(watch.event, watch.name): watch for watch in kept}

    def listen(self, events: Iterable[str]) -> str | None:
        """From now on it is told of these, and of no others."""
        refused = {
            event: refusal for event in events if (refusal := self._capabilities.refusal(*needed_to_hear(event)))
        }
        self.happenings = frozenset(events) - refused.keys()
        if not refused:
            return None
        return f"{next(iter(refused.values()))}; it is not told of {', '.join(sorted(refused))}"

    def offer(self, kind: Kind, name: str, offer: Offer) -> str | None:
        if refusal := self._capabilities.refusal(*needed_to_offer(offer)):
            return f"{refusal}; {_LEFT_OUT[kind]}"
        others = self._offers.keys() - {(kind, name)}
        if sum(other == kind for other, _ in others) >= _OFFERS:
            return f"{kind} {name[:64]!r}: an extension can have {_OFFERS}"
        if kind != "result" and self._switches.off(kind, name or kind):
            return None
        self._offers[kind, name] = offer
        return None

    def section(self, offered: OfferedSection) -> str | None:
        if not offered.title:
            return "prompt section: title is missing"
        shown = repr(offered.title[:64])
        if refusal := self._capabilities.refusal(WRITE):
            return f"{refusal}; prompt section {shown} is left out"
        if len((offered.title + offered.content).encode()) > _SECTION:
            return f"prompt section {shown}: {_SECTION:,} bytes is the limit"
        if len(self._sections.keys() - {offered.title}) >= _SECTIONS:
            return f"prompt section {shown}: an extension can have {_SECTIONS}"
        title = self._visible(offered.title, f"prompt section {shown}")
        if self._switches.off("section", title):
            return None
        content = self._visible(offered.content, f"prompt section {shown}")
        self._prompt_tokens = None
        self._sections[offered.title] = PromptSection(title, content, offered.order, offered.tokens)
        return None

    def shortcut(self, offered: OfferedShortcut) -> str | None:
        if problem := shortcut_problem(offered):
            return problem
        key = offered.key.lower()
        if len(self._shortcuts.keys() - {key}) >= _SHORTCUTS:
            return f"shortcut {offered.key[:64]!r}: an extension can have {_SHORTCUTS}"
        if hides(offered.key):
            return f"shortcut {offered.key[:64]!a} has invisible characters"
        if self._switches.off("shortcut", key):
            return None

        async def run() -> tuple[Action, ...]:
            return await self._callee.press(offered.key)

        described = self._visible(offered.description, f"the description of {offered.key[:64]}")
        self._shortcuts[key] = Shortcut(offered.key, described, run)
        return None

    def _visible(self, text: str, where: str) -> str:
        if hides(text):
            self._report(_taken_out(where))
        return cleaned(text)


def _taken_out(where: str) -> str:
    return f"invisible characters were taken out of {where}: they could have told the model what you cannot see"


def _length(tool: Tool) -> int:
    """Characters that the model is shown of it, as far as that is known here: it may have been activated."""
    match tool.exposure:
        case "codemode":
            return 0
        case "deferred":
            return len(tool.name) + min(len(tool.description), _LISTED)
    told = (tool.name, tool.description, str(tool.schema), tool.instructions, tool.hint)
    return sum(map(len, told))


def _schema(offered: OfferedTool) -> dict[str, object]:
    # A tool without a schema takes anything; models' APIs want an object all the same.
    if offered.schema is UNSET:
        return {"type": "object"}
    return {"type": "object", **unpack_object(offered.schema)}


def _exposure(offered: OfferedTool) -> Exposure:
    if offered.deferred:
        return "deferred"
    for exposure in EXPOSURES:
        if exposure == offered.exposure:
            return exposure
    return "direct"


def _instructions(offered: OfferedTool) -> str:
    told = "\n".join(filter(None, (offered.namespace_description.strip(), offered.namespace_instructions.strip())))
    return f"{offered.namespace}: {told}" if told and offered.namespace else told
