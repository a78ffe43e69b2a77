"""The one place where what went wrong becomes a `ProviderError`.

A `Fault` is what a server said, in an HTTP status or in the middle of a stream; `as_error`
decides what it means. Pure: reading sockets and retrying are left to others.
"""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from hilt.errors import AuthError, BadRequest, ContextOverflow, ProviderError, RateLimited, Unavailable
from hilt.model.masking import Mask

MAX_MESSAGE = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

_STATUS_OF_CODE = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "billing_error": 402,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "invalid_prompt": 400,
    "failed_precondition": 400,
    "refusal": 400,
    "content_filter": 400,
    "not_found_error": 404,
    "model_not_found": 404,
    "not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 413,
    "exceed_context_size_error": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "resource_exhausted": 429,
    "deadline_exceeded": 504,
    "overloaded_error": 529,
}
"""For errors inside a stream, which carry a name instead of a status. Unknown names are worth a retry."""

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|model_max_prompt_tokens"
    r"|prompt is too long|input is too long|exceeds? (?:the )?(?:model'?s? )?(?:available |maximum )?context"
    r"|input token count.{0,40}exceeds|exceeds the maximum number of (?:input )?tokens|exceeded model token limit"
    r"|greater than the context length|(?:larger|longer) than the (?:model'?s? )?context|context window",
    re.IGNORECASE | re.DOTALL,
)
"""How the vendors and the common local servers word it: few of them send a code."""

_BAD_KEY = re.compile(r"api[ _]key[ _](?:not valid|invalid|expired)", re.IGNORECASE)
_MODEL_MISSING = re.compile(r"model_not_found|\bmodels?\b", re.IGNORECASE)
_ROUTE_MISSING = re.compile(r"unexpected endpoint|unknown endpoint", re.IGNORECASE)

_RETRY = frozenset({408, 409, 425})

_KEY_HINT = "check the key: run `hilt login`, or set it with --api-key or the environment"
_CONTEXT_HINT = "shorten the conversation with /compact, or start a new one"


class Fault(Exception):
    """What a server reported, unjudged. Never leaves this package."""

    def __init__(
        self, message: str, *, status: int = 0, codes: tuple[str, ...] = (), retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """0 inside a stream, where the status has already been 200."""
        self.codes = codes
        self.retry_after = retry_after


class NoSuchRoute(BadRequest):
    """The server is there but does not offer this API."""


def as_error(provider: str, fault: Fault, mask: Mask) -> ProviderError:
    """Judge a fault. The message names the provider and quotes the server, never the key."""
    status = fault.status or _status_of(fault.codes)
    verdict = f"answered {fault.status}" if fault.status else " ".join(("failed", *fault.codes[:1]))
    text = tidy(f"{provider} {verdict}: {fault.message}" if fault.message.strip() else f"{provider} {verdict}", mask)
    evidence = " ".join((*fault.codes, fault.message))
    if status == 413 or (status not in (401, 403, 404, 429) and _OVERFLOW.search(evidence)):
        return ContextOverflow(text, hint=_CONTEXT_HINT)
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(evidence)):
        return AuthError(text, hint=_KEY_HINT)
    if status == 429:
        spent = "insufficient_quota" in fault.codes
        hint = "the account's quota is used up" if spent else "wait a little and try again"
        return RateLimited(text, hint=hint, retry_after=fault.retry_after)
    if status in (404, 405, 501):
        if status == 404 and _MODEL_MISSING.search(evidence):
            return BadRequest(text, hint="check --model: `hilt models` lists the known ones")
        return NoSuchRoute(text, hint="check --base-url: this server does not offer the API there")
    if 300 <= status < 400:
        return BadRequest(text, hint="redirects are not followed, so that the key stays put: correct --base-url")
    if 400 <= status < 500 and status not in _RETRY:
        hint = "check the account's billing" if status == 402 else "check --model and what it can take"
        return BadRequest(text, hint=hint)
    return Unavailable(text, hint="try again in a moment", retry_after=fault.retry_after)


def not_a_stream(kind: str, body: bytes) -> Fault:
    """A 200 whose body is no event stream: some local servers report their errors this way."""
    try:
        parsed = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict) and parsed.get("error"):
        fault = reported(parsed)
        return Fault(fault.message, status=404) if _ROUTE_MISSING.search(fault.message) else fault
    return Fault(f"the answer is {kind or 'of no known type'}, not an event stream", status=400)


def fault_of(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Read a failed response. Any body will do: JSON of any vendor, plain text, HTML, nothing."""
    try:
        parsed = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
        message = "" if text.startswith("<") else text  # an HTML page says nothing in one line
        return Fault(message, status=status, retry_after=retry_after(headers))
    fault = reported(parsed)
    after = retry_after(headers)
    return Fault(
        fault.message, status=status, codes=fault.codes, retry_after=fault.retry_after if after is None else after
    )


def reported(body: Any) -> Fault:
    """What an error object says, in the shape of any vendor."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return Fault(body if isinstance(body, str) else "")
    error = body.get("error", body)
    if isinstance(error, str):
        return Fault(error)
    if not isinstance(error, dict):
        error = body
    message = next((text for key in ("message", "detail", "error") if (text := _plain(error.get(key)))), "")
    named = [error.get(key) for key in ("code", "status", "type")]
    codes = tuple(name.lower() for name in named if isinstance(name, str) and name and name != "error")
    code = error.get("code")
    status = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else 0
    return Fault(message, status=status, codes=codes, retry_after=_google_delay(error.get("details")))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (a number or a date)."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    from datetime import UTC, datetime  # with email.utils 8 ms, needed only when a server sends a date
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def tidy(text: str, mask: Mask) -> str:
    """One bounded line for people: no control characters, no key."""
    line = _CONTROL.sub(" ", mask.text(text)).strip()
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"


def _status_of(codes: tuple[str, ...]) -> int:
    return next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), 500)


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) and value else ""


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if isfinite(number) else None


def _google_delay(details: object) -> float | None:
    """`RetryInfo` among the details of a Google error: `{"retryDelay": "34s"}`."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return _seconds(delay[:-1])
    return None
