"""The agent that embedded extensions see: what they want shown or said is told to the embedding program as events.

Owns what extensions show (notes, panels, words in a status line) for as long as the host runs. What only hilt's own
session can do, such as switching its model, is refused.
"""

from collections.abc import Awaitable, Callable

from hilt.agent.activation import Activation
from hilt.agent.applying import show
from hilt.agent.bus import Bus
from hilt.agent.foreign import call_for
from hilt.agent.notes import Notes
from hilt.agent.panels import Panels
from hilt.agent.screen import Screen
from hilt.agent.toolcalls import Desk
from hilt.errors import UsageError
from hilt.model.actions import (
    Action,
    AttachImage,
    ClearNotes,
    CloseOverlay,
    ClosePanel,
    DetachImage,
    Display,
    Insert,
    Noop,
    Notify,
    OpenPanel,
    Prompt,
    Quit,
    RenderPanel,
    Revive,
    SendMessage,
    SetInput,
    SetStatus,
    Settle,
    SetWidget,
    ShowOverlay,
    Steer,
    Submit,
    ToolPrompt,
)
from hilt.model.content import Args, Text, text_of
from hilt.model.contributions import ToolOutput
from hilt.model.events import Displayed, Event, Inserted, PromptSubmitted, QuitAsked
from hilt.model.ports import Extensions

_HINT = "it is embedded in another program, which has no such thing"


class EmbeddedAgent:
    """`source` is always the name of the extension that asks. `extensions`, `desk` and `run` are the host's."""

    def __init__(
        self,
        bus: Bus,
        activation: Activation,
        extensions: Callable[[], Extensions],
        desk: Callable[[str, tuple[str, ...]], Desk],
        run: Callable[[str, str], Awaitable[object]],
    ) -> None:
        self._bus = bus
        self.activation = activation
        self._desk = desk
        self._run = run
        self.panels = Panels(bus, extensions)
        self.notes = Notes(bus)
        self.screen = Screen(bus)

    async def apply(self, actions: tuple[Action, ...], source: str) -> None:
        for action in actions:
            await self._do(action, source)

    async def slash(self, text: str, source: str) -> None:  # noqa: ARG002 - as the port has it
        name, _, args = text.removeprefix("/").partition(" ")
        await self._run(name, args)

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...]) -> ToolOutput:
        desk = self._desk(source, chain)
        return await call_for(desk, name, args, desk.bench.journal)

    async def tell(self, event: Event) -> None:
        await self._bus.emit(event)

    async def _do(self, action: Action, source: str) -> None:
        match action:
            case OpenPanel() | RenderPanel() | ClosePanel() | Notify() | ClearNotes() | Settle() | Revive():
                await show(self, action, source)
            case SetWidget() | ShowOverlay() | CloseOverlay() | SetStatus() | AttachImage() | DetachImage():
                await self.screen.do(action, source)
            case Display(display=text):
                await self._bus.emit(Displayed(source, text))
            case Insert(insert=text):
                await self._bus.emit(Inserted(source, text))
            case SetInput(text=text):
                await self._bus.emit(Inserted(source, text, replace=True))
            case Prompt(prompt=text) | Submit(text=text) | SendMessage(text=text) | Steer(text=text):
                await self._say(text, source)
            case ToolPrompt(tool_name=name, tool_args=args, prompt=prompt):
                output = await self.call_tool(name, args, source, ())
                await self._say("\n\n".join(filter(None, (prompt.strip(), text_of(output.content)))), source)
            case Quit():
                await self._bus.emit(QuitAsked(source))
            case Noop():
                pass
            case _:
                tag = action.__struct_config__.tag
                raise UsageError(f"this host cannot do {tag} for {source}", hint=_HINT)

    async def _say(self, text: str, source: str) -> None:
        if text.strip():
            await self._bus.emit(PromptSubmitted((Text(text),), queued=True, extension=source))
