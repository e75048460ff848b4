"""What an unhappy response means: status, headers and body -> `Failure`. Pure.

The vendors agree on little: OpenAI and its kin answer `{"error": {"message", "type", "code"}}`, Anthropic
`{"type": "error", "error": {"type", "message"}}`, vLLM `{"object": "error", "message", "code"}`, Google
`{"error": {"code", "message", "status", "details"}}` and at its OpenAI address a list with one such object,
proxies an HTML page. Some send an error object under status 200.

Google's `details` (https://google.aip.dev/193) say what its words do not: that a 400 is about the key
(`ErrorInfo`), after how long to come again (`RetryInfo`), and whether the quota that ran out is one of a
minute or of a day (`QuotaFailure`); the wait that comes with the latter is that of a minute all the same.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

from mmbu_async.endpoints.parsed import parsed
from mmbu_async.model import Failure, FailureKind, Json

CUT_SHORT = "the stream ended before the reply did"
"""What is said of a stream without its proper end."""
MESSAGE_LIMIT = 500
"""Characters of an endpoint's words that are kept."""

_A_DAYS_QUOTA = "quota_per_day"
"""Our word for a `quotaId` such as `GenerateRequestsPerDayPerProjectPerModel`."""
_KEY_CODES = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED"})
"""`reason` of Google's `ErrorInfo` under status 400."""
_KEY_WORDS = ("api key not valid", "api key expired", "user location is not supported")
"""The same in words, where they come alone."""
_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "exceeded_current_quota_error",
        "billing_error",
        "enforced_spend_limit_reached",
        _A_DAYS_QUOTA,
    }
)
_QUOTA_WORDS = (
    "credit balance is too low",
    "specified api usage limits",
    "monthly api usage threshold",
    "insufficient balance",
    "insufficient credits",
    "out of credits",
    "used all available credits",
    "requires more credits",
    "free-models-per-day",
    "credits are depleted",
    "monthly spending cap",
)
_SHORT_QUOTA_WORDS = ("resource_exhausted", "quota exceeded for metric")
"""Gemini calls a limit a minute a quota, in the very words in which others say that the money is gone."""
_MODEL_CODES = frozenset({"model_not_found", "model_not_available"})
_STATUS_OF: Mapping[str, HTTPStatus] = {
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "permission_error": HTTPStatus.FORBIDDEN,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "request_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "rate_limit_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "api_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "server_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "overloaded_error": HTTPStatus.SERVICE_UNAVAILABLE,
    "timeout_error": HTTPStatus.GATEWAY_TIMEOUT,
    # Why a response of OpenAI's Responses failed, where the row is to blame.
    **dict.fromkeys(
        (
            *(
                "invalid_prompt",
                "bio_policy",
                "invalid_image",
                "invalid_image_format",
                "invalid_base64_image",
            ),
            *("image_too_large", "image_too_small", "image_parse_error", "image_content_policy_violation"),
            *("image_file_too_large", "unsupported_image_media_type", "empty_image_file"),
        ),
        HTTPStatus.BAD_REQUEST,
    ),
}
"""The status that an error object under status 200 would have had, by its own word."""
_INNER_STATUS = re.compile(r"[45]\d\d")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|s|m|h|d)")
_ASKED = re.compile(rf"(?:try again|retry) (?:in|after) ((?:{_DURATION.pattern})+)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TAG = re.compile(r"<[^<>]{0,200}>")
_TITLE = re.compile(r"<title>([^<]{1,200})</title>", re.IGNORECASE)

Headers = Mapping[str, str]
"""Response headers with case-insensitive look-up, as aiohttp gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What a body says about itself."""

    message: str = ""
    """In one line."""
    codes: frozenset[str] = frozenset()
    """Every code, type and status word that came with it."""
    wait_s: float | None = None
    """Seconds after which to come again, where only the text says it (`Please try again in 1.2s`)."""
    told_s: float | None = None
    """The same where a field of the body says it, and so surely that it holds under any status."""


def request_id(headers: Headers) -> str:
    return _text(headers.get("x-request-id") or headers.get("request-id") or "")


def failure_from_response(status: int, headers: Headers, body: bytes, *, now: float) -> Failure:
    """The failure that a response with an error status is. `now` is in Unix seconds."""
    words = _words(body)
    message = words.message or _phrase(status)
    if 300 <= status < 400:
        message = (
            f"the address redirects to {_text(headers.get('location', 'another place'))[:200]}; "
            "redirects are not followed, so that the key goes nowhere else"
        )
    asked = retry_after(headers, now=now)
    if asked is None:
        asked = words.told_s
    if asked is None and status == HTTPStatus.TOO_MANY_REQUESTS:
        asked = words.wait_s
    return Failure(
        kind=_kind(status, message.lower(), words.codes, asked),
        message=message,
        status=status,
        request_id=request_id(headers),
        retry_after_s=asked,
    )


def failure_in_ok_body(payload: Json, headers: Headers, status: int) -> Failure | None:
    """The failure that hides in a body under status 200, if one does."""
    if not isinstance(payload, dict):
        return malformed("the body is JSON but no object", headers, status)
    if not payload.get("error") and payload.get("object") != "error" and payload.get("type") != "error":
        return None
    words = _words(json.dumps(payload).encode())
    asked = retry_after(headers, now=None)
    if asked is None:
        asked = words.told_s
    inner = _inner_status(words.codes)
    if inner == HTTPStatus.TOO_MANY_REQUESTS and asked is None:
        asked = words.wait_s
    if inner is None and not words.codes & _QUOTA_CODES:
        kind = FailureKind.MALFORMED
    else:
        kind = _kind(inner or status, words.message.lower(), words.codes, asked)
    return Failure(
        kind=kind,
        message=words.message or "an error object without words under status 200",
        status=status,
        request_id=request_id(headers),
        retry_after_s=asked,
    )


def malformed(message: str, headers: Headers, status: int, body: bytes = b"") -> Failure:
    """A response under status 200 that holds no reply."""
    words = _words(body).message
    return Failure(
        kind=FailureKind.MALFORMED,
        message=(f"{message}: {words}" if words else message)[:MESSAGE_LIMIT],
        status=status,
        request_id=request_id(headers),
    )


def retry_after(headers: Headers, *, now: float | None) -> float | None:
    """Seconds the endpoint asks to wait, at least 0; None when it says nothing.

    In this order: `retry-after-ms`, `retry-after` (seconds or an HTTP date), then the reset time of
    whichever rate-limit budget has nothing left (`x-ratelimit-reset-*`, `anthropic-ratelimit-*-reset`).
    A point in time is read against the endpoint's own `date`, so that clocks need not agree; else `now`.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    there = _http_date(headers.get("date", ""))
    now = there if there is not None else now
    if value := headers.get("retry-after"):
        seconds = _number(value)
        if seconds is not None:
            return max(0.0, seconds)
        when = _http_date(value)
        if when is not None and now is not None:
            return max(0.0, when - now)
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


def _kind(status: int, message: str, codes: frozenset[str], asked: float | None) -> FailureKind:
    if _money_is_gone(status, message, codes, asked):
        return FailureKind.QUOTA
    if codes & _MODEL_CODES:
        return FailureKind.MODEL_NOT_FOUND
    if codes & _KEY_CODES or any(words in message for words in _KEY_WORDS):
        return FailureKind.AUTH
    if status == 403 and ("moderation" in message or "flagged" in message):
        return FailureKind.BAD_REQUEST
    if status in (401, 403):
        return FailureKind.AUTH
    if status == 404:
        return FailureKind.MODEL_NOT_FOUND
    if status in (402, 429):
        return FailureKind.RATE_LIMIT
    if status == 408:
        return FailureKind.TIMEOUT
    if status == 425 or status >= 500:
        return FailureKind.SERVER_ERROR
    return FailureKind.BAD_REQUEST


def _money_is_gone(status: int, message: str, codes: frozenset[str], asked: float | None) -> bool:
    """Whether waiting does not help. OpenRouter's 402 that names a wait only holds calls under way back."""
    if codes & _QUOTA_CODES:
        return True
    if status == 402:
        return not asked
    if status >= 500:
        return False
    if "exceeded your current quota" in message:
        short = "RESOURCE_EXHAUSTED" in codes or any(words in message for words in _SHORT_QUOTA_WORDS)
        return not asked and not short
    return any(words in message for words in _QUOTA_WORDS)


def _inner_status(codes: frozenset[str]) -> int | None:
    numbers = sorted(int(code) for code in codes if _INNER_STATUS.fullmatch(code))
    named = sorted(int(_STATUS_OF[code]) for code in codes if code in _STATUS_OF)
    return next(iter(numbers + named), None)


def _words(body: bytes) -> _Words:
    text = body[:20_000].decode("utf-8", "replace")
    asked = _ASKED.search(text)
    wait_s = _duration(asked[1]) if asked else None
    try:
        payload = parsed(body)
    except ValueError:
        title = _TITLE.search(text)
        return _Words(message=_one_line(title[1] if title else _TAG.sub(" ", text)), wait_s=wait_s)
    if isinstance(payload, list) and len(payload) == 1:
        payload = payload[0]
    if not isinstance(payload, dict):
        return _Words(message=_one_line(payload if isinstance(payload, str) else text), wait_s=wait_s)
    error = payload.get("error") or payload
    if not isinstance(error, dict):
        return _Words(message=_one_line(str(error)), wait_s=wait_s)
    details = error.get("details")
    said = [error.get(key) for key in ("code", "type", "status")]
    said.append(details.get("error_code") if isinstance(details, dict) else None)
    told_s = None
    if isinstance(details, list):
        reasons, told_s = _details(details)
        said += reasons
    codes = frozenset(str(word) for word in said if isinstance(word, str | int))
    message = error.get("message") or payload.get("message") or payload.get("detail") or ""
    words = _one_line(message if isinstance(message, str) else str(message))
    return _Words(message=words, codes=codes, wait_s=wait_s, told_s=told_s)


def _details(details: Sequence[Json]) -> tuple[list[Json], float | None]:
    """What Google's details add: codes, and the seconds after which to come again."""
    codes: list[Json] = []
    wait_s = None
    for detail in details:
        if not isinstance(detail, dict):
            continue
        codes.append(detail.get("reason"))
        if isinstance(delay := detail.get("retryDelay"), str):
            wait_s = _duration(delay)
        found = detail.get("violations")
        violations = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        if any("PerDay" in str(one.get("quotaId")) for one in violations):
            codes.append(_A_DAYS_QUOTA)
    return codes, wait_s


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * MESSAGE_LIMIT].split())[:MESSAGE_LIMIT]


def _text(header: str) -> str:
    """A header's value without the surrogates that stand for bytes that are no UTF-8."""
    return header.encode("utf-8", "replace").decode()


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
    return value if value is not None and abs(value) < float("inf") else None


def _duration(text: str) -> float | None:
    """Seconds in OpenAI's notation (`6m0s`, `1.5s`, `20ms`) or a bare number of seconds."""
    parts = _DURATION.findall(text)
    if parts:
        return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    seconds = _number(text)
    return None if seconds is None else max(0.0, seconds)


def _http_date(text: str) -> float | None:
    """Unix seconds; a date without a zone is in UTC, as HTTP has it."""
    try:
        return _unix(email.utils.parsedate_to_datetime(text))
    except (ValueError, TypeError, OverflowError):
        return None


def _until(text: str, now: float) -> float | None:
    try:
        return max(0.0, _unix(datetime.fromisoformat(text)) - now)
    except (ValueError, OverflowError):
        return None


def _unix(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
