"""`/login` and `/logout`: whose models can be used."""

from hilt.frontends.tui.commands.desk import Account, Desk
from hilt.frontends.tui.dialogs.entry import Entry
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.model.actions import SwitchModel


async def log_in(desk: Desk, args: str = "") -> None:
    """Pick a provider, give a key, and go on with its model."""
    accounts = {account.name: account for account in desk.keeping.accounts.all()}
    name = args.strip().lower()
    if name not in accounts:
        items = [_item(account) for account in accounts.values()]
        name = await desk.ask(Picker("log in to", items, desk.look, hint="or set the key in the environment")) or ""
    account = accounts.get(name)
    if account is None:
        return
    note = f"make one at {account.key_page}" if account.key_page else ""
    key = await desk.ask(Entry(f"API key for {account.label}", desk.look, secret=True, note=note))
    if not key:
        return
    desk.tell(f"trying the key for {account.label}…")
    desk.tell(await desk.keeping.accounts.log_in(name, key))
    here = desk.session.active.info
    if here.provider == name:
        await desk.session.apply((SwitchModel(here.id),), "hilt")  # what answers now has the key from before
    elif account.model:
        await desk.session.apply((SwitchModel(f"{name}/{account.model}"),), "hilt")


async def log_out(desk: Desk, args: str = "") -> None:
    stored = [account for account in desk.keeping.accounts.all() if account.stored]
    name = args.strip().lower()
    if not name:
        if not stored:
            desk.tell("there is no key stored; keys in the environment are not hilt's to forget")
            return
        items = [*map(_item, stored), Item("all", "all of them")]
        name = await desk.ask(Picker("forget the key of", items, desk.look)) or ""
    if name:
        desk.tell(desk.keeping.accounts.log_out(name))


def _item(account: Account) -> Item:
    return Item(account.name, account.label, _key(account), "●" if account.known else "○")


def _key(account: Account) -> str:
    if account.stored:
        return "a key is stored"
    if not account.needs_key:
        return "needs no key"
    return "a key is in the environment" if account.known else ""
