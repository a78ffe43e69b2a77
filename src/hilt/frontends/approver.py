"""Asking whoever is at the other end for permission, be it at a terminal or behind `hilt rpc`: a question out, the
answer in."""

from hilt.agent.questions import Questions, Reply
from hilt.errors import UsageError
from hilt.model.events import PermissionAsked, TrustAsked
from hilt.model.ports import PermissionAnswer, PermissionRequest

_GONE = PermissionAnswer(approved=False, reason="permission denied: the client that could have been asked is gone")


class UserApprover:
    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        """Wait for the person at the other end; cancelling the turn withdraws the question."""
        return await self._questions.ask(lambda id_: PermissionAsked(id_, request), _answer, _GONE)

    async def confirm(self, folder: str, commands: tuple[tuple[str, tuple[str, ...]], ...], text: str) -> bool:
        """Whether the extensions that came with a folder may run."""
        answer = await self._questions.ask(lambda id_: TrustAsked(id_, folder, commands, text), _answer, _GONE)
        return answer.approved


def _answer(reply: Reply) -> PermissionAnswer:
    if reply.selected is not None:
        raise UsageError("this request is answered by approved, not by something selected")
    if reply.cancelled:
        return PermissionAnswer(approved=False, reason=reply.reason or "the user dismissed it")
    return PermissionAnswer(bool(reply.approved), reply.reason, reply.scope)
