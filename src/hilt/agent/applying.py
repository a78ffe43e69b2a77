"""The one place where what a command or an extension asks for is done."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, assert_never

from hilt.agent.activation import Activation
from hilt.agent.notes import Notes
from hilt.agent.panels import Panels
from hilt.agent.screen import Screen
from hilt.agent.words import SELF
from hilt.model.actions import (
    Abort,
    Action,
    AttachImage,
    Branch,
    Clear,
    ClearNotes,
    CloseOverlay,
    ClosePanel,
    Compact,
    DetachImage,
    Display,
    Insert,
    Noop,
    Notify,
    OpenPanel,
    OpenSession,
    Prompt,
    Quit,
    Rename,
    RenderPanel,
    Revive,
    SendMessage,
    SetInput,
    SetJail,
    SetLabel,
    SetPermissions,
    SetStatus,
    Settle,
    SetWidget,
    ShowOverlay,
    Steer,
    Submit,
    SwitchModel,
    ToggleStep,
    ToolPrompt,
    Undo,
)
from hilt.model.content import text_of
from hilt.model.conversation import user_text
from hilt.model.events import Displayed, Inserted, QuitAsked
from hilt.model.extensions import Note
from hilt.sessions.records import TitleRecord

if TYPE_CHECKING:  # it is the session that has them applied
    from hilt.agent.session import Session


async def apply(session: "Session", actions: Iterable[Action], source: str, by: str = "") -> None:
    """`source` owns the action; `by` is the extension that wanted it without the user, if one did."""
    for action in actions:
        match action:
            case Prompt(prompt=text):
                if text.strip():
                    whose = "" if source == SELF else source
                    await (session.words.submit(text, by) if by else session.prompt(user_text(text, whose)))
            case Submit(text=text):
                await session.words.submit(text, source)
            case ToolPrompt():
                await _tool_prompt(session, action, source, by)
            case SendMessage(text=text):
                if text.strip():
                    await session.interject(text, source)
            case Steer(text=text):
                if text.strip():
                    await session.words.interject(text, source)
            case Abort(marker=marker):
                await session.interrupt(marker, source)
            case Insert(insert=text):
                await session.bus.emit(Inserted(source, text))
            case SetInput(text=text):
                await session.bus.emit(Inserted(source, text, replace=True))
            case Display(display=text):
                await session.bus.emit(Displayed(source, text))
            case Compact():
                await session.compact()
            case Undo():
                session.only_between_turns("changes can be undone")
                await session.bus.emit(Displayed(source, session.parts.undo()))
            case Noop():
                pass
            case OpenPanel() | RenderPanel() | ClosePanel() | Notify() | ClearNotes() | Settle() | Revive():
                await show(session, action, source)
            case SetWidget() | ShowOverlay() | CloseOverlay() | SetStatus() | AttachImage() | DetachImage():
                await session.screen.do(action, source)
            case Quit():
                await session.bus.emit(QuitAsked(source))
            case ToggleStep():
                await session.toggle_step()
            case SwitchModel() | Clear() | SetPermissions() | SetJail() | Rename():
                await _change(session, action)
            case OpenSession() | Branch() | SetLabel():
                await _move(session, action, by)
            case _:
                assert_never(action)


class Stage(Protocol):
    """Where extensions show things."""

    panels: Panels
    notes: Notes
    screen: Screen
    activation: Activation


async def show(
    stage: Stage, action: OpenPanel | RenderPanel | ClosePanel | Notify | ClearNotes | Settle | Revive, source: str
) -> None:
    match action:
        case OpenPanel(open_panel=panel):
            await stage.panels.show(source, panel)
        case RenderPanel(panel=panel):
            await stage.panels.render(source, panel)
        case ClosePanel(panel_id=panel_id):
            await stage.panels.close_own(source, panel_id)
        case Notify(level=level, message=message):
            await stage.notes.add(Note(source, level, message))
        case ClearNotes():
            await stage.notes.clear(source)
        case Settle(reason=reason):
            await stage.panels.bereave(source, reason)
            await stage.screen.bereave(source)
            stage.activation.bereave(source)
        case Revive():
            await stage.panels.revive(source)


async def _tool_prompt(session: "Session", action: ToolPrompt, source: str, by: str) -> None:
    """Have the model look at what a tool has to say."""
    output = await session.call_tool(action.tool_name, action.tool_args, source)
    head = f"{action.tool_name} failed" if output.is_error else f"{action.tool_name} returned"
    text = "\n\n".join(filter(None, (action.prompt.strip(), f"{head}:\n{text_of(output.content)}")))
    await apply(session, (Prompt(text),), source, by)


async def _move(session: "Session", action: OpenSession | Branch | SetLabel, by: str) -> None:
    from hilt.agent import moving  # few sessions are ever left, and all of them have to start

    match action:
        case OpenSession(session=wanted):
            await moving.load(session, wanted)
        case Branch(entry=entry, summary=summary):
            await moving.branch(session, entry, summary, by)
        case SetLabel(entry=entry, label=label):
            moving.set_label(session, entry, label)


async def _change(session: "Session", action: SwitchModel | Clear | SetPermissions | SetJail | Rename) -> None:
    match action:
        case SwitchModel(model=model):
            session.only_between_turns("the model can be switched")
            found = await session.find_model(model)
            session.only_between_turns("the model can be switched")
            await session.switch(found)
        case Clear():
            session.only_between_turns("the conversation can be cleared")
            session.transcript.clear()
            await session.notes.clear_all()
        case SetPermissions(mode=mode):
            session.parts.permissions.mode = mode
        case SetJail(on=on):
            session.parts.jail.on = on
        case Rename(title=title):
            session.parts.journal.append(TitleRecord(title))
    await session.announce()
