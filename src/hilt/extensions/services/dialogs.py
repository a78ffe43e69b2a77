"""Asking the user, and ending what goes on."""

from hilt.extensions.capabilities import SUBMIT
from hilt.extensions.services.asking import Asker, Backing, Service, Table, invalid
from hilt.model.actions import Abort, Quit
from hilt.model.extensions import PickerItem
from hilt.wire.jsonrpc_services import AskUser, AskUserResult, ShowPicker, ShowPickerResult
from hilt.wire.jsonrpc_types import Empty


async def show_picker(backing: Backing, params: ShowPicker, asker: Asker) -> ShowPickerResult:
    items = tuple(PickerItem(item.id, item.label, item.desc) for item in params.items)
    picked = await backing.facilities.dialogs.pick(params.title, items, asker.name)
    return ShowPickerResult(picked or "", cancelled=picked is None)


async def ask_user(backing: Backing, params: AskUser, asker: Asker) -> AskUserResult:
    if not params.choices:
        raise invalid("askUser: choices must not be empty")
    chosen = await backing.facilities.dialogs.ask(params.prompt, params.choices, asker.name)
    return AskUserResult(chosen or "", cancelled=chosen is None)


async def request_quit(backing: Backing, _: Empty, asker: Asker) -> Empty:
    await backing.agent.apply((Quit(),), asker.name)
    return Empty()


async def abort(backing: Backing, _: Empty, asker: Asker) -> Empty:
    await backing.agent.apply((Abort(),), asker.name)
    return Empty()


SERVICES: Table = {
    "host/showPicker": Service(show_picker, seconds=None, failing="show picker"),
    "host/askUser": Service(ask_user, seconds=None, failing="ask user"),
    "host/requestQuit": Service(request_quit, (SUBMIT,)),
    "host/abort": Service(abort, (SUBMIT,)),
}
