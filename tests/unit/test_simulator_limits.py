"""The simulator's limits against a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.simulator.headers import go_duration, rate_limit_headers, retry_headers, rfc3339
from mmbu_async.simulator.limits import Bucket, Limits, Places, QueueFullError


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _limits(
    clock: Clock, *, rpm: float | None = None, tpm: float | None = None, burst_s: float = 60.0
) -> Limits:
    return Limits(rpm=rpm, tpm=tpm, burst_s=burst_s, clock=clock)


def test_a_full_bucket_lets_a_minute_go_and_then_one_at_a_time() -> None:
    clock = Clock()
    limits = _limits(clock, rpm=60)
    assert [limits.admit(1) for _ in range(60)] == [None] * 60
    refusal = limits.admit(1)
    assert refusal is not None
    assert (refusal.what, refusal.never) == ("requests", False)
    assert refusal.wait_s == pytest.approx(1.0)
    clock.now += 0.99
    assert limits.admit(1) is not None
    clock.now += 0.01
    assert limits.admit(1) is None


@given(
    rpm=st.integers(1, 3000),
    burst_s=st.floats(0.1, 60),
    steps=st.lists(st.floats(0, 5), min_size=1, max_size=60),
)
def test_never_more_than_the_capacity_and_what_flowed_in(
    rpm: int, burst_s: float, steps: list[float]
) -> None:
    clock = Clock()
    limits = _limits(clock, rpm=rpm, burst_s=burst_s)
    admitted = 0
    for step in steps:
        clock.now += step
        for _ in range(20):
            admitted += limits.admit(0) is None
        capacity = max(1.0, rpm * burst_s / 60)
        assert admitted <= capacity + (clock.now - 100) * rpm / 60 + 1e-3


@given(rpm=st.integers(1, 3000), taken=st.integers(0, 40))
def test_whoever_waits_as_told_is_let_in(rpm: int, taken: int) -> None:
    clock = Clock()
    limits = _limits(clock, rpm=rpm, burst_s=1)
    for _ in range(taken):
        limits.admit(0)
    refusal = limits.admit(0)
    if refusal is not None:
        clock.now += refusal.wait_s
        assert limits.admit(0) is None


def test_output_is_charged_afterwards_and_goes_into_debt() -> None:
    clock = Clock()
    limits = _limits(clock, tpm=600)
    assert limits.admit(500) is None
    limits.charge_output(400)
    refusal = limits.admit(100)
    assert refusal is not None
    assert refusal.what == "tokens"
    assert refusal.wait_s == pytest.approx(40.0)
    clock.now += 40
    assert limits.admit(100) is None


def test_a_refused_request_is_charged_to_neither_bucket() -> None:
    limits = _limits(Clock(), rpm=60, tpm=100)
    assert limits.admit(100) is None
    assert limits.admit(50) is not None
    assert limits.requests is not None
    assert limits.requests.level == 59


def test_what_can_never_fit_is_said_to_be_so() -> None:
    refusal = _limits(Clock(), tpm=100).admit(101)
    assert refusal is not None
    assert refusal.never


def test_a_bucket_never_holds_more_than_its_capacity() -> None:
    clock = Clock()
    bucket = Bucket(60, 10, clock)
    clock.now += 1e6
    assert bucket.level == 10
    bucket.take(4)
    assert bucket.until_full == pytest.approx(4.0)


async def test_places_are_given_in_order_of_arrival() -> None:
    places = Places(1, None)
    order: list[int] = []

    async def one(number: int) -> None:
        await places.enter()
        order.append(number)
        await asyncio.sleep(0)
        places.leave()

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(one(number))
    assert order == list(range(20))


async def test_no_place_is_lost_when_waiting_is_given_up() -> None:
    places = Places(1, None)
    await places.enter()
    tired = asyncio.create_task(places.enter())
    patient = asyncio.create_task(places.enter())
    await asyncio.sleep(0)
    tired.cancel()
    places.leave()
    await patient
    with pytest.raises(asyncio.CancelledError):
        await tired
    # Given the place and cancelled in the same turn of the loop: the place goes on to the next.
    late, next_one = asyncio.create_task(places.enter()), asyncio.create_task(places.enter())
    await asyncio.sleep(0)
    places.leave()
    late.cancel()
    await next_one
    with pytest.raises(asyncio.CancelledError):
        await late


async def test_a_full_queue_turns_away() -> None:
    places = Places(1, 1)
    await places.enter()
    waiting = asyncio.create_task(places.enter())
    await asyncio.sleep(0)
    with pytest.raises(QueueFullError):
        await places.enter()
    places.leave()
    await waiting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.12, "120ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (360, "6m0s"),
        (3661.25, "1h1m1.25s"),
        (59.9999, "1m0s"),
    ],
)
def test_reset_times_as_openai_writes_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


def test_reset_times_as_anthropic_writes_them_are_never_too_early() -> None:
    assert rfc3339(1_767_225_600.0) == "2026-01-01T00:00:00Z"
    assert rfc3339(1_767_225_600.2) == "2026-01-01T00:00:01Z"


def test_rate_limit_headers_of_both_vendors() -> None:
    clock = Clock()
    limits = _limits(clock, rpm=60, tpm=6000)
    limits.admit(1500)
    assert rate_limit_headers("openai", limits, 0.0) == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "6000",
        "x-ratelimit-remaining-tokens": "4500",
        "x-ratelimit-reset-tokens": "15s",
    }
    assert rate_limit_headers("anthropic", limits, 1_767_225_600.0) == {
        "anthropic-ratelimit-requests-limit": "60",
        "anthropic-ratelimit-requests-remaining": "59",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:01Z",
        "anthropic-ratelimit-tokens-limit": "6000",
        "anthropic-ratelimit-tokens-remaining": "4500",
        "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:15Z",
    }


@pytest.mark.parametrize(
    ("style", "wire", "expected"),
    [
        ("seconds", "openai", {"retry-after": "2"}),
        ("ms", "openai", {"retry-after-ms": "1200"}),
        ("both", "openai", {"retry-after": "2", "retry-after-ms": "1200"}),
        ("date", "openai", {"retry-after": "Thu, 01 Jan 2026 00:00:02 GMT"}),
        ("reset", "openai", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.2s"}),
        (
            "reset",
            "anthropic",
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:02Z",
            },
        ),
    ],
)
def test_every_way_to_say_when_to_come_again(style: str, wire: str, expected: dict[str, str]) -> None:
    assert retry_headers(style, wire, 1.2, 1_767_225_600.0) == expected
