"""Which of the tools that there are a model gets to see and may call.

Some it knows by name only until they are activated: until then their schemas cost nothing. And extensions may narrow
the choice for as long as they run.
"""

from collections.abc import Collection, Iterable, Iterator

from hilt.model.contributions import Effect, Invocation, Tool, ToolOutput
from hilt.model.stream import ToolSpec
from hilt.registry.snapshot import Snapshot

ACTIVATE = "activate_tools"
_HINTS = "# Tool usage notes"
_SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
    "required": ["names"],
    "additionalProperties": False,
}


class Activation:
    """Of one model: which deferred tools are active, for as long as it is at work, and what it may have at all.

    One that works beside another, `within` its bounds, has what extensions leave that one too.
    """

    def __init__(self, within: "Activation | None" = None, only: Collection[str] | None = None) -> None:
        self._active: set[str] = set()
        self._filters: dict[str, frozenset[str]] = {} if within is None else within._filters
        self._only = None if only is None else frozenset(only)

    def offered(self, snapshot: Snapshot) -> tuple[ToolSpec, ...]:
        """What the model is shown: active tools whole, the others by name and one line within the tool for them."""
        tools = [*self._shown(snapshot)]
        if activator := self.tool(snapshot, ACTIVATE):
            tools.append(activator)
        return tuple(ToolSpec(tool.name, tool.description, tool.schema) for tool in tools)

    def instructions(self, snapshot: Snapshot) -> Iterator[str]:
        """What the tools that are shown want the model to know: a word on each, and each longer text once."""
        shown = self._shown(snapshot)
        yield from dict.fromkeys(tool.instructions for tool in shown if tool.instructions)
        if hints := [f"- {tool.name}: {' '.join(tool.hint.split())}" for tool in shown if tool.hint.strip()]:
            yield "\n".join((_HINTS, "", *hints))

    def narrow(self, names: Iterable[str], source: str) -> None:
        """Let the model have these only, also those that are offered later; none lifts it."""
        if kept := frozenset(names):
            self._filters[source] = kept
        else:
            self._filters.pop(source, None)

    def bereave(self, source: str) -> None:
        """Whoever narrowed the choice is gone."""
        self._filters.pop(source, None)

    def withheld(self, name: str) -> str:
        """Why the model may not have the tool of this name; empty when it may."""
        if self._only is not None and name not in self._only:
            return "it is not among the tools for this task"
        by = [source for source, kept in self._filters.items() if name not in kept]
        return f"{' and '.join(by)} narrowed the tools to others" if by else ""

    def tool(self, snapshot: Snapshot, name: str) -> Tool | None:
        """The tool that activates others, when there are some and nobody else has its name."""
        waiting = [owned.tool for owned in snapshot.tools.values() if self.waits(owned.tool) and self._free(owned.tool)]
        if name != ACTIVATE or not waiting or name in snapshot.tools:
            return None
        listed = "\n".join(f"- {tool.name}: {_line(tool.description)}" for tool in waiting)
        described = (
            f"Make tools available that are not active yet; they can be called from then on. They are:\n{listed}"
        )

        async def invoke(invocation: Invocation) -> ToolOutput:
            names = [str(one) for one in invocation.args["names"]]
            if unknown := [one for one in names if one not in {tool.name for tool in waiting}]:
                known = ", ".join(tool.name for tool in waiting)
                return ToolOutput.of(
                    f"no inactive tool is called {', '.join(unknown)}; there are {known}", is_error=True
                )
            return ToolOutput.of(f"active now: {', '.join(names)}", activate_tools=names)

        return Tool(ACTIVATE, described, _SCHEMA, invoke, Effect.READ)

    def activate(self, output: ToolOutput) -> None:
        """Whatever the answer of a tool asks to have activated. Names that nobody offers yet may come later."""
        self._active.update(str(name) for name in output.details.get("activate_tools", ()))

    def show(self, name: str) -> None:
        """Have a deferred tool shown whole from now on."""
        self._active.add(name)

    def used(self, tool: Tool) -> None:
        """The model called it without asking: from now on it may as well see what it calls."""
        if tool.exposure == "deferred":
            self.show(tool.name)

    def waits(self, tool: Tool) -> bool:
        """Whether the model knows no more of it than its name."""
        return tool.exposure == "deferred" and tool.name not in self._active

    def _shown(self, snapshot: Snapshot) -> list[Tool]:
        return [
            owned.tool
            for owned in snapshot.tools.values()
            if owned.tool.exposure != "codemode" and not self.waits(owned.tool) and self._free(owned.tool)
        ]

    def _free(self, tool: Tool) -> bool:
        return (not self._filters and self._only is None) or not self.withheld(tool.name)


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= 120 else first[:119] + "…"
