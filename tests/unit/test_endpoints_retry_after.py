"""How long an endpoint asks to wait, in every spelling that is in use."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from mmbu_async.endpoints.failures import retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()

SPENT = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}


def asked(headers: Mapping[str, str], now: float | None = NOW) -> float | None:
    return retry_after(CIMultiDict(headers), now=now)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": " 2 "}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "-250"}, 0.0),
        ({"retry-after-ms": "-inf", "retry-after": "4"}, 4.0),
        ({"retry-after-ms": "junk", "retry-after": "4"}, 4.0),
        # Both: the finer one.
        ({"retry-after-ms": "1200", "retry-after": "2"}, 1.2),
        # Retry-After wins over resets.
        (
            {"retry-after": "2", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"},
            2.0,
        ),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert asked(headers) == seconds


def http_date(offset_s: float) -> str:
    return formatdate(NOW + offset_s, usegmt=True)


def test_an_http_date_is_read_against_our_clock_where_the_endpoint_shows_none() -> None:
    assert asked({"retry-after": http_date(30)}) == 30.0
    assert asked({"retry-after": http_date(-30)}) == 0.0
    assert asked({"retry-after": http_date(30)}, now=None) is None


def test_an_http_date_is_read_against_the_endpoints_clock_where_it_shows_one() -> None:
    """Clocks need not agree: ours may be an hour off."""
    for ours in (NOW, NOW - 3600, NOW + 3600, None):
        assert asked({"date": http_date(0), "retry-after": http_date(20)}, now=ours) == 20.0
    assert asked({"date": "yesterday", "retry-after": http_date(20)}) == 20.0


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_a_date_without_a_zone_is_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert asked({"retry-after": "Sun, 01 Mar 2026 12:00:10 -0000"}) == 10.0
        assert asked({"retry-after": "Sun, 01 Mar 2026 12:00:10"}) == 10.0
        tokens = {"anthropic-ratelimit-tokens-remaining": "0"}
        assert asked(tokens | {"anthropic-ratelimit-tokens-reset": "2026-03-01T12:00:10"}) == 10.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("1.5s", 1.5),
        ("20ms", 0.02),
        ("1m2.5s", 62.5),
        ("2h3m4s", 7384.0),
        ("1d", 86400.0),
        ("45", 45.0),
        ("-1", 0.0),
        ("", None),
        ("?", None),
    ],
)
def test_openai_resets(text: str, seconds: float | None) -> None:
    reset = {"x-ratelimit-reset-tokens": text}
    expected = None if seconds is None else pytest.approx(seconds)
    assert asked(reset | {"x-ratelimit-remaining-tokens": "0"}) == expected
    assert asked(reset | {"x-ratelimit-remaining-tokens": "1"}) is None
    assert asked(reset) is None


def test_the_longest_of_the_spent_budgets_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "3s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "5s",
    }
    assert asked(headers) == 5.0


@pytest.mark.parametrize("budget", ["requests", "tokens", "input-tokens", "output-tokens"])
def test_anthropic_resets(budget: str) -> None:
    reset = (datetime.fromtimestamp(NOW, UTC) + timedelta(seconds=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    remaining, at = f"anthropic-ratelimit-{budget}-remaining", f"anthropic-ratelimit-{budget}-reset"
    assert asked({remaining: "0", at: reset}) == 12.0
    assert asked({remaining: "3", at: reset}) is None
    assert asked({remaining: "0", at: "2026-03-01T13:00:12+01:00"}) == 12.0
    assert asked({remaining: "0", at: "long ago"}) is None
    assert asked({remaining: "0", at: "2020-01-01T00:00:00Z"}) == 0.0
    assert asked({remaining: "0", at: reset}, now=None) is None


ODD = [
    "1e308",
    "1e999",
    "9" * 400,
    "0",
    "1d",
    "Sun, 32 Mar 2026 12:00:10 GMT",
    "Fri, 31 Dec 9999 23:59:59 -2359",
]
HEADER_TEXT = st.text(st.characters(exclude_characters="\r\n\0"), max_size=30) | st.sampled_from(ODD)
NAMES = (
    "date retry-after retry-after-ms x-ratelimit-remaining-requests x-ratelimit-reset-requests "
    "anthropic-ratelimit-requests-remaining anthropic-ratelimit-requests-reset"
)


@given(st.dictionaries(st.sampled_from(NAMES.split()), HEADER_TEXT))
def test_a_wait_is_a_finite_number_of_seconds_whatever_comes(headers: dict[str, str]) -> None:
    wait = retry_after(CIMultiDict(headers), now=NOW)
    assert wait is None or 0.0 <= wait < float("inf")


@given(st.floats(0, 1e6))
def test_dates_round_trip(offset: float) -> None:
    when = datetime.fromtimestamp(NOW + round(offset), UTC)
    assert asked({"retry-after": format_datetime(when, usegmt=True)}) == round(offset)
