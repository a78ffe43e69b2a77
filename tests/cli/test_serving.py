"""A client of `hilt rpc` as one who asks the host's services."""

import asyncio
from typing import Any

from msgspec import Raw

from hilt.cli.serving import Client
from support.facilities import Served

NEWS = Raw(b'{"topic":"news","data":1}')


async def test_a_client_is_refused_nothing_and_hears_of_its_topics_until_it_leaves() -> None:
    services = Served().services
    heard: list[tuple[str, int, Any]] = []
    client = Client(services, lambda *told: heard.append(told))
    await client.answer("host/auth.getKey", Raw(b'{"provider":"openai"}'))
    await client.answer("host/conversationMessages", Raw(b"null"))
    subscribed = await client.answer("host/subscribe", Raw(b'{"topic":"news"}'))
    await client.answer("host/publish", NEWS)
    await asyncio.sleep(0)
    client.leave()
    await client.answer("host/publish", NEWS)
    await asyncio.sleep(0)
    assert [(topic, number) for topic, number, _ in heard] == [("news", subscribed.subscription_id)]
