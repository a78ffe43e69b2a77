"""`/btw`: a chat beside the conversation."""

from hilt.agent.btw import SideChat as Chat
from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.sidechat import SideChat


async def ask(desk: Desk, args: str) -> None:
    chat = Chat(desk.session)
    await desk.ask(SideChat(desk.look, chat.ask, lambda work: desk.client.do(work, "/btw"), args.strip()))
