"""The counters that displays read."""

from __future__ import annotations

import pytest

from mmbu_async.model import Attempt, Completion, Failure, FailureKind, Finish, Timing, Usage
from mmbu_async.pipeline.monitor import RATE_WINDOW_S, Monitor

TIMING = Timing(started_at=0.0, total_s=1.0)
REPLY = Completion(text="x", finish=Finish.STOP, usage=Usage(input_tokens=100, output_tokens=20))


def attempt(outcome: Completion | Failure, cost: float | None = 0.5) -> Attempt:
    return Attempt(number=1, timing=TIMING, outcome=outcome, cost_usd=cost)


def test_attempts_are_counted() -> None:
    monitor = Monitor(run="r")
    monitor.attempt(attempt(Failure(kind=FailureKind.RATE_LIMIT, message=""), 0.0), final=False)
    monitor.attempt(attempt(Failure(kind=FailureKind.TIMEOUT, message=""), 0.0), final=False)
    monitor.attempt(attempt(REPLY), final=True)
    monitor.attempt(attempt(Failure(kind=FailureKind.BAD_REQUEST, message=""), 0.0), final=True)
    assert (monitor.calls, monitor.retries, monitor.rate_limited) == (4, 2, 1)
    assert (monitor.input_tokens, monitor.output_tokens, monitor.spent) == (100, 20, 0.5)
    assert monitor.price_known


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    monitor = Monitor(run="r")
    monitor.attempt(attempt(REPLY), final=True)
    monitor.attempt(attempt(REPLY, None), final=True)
    assert not monitor.price_known
    assert monitor.spent == 0.5


def test_open_rows() -> None:
    monitor = Monitor(run="r", total=10, done_before=3)
    monitor.done, monitor.failed = 2, 1
    assert monitor.open == 4
    monitor.done = 50
    assert monitor.open == 0


def test_the_rate_is_of_the_last_minute() -> None:
    monitor = Monitor(run="r", total=10_000, started=0.0)
    assert monitor.rate(0.0) == 0.0
    for second in range(1, 31):
        monitor.done += 10
        assert monitor.rate(float(second)) == pytest.approx(10.0)
    # The pace changes; a window later the old one is forgotten.
    for second in range(31, 31 + int(RATE_WINDOW_S) + 2):
        monitor.done += 1
        monitor.failed += 1
        last = monitor.rate(float(second))
    assert last == pytest.approx(2.0)


def test_the_first_look_has_a_rate_too() -> None:
    # Plain log lines look for the first time after 15 s, and a short run ends before that.
    monitor = Monitor(run="r", started=100.0)
    monitor.done, monitor.failed = 28, 2
    assert monitor.rate(115.0) == pytest.approx(2.0)


def test_the_rate_after_a_long_silence() -> None:
    monitor = Monitor(run="r", started=0.0)
    monitor.rate(0.0)
    monitor.done = 100
    assert monitor.rate(1000.0) == pytest.approx(0.1)


def test_what_the_tail_waits_for() -> None:
    monitor = Monitor(run="r")
    assert monitor.slowest(10.0) is None
    monitor.under_way |= {"a": 5.0, "b": 2.0, "c": 9.0}
    assert monitor.slowest(10.0) == ("b", 8.0)
