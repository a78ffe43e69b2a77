"""Where requests go: base URLs, proxies, and what is loaded before the first of them."""

import subprocess
import sys

import pytest

from hilt.errors import BadRequest, ConfigError, ProviderError
from hilt.model.content import Text
from hilt.providers.anthropic import Anthropic
from hilt.providers.google import Google
from hilt.providers.http import resolve_base
from hilt.providers.openai import OpenAI
from hilt.providers.openai_chat import OpenAIChat
from hilt.providers.outgoing import to_json
from providers.http.vendors import CHAT, KEY, RESPONSES, VENDORS, check_answer, collect, completed
from support.api_server import ApiServer, Reply, events


@pytest.mark.parametrize(
    ("base", "resolved"),
    [
        ("", "https://api.vendor.test/v1"),
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1", "http://h:1/v1"),
        ("http://h:1/v1//", "http://h:1/v1"),
        ("http://h:1/openai/v1/", "http://h:1/openai/v1"),
        ("http://h:1/api/paas/v4", "http://h:1/api/paas/v4"),
        ("  https://u:p@h  ", "https://u:p@h/v1"),
    ],
)
def test_a_base_without_a_path_gets_the_vendors_and_another_is_left_alone(base: str, resolved: str) -> None:
    assert resolve_base(base, "https://api.vendor.test/v1") == resolved


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/coding", "/coding/", "/coding/v1"])
async def test_anthropics_prefix_belongs_to_its_routes(path: str) -> None:
    async with ApiServer(Reply.sse(VENDORS[0].answer)) as server:
        provider = Anthropic(KEY, server.url + path)
        await collect(provider)
        await provider.aclose()
    assert server.requests[0].target == ("/coding" if "coding" in path else "") + "/v1/messages"


async def test_googles_model_names_are_quoted_and_may_have_their_prefix() -> None:
    from providers.http.vendors import GEMINI, request

    async with ApiServer(Reply.sse(GEMINI)) as server:
        provider = Google(KEY, server.url + "/v1beta/")
        await collect(provider, request(model="models/gemini 2?x"))
        await provider.aclose()
    assert server.requests[0].target == "/v1beta/models/gemini%202%3Fx:streamGenerateContent?alt=sse"


def test_a_base_url_with_a_password_is_never_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIChat("", "ftp://user:hunter2hunter2@host/")
    assert "hunter2" not in f"{caught.value!r}{caught.value.hint}"


async def test_a_proxy_in_the_environment_is_used_but_not_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = VENDORS[0]
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with ApiServer(Reply.sse(vendor.answer)) as proxy, ApiServer(Reply.sse(vendor.answer)) as server:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        near = vendor.make(KEY, server.url)
        check_answer(await collect(near), vendor)
        await near.aclose()
        assert proxy.requests == []
        far = vendor.make(KEY, "http://model.test")
        check_answer(await collect(far), vendor)
        await far.aclose()
    assert proxy.requests[0].target == "http://model.test/v1/messages"


async def test_a_proxy_setting_that_cannot_be_used_is_an_error_that_names_the_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://user:hunter2hunter2@proxy.test")
    provider = VENDORS[0].make(KEY, "https://model.test")
    with pytest.raises(BadRequest) as caught:
        await collect(provider)
    assert "ALL_PROXY" in caught.value.hint
    assert "hunter2" not in caught.value.message


def test_importing_the_adapters_does_not_load_the_http_client() -> None:
    code = (
        "import sys, hilt.providers.openai, hilt.providers.anthropic, hilt.providers.google\n"
        "hilt.providers.openai.OpenAI('k'), hilt.providers.google.Google('k')\n"
        "print([name for name in ('httpx2', 'httpcore2', 'anyio', 'email', 'hashlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_half_a_character_is_replaced_and_the_rest_is_kept() -> None:
    body = {"a\ud800": ["x\udfff", {"b": "🌍\ud83d"}, 1, None, True]}
    assert to_json(body) == '{"a�":["x�",{"b":"🌍�"},1,null,true]}'.encode()


NOT_THERE = Reply.json(404, {"detail": "Not Found"})


@pytest.mark.parametrize(
    "missing",
    [
        NOT_THERE,
        Reply(405),
        Reply(501),
        Reply.json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}),
        Reply.json(200, {"error": "Unexpected endpoint or method. (POST /v1/responses). Returning 200 anyway"}),
    ],
)
async def test_a_server_without_the_responses_api_is_spoken_to_in_chat_from_then_on(missing: Reply) -> None:
    chat = next(vendor for vendor in VENDORS if vendor.id == "chat")
    async with ApiServer(missing, Reply.sse(CHAT)) as server:
        provider = OpenAI(KEY, server.url)
        check_answer(await collect(provider), chat)
        check_answer(await collect(provider), chat)
        await provider.aclose()
    assert [seen.target for seen in server.requests] == [
        "/v1/responses",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert "max_completion_tokens" not in server.requests[-1].json


@pytest.mark.parametrize(
    "reply",
    [
        Reply.json(404, {"error": {"message": "The model `m-1` does not exist", "code": "model_not_found"}}),
        Reply.json(404, {"error": {"message": "model 'm-1' not found", "type": "not_found_error"}}),
        Reply.json(400, {"error": {"message": "bad"}}),
        Reply.json(500, {"error": {"message": "bad"}}),
        Reply.json(401, {"error": {"message": "bad"}}),
    ],
)
async def test_other_errors_are_not_a_reason_to_change_the_api(reply: Reply) -> None:
    async with ApiServer(reply, Reply.sse(RESPONSES)) as server:
        provider = OpenAI(KEY, server.url)
        with pytest.raises(ProviderError):
            await collect(provider)
        await collect(provider)
        await provider.aclose()
    assert {seen.target for seen in server.requests} == {"/v1/responses"}


async def test_the_vendor_itself_is_never_asked_in_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ApiServer(NOT_THERE) as server:
        monkeypatch.setattr("hilt.providers.openai_responses.BASE_URL", server.url + "/v1")
        provider = OpenAI(KEY)
        with pytest.raises(BadRequest):
            await collect(provider)
        await provider.aclose()
    assert len(server.requests) == 1


async def test_an_answer_in_chat_ends_with_a_finish_reason_or_with_done() -> None:
    said = {"choices": [{"delta": {"content": "hi"}}]}
    ended = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    for stream in (events(said, ended), events(said) + "data: [DONE]\n\n", events(said, ended) + "data: [DONE]"):
        async with ApiServer(Reply.sse(stream)) as server:
            provider = OpenAIChat("", server.url, "ollama")
            done = completed(await collect(provider))
            await provider.aclose()
        assert (done.content, done.stop) == ((Text("hi"),), "end")
