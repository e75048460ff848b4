"""Figures beside numpy on the records themselves; how often intervals hold; verdicts by their signs."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import Any

import numpy as np
import pytest

from mmbu_async.bench.figures import Figures, figures
from mmbu_async.bench.gaps import Gaps
from mmbu_async.bench.histogram import ERROR, Histogram
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.money import Money
from mmbu_async.bench.plan import Closed, Ends, Open, StagePlan, Warmup
from mmbu_async.bench.rates import ANY, Limits
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.sender import Sender
from mmbu_async.bench.spread import rate, spread, spread_of
from mmbu_async.bench.stage import Stage
from mmbu_async.bench.verdict import Verdict, judge
from mmbu_async.bench.watching import Tick
from mmbu_async.stats import Estimate
from tests.bench_kit import Machine, target, work


def value(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


def record(number: int, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "number": number,
        "intended_s": number * 0.1,
        "total_s": 1.0,
        "phase": Phase.OK,
        "sent_s": 0.02,
        "upload_s": 0.01,
        "first_byte_s": 0.3,
        "first_output_s": 0.4,
        "last_token_s": 0.9,
        "output_tokens": 51,
        "input_tokens": 1000,
        "images": 2,
        "pixels": 500_000,
        "bytes_up": 100_000,
        "bytes_down": 4_000,
        "cost_usd": 0.01,
    }
    return Record(**(values | changes))


def measured(records: list[Record], **changes: Any) -> Measured:
    values: dict[str, Any] = {
        "plan": StagePlan(load=Open(rate=10), ends=Ends(requests=len(records))),
        "target": "m",
        "began_at": 0.0,
        "begin_s": 0.0,
        "end_s": max((one.intended_s for one in records), default=0.0),
        "ended": End.COUNT,
        "records": tuple(records),
        "gaps": Gaps(),
        "ticks": (),
        "lags": Histogram.of([0.0001] * 100),
        "drained_s": 1.0,
    }
    return Measured(**(values | changes))


def figures_of(stage: Measured, limits: Limits = ANY) -> Figures:
    return figures([stage], limits)


# ---------------------------------------------------------------- spreads


@pytest.mark.parametrize("count", [1, 5, 30, 2000])
def test_a_spread_is_numpys_within_the_stated_error(count: int) -> None:
    values = np.random.default_rng(1).lognormal(0, 0.7, count)
    found = spread(values)
    assert found is not None
    assert (found.count, found.least, found.largest) == (count, values.min(), values.max())
    assert value(found.mean) == pytest.approx(values.mean())
    for name, share in SHARES.items():
        true = np.quantile(values, share, method="inverted_cdf")
        assert found.percentile(name) == pytest.approx(true, rel=ERROR * 1.001)
    assert (found.mean.low is None) == (count < 8)


def test_a_spread_of_nothing_is_none() -> None:
    assert spread([]) is None
    assert spread_of([Histogram()]) is None


def test_histograms_by_stretch_give_the_same_spread() -> None:
    values = np.random.default_rng(2).lognormal(0, 0.7, 600)
    mine = spread(values)
    theirs = spread_of([Histogram.of(part) for part in np.split(values, 60)])
    assert mine is not None
    assert theirs is not None
    assert theirs.percentiles == mine.percentiles
    assert value(theirs.mean) == pytest.approx(value(mine.mean))


def autocorrelated(random: np.random.Generator, count: int, memory: float) -> np.ndarray:
    steps = random.normal(size=count)
    for place in range(1, count):
        steps[place] += memory * steps[place - 1]
    return np.exp(0.3 * steps)


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_intervals_hold_the_truth_about_as_often_as_they_say(memory: float) -> None:
    """Also of requests that resemble their neighbours, which single draws would make far too sure."""
    random = np.random.default_rng(3)
    sigma = 0.3 / np.sqrt(1 - memory**2)
    truths = {"p50": 1.0, "p90": float(np.exp(1.2816 * sigma))}
    hits = dict.fromkeys(truths, 0)
    for _ in range(100):
        found = spread(autocorrelated(random, 1200, memory))
        assert found is not None
        for name, true in truths.items():
            estimate = found.percentiles[name]
            assert estimate.low is not None
            assert estimate.high is not None
            hits[name] += estimate.low <= true <= estimate.high
    assert all(count >= 85 for count in hits.values()), hits


def test_a_rate_is_counted_over_a_length_of_time() -> None:
    moments = np.arange(0, 50, 0.1)
    found = rate(moments, [2.0] * len(moments), 50.0)
    assert value(found) == pytest.approx(20.0)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= value(found) <= found.high
    assert rate([1.0], [1.0], 0.0).value is None


# ---------------------------------------------------------------- figures


def test_figures_of_a_steady_stage() -> None:
    found = figures_of(measured([record(number) for number in range(500)]))
    assert (found.sent, found.warmup, found.counted, found.phases) == (500, 0, 500, {Phase.OK: 500})
    assert found.errors.value == 0.0
    assert value(found.rates.requests) == pytest.approx(10 * 48.9 / 49.9, rel=0.01)
    assert value(found.rates.images) == pytest.approx(2 * value(found.rates.requests))
    assert value(found.rates.pixels) == pytest.approx(5e5 * value(found.rates.requests))
    assert value(found.rates.output_tokens) == pytest.approx(51 * value(found.rates.requests))
    assert value(found.rates.bytes_up) == pytest.approx(1e5 * value(found.rates.requests))
    times = found.times
    assert times.latency is not None
    assert times.first_token is not None
    assert times.token is not None
    assert times.upload is not None
    assert times.latency.percentile("p50") == pytest.approx(1.0)
    assert times.first_token.percentile("p50") == pytest.approx(0.4)
    assert times.token.percentile("p50") == pytest.approx(0.01)
    assert times.upload.percentile("p99") == pytest.approx(0.01)
    assert times.connect is None
    assert times.first_thought is None
    assert found.on_the_wire == pytest.approx(0.99 * 10, rel=0.02)
    assert found.cost_usd == pytest.approx(5.0)
    assert (found.output_tokens, found.input_tokens, found.short) == (51, 1000, False)


def test_bad_requests_are_counted_by_phase_and_enter_no_time() -> None:
    bad = [
        record(
            100, phase=Phase.RATE_LIMIT, total_s=0.001, first_output_s=None, last_token_s=None, cost_usd=0.0
        ),
        record(101, phase=Phase.CUT, total_s=90.0, cost_usd=None),
        record(102, phase=Phase.NO_TOKEN, total_s=0.001, first_output_s=None, last_token_s=None),
        record(103, phase=Phase.UNSENT, total_s=0.0, cost_usd=None),
    ]
    found = figures_of(measured([*(record(number) for number in range(100)), *bad]))
    assert found.phases == {
        Phase.UNSENT: 1,
        Phase.RATE_LIMIT: 1,
        Phase.CUT: 1,
        Phase.NO_TOKEN: 1,
        Phase.OK: 100,
    }
    assert list(found.phases)[-1] is Phase.OK
    assert found.errors.value == pytest.approx(4 / 104)
    assert found.times.latency is not None
    assert found.times.first_token is not None
    assert (found.times.latency.least, found.times.latency.largest) == (1.0, 1.0)
    assert found.times.first_token.least == 0.4
    assert (found.sent, found.cost_unknown) == (103, 1)


def test_warm_up_is_in_no_figure_but_the_money() -> None:
    slow = [record(number, total_s=9.0) for number in range(50)]
    rest = [record(number) for number in range(50, 300)]
    plan = StagePlan(load=Open(rate=10), ends=Ends(requests=300), warmup=Warmup(requests=50))
    found = figures_of(measured(slow + rest, plan=plan))
    assert (found.warmup, found.counted) == (50, 250)
    assert found.window_s == pytest.approx(24.9)
    assert found.times.latency is not None
    assert found.times.latency.largest == 1.0
    assert found.cost_usd == pytest.approx(3.0)


def test_reasoning_and_reply_have_first_tokens_of_their_own() -> None:
    found = figures_of(
        measured([record(number, first_thought_s=0.1, delay_s=0.05) for number in range(100)])
    ).times
    assert found.first_token is not None
    assert found.first_thought is not None
    assert found.first_output is not None
    assert found.first_token.percentile("p50") == pytest.approx(0.15)
    assert found.first_thought.percentile("p50") == pytest.approx(0.1)
    assert found.first_output.percentile("p50") == pytest.approx(0.4)


def test_goodput_counts_replies_that_keep_every_limit() -> None:
    records = [record(number, total_s=1.0 if number % 4 else 3.0) for number in range(400)]
    found = figures_of(measured(records), Limits(latency_s=2.0, first_token_s=1.0))
    assert value(found.rates.good) == pytest.approx(0.75 * value(found.rates.requests), rel=0.02)
    assert value(figures_of(measured(records), Limits(first_token_s=0.1)).rates.good) == 0.0


@pytest.mark.parametrize("users", [2, 8, 16])
@pytest.mark.parametrize("waves", [4, 5, 10])
@pytest.mark.parametrize("warm", [0, 1, 2])
def test_users_that_march_in_step_are_counted_at_their_rate(users: int, waves: int, warm: int) -> None:
    """Whole waves of replies fall on the very moments between which they are counted."""
    noise = Random(users * waves)
    records = [
        record(
            users * wave + user,
            intended_s=wave * 0.4 + user * 1e-5,
            total_s=0.4 + noise.uniform(-2e-6, 2e-6),
        )
        for wave in range(waves)
        for user in range(users)
    ]
    plan = StagePlan(
        load=Closed(concurrency=users),
        ends=Ends(requests=len(records)),
        warmup=Warmup(requests=users * warm),
    )
    found = figures_of(measured(records, plan=plan))
    assert found.short == (waves - warm < 3)
    if not found.short:
        assert value(found.rates.requests) == pytest.approx(users / 0.4, rel=0.01)


def test_a_stage_whose_replies_all_come_after_its_last_start_says_so() -> None:
    found = figures_of(measured([record(number, total_s=60.0) for number in range(100)]))
    assert found.short
    assert found.window_s == pytest.approx(69.9)
    assert value(found.rates.requests) == pytest.approx(100 / 69.9)


def test_blocks_that_took_turns_make_one_stage() -> None:
    """Each with a warm-up of its own, and nothing of one block counts in another's time."""
    plan = StagePlan(load=Open(rate=10), ends=Ends(requests=100), warmup=Warmup(requests=20))
    block = measured(
        [record(number, total_s=2.0 if number < 20 else 1.0) for number in range(100)], plan=plan
    )
    one, both = figures([block]), figures([block, block])
    assert (both.counted, both.warmup, both.sent) == (160, 40, 200)
    assert both.window_s == pytest.approx(2 * one.window_s)
    assert value(both.rates.requests) == pytest.approx(value(one.rates.requests))
    assert both.on_the_wire == pytest.approx(one.on_the_wire)
    assert both.times.latency is not None
    assert both.times.latency.largest == 1.0


def test_an_empty_stage_has_no_figures_and_does_not_fail() -> None:
    found = figures_of(measured([]))
    assert (found.counted, found.errors.value, found.times.latency) == (0, None, None)
    assert found.rates.requests.value is None


# ---------------------------------------------------------------- verdicts


def verdict(records: list[Record], **changes: Any) -> Verdict:
    stage = measured(records, **changes)
    return judge([stage], figures([stage]))


STEADY = [record(number) for number in range(300)]


def ticks(cpu: float) -> tuple[Tick, ...]:
    return tuple(
        Tick(at_s=at / 4, outstanding=10, in_flight=10, lag_s=0.001, cpu=cpu) for at in range(1, 110)
    )


def test_nothing_is_said_of_a_client_that_had_time() -> None:
    found = verdict(STEADY, ticks=ticks(0.3))
    assert found.client_limited == ()
    assert found.remarks == ()
    assert found.itself.cpu == pytest.approx(0.3)
    assert found.itself.lag_p99_s == pytest.approx(1e-4, rel=0.01)


@pytest.mark.parametrize(
    ("records", "changes", "words"),
    [
        (STEADY, {"ticks": ticks(0.97)}, "took 97 % of a core"),
        (STEADY, {"lags": Histogram.of([0.001] * 50 + [0.08] * 50)}, "80 ms late"),
        ([record(number, delay_s=0.1) for number in range(300)], {}, "started 100 ms late"),
        (
            STEADY,
            {"plan": StagePlan(load=Closed(concurrency=64), ends=Ends(requests=300))},
            "of 64 wanted requests",
        ),
    ],
)
def test_a_client_that_was_the_limit_says_why(
    records: list[Record], changes: dict[str, Any], words: str
) -> None:
    (why,) = verdict(records, **changes).client_limited
    assert words in why


def test_lateness_that_is_small_beside_what_is_measured_is_none() -> None:
    slow = [record(number, first_output_s=8.0, total_s=10.0) for number in range(300)]
    assert verdict(slow, lags=Histogram.of([0.08] * 100), end_s=60.0).client_limited == ()


def test_waiting_under_a_cap_that_the_user_set_is_not_our_slowness() -> None:
    plan = StagePlan(load=Open(rate=10, most_in_flight=4), ends=Ends(requests=300))
    assert verdict([record(number, delay_s=2.0) for number in range(300)], plan=plan).client_limited == ()


@pytest.mark.parametrize(
    ("records", "changes", "words"),
    [
        (STEADY, {"ended": End.SATURATED}, "over-saturated"),
        ([record(n, in_one_piece=True) for n in range(300)], {}, "300 of 300 streams came in one piece"),
        ([record(n, estimated=True) for n in range(300)], {}, "their tokens are estimated"),
        ([record(n, finish="length") for n in range(300)], {}, "the token limit cut 300 of 300"),
        ([record(n, total_s=60.0) for n in range(300)], {}, "too short for rates"),
    ],
)
def test_what_a_reader_must_know_is_said(records: list[Record], changes: dict[str, Any], words: str) -> None:
    assert any(words in remark for remark in verdict(records, **changes).remarks)


async def test_a_blocked_event_loop_is_seen() -> None:
    """Ten times a second something holds the loop for 60 ms, as a tokenizer on it would."""
    machine = Machine(lambda number: 0.05)
    loop = asyncio.get_running_loop()
    stage = Stage(
        plan=StagePlan(load=Open(rate=50), ends=Ends(seconds=1.5)),
        sender=Sender(target(), machine, loop.time),
        work=work(),
        money=Money(None),
        random=Random(1),
        clock=loop.time,
    )

    async def block() -> None:
        while stage.ended is None:
            await asyncio.sleep(0.1)
            time.sleep(0.06)

    async with asyncio.TaskGroup() as group:
        group.create_task(block())
        found = await stage.run()
    limited = judge([found], figures([found])).client_limited
    assert any("late" in why for why in limited)
    assert (found.lags.quantile(1.0) or 0) > 0.04
