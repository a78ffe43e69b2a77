"""An extension that answers for models, without a process of its own: it says what the test tells it to.

source = Source("myapi", [Text("hello")])
with registry.publish(Owner("ext"), (source.offer(),)): ...
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeAlias

from hilt.model.content import AssistantBlock, Text, ToolCall
from hilt.model.contributions import ModelSource
from hilt.model.conversation import Usage
from hilt.model.models import ModelInfo
from hilt.model.stream import Completed, ModelRequest, StreamItem
from hilt.providers.replay import deltas

Answer: TypeAlias = "list[AssistantBlock] | Exception"


class Source:
    def __init__(
        self, api: str, *answers: Answer, models: tuple[ModelInfo, ...] = (), usage: Usage | None = None
    ) -> None:
        self.api = api
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.hanging = asyncio.Event()
        """Set once an empty answer has been asked for: it says a word and then nothing."""
        self._answers = list(answers)
        self._models = models
        self._usage = usage or Usage()

    def offer(self) -> ModelSource:
        return ModelSource(self.api, self.stream, self._models)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        answer = self._answers.pop(0)
        try:
            content = answer if isinstance(answer, list) else [Text("half of")]
            for delta in deltas(tuple(content or [Text("hm")])):
                yield delta
            if isinstance(answer, Exception):
                raise answer
            if not content:
                self.hanging.set()
                await asyncio.Event().wait()
            called = any(isinstance(block, ToolCall) for block in content)
            yield Completed(tuple(content), "tool_use" if called else "end", self._usage)
        finally:
            self.closed += 1
