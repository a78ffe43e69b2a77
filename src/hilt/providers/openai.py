"""OpenAI, and servers that imitate it: the Responses API first, Chat Completions where there is none."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hilt.model.stream import ModelRequest, StreamItem
from hilt.providers.failures import NoSuchRoute
from hilt.providers.http import Timeouts
from hilt.providers.openai_chat import OpenAIChat
from hilt.providers.openai_responses import OpenAIResponses


class OpenAI:
    def __init__(self, api_key: str, base_url: str = "", *, timeouts: Timeouts | None = None) -> None:
        self.name = "openai"
        self._responses = OpenAIResponses(api_key, base_url, self.name, timeouts=timeouts)
        self._chat = OpenAIChat(api_key, base_url, self.name, timeouts=timeouts)
        self._may_lack_responses = bool(base_url.strip())
        self._use_chat = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if not self._use_chat:
            try:
                async with aclosing(self._responses.stream(request)) as items:
                    async for item in items:
                        yield item
                return
            except NoSuchRoute:
                if not self._may_lack_responses:
                    raise
                self._use_chat = True  # a server does not learn a new API while we talk to it
        async with aclosing(self._chat.stream(request)) as items:
            async for item in items:
                yield item

    async def check_key(self) -> None:
        await self._responses.check_key()

    async def aclose(self) -> None:
        try:
            await self._responses.aclose()
        finally:
            await self._chat.aclose()
