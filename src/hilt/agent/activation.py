"""Tools the model knows by name only until they are activated: until then their schemas cost nothing."""

from collections.abc import Iterable

from hilt.model.contributions import Effect, Invocation, Tool, ToolOutput
from hilt.model.stream import ToolSpec
from hilt.registry.snapshot import Snapshot

ACTIVATE = "activate_tools"
_SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
    "required": ["names"],
    "additionalProperties": False,
}


class Activation:
    """Which deferred tools are active, for as long as the session runs."""

    def __init__(self) -> None:
        self._active: set[str] = set()

    def offered(self, snapshot: Snapshot) -> tuple[ToolSpec, ...]:
        """What the model is shown: active tools whole, the others by name and one line within the tool for them."""
        tools = [owned.tool for owned in snapshot.tools.values() if self._shown(owned.tool)]
        if activator := self.tool(snapshot, ACTIVATE):
            tools.append(activator)
        return tuple(ToolSpec(tool.name, tool.description, tool.schema) for tool in tools)

    def instructions(self, snapshot: Snapshot) -> Iterable[str]:
        """What the tools that are shown want the model to know, each once."""
        shown = (owned.tool for owned in snapshot.tools.values() if self._shown(owned.tool))
        return dict.fromkeys(tool.instructions for tool in shown if tool.instructions)

    def tool(self, snapshot: Snapshot, name: str) -> Tool | None:
        """The tool that activates others, when there are some and nobody else has its name."""
        waiting = [owned.tool for owned in snapshot.tools.values() if self._waits(owned.tool)]
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

    def used(self, tool: Tool) -> None:
        """The model called it without asking: from now on it may as well see what it calls."""
        if tool.exposure == "deferred":
            self._active.add(tool.name)

    def _shown(self, tool: Tool) -> bool:
        return tool.exposure in ("direct", "model-only") or (tool.exposure == "deferred" and tool.name in self._active)

    def _waits(self, tool: Tool) -> bool:
        return tool.exposure == "deferred" and tool.name not in self._active


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= 120 else first[:119] + "…"
