"""What a failure means, from the status and the words of each vendor."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hilt.errors import AuthError, BadRequest, ContextOverflow, ProviderError, RateLimited, Unavailable
from hilt.model.masking import Mask
from hilt.providers.failures import Fault, NoSuchRoute, as_error, fault_of, reported, retry_after
from providers.http.vendors import KEY, VENDORS, Vendor, collect
from support.api_server import ApiServer, Hold, Pause, Reply

each_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=str)

MEANINGS = {
    301: BadRequest,
    400: BadRequest,
    401: AuthError,
    402: BadRequest,
    403: AuthError,
    404: BadRequest,
    408: Unavailable,
    409: Unavailable,
    413: ContextOverflow,
    422: BadRequest,
    429: RateLimited,
    500: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    520: Unavailable,
    529: Unavailable,
}


@each_vendor
async def test_each_status_becomes_its_error_and_quotes_the_server(vendor: Vendor) -> None:
    replies = [Reply.json(status, {"error": {"message": "why not, model"}}) for status in MEANINGS]
    async with ApiServer(*replies) as server:
        provider = vendor.make(KEY, server.url)
        for status, meaning in MEANINGS.items():
            with pytest.raises(ProviderError) as caught:
                await collect(provider)
            assert type(caught.value) is meaning, status
            assert caught.value.message.startswith(f"{provider.name} answered {status}")
            assert "why not" in caught.value.message or status == 301
            assert caught.value.hint
        await provider.aclose()


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 207791 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Invalid request: Your request exceeded model token limit: 262144",
        "the request exceeds the available context size. try increasing the context size",
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_each_vendors_words_for_a_full_window_are_an_overflow(message: str, status: int) -> None:
    assert type(as_error("p", Fault(message, status=status), Mask())) is ContextOverflow


def test_a_code_for_a_full_window_is_an_overflow_also_inside_a_stream() -> None:
    for body in (
        {"error": {"code": "context_length_exceeded", "message": "Too much."}},
        {"error": {"type": "exceed_context_size_error", "code": 400, "message": "Too much."}},
        {"error": {"type": "request_too_large", "message": "Too much."}},
    ):
        assert type(as_error("p", reported(body), Mask())) is ContextOverflow


def test_a_rate_limit_that_speaks_of_tokens_is_still_a_rate_limit() -> None:
    fault = Fault("Request too large: the context window per minute is used up", status=429)
    assert type(as_error("p", fault, Mask())) is RateLimited


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
        ("overloaded_error", Unavailable),
        ("api_error", Unavailable),
        ("server_error", Unavailable),
        ("never heard of it", Unavailable),
        ("rate_limit_error", RateLimited),
        ("rate_limit_exceeded", RateLimited),
        ("insufficient_quota", RateLimited),
        ("RESOURCE_EXHAUSTED", RateLimited),
        ("authentication_error", AuthError),
        ("permission_error", AuthError),
        ("UNAUTHENTICATED", AuthError),
        ("invalid_request_error", BadRequest),
        ("INVALID_ARGUMENT", BadRequest),
        ("invalid_prompt", BadRequest),
    ],
)
def test_an_error_inside_a_stream_is_judged_by_its_name(kind: str, meaning: type[ProviderError]) -> None:
    error = as_error("p", reported({"error": {"type": kind, "message": "words"}}), Mask())
    assert type(error) is meaning
    assert error.message == f"p failed {kind.lower()}: words"


def test_googles_refusal_of_a_key_is_an_auth_error_although_it_says_400() -> None:
    body = b'{"error":{"code":400,"message":"API key not valid. Pass a valid one.","status":"INVALID_ARGUMENT"}}'
    assert type(as_error("google", fault_of(400, {}, body), Mask())) is AuthError


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":{"message":"m"}}', "m"),
        (b'{"error":"m"}', "m"),
        (b'[{"error":{"message":"m"}}]', "m"),
        (b'{"message":"m"}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'{"detail":[{"msg":"m"}]}', '[{"msg":"m"}]'),
        (b"m\n", "m"),
        (b"<html><body>m</body></html>", ""),
        (b"", ""),
        (b"null", ""),
        (b"\xff\xfe", "��"),
        (b"[" * 100_000, ""),
    ],
)
def test_any_body_of_an_error_is_read(body: bytes, said: str) -> None:
    assert as_error("p", fault_of(500, {}, body), Mask()).message.partition(": ")[2].startswith(said)


def test_a_message_is_one_bounded_line_without_control_characters() -> None:
    text = as_error("p", Fault("a\x1b[31m\r\nb\u202ec\x00" + "x" * 5000, status=400), Mask()).message
    assert text.startswith("p answered 400: a [31m b c x")
    assert len(text) == 500
    assert text.isprintable()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_to_wait_for_is_turned_into_seconds() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after({"retry-after": then}) == pytest.approx(30, abs=5)


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_the_time_to_wait_is_passed_on(status: int) -> None:
    async with ApiServer(Reply.json(status, {}, {"Retry-After": "3"})) as server:
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises((RateLimited, Unavailable)) as caught:
            await collect(provider)
        await provider.aclose()
    assert isinstance(caught.value, RateLimited | Unavailable)
    assert caught.value.retry_after == 3.0


def test_the_time_to_wait_in_googles_details_is_passed_on() -> None:
    body = {"error": {"code": 429, "message": "m", "details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}
    error = as_error("google", reported(body), Mask())
    assert isinstance(error, RateLimited)
    assert error.retry_after == 34.5


@each_vendor
async def test_a_redirect_is_not_followed(vendor: Vendor) -> None:
    async with ApiServer(Reply.sse(vendor.answer)) as elsewhere:
        async with ApiServer(Reply(307, {"location": elsewhere.url})) as server:
            provider = vendor.make(KEY, server.url)
            with pytest.raises(BadRequest, match="moved to"):
                await collect(provider)
            await provider.aclose()
        assert elsewhere.requests == []


async def test_an_explanation_that_drips_does_not_hold_up_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.providers.http.ERROR_BODY_SECONDS", 0.2)
    drip = [step for _ in range(200) for step in ("because ", Pause(0.05))]
    async with ApiServer(Reply(500, {}, tuple(drip))) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises(Unavailable, match="answered 500: because"):
            await collect(provider)
        await provider.aclose()


async def test_an_endless_explanation_is_cut_off() -> None:
    async with ApiServer(Reply(500, {}, (*["x" * 10_000] * 7, Hold()))) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises(Unavailable, match="answered 500: xxx"):
            await collect(provider)
        await provider.aclose()


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        (Reply(200, {"content-type": "text/html"}, ("<html>login</html>",)), BadRequest),
        (Reply.json(200, {"id": "x", "status": "completed"}), BadRequest),
        (Reply.json(200, {"error": {"type": "overloaded_error", "message": "busy"}}), Unavailable),
        (Reply.json(200, {"error": "Unexpected endpoint or method. (POST /v1/responses)"}), NoSuchRoute),
    ],
)
async def test_a_success_that_is_no_event_stream_is_an_error(reply: Reply, meaning: type[ProviderError]) -> None:
    async with ApiServer(reply) as server:
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises(ProviderError) as caught:
            await collect(provider)
        await provider.aclose()
    assert type(caught.value) is meaning


@each_vendor
async def test_a_key_is_checked_with_one_get(vendor: Vendor) -> None:
    async with ApiServer(Reply.json(200, {"data": []})) as server:
        provider = vendor.make(KEY, server.url)
        await provider.check_key()
        await provider.aclose()
    (seen,) = server.requests
    name, value = vendor.key_header
    assert seen.method == "GET" and seen.target.partition("?")[0].endswith("/models")
    assert seen.headers[name] == value and KEY not in seen.target


@each_vendor
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_an_auth_error(vendor: Vendor, status: int) -> None:
    async with ApiServer(Reply.json(status, {"error": {"message": "no such key"}})) as server:
        provider = vendor.make(KEY, server.url)
        with pytest.raises(AuthError, match="no such key"):
            await provider.check_key()
        await provider.aclose()


@each_vendor
@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_server_that_lists_no_models_has_nothing_to_say_about_a_key(vendor: Vendor, status: int) -> None:
    async with ApiServer(Reply.json(status, {"error": {"message": "no models here"}})) as server:
        provider = vendor.make(KEY, server.url)
        await provider.check_key()
        await provider.aclose()


async def test_a_check_does_not_wait_for_the_list_and_leaves_nothing_open() -> None:
    async with ApiServer(Reply(200, {}, ("[", Hold()))) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url)
        await provider.check_key()
        await server.wait(server.client_left)
        await provider.aclose()


async def test_a_check_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.providers.http.CHECK_SECONDS", 0.1)
    async with ApiServer(Reply.silence()) as server, asyncio.timeout(5):
        provider = VENDORS[0].make(KEY, server.url)
        with pytest.raises(Unavailable, match=r"within 0\.1 s"):
            await provider.check_key()
        await provider.aclose()
