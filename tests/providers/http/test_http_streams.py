"""What every adapter does alike, each against a real server: streams, cuts, silence, cancellation."""

import asyncio
import socket
from contextlib import ExitStack, aclosing

import pytest

from hilt.errors import AuthError, ConfigError, ProviderError, Unavailable
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart
from hilt.providers import http
from hilt.providers.http import Timeouts
from providers.http.vendors import KEY, QUICK, VENDORS, Vendor, check_answer, collect, completed, request
from support.api_server import WAIT_SECONDS, Abort, ApiServer, Hold, Pause, Reply

each_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=str)


@each_vendor
async def test_an_answer_arrives_as_deltas_and_then_whole(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer)) as server:
        provider = vendor.make(KEY, server.url)
        items = await collect(provider)
        await provider.aclose()
    check_answer(items, vendor)
    assert "".join(item.delta for item in items if isinstance(item, TextDelta)) == "Grüße 🌍"
    assert "".join(item.delta for item in items if isinstance(item, ThinkingDelta)) == "Hm."
    call = completed(items).content[2]
    (started,) = (item for item in items if isinstance(item, ToolUseStart))
    (ended,) = (item for item in items if isinstance(item, ToolUseEnd))
    assert started.id == ended.id == getattr(call, "id", None)
    assert "".join(item.delta for item in items if isinstance(item, ToolUseArgs)).replace(" ", "") == '{"command":"ls"}'


@each_vendor
async def test_the_request_goes_to_the_route_with_the_key_in_its_header_alone(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer)) as server:
        provider = vendor.make(KEY, server.url)
        await collect(provider)
        await provider.aclose()
    (seen,) = server.requests
    name, value = vendor.key_header
    assert (seen.method, seen.target) == ("POST", vendor.path)
    assert seen.headers[name] == value
    assert KEY not in seen.target and KEY.encode() not in seen.body
    assert seen.headers["user-agent"].startswith("hilt/")


@each_vendor
async def test_without_a_key_no_key_header_is_sent(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer)) as server:
        provider = vendor.make("", server.url)
        await collect(provider)
        await provider.aclose()
    assert vendor.key_header[0] not in server.requests[0].headers


@each_vendor
async def test_an_answer_cut_into_single_bytes_is_the_same_answer(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer).one_byte_at_a_time()) as server:
        provider = vendor.make(KEY, server.url)
        check_answer(await collect(provider), vendor)
        await provider.aclose()


@each_vendor
async def test_the_connection_is_used_again_for_the_next_answer(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer)) as server:
        provider = vendor.make(KEY, server.url)
        for _ in range(3):
            check_answer(await collect(provider), vendor)
        await provider.aclose()
    assert server.connections == 1


@each_vendor
async def test_an_overload_in_the_middle_is_unavailable_and_keeps_what_came_before(vendor: Vendor) -> None:
    half = vendor.answer[: vendor.answer.index("Gr")].rpartition("\n\n")[0] + "\n\n"
    async with ApiServer(Reply.sse(half, vendor.error)) as server:
        provider = vendor.make(KEY, server.url)
        items = provider.stream(request())
        assert await anext(items) == ThinkingDelta("Hm.")
        with pytest.raises(Unavailable, match="Overloaded") as caught:
            await anext(items)
        await provider.aclose()
    assert provider.name in caught.value.message


@each_vendor
async def test_silence_beyond_the_idle_timeout_is_unavailable(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer[:200], Hold())) as server, asyncio.timeout(5):
        provider = vendor.make(KEY, server.url, timeouts=QUICK)
        with pytest.raises(Unavailable, match=r"sent nothing for 0\.3 s"):
            await collect(provider)
        await provider.aclose()


async def test_a_server_that_never_answers_is_unavailable_after_the_idle_timeout() -> None:
    async with ApiServer(Reply.silence()) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url, timeouts=QUICK)
        with pytest.raises(Unavailable, match="sent nothing"):
            await collect(provider)
        await provider.aclose()


async def test_a_slow_stream_that_keeps_talking_is_not_idle() -> None:
    vendor = VENDORS[0]
    pings = [step for _ in range(4) for step in (Pause(0.15), ": ping\n\n")]
    async with ApiServer(Reply.sse(*pings, vendor.answer)) as server:
        provider = vendor.make(KEY, server.url, timeouts=QUICK)
        check_answer(await collect(provider), vendor)
        await provider.aclose()


@each_vendor
@pytest.mark.parametrize("end", [Abort(), ""], ids=["reset", "clean end"])
async def test_a_stream_without_its_proper_end_is_unavailable(vendor: Vendor, end: Abort | str) -> None:
    half = vendor.answer[: len(vendor.answer) // 2].rpartition("\n\n")[0] + "\n\n"
    async with ApiServer(Reply.sse(half, end)) as server:
        provider = vendor.make(KEY, server.url)
        with pytest.raises(Unavailable, match="stream ended early"):
            await collect(provider)
        await provider.aclose()


@each_vendor
async def test_a_malformed_event_is_passed_over_when_the_answer_is_whole_without_it(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.malformed, "data: [1]\n\n", "data: 7\n\n", vendor.answer)) as server:
        provider = vendor.make(KEY, server.url)
        check_answer(await collect(provider), vendor)
        await provider.aclose()


@each_vendor
async def test_a_malformed_event_is_named_when_the_answer_is_not_whole(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(f"data: {{not json {KEY} {'x' * 500}\n\n")) as server:
        provider = vendor.make(KEY, server.url)
        with pytest.raises(Unavailable, match=r"sent a malformed event: \{not json") as caught:
            await collect(provider)
        await provider.aclose()
    assert KEY not in caught.value.message
    assert len(caught.value.message) < 200


@each_vendor
async def test_cancelling_closes_the_connection_at_once(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer[:200], Hold())) as server:
        provider = vendor.make(KEY, server.url)
        reading = asyncio.create_task(collect(provider))
        await server.wait(server.started)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.wait(server.client_left)
        await provider.aclose()


async def test_cancelling_before_the_answer_begins_closes_the_connection_at_once() -> None:
    async with ApiServer(Reply.silence()) as server:
        provider = VENDORS[0].make(KEY, server.url)
        reading = asyncio.create_task(collect(provider))
        await server.wait(server.started)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.wait(server.client_left)
        await provider.aclose()


@each_vendor
async def test_leaving_the_stream_closes_the_connection_at_once(vendor: Vendor) -> None:
    first = vendor.answer[: vendor.answer.index("Gr")].rpartition("\n\n")[0] + "\n\n"
    async with ApiServer(Reply.sse(first, Hold())) as server:
        provider = vendor.make(KEY, server.url)
        async with aclosing(provider.stream(request())) as items:  # type: ignore[type-var]  # all are generators
            assert await anext(items) == ThinkingDelta("Hm.")
        await server.wait(server.client_left)
        await provider.aclose()


async def test_a_provider_works_again_after_a_failure_and_after_being_closed() -> None:
    vendor = VENDORS[0]
    async with ApiServer(Reply.sse("data: 1\n\n", Abort()), Reply.sse(vendor.answer)) as server:
        provider = vendor.make(KEY, server.url)
        with pytest.raises(Unavailable):
            await collect(provider)
        check_answer(await collect(provider), vendor)
        await provider.aclose()
        await provider.aclose()
        check_answer(await collect(provider), vendor)
        await provider.aclose()


async def test_a_whole_answer_is_not_held_up_by_a_connection_that_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LINGER_SECONDS", 0.05)
    for vendor in VENDORS:
        async with ApiServer(Reply.sse(vendor.answer, Hold())) as server, asyncio.timeout(WAIT_SECONDS):
            provider = vendor.make(KEY, server.url)
            check_answer(await collect(provider), vendor)
            await server.wait(server.client_left)
            await provider.aclose()


async def test_pings_after_a_whole_answer_do_not_hold_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LINGER_SECONDS", 0.2)
    pings = [step for _ in range(1000) for step in (": ping\n\n", Pause(0.05))]
    for vendor in VENDORS:
        async with ApiServer(Reply.sse(vendor.answer, *pings)) as server, asyncio.timeout(WAIT_SECONDS):
            provider = vendor.make(KEY, server.url)
            check_answer(await collect(provider), vendor)
            await provider.aclose()


async def test_a_reset_after_the_proper_end_does_not_spoil_the_answer() -> None:
    for vendor in VENDORS:
        async with ApiServer(Reply.sse(vendor.answer, Pause(0.02), Abort())) as server:
            provider = vendor.make(KEY, server.url)
            check_answer(await collect(provider), vendor)
            await provider.aclose()


async def test_an_answer_without_end_is_cut_off_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER", 1000)
    async with ApiServer(Reply.sse(*[": ping\n\n" * 20] * 20, Hold())) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises(Unavailable, match="larger than 1000 bytes"):
            await collect(provider)
        await provider.aclose()


async def test_an_event_over_the_cap_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.providers.sse.SseParser.__init__.__defaults__", (1000,))
    async with ApiServer(Reply.sse("data: " + "x" * 2000, Hold())) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises(Unavailable, match="larger than 1000 bytes"):
            await collect(provider)
        await provider.aclose()


async def test_a_host_that_does_not_take_the_connection_is_given_up_in_time() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # the queue takes one or two; a further connection hangs
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        provider = VENDORS[0].make(KEY, url, timeouts=Timeouts(connect=0.2, idle=30))
        async with asyncio.timeout(5):
            with pytest.raises(Unavailable, match=r"could not be reached at 127\.0\.0\.1 within 0\.2 s"):
                await collect(provider)
        await provider.aclose()


async def test_nobody_listening_is_unavailable_and_names_the_host() -> None:
    async with ApiServer(Reply()) as server:
        url = server.url
    provider = VENDORS[0].make(KEY, url)
    with pytest.raises(Unavailable, match=r"could not be reached at 127\.0\.0\.1"):
        await collect(provider)
    await provider.aclose()


@pytest.mark.parametrize("key", ["sk-näher-0123456789", "sk-0123\n456789"])
async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    for vendor in VENDORS:
        provider = vendor.make(key, "http://127.0.0.1:9")
        with pytest.raises(AuthError) as caught:
            await collect(provider)
        assert key not in _everything_said(caught.value)


@pytest.mark.parametrize("key", ["  sk-test-0123456789abcdef\n"])
async def test_white_space_round_a_key_is_dropped(key: str) -> None:
    vendor = VENDORS[0]
    async with ApiServer(Reply.sse(vendor.answer)) as server:
        provider = vendor.make(key, server.url)
        await collect(provider)
        await provider.aclose()
    assert server.requests[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    "url", ["localhost:11434", "ftp://x/y", "http://", "http://[::1", "http://a/v1?k=1", "http://a b/"]
)
def test_a_base_url_that_is_none_is_a_configuration_error(url: str) -> None:
    for vendor in VENDORS:
        with pytest.raises(ConfigError, match="base URL"):
            vendor.make(KEY, url)


def _everything_said(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += f"{error!r} {error} {getattr(error, 'hint', '')}"
        error = error.__cause__ or error.__context__
    return said


@each_vendor
async def test_a_key_echoed_by_the_server_is_masked_everywhere(vendor: Vendor) -> None:
    body = {"error": {"message": f"bad key {KEY} given", "type": f"key {KEY}"}}
    replies = [Reply.json(status, body) for status in (401, 400, 429, 500)] + [
        Reply(302, {"location": f"https://elsewhere.example/?k={KEY}"})
    ]
    async with ApiServer(*replies) as server:
        provider = vendor.make(KEY, server.url)
        for _ in replies:
            with pytest.raises(ProviderError) as caught:
                await collect(provider)
            assert KEY not in _everything_said(caught.value)
        assert KEY not in repr(provider)
        await provider.aclose()
