"""What was published and no line of a subscriber can hold: told, counted, and no reason to tell the next one late."""

from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from hilt.cli.serving import Client
from hilt.extensions.services import bus
from hilt.wire.line import LINE_LIMIT
from support.extending import chaos, extended

SUBSCRIBE = 'host_request:{"id":"s","method":"host/subscribe","params":{"topic":"news"}}'


@pytest.mark.usefixtures("dialect")
async def test_what_no_line_of_a_subscriber_can_hold_is_told_and_counted_and_the_next_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "PUBLISHED", 2 * LINE_LIMIT)  # which is otherwise told to whoever publishes it
    listening = chaos(
        "t",
        "hello",
        "register_tool:t",
        SUBSCRIBE,
        "await:host_response",
        {"on": "ext_notify", "do": "touch:heard"},
        "ready",
    )
    async with extended(tmp_path, listening) as it:
        await it.ready()
        assert it.host.services
        client = Client(it.host.services, lambda *_: None)
        for data in ("x" * LINE_LIMIT, "short"):
            await client.answer("host/publish", Raw(msgspec.json.encode({"topic": "news", "data": data})))
        await it.warned("extension t:", "would be a line of")
        await it.until((tmp_path / "extensions" / "t" / "heard").exists, "the one that came after")
        assert it.status("t").events_lost == 1
