"""Stages in virtual time, against servers whose queue is known exactly: hours in milliseconds, no noise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from mmbu_async.bench.arrivals import Arrivals
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.money import Money
from mmbu_async.bench.plan import Closed, Ends, Load, Open, StagePlan, Warmup
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.stage import Stage
from mmbu_async.errors import ConfigError
from mmbu_async.model import Usage
from tests.bench_kit import PRICE, Machine, target, virtual_sender, work
from tests.virtual_time import run_virtually

POISSON = Arrivals(kind="poisson")


def fixed(seconds: float) -> Callable[[int], float]:
    return lambda number: seconds


def lognormal(median: float, sigma: float, seed: int = 1) -> Callable[[int], float]:
    drawn = np.random.default_rng(seed).lognormal(np.log(median), sigma, 100_000)
    return lambda number: float(drawn[number])


def run(
    machine: Machine,
    load: Load,
    *,
    cap: float | None = None,
    stream: bool = False,
    seed: int = 1,
    during: Callable[[Stage], Any] | None = None,
    **plan: Any,
) -> Measured:
    """One stage; without ends of its own it runs for 100 requests."""
    ends = plan.pop("ends", None) or Ends(requests=100)

    async def main() -> Measured:
        loop = asyncio.get_running_loop()
        stage = Stage(
            plan=StagePlan(load=load, ends=ends, **plan),
            sender=virtual_sender(machine, stream=stream),
            work=work(stream=stream),
            money=Money(cap),
            random=Random(seed),
            clock=loop.time,
            wall=loop.time,
            cpu=lambda: 0.0,
        )
        if during is not None:
            during(stage)
        return await stage.run()

    return run_virtually(main())


def latencies(measured: Measured) -> np.ndarray:
    return np.array([record.latency_s for record in measured.records if measured.counts(record)])


# ---------------------------------------------------------------- known wounds


def test_waiting_under_a_cap_of_our_own_counts_from_the_schedule() -> None:
    """8 requests at 10/s into a server of 500 ms with one at a time: 506 ms by the clock that starts after
    the semaphore, 1.9 s by the schedule."""
    machine = Machine(fixed(0.5))
    measured = run(machine, Open(rate=10, most_in_flight=1), ends=Ends(requests=8))
    found = latencies(measured)
    assert found == pytest.approx([0.5 * (k + 1) - 0.1 * k for k in range(8)], abs=0.002)
    assert found.mean() == pytest.approx(1.9, abs=0.002)
    assert machine.most_under_way == 1
    assert [record.total_s for record in measured.records] == pytest.approx([0.5] * 8, abs=0.002)


def test_a_stall_shows_in_the_p99_of_an_open_loop_and_hides_in_a_closed_one() -> None:
    stalled = ((5.0, 7.0),)
    opened = run(Machine(fixed(0.05), freezes=stalled), Open(rate=100), ends=Ends(requests=2000))
    closed = run(Machine(fixed(0.05), freezes=stalled), Closed(concurrency=5), ends=Ends(requests=2000))
    assert np.quantile(latencies(opened), 0.99) == pytest.approx(1.85, abs=0.1)
    assert np.quantile(latencies(closed), 0.99) < 0.1


def test_a_burst_starts_at_once() -> None:
    machine = Machine(fixed(1.0))
    measured = run(machine, Closed(concurrency=200), ends=Ends(requests=200))
    assert machine.most_under_way == 200
    assert {record.intended_s for record in measured.records} == {0.0}
    assert max(machine.arrived) - min(machine.arrived) < 0.001


def test_no_silent_cap_of_a_hundred() -> None:
    machine = Machine(fixed(1.0))
    measured = run(machine, Open(rate=500), ends=Ends(requests=1000))
    assert machine.most_under_way == pytest.approx(500, abs=2)
    assert max(record.in_flight for record in measured.records) == pytest.approx(500, abs=2)


# ---------------------------------------------------------------- truth


@pytest.mark.parametrize("arrivals", [Arrivals(), POISSON, Arrivals(kind="gamma", shape=0.3)])
@pytest.mark.parametrize("load_share", [0.3, 0.9])
def test_latencies_are_those_of_the_queue(arrivals: Arrivals, load_share: float) -> None:
    """Eight servers, lognormal service: what each request waited is known, and is what its record says."""
    service = lognormal(0.4, 0.5)
    rate = load_share * 8 / (0.4 * np.exp(0.125))
    machine = Machine(service, servers=8)
    measured = run(
        machine, Open(rate=rate, arrivals=arrivals), ends=Ends(requests=2000), watch_saturation=False
    )
    assert latencies(measured) == pytest.approx(np.array(machine.waited), abs=0.001)
    for share in (0.5, 0.9, 0.95, 0.99, 0.999):
        true = np.quantile(machine.waited, share)
        assert np.quantile(latencies(measured), share) == pytest.approx(true, rel=0.002)
    # The achieved rate is the asked one.
    starts = [record.started_s for record in measured.records]
    if arrivals.kind == "constant":
        assert 1999 / (starts[-1] - starts[0]) == pytest.approx(rate, rel=1e-3)


def test_a_closed_loop_keeps_so_many_under_way_and_not_one_more() -> None:
    machine = Machine(lognormal(0.2, 0.5))
    measured = run(machine, Closed(concurrency=7), ends=Ends(requests=500))
    assert machine.most_under_way == 7
    assert max(record.in_flight for record in measured.records) == 7
    assert len(measured.records) == 500


# ---------------------------------------------------------------- what does not count


def test_a_ramp_starts_users_one_after_the_other_and_does_not_count() -> None:
    machine = Machine(fixed(0.1))
    measured = run(machine, Closed(concurrency=10), ramp_s=5.0, ends=Ends(seconds=10.0))
    firsts = sorted(machine.arrived)
    assert sum(at < 2.4 for at in firsts) < sum(7.0 < at < 9.4 for at in firsts) * 0.4
    assert measured.begin_s == 5.0
    assert all(record.intended_s >= 5.0 for record in measured.records if measured.counts(record))
    assert not all(measured.counts(record) for record in measured.records)


@pytest.mark.parametrize(
    ("warmup", "left_out"),
    [
        (Warmup(), 0),
        (Warmup(requests=30), 30),
        (Warmup(seconds=2.0), 20),
        (Warmup(requests=30, seconds=2), 30),
    ],
)
def test_warm_up_is_sent_and_not_counted(warmup: Warmup, left_out: int) -> None:
    measured = run(Machine(fixed(0.05)), Open(rate=10), warmup=warmup)
    assert len(measured.records) == 100
    assert sum(not measured.counts(record) for record in measured.records) == left_out


@pytest.mark.parametrize(
    ("text", "warmup"),
    [
        ("20", Warmup(requests=20)),
        ("10s", Warmup(seconds=10)),
        ("20,1.5s", Warmup(requests=20, seconds=1.5)),
        ("0", Warmup()),
    ],
)
def test_a_warm_up_is_read(text: str, warmup: Warmup) -> None:
    assert Warmup.parse(text) == warmup


@pytest.mark.parametrize("text", ["", "x", "1.5", "-1", "5s,6s", "1,2", "nan", "10m"])
def test_a_warm_up_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match="write a number of requests"):
        Warmup.parse(text)


# ---------------------------------------------------------------- ends


def test_ends_by_time_with_the_schedule_and_waits_for_what_is_under_way() -> None:
    measured = run(Machine(fixed(3.0)), Open(rate=10), ends=Ends(seconds=5.0))
    assert measured.ended is End.TIME
    assert len(measured.records) == 50
    assert all(record.ok for record in measured.records)
    assert measured.end_s == 5.0
    assert measured.drained_s == pytest.approx(2.9, abs=0.1)


def test_a_closed_loop_ends_by_time_though_no_reply_comes() -> None:
    measured = run(Machine(fixed(100.0)), Closed(concurrency=3), ends=Ends(seconds=5.0), drain_s=10.0)
    assert measured.ended is End.TIME
    assert [record.phase for record in measured.records] == [Phase.ABANDONED] * 3
    assert all(record.total_s == pytest.approx(15.0, abs=0.1) for record in measured.records)


def test_ends_when_the_median_is_known_well_enough() -> None:
    loose = run(Machine(lognormal(0.2, 0.5)), Open(rate=50), ends=Ends(requests=20_000, interval=0.10))
    tight = run(Machine(lognormal(0.2, 0.5)), Open(rate=50), ends=Ends(requests=20_000, interval=0.02))
    assert loose.ended is tight.ended is End.INTERVAL
    # 1.25 * 0.5 / sqrt(n) * 1.96 = 0.02 at n = 3,750.
    assert 50 <= len(loose.records) < 600
    assert 2_000 < len(tight.records) < 8_000


def test_ends_before_a_request_that_might_pass_the_money_cap() -> None:
    cost = 100e-6 + 20e-5
    measured = run(Machine(fixed(0.5)), Open(rate=2), cap=0.1, ends=Ends(requests=1000))
    assert measured.ended is End.COST
    spent = sum(record.cost_usd or 0.0 for record in measured.records)
    assert spent == pytest.approx(len(measured.records) * cost)
    assert 0.05 < spent <= 0.1


def test_requests_of_unknown_cost_count_with_their_worst_under_a_cap() -> None:
    money, measured, ask = Money(0.05), target(), work().ask
    worst = PRICE.cost(Usage(input_tokens=90, output_tokens=2048))
    assert money.hold(measured, ask) == pytest.approx(worst)
    money.settle(measured, worst, ask, None)
    assert money.unknown == 1
    assert money.spent == pytest.approx(worst)
    assert money.hold(measured, ask) is not None
    assert money.hold(measured, ask) is None, "two worst cases fit into the cap, three do not"
    free = Money(None)
    assert [free.hold(measured, ask) for _ in range(100)] == [pytest.approx(worst)] * 100
    free.settle(measured, worst, ask, None)
    assert (free.unknown, free.spent) == (1, 0.0)


def test_an_endpoint_that_only_says_429_lives() -> None:
    machine = Machine(fixed(0.1), rate_limit=lambda now: True)
    limited = run(machine, Closed(concurrency=4), ends=Ends(requests=200))
    assert {record.phase for record in limited.records} == {Phase.RATE_LIMIT}
    assert limited.ended is End.COUNT


def test_interrupted_from_outside_what_waits_is_not_started_and_has_its_record() -> None:
    def during(stage: Stage) -> None:
        asyncio.get_running_loop().call_later(1.0, stage.end, End.INTERRUPTED)

    measured = run(
        Machine(fixed(1.5)), Open(rate=10, most_in_flight=2), ends=Ends(requests=100), during=during
    )
    assert measured.ended is End.INTERRUPTED
    phases = [record.phase for record in measured.records]
    assert phases.count(Phase.OK) == 2
    assert phases.count(Phase.UNSENT) == len(phases) - 2 == 8
    assert [record.number for record in measured.records] == list(range(10))


# ---------------------------------------------------------------- more than is served


def service_mean() -> float:
    return float(0.4 * np.exp(0.125))


@pytest.mark.parametrize("excess", [1.2, 1.5, 3.0])
@pytest.mark.parametrize("stream", [False, True])
def test_more_than_is_served_is_told_and_ends_the_stage(excess: float, stream: bool) -> None:
    rate = excess * 8 / service_mean()
    measured = run(
        Machine(lognormal(0.4, 0.5), servers=8, token_s=0.001),
        Open(rate=rate, arrivals=POISSON),
        ends=Ends(seconds=300.0),
        warmup=Warmup(seconds=2.0),
        stream=stream,
    )
    assert measured.ended is End.SATURATED
    assert measured.end_s < {1.2: 60.0, 1.5: 25.0, 3.0: 12.0}[excess]


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_a_load_that_is_served_is_seldom_called_too_much(share: float) -> None:
    rate = share * 8 / service_mean()
    wrong = 0
    for seed in range(8):
        measured = run(
            Machine(lognormal(0.4, 0.5, seed), servers=8),
            Open(rate=rate, arrivals=POISSON),
            ends=Ends(seconds=90.0),
            warmup=Warmup(seconds=2.0),
            seed=seed,
        )
        wrong += measured.ended is End.SATURATED
    assert wrong <= 1


def test_the_filling_of_an_empty_system_is_not_taken_for_too_much() -> None:
    measured = run(Machine(fixed(5.0)), Open(rate=20), ends=Ends(seconds=60.0))
    assert measured.ended is End.TIME


# ---------------------------------------------------------------- one record each


def test_every_request_is_one_record_and_kept_once() -> None:
    kept: list[Record] = []

    def during(stage: Stage) -> None:
        stage.keep = lambda ask, sent: kept.append(sent.record)

    machine = Machine(lognormal(0.1, 1.0), rate_limit=lambda now: 1.0 < now % 3 < 1.5)
    measured = run(machine, Open(rate=40, arrivals=POISSON), ends=Ends(requests=400), during=during)
    assert [record.number for record in measured.records] == list(range(400))
    assert sorted(record.number for record in kept) == list(range(400))
    assert {record.phase for record in measured.records} == {Phase.OK, Phase.RATE_LIMIT}


def test_gaps_between_tokens_are_gathered() -> None:
    measured = run(Machine(fixed(0.2), token_s=0.03), Closed(concurrency=4), stream=True)
    whole = measured.gaps.whole()
    assert whole.count == 100 * 19
    assert whole.quantile(0.5) == pytest.approx(0.03, rel=0.01)
    firsts = [record.first_token_s for record in measured.records]
    assert firsts == [pytest.approx(0.2, abs=0.001)] * 100
    assert [record.token_time_s for record in measured.records] == [pytest.approx(0.03, rel=0.01)] * 100
