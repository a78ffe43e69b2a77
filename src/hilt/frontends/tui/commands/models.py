"""`/model`: all that can be chosen, those that can be used at once first."""

from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.model.actions import SwitchModel
from hilt.model.models import ModelInfo


async def choose(desk: Desk, _: str = "") -> None:
    here = desk.session.active.info
    usable = {account.name for account in desk.keeping.accounts.all() if account.known}
    models = sorted(desk.keeping.models(), key=lambda info: (info.provider != here.provider, not _ready(info, usable)))
    items = [_item(info, here, ready=_ready(info, usable)) for info in models]
    hint = "those without ○ need a key: /login"
    picked = await desk.ask(Picker("model", items, desk.look, hint=hint, current=_id(here)))
    if picked:
        # Those of the provider in use by their own name: at another address, `openai/…` may be one.
        await desk.session.apply((SwitchModel(picked.removeprefix(f"{here.provider}/")),), "hilt")


def _ready(info: ModelInfo, usable: set[str]) -> bool:
    return bool(info.extension) or info.provider in usable or info.provider == "demo"


def _item(info: ModelInfo, here: ModelInfo, *, ready: bool) -> Item:
    window = _thousands(info.context_window) if info.context_window else ""
    price = f"${info.price.input:g}/${info.price.output:g} per M" if info.price else ""
    whose = f"by {info.extension}" if info.extension else ""
    mark = "●" if (info.provider, info.id) == (here.provider, here.id) else "○" if ready else ""
    thinks = "thinks" if info.reasoning else ""
    return Item(_id(info), info.id, " · ".join(filter(None, (whose, window, price, thinks))), mark, info.provider)


def _thousands(tokens: int) -> str:
    return f"{tokens / 10**6:.3g}M" if tokens >= 10**6 else f"{tokens // 1000}k"


def _id(info: ModelInfo) -> str:
    return f"{info.provider}/{info.id}"
