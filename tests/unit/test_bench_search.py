"""The search in virtual time, against servers whose capacity and whose times at any rate are known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from mmbu_async.bench.arrivals import Arrivals
from mmbu_async.bench.found import Found
from mmbu_async.bench.measured import Measured
from mmbu_async.bench.money import Money
from mmbu_async.bench.objective import parse_all
from mmbu_async.bench.plan import Closed, Ends, Load, Open, StagePlan, Warmup
from mmbu_async.bench.search import Search, SearchPlan, SpentError, warmup_of
from mmbu_async.bench.stage import Stage
from tests.bench_kit import Machine, virtual_sender, work
from tests.virtual_time import run_virtually

POISSON = Arrivals(kind="poisson")
MEDIAN, SIGMA, SERVERS = 0.4, 0.5, 8
MEAN = float(MEDIAN * np.exp(SIGMA**2 / 2))
CAPACITY = SERVERS / MEAN


def lognormal(seed: int) -> Callable[[int], float]:
    drawn = np.random.default_rng(seed).lognormal(np.log(MEDIAN), SIGMA, 200_000)
    return lambda number: float(drawn[number])


def search(
    machine: Machine,
    *objectives: str,
    seed: int = 1,
    stop_after: int | None = None,
    cpu: Callable[[], float] = lambda: 0.0,
    **plan: Any,
) -> tuple[Found, list[tuple[Load, Measured]]]:
    """One search, and every stage of it."""
    stages: list[tuple[Load, Measured]] = []

    async def main() -> Found:
        loop = asyncio.get_running_loop()
        sender, requests = virtual_sender(machine), work()

        async def run(load: Load, count: int) -> Measured:
            if stop_after is not None and len(stages) >= stop_after:
                raise SpentError
            stage = Stage(
                plan=StagePlan(load=load, ends=Ends(requests=count), warmup=warmup_of(load, count)),
                sender=sender,
                work=requests,
                money=Money(None),
                random=Random(f"{seed} {len(stages)}"),
                clock=loop.time,
                wall=loop.time,
                cpu=cpu,
            )
            measured = await stage.run()
            stages.append((load, measured))
            return measured

        return await Search(SearchPlan(objectives=parse_all(objectives), **plan), run).find()

    return run_virtually(main()), stages


def truth(rate: float, seed: int, count: int = 6000) -> np.ndarray:
    """Latencies at a rate, of far more requests than a probe sends."""

    async def main() -> Measured:
        loop = asyncio.get_running_loop()
        stage = Stage(
            plan=StagePlan(
                load=Open(rate=rate, arrivals=POISSON),
                ends=Ends(requests=count),
                warmup=Warmup(requests=300),
                watch_saturation=False,
            ),
            sender=virtual_sender(Machine(lognormal(seed), servers=SERVERS)),
            work=work(),
            money=Money(None),
            random=Random(seed),
            clock=loop.time,
            wall=loop.time,
            cpu=lambda: 0.0,
        )
        return await stage.run()

    measured = run_virtually(main())
    return np.array([record.latency_s for record in measured.records if measured.counts(record)])


@pytest.mark.parametrize("seed", range(2))
def test_the_knee_is_the_capacity(seed: int) -> None:
    found, _ = search(Machine(lognormal(seed), servers=SERVERS), "p95 <= 20s", seed=seed, arrivals=POISSON)
    assert found.capacity.rate.value == pytest.approx(CAPACITY, rel=0.05)
    assert found.capacity.users == pytest.approx(SERVERS, rel=0.12)
    assert found.bottleneck.kind == "latency"
    assert found.complete


@pytest.mark.parametrize("seed", range(2))
def test_a_loose_objective_ends_at_the_capacity_however_well_short_probes_look(
    seed: int,
) -> None:
    """p95 <= 20 s holds in every short probe, also at twice the capacity."""
    found, _ = search(Machine(lognormal(seed), servers=SERVERS), "p95 <= 20s", seed=seed, arrivals=POISSON)
    assert found.held is not None
    assert found.failed is not None
    assert 0.9 * CAPACITY <= found.held <= 1.04 * CAPACITY
    assert found.failed <= 1.12 * CAPACITY
    assert found.failed <= found.held * 1.051


@pytest.mark.parametrize("seed", range(2))
def test_a_tight_objective_is_found_below_the_capacity(seed: int) -> None:
    """p95 <= 1.1 s holds up to 14.2/s (36,000 requests at each of several rates say so): at 80 % of the
    capacity, where waiting has begun to grow and 7 % more of it comes with each further request a second."""
    found, _ = search(Machine(lognormal(seed), servers=SERVERS), "p95 <= 1.1s", seed=seed, arrivals=POISSON)
    assert found.held == pytest.approx(14.2, rel=0.1)
    assert found.held is not None
    assert found.failed is not None
    assert found.failed > found.held


def test_the_rate_of_that_objective_is_what_is_said() -> None:
    for rate, holds in ((13.2, True), (15.3, False)):
        found = np.concatenate([truth(rate, seed) for seed in (5, 6)])
        assert (np.quantile(found, 0.95) <= 1.1) == holds


def test_requests_are_bounded() -> None:
    found, stages = search(
        Machine(lognormal(1), servers=SERVERS), "p95 <= 1.1s", arrivals=POISSON, most_requests=700
    )
    assert sum(len(measured.records) for _, measured in stages) == found.requests <= 700
    assert not found.complete


def test_what_ends_it_leaves_what_was_found() -> None:
    found, stages = search(Machine(lognormal(1), servers=SERVERS), "p95 <= 1.1s", stop_after=11)
    assert len(stages) == 11
    assert not found.complete
    assert found.held is not None or found.failed is not None


def test_users_instead_of_a_rate() -> None:
    found, stages = search(Machine(lognormal(1), servers=SERVERS), "p95 <= 1.6s", users=True, tolerance=0.02)
    assert found.held is not None
    assert found.failed == found.held + 1
    assert all(isinstance(load, Closed) for load, _ in stages)
    # With 8 servers a reply waits for about (users - 8) / 8 others.
    assert 8 <= found.held <= 20


def test_a_limit_of_the_endpoint_is_named() -> None:
    """A bucket of ten a second that saves up two: everything above is told 429 at once."""
    level, last = 2.0, 0.0

    def limited(now: float) -> bool:
        nonlocal level, last
        level, last = min(2.0, level + (now - last) * 10.0), now
        if level < 1.0:
            return True
        level -= 1.0
        return False

    found, _ = search(Machine(lambda number: 0.2, rate_limit=limited), "p95 <= 2s", "errors <= 2%")
    assert found.bottleneck.kind == "429"
    assert "429" in found.bottleneck.text
    assert found.held == pytest.approx(10.0, rel=0.12)


def test_objectives_that_fail_at_the_least_load_are_held_nowhere() -> None:
    found, _ = search(Machine(lognormal(1), servers=SERVERS), "p95 <= 100ms", most_requests=3000)
    assert found.held is None
    assert found.failed is not None


def test_errors_that_no_load_makes_are_not_looked_for_at_ever_lower_rates() -> None:
    machine = Machine(lambda number: 0.2, broken=lambda number: number % 12 == 0)
    found, stages = search(machine, "p95 <= 2s", "errors <= 1%", arrivals=POISSON)
    assert (found.held, found.complete, found.bottleneck.kind) == (None, True, "errors")
    assert len(stages) < 8
    assert min(load.rate for load, _ in stages if isinstance(load, Open)) > 2


def test_an_endpoint_without_bounds_is_not_looked_for_for_ever() -> None:
    found, _ = search(Machine(lambda number: 0.05), "p95 <= 2s", most_users=16, most_requests=4000)
    assert found.held is not None
    assert found.failed is None
    assert found.bottleneck.kind == "none"
    assert found.capacity.rate.value is None


def test_a_client_at_its_limit_is_named_and_not_the_endpoint() -> None:
    """Each reading of the CPU clock is as late as the clock itself: a core that is always full."""
    found, _ = search(
        Machine(lambda number: 0.3),
        "p95 <= 2s",
        cpu=lambda: asyncio.get_running_loop().time(),
        most_requests=2000,
    )
    assert found.bottleneck.kind == "client"
    assert "the endpoint may do more" in found.bottleneck.text
