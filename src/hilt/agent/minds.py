"""Models at work beside the conversation: single answers, agents of their own, and agents in the background.

What they use counts towards the session's cost and towards what whoever asked may use. How an agent works is
`aside`'s business.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from hilt.agent.aside import Aside, work
from hilt.agent.asking import Answer, ask
from hilt.agent.background import Background
from hilt.agent.budgets import Budgets
from hilt.agent.compaction import estimated_tokens
from hilt.agent.parts import ActiveModel
from hilt.agent.session import Session
from hilt.agent.stopping import Stop
from hilt.errors import UsageError
from hilt.model.content import text_of
from hilt.model.conversation import Usage, user_text
from hilt.model.events import Event
from hilt.model.models import ModelInfo, priced
from hilt.model.services import AgentReport, AgentTask, ChatReply, ChatRequest
from hilt.model.stream import Completed, ModelRequest

_AGENTS = 4
"""Of one extension at once. An agent's tool may ask for another agent, and that for the next."""


class Minds:
    """The port `Minds` of the services."""

    def __init__(self, session: Session, budgets: Budgets, *, small_model: str = "", background_turns: int = 5) -> None:
        self._session = session
        self._budgets = budgets
        self._small_model = small_model
        self._agents: dict[str, int] = {}
        self._background = Background(session, self._work, background_turns)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """What works in the background does so within this block, and ends with it."""
        async with self._background.working():
            yield

    async def chat(self, request: ChatRequest, source: str) -> ChatReply:
        if not request.messages:
            raise UsageError("there is nothing to answer: messages is empty")
        async with self._model(request.model) as active:
            asked = ModelRequest(active.info, request.system, request.messages, max_tokens=request.max_tokens)
            completed, usage = await self._answer(active, asked, source)
        return ChatReply(text_of(completed.content), usage)

    async def run(self, task: AgentTask, source: str) -> AgentReport:
        with self._room(source), self._session.beside(Stop()) as stop:
            return await self._work(task, source, stop)

    async def start(self, prompt: str, source: str) -> None:
        if refusal := self._budgets.exceeded(source):
            raise UsageError(refusal)
        await self._background.start(prompt, source)

    def cancel(self) -> None:
        self._background.cancel()

    def running(self) -> bool:
        return self._background.running

    def used(self, source: str) -> int:
        """Tokens, in all."""
        return self._budgets.used(source)

    # Steps

    async def _work(self, task: AgentTask, source: str, stop: Stop) -> AgentReport:
        if not task.task.strip():
            raise UsageError("an agent needs a task")
        if refusal := self._budgets.exceeded(source, estimated_tokens((user_text(task.task),))):
            raise UsageError(refusal)
        async with self._model(task.model) as active:

            async def spend(usage: Usage, tokens: int) -> str:
                await self._spend(source, active.info, usage, tokens)
                return self._budgets.exceeded(source)

            return await work(Aside(self._session, active, source, spend, stop), task)

    @asynccontextmanager
    async def _model(self, wanted: str) -> AsyncIterator[ActiveModel]:
        """By the names that requests use. Raises `HiltError`."""
        if wanted == "small":
            wanted = self._small_model
        if wanted in ("", "default"):
            yield await self._session.model()
            return
        active = await self._session.find_model(wanted)
        try:
            yield active
        finally:
            if active.provider is not self._session.active.provider:
                await active.provider.aclose()

    async def _answer(self, active: ActiveModel, request: ModelRequest, source: str) -> tuple[Completed, Usage]:
        answer = Answer()
        tokens = estimated_tokens((user_text(request.system), *request.messages))
        with self._budgets.held(source, tokens):
            asking = ask(active.provider, request, self._session.parts.retry, _unseen, answer)
            try:
                completed = await self._session.stops.stoppable(asking, f"what {source} asked the model")
            except BaseException:
                if answer.started:  # it was paid for, even if nobody wants it any more
                    self._budgets.spend(source, tokens + estimated_tokens((user_text(answer.text),)))
                raise
        usage = priced(completed.usage, active.info)
        await self._spend(source, active.info, usage, tokens)
        return completed, usage

    async def _spend(self, source: str, info: ModelInfo, usage: Usage, tokens: int) -> None:
        """`tokens`: about as many, where the provider does not say."""
        self._budgets.spend(source, usage.context or tokens)
        await self._session.spend(source, info, usage)

    @contextmanager
    def _room(self, source: str) -> Iterator[None]:
        running = self._agents.get(source, 0)
        if running >= _AGENTS:
            raise UsageError(f"{_AGENTS} agents already work for {source}", hint="wait until one of them has ended")
        self._agents[source] = running + 1
        try:
            yield
        finally:
            self._agents[source] -= 1


async def _unseen(_: Event) -> None:
    """What happens beside the conversation is told to whoever asked, by the answer."""
