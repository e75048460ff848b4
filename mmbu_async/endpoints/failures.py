"""What an unhappy response means: status, headers and body -> `Failure`. Pure.

The vendors agree on little: OpenAI and its kin answer `{"error": {"message", "type", "code"}}`, Anthropic
`{"type": "error", "error": {"type", "message"}}`, vLLM `{"object": "error", "message", "code"}`, proxies an
HTML page. Some send an error object under status 200.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus

import orjson

from mmbu_async.model import Failure, FailureKind, Json

MESSAGE_LIMIT = 500
"""Characters of an endpoint's words that are kept."""

_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
)
_QUOTA_WORDS = (
    "credit balance is too low",
    "insufficient balance",
    "out of credits",
    "requires more credits",
)
_MODEL_CODES = frozenset({"model_not_found", "model_not_available"})
_OVERLOAD_TYPES = frozenset({"overloaded_error", "api_error", "server_error", "timeout_error"})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TAG = re.compile(r"<[^<>]{0,200}>")
_TITLE = re.compile(r"<title>([^<]{1,200})</title>", re.IGNORECASE)

Headers = Mapping[str, str]
"""Response headers with case-insensitive look-up, as aiohttp gives them."""


def request_id(headers: Headers) -> str:
    return headers.get("x-request-id") or headers.get("request-id") or ""


def failure_from_response(status: int, headers: Headers, body: bytes, *, now: float) -> Failure:
    """The failure that a response with an error status is. `now` is in Unix seconds."""
    message, codes = _words(body)
    if not message:
        message = _phrase(status)
    if 300 <= status < 400:
        message = (
            f"the address redirects to {headers.get('location', 'another place')[:200]}; "
            "redirects are not followed, so that the key goes nowhere else"
        )
    return Failure(
        kind=_kind(status, message.lower(), codes),
        message=message,
        status=status,
        request_id=request_id(headers),
        retry_after_s=retry_after(headers, now=now),
    )


def failure_in_ok_body(payload: Json, headers: Headers, status: int) -> Failure | None:
    """The failure that hides in a body under status 200, if one does."""
    if not isinstance(payload, dict):
        return _malformed("the body is JSON but no object", headers, status)
    error = payload.get("error")
    if not error and payload.get("object") != "error" and payload.get("type") != "error":
        return None
    message, codes = _words(orjson.dumps(payload))
    inner = next((int(code) for code in codes if code.isdigit() and 400 <= int(code) < 600), None)
    if inner is None and codes & {"rate_limit_error", "rate_limit_exceeded"}:
        inner = int(HTTPStatus.TOO_MANY_REQUESTS)
    if inner is not None:
        kind = _kind(inner, message.lower(), codes)
    elif codes & _QUOTA_CODES:
        kind = FailureKind.QUOTA
    elif codes & _OVERLOAD_TYPES:
        kind = FailureKind.SERVER_ERROR
    else:
        kind = FailureKind.MALFORMED
    return Failure(
        kind=kind,
        message=message or "an error object without words under status 200",
        status=status,
        request_id=request_id(headers),
        retry_after_s=retry_after(headers, now=None),
    )


def malformed(message: str, headers: Headers, status: int, body: bytes = b"") -> Failure:
    """A response under status 200 that holds no reply."""
    words, _ = _words(body)
    return _malformed(f"{message}: {words}" if words else message, headers, status)


def retry_after(headers: Headers, *, now: float | None) -> float | None:
    """Seconds the endpoint asks to wait; None when it says nothing.

    In this order: `retry-after-ms`, `retry-after` (seconds or an HTTP date), then the reset time of
    whichever rate-limit budget has nothing left (`x-ratelimit-reset-*`, `anthropic-ratelimit-*-reset`).
    """
    if milliseconds := _number(headers.get("retry-after-ms")):
        return milliseconds / 1000
    if value := headers.get("retry-after"):
        seconds = _number(value)
        if seconds is not None:
            return max(0.0, seconds)
        try:
            when = email.utils.parsedate_to_datetime(value).timestamp()
        except (ValueError, TypeError, OverflowError):
            when = None
        if when is not None:
            return max(0.0, when - (now if now is not None else when))
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{budget}", ""))
        for budget in ("requests", "tokens")
        if _number(headers.get(f"x-ratelimit-remaining-{budget}")) == 0
    ]
    if now is not None:
        waits += [
            _until(headers.get(f"anthropic-ratelimit-{budget}-reset", ""), now)
            for budget in ("requests", "tokens", "input-tokens", "output-tokens")
            if _number(headers.get(f"anthropic-ratelimit-{budget}-remaining")) == 0
        ]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def _malformed(message: str, headers: Headers, status: int) -> Failure:
    return Failure(
        kind=FailureKind.MALFORMED,
        message=message[:MESSAGE_LIMIT],
        status=status,
        request_id=request_id(headers),
    )


def _kind(status: int, message: str, codes: frozenset[str]) -> FailureKind:
    if codes & _QUOTA_CODES or status == 402 or (status < 500 and any(w in message for w in _QUOTA_WORDS)):
        return FailureKind.QUOTA
    if codes & _MODEL_CODES:
        return FailureKind.MODEL_NOT_FOUND
    if status == 403 and ("moderation" in message or "flagged" in message):
        return FailureKind.BAD_REQUEST
    if status in (401, 403):
        return FailureKind.AUTH
    if status == 404:
        return FailureKind.MODEL_NOT_FOUND
    if status == 429:
        return FailureKind.RATE_LIMIT
    if status == 408:
        return FailureKind.TIMEOUT
    if status == 425 or status >= 500:
        return FailureKind.SERVER_ERROR
    return FailureKind.BAD_REQUEST


def _words(body: bytes) -> tuple[str, frozenset[str]]:
    """The message in one line, and every code or type word that came with it."""
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[:20_000].decode("utf-8", "replace")
        title = _TITLE.search(text)
        return _one_line(title[1] if title else _TAG.sub(" ", text)), frozenset()
    if not isinstance(payload, dict):
        return _one_line(str(payload)), frozenset()
    error = payload.get("error", payload)
    if not isinstance(error, dict):
        return _one_line(str(error)), frozenset()
    codes = frozenset(
        str(error[key]) for key in ("code", "type", "status") if isinstance(error.get(key), str | int)
    )
    message = error.get("message") or payload.get("message") or payload.get("detail") or ""
    return _one_line(message if isinstance(message, str) else str(message)), codes


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * MESSAGE_LIMIT].split())[:MESSAGE_LIMIT]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status {status}"


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and value == value and value != float("inf") else None


def _duration(text: str) -> float | None:
    """Seconds in OpenAI's notation (`6m0s`, `1.5s`, `20ms`) or a bare number of seconds."""
    parts = _DURATION.findall(text)
    if parts:
        return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    return _number(text)


def _until(text: str, now: float) -> float | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, when.timestamp() - now)
