"""Rate-limit and retry headers, in each vendor's spelling."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from mmbu_async.simulator.limits import Bucket, Limits


def rate_limit_headers(vendor: str, limits: Limits, now: float) -> dict[str, str]:
    """What OpenAI and Anthropic send with every reply: limit, what is left, when it is full again.

    `now` is in Unix seconds.
    """
    headers: dict[str, str] = {}
    if vendor == "google":
        return headers
    for what, bucket in (("requests", limits.requests), ("tokens", limits.tokens)):
        if bucket is not None:
            headers |= _bucket(vendor, what, bucket, now)
    return headers


def _bucket(vendor: str, what: str, bucket: Bucket, now: float) -> dict[str, str]:
    limit, remaining = str(int(bucket.per_minute)), str(max(0, int(bucket.level)))
    if vendor == "openai":
        prefix = "x-ratelimit-"
        return {
            f"{prefix}limit-{what}": limit,
            f"{prefix}remaining-{what}": remaining,
            f"{prefix}reset-{what}": go_duration(bucket.until_full),
        }
    return {
        f"anthropic-ratelimit-{what}-limit": limit,
        f"anthropic-ratelimit-{what}-remaining": remaining,
        f"anthropic-ratelimit-{what}-reset": rfc3339(now + bucket.until_full),
    }


def retry_headers(style: str, vendor: str, wait_s: float, now: float) -> dict[str, str]:
    """How a refusal says when to come again; `retry-after` in whole seconds is rounded up, never down."""
    seconds = {"retry-after": str(math.ceil(wait_s))}
    milliseconds = {"retry-after-ms": str(math.ceil(wait_s * 1000))}
    if style == "seconds":
        return seconds
    if style == "ms":
        return milliseconds
    if style == "both":
        return seconds | milliseconds
    if style == "date":
        at = datetime.fromtimestamp(math.ceil(now + wait_s), UTC)
        return {"retry-after": format_datetime(at, usegmt=True)}
    if vendor == "openai":
        return {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": go_duration(wait_s)}
    return {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": rfc3339(now + wait_s),
    }


def go_duration(seconds: float) -> str:
    """`6m0s`, `1.5s` or `120ms`, as OpenAI writes reset times."""
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def rfc3339(at: float) -> str:
    """Whole seconds, rounded up, as Anthropic writes reset times."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=math.ceil(at))
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
