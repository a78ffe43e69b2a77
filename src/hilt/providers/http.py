"""The HTTP client under every adapter: one connection pool, one way to post and to follow a stream.

It owns timeouts, proxies, base URLs and the end of a stream. What a failure means is decided in
`failures`; what the events mean, in each vendor's reader.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, urlsplit

import msgspec

from hilt import __version__
from hilt.errors import AuthError, BadRequest, ConfigError, ProviderError, Unavailable
from hilt.model.masking import Mask
from hilt.model.stream import StreamItem
from hilt.providers.failures import Fault, as_error, fault_of, not_a_stream, tidy
from hilt.providers.outgoing import to_json
from hilt.providers.sse import EventTooLarge, SseEvent, SseParser

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of one streamed answer: some ten times what the longest answers take."""
MAX_ERROR_BODY = 64 * 1024
ERROR_BODY_SECONDS = 10.0
CHECK_SECONDS = 15.0
LINGER_SECONDS = 2.0
"""How long to wait for the tail (usage, the closing chunk) of an answer that is already whole."""
KEEPALIVE_SECONDS = 60.0
"""Tools run between two calls; a connection kept this long saves the TLS handshake of the next."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    connect: float = 10.0
    idle: float = 120.0
    """The longest silence, before the first byte or between two."""


class Reader(Protocol):
    """A vendor's events, read into the one stream everybody speaks."""

    @property
    def complete(self) -> bool:
        """The answer is whole: what may follow is a bonus."""

    @property
    def over(self) -> bool:
        """The vendor said that nothing follows."""

    def read(self, event: SseEvent) -> Iterable[StreamItem]:
        """Raises `Fault` for an error event and `msgspec.DecodeError` for one that makes no sense."""

    def finish(self) -> Iterable[StreamItem]:
        """The last items, `Completed` at the end."""


def resolve_base(base_url: str, default: str, *, always: bool = False) -> str:
    """The URL that routes are appended to.

    A base without a path gets the path of the vendor's own URL (`/v1`); any other path is
    taken as the user wrote it, unless the vendor's belongs after it `always`.
    """
    url = base_url.strip().rstrip("/")
    if not url:
        return default
    path, prefix = _split(url).path, urlsplit(default).path
    return url if path.endswith(prefix) or (path and not always) else url + prefix


class ApiClient:
    """One vendor's API at one base URL. The connection is made at the first request."""

    def __init__(
        self, name: str, base: str, headers: Mapping[str, str], secret: str, timeouts: Timeouts | None = None
    ) -> None:
        parts = _split(base)
        self.name = name
        self._base = base
        self._host = parts.hostname or ""
        self._secure = parts.scheme == "https"
        self._headers = {"user-agent": f"hilt/{__version__}", **headers}
        self._mask = Mask((secret, parts.password or ""))
        self._timeouts = timeouts or Timeouts()
        self._client: httpx2.AsyncClient | None = None

    async def stream(self, path: str, body: Mapping[str, Any], reader: Reader) -> AsyncGenerator[StreamItem, None]:
        """Post and follow the answer to its end. The connection is free before the last item is yielded."""
        malformed = ""
        async with self._open("POST", path, to_json(body)) as response:
            feed = _Feed(self, response)
            while not reader.over and (events := await feed.events(patient=not reader.complete)) is not None:
                for event in events:
                    try:
                        items = list(reader.read(event))
                    except (msgspec.DecodeError, RecursionError):
                        malformed = malformed or event.data
                        continue
                    except Fault as fault:
                        raise as_error(self.name, fault, self._mask) from None
                    for item in items:
                        yield item
            if reader.over:
                await feed.drain()
        if not reader.complete:
            raise self._cut_short(malformed)
        for item in reader.finish():
            yield item

    async def check(self, path: str) -> None:
        """One cheap GET. Raises if the key is refused; a server without the route has nothing to say."""
        try:
            async with asyncio.timeout(CHECK_SECONDS), self._open("GET", path, None):
                return
        except TimeoutError:
            raise Unavailable(f"{self.name} did not answer within {CHECK_SECONDS:g} s") from None
        except _RouteAbsent:
            return

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _open(self, method: str, path: str, body: bytes | None) -> "AsyncIterator[httpx2.Response]":
        """A response that succeeded, or the error it failed with; closed when the block ends."""
        import httpx2  # 60 ms: loaded when the first request is made

        if not all(value.isascii() and value.isprintable() for value in self._headers.values()):
            raise AuthError(
                f"the API key for {self.name} contains characters that no key has",
                hint="copy the key again: run `hilt login`",
            )
        client = self._connected()
        headers = {**self._headers, "accept": "text/event-stream" if body else "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            request = client.build_request(method, self._base + path, headers=headers, content=body)
            response = await client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.broken(error) from None
        try:
            await self._refuse(response, streaming=body is not None)
            yield response
        finally:
            await response.aclose()

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is not None:
            return self._client
        import ssl

        import httpx2

        local = _is_loopback(self._host)
        try:
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._timeouts.idle, connect=self._timeouts.connect),
                limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
                headers={"accept-encoding": "identity"},  # compressing proxies hold events back
                trust_env=not local,  # a proxy cannot reach this machine's loopback
                # Reading the certificates takes 40 ms. The empty context trusts nobody, so it is safe too.
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if local and not self._secure else True,
            )
        except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
            raise BadRequest(
                f"{self.name}: the connection cannot be set up: {tidy(type(error).__name__, self._mask)}",
                hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE in the environment",
            ) from None
        return self._client

    async def _refuse(self, response: "httpx2.Response", *, streaming: bool) -> None:
        """Raise unless the response is what was asked for."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_success and (not streaming or kind not in ("application/json", "text/html")):
            return
        body = await self._error_body(response)
        if response.is_success:
            raise as_error(self.name, not_a_stream(kind, body), self._mask)
        fault = fault_of(response.status_code, response.headers, body)
        if response.is_redirect:
            fault = Fault(f"moved to {response.headers.get('location', '?')}", status=response.status_code)
        if not streaming and response.status_code in (404, 405, 501):
            raise _RouteAbsent
        raise as_error(self.name, fault, self._mask)

    async def _error_body(self, response: "httpx2.Response") -> bytes:
        """As much of the explanation as comes in time: the status alone is an error already."""
        import httpx2

        body = b""
        try:
            async with asyncio.timeout(min(ERROR_BODY_SECONDS, self._timeouts.idle)):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) >= MAX_ERROR_BODY:
                        break
        except (TimeoutError, httpx2.HTTPError):
            pass
        return body

    def broken(self, error: "httpx2.HTTPError | httpx2.InvalidURL | EventTooLarge") -> ProviderError:
        """What a connection that failed means."""
        import httpx2

        match error:
            case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
                return BadRequest(f"{self.name}: the base URL cannot be used", hint="check --base-url")
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                text = f"could not be reached at {self._host} within {self._timeouts.connect:g} s"
            case httpx2.TimeoutException():
                text = f"sent nothing for {self._timeouts.idle:g} s"
            case httpx2.ConnectError():
                text = f"could not be reached at {self._host}: {tidy(str(error), self._mask)}"
            case httpx2.RemoteProtocolError() | httpx2.ReadError():
                text = "stream ended early: the connection was closed"
            case _:
                text = f"failed: {tidy(str(error), self._mask) or type(error).__name__}"
        return Unavailable(f"{self.name} {text}", hint="check the network and --base-url, then try again")

    def _cut_short(self, malformed: str) -> ProviderError:
        if malformed:
            return Unavailable(f"{self.name} sent a malformed event: {tidy(malformed, self._mask)[:100]}")
        return Unavailable(f"{self.name} stream ended early", hint="try again in a moment")


class _RouteAbsent(Exception):
    pass


class _Feed:
    """The events of one response, batch by batch, so that nothing is left suspended when a reader leaves."""

    def __init__(self, api: ApiClient, response: "httpx2.Response") -> None:
        self._api = api
        self._chunks = response.aiter_bytes()
        self._parser = SseParser()
        self._received = 0
        self._ended = False
        self._deadline: float | None = None

    async def events(self, *, patient: bool) -> list[SseEvent] | None:
        """The next batch; None at the end. Impatient: a slow or broken tail is the end, too."""
        import httpx2

        if self._ended:
            return None
        try:
            async with asyncio.timeout_at(None if patient else self._last_moment()):
                chunk = await anext(self._chunks)
            self._received += len(chunk)
            if self._received > MAX_ANSWER:
                raise EventTooLarge(f"the answer is larger than {MAX_ANSWER} bytes")
            return self._parser.feed(chunk)
        except StopAsyncIteration:
            self._ended = True
            return self._parser.close()
        except TimeoutError:
            return None
        except (httpx2.HTTPError, EventTooLarge) as error:
            if not patient:
                return None
            raise self._api.broken(error) from None

    def _last_moment(self) -> float:
        """When the tail must be over, counted once from when the answer was whole: pings would prolong it for ever."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + LINGER_SECONDS
        return self._deadline

    async def drain(self) -> None:
        """Read up to the end, so that the connection can serve the next request."""
        while await self.events(patient=False) is not None:
            pass


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ConfigError(
            "the base URL is not a usable web address",
            hint="write it like https://api.example.com/v1, without a query",
        )
    return parts


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")
