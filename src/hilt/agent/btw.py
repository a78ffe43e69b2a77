"""A side chat: questions about the conversation, answered by its model while the work goes on.

It sees the conversation as it was when the chat began, has no tools, and is gone when nobody holds it any more. What it
costs is the session's; nothing else of it is recorded or told. A cancelled turn does not end it: whoever asked cancels.
"""

from collections.abc import Callable, Sequence

from msgspec import structs

from hilt.agent.asking import Answer, ask
from hilt.agent.prompt import with_contributions
from hilt.agent.session import Session
from hilt.agent.words import SELF
from hilt.errors import ProviderError, UsageError
from hilt.model.content import Text, text_of
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, now, pair_calls, user_text
from hilt.model.events import Event, Retrying
from hilt.model.models import priced
from hilt.model.stream import ModelRequest, TextDelta

_BESIDE = (
    "(A question beside the work, which goes on without you meanwhile. Answer only this, from what you know and what "
    "was said above. There are no tools here: do not call any, and do not go on with the work.)"
)
_UNDER_WAY = "This call is still running: what comes of it is not known yet."


class SideChat:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._messages = _frozen(session.transcript.messages)
        self._answering = False

    async def ask(
        self, question: str, on_delta: Callable[[str], None], on_retry: Callable[[str], None] | None = None
    ) -> str:
        """The answer, which is also told piece by piece. Cancelling ends the stream at once. Raises `HiltError`.

        `on_retry` is told why the model is asked again: the pieces until then are void. An exchange that has no end
        leaves no trace; the next question follows the last answer.
        """
        if not question.strip():
            raise UsageError("there is no question", hint="/btw takes the question: /btw what is this file for?")
        if self._answering:
            raise UsageError("the last question is still being answered", hint="wait for the answer, or cancel it")
        self._answering = True
        try:
            return await self._answer(question, on_delta, on_retry)
        finally:
            self._answering = False

    async def _answer(
        self, question: str, on_delta: Callable[[str], None], on_retry: Callable[[str], None] | None
    ) -> str:
        async def follow(event: Event) -> None:
            if isinstance(event, TextDelta):
                on_delta(event.delta)
            elif isinstance(event, Retrying) and on_retry:
                on_retry(event.reason)

        session, asked = self._session, user_text(f"{_BESIDE}\n\n{question}")
        active = await session.model()
        request = ModelRequest(
            active.info,
            # What extensions say of their tools is of no use without them.
            with_contributions(session.parts.system, session.parts.registry.snapshot().sections, ()),
            (*self._messages, asked),
            reasoning=session.parts.reasoning,
        )
        completed = await ask(active.provider, request, session.parts.retry, follow, Answer())
        await session.spend(SELF, active.info, priced(completed.usage, active.info))
        text = text_of(completed.content)
        if not text.strip():
            raise ProviderError("the model gave no answer", hint="ask again, perhaps in other words")
        self._messages += (asked, AssistantMessage((Text(text),), now(), active.provider.name, active.info.id))
        return text


def _frozen(messages: Sequence[Message]) -> tuple[Message, ...]:
    """As every provider takes it: a call of the running turn gets a result that says that it has none yet."""
    known = {result.call_id for one in messages if isinstance(one, ToolMessage) for result in one.results}

    def told(result: ToolResult) -> ToolResult:
        is_known = result.call_id in known
        return result if is_known else structs.replace(result, content=(Text(_UNDER_WAY),), is_error=False)

    return tuple(
        structs.replace(one, results=tuple(map(told, one.results))) if isinstance(one, ToolMessage) else one
        for one in pair_calls(messages)
    )
