"""The line that gates of several runs share: fair by weight, within limits, safe under cancellation.

Hours pass in milliseconds here: the loop's clock jumps from timer to timer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.concurrency import AdaptiveConcurrency, Outcome
from mmbu_async.endpoints.gate import Draining, Gate
from mmbu_async.endpoints.limits import RequestRate, TokenBudget
from mmbu_async.endpoints.shared import (
    KeyLimits,
    Party,
    Seat,
    SharedLimits,
    SharedLine,
    weight_of,
)
from tests.fake_endpoint import (
    EXPECTED,
    Book,
    FakePurse,
    FakeTransport,
    error,
    reply,
    scripted,
    settle_tasks,
)
from tests.fake_endpoint import settings as call_settings
from tests.virtual_time import run_virtually


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture(autouse=True)
def virtual_throttle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncio_throttle.throttler.time", SimpleNamespace(monotonic=now))


@asynccontextmanager
async def served(**limits: Any) -> AsyncIterator[SharedLine]:
    async with SharedLimits(clock=now) as shared:
        yield shared.line("http://one", "key", KeyLimits(**limits))


@dataclass
class Run:
    """A gate that always has callers waiting, and notes when it was let through."""

    line: SharedLine
    weight: float = 1.0
    tokens: float = 100.0
    call_s: float = 0.5
    own: KeyLimits = field(default_factory=lambda: KeyLimits(concurrency=1000))
    party: Party | None = None
    starts: list[float] = field(default_factory=list)

    async def work(self) -> None:
        party = self.party or Party(weight=self.weight)
        seat = self.line.seat(party, self.own)
        gate = gate_of(seat)
        async with asyncio.TaskGroup() as group:
            group.create_task(gate.dispatch())
            for _ in range(200):
                group.create_task(self._call_on(gate))

    async def _call_on(self, gate: Gate) -> None:
        while True:
            permit = await gate.enter(self.tokens)
            self.starts.append(now())
            await asyncio.sleep(self.call_s)
            permit.leave(Outcome.SUCCESS, self.tokens)


def gate_of(seat: Seat) -> Gate:
    own = seat.own
    return Gate(
        AdaptiveConcurrency(own.concurrency or 1000, 10_000, clock=now),
        RequestRate(own.rpm),
        TokenBudget(own.tpm, clock=now),
        beyond=seat,
        clock=now,
    )


async def for_a_while(seconds: float, *work: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(one) for one in work]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def most_in_a_minute(starts: list[float]) -> int:
    ordered = sorted(starts)
    first = 0
    most = 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= 60.0:
            first += 1
        most = max(most, last - first + 1)
    return most


@settings(max_examples=6, deadline=None)
@given(
    weights=st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=2, max_size=4),
    rpm=st.sampled_from([90.0, 600.0, 1000.0]),
)
def test_runs_share_the_requests_of_a_key_by_weight_and_stay_under_them(
    weights: list[float], rpm: float
) -> None:
    async def main() -> list[Run]:
        async with served(rpm=rpm, concurrency=500) as line:
            runs = [Run(line, weight=weight) for weight in weights]
            await for_a_while(150.0, *(run.work() for run in runs))
        return runs

    runs = run_virtually(main())
    starts = [start for run in runs for start in run.starts]
    assert most_in_a_minute(starts) <= rpm
    assert len(starts) >= 0.97 * rpm * 150 / 60 - 1
    for run, weight in zip(runs, weights, strict=True):
        share = len(starts) * weight / sum(weights)
        assert abs(len(run.starts) - share) <= 2 + 0.01 * share


@settings(max_examples=8, deadline=None)
@given(tokens=st.lists(st.sampled_from([100.0, 400.0, 1600.0]), min_size=2, max_size=3))
def test_runs_share_the_tokens_of_a_key_whatever_their_calls_take(tokens: list[float]) -> None:
    async def main() -> list[Run]:
        async with served(tpm=120_000.0, concurrency=500) as line:
            runs = [Run(line, tokens=one) for one in tokens]
            await for_a_while(120.0, *(run.work() for run in runs))
        return runs

    runs = run_virtually(main())
    used = [len(run.starts) * run.tokens for run in runs]
    assert sum(used) <= 120_000.0 * (2 + 3 / 60) + max(tokens)
    assert sum(used) >= 0.97 * 240_000.0
    assert max(used) - min(used) <= 3 * max(tokens)


def test_calls_at_once_are_shared_too() -> None:
    async def main() -> list[Run]:
        async with served(concurrency=10) as line:
            runs = [Run(line, weight=3.0), Run(line)]
            await for_a_while(100.0, *(run.work() for run in runs))
            assert line.concurrency.state.maximum == 10
        return runs

    first, second = (len(run.starts) for run in run_virtually(main()))
    assert first + second >= 0.97 * 2000
    assert first / second == pytest.approx(3.0, rel=0.02)


def test_model_and_judge_of_a_run_have_one_share() -> None:
    async def main() -> list[Run]:
        async with served(rpm=600, concurrency=500) as line:
            party = Party()
            runs = [Run(line, party=party), Run(line, party=party), Run(line)]
            await for_a_while(60.0, *(run.work() for run in runs))
        return runs

    model, judge, other = (len(run.starts) for run in run_virtually(main()))
    assert model + judge == pytest.approx(other, abs=3)
    assert model == pytest.approx(judge, abs=3)


def test_who_wants_less_than_its_share_leaves_the_rest_and_has_no_credit_later() -> None:
    async def main() -> tuple[Run, Run, float]:
        async with served(rpm=600, concurrency=500) as line:
            slow = Run(line, own=KeyLimits(concurrency=1000, rpm=60))
            busy = Run(line)
            await for_a_while(60.0, slow.work(), busy.work())
            late = Run(line)
            began = now()
            await for_a_while(60.0, busy.work(), late.work())
        return slow, late, len(busy.starts) - sum(start < began for start in busy.starts)

    slow, late, busy_later = run_virtually(main())
    assert 58 <= len(slow.starts) <= 61
    assert len(late.starts) == pytest.approx(busy_later, abs=5)


def test_another_priority_holds_at_once_and_nothing_is_paid_back() -> None:
    async def main() -> tuple[int, int]:
        async with SharedLimits(clock=now) as shared:
            line = shared.line("http://one", "key", KeyLimits(rpm=600, concurrency=500))
            low, high = Party(weight=weight_of(-10)), Party()
            runs = [Run(line, party=low), Run(line, party=high)]

            async def change() -> None:
                await asyncio.sleep(60.0)
                shared.weigh(low, 1.0)

            await for_a_while(120.0, *(run.work() for run in runs), change())
            later = [sum(start > 60.0 for start in run.starts) for run in runs]
            assert len(runs[0].starts) - later[0] <= 3
        return later[0], later[1]

    first, second = run_virtually(main())
    assert first == pytest.approx(second, abs=5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), rpm=st.sampled_from([None, 1200.0]), tpm=st.sampled_from([None, 60_000.0]))
def test_whatever_is_cancelled_no_place_is_lost(seed: int, rpm: float | None, tpm: float | None) -> None:
    random = Random(seed)

    async def main() -> None:
        async with served(rpm=rpm, tpm=tpm, concurrency=7) as line:
            parties = [Party(weight=random.choice([0.5, 1.0, 4.0])) for _ in range(3)]
            seats = [line.seat(party, KeyLimits(concurrency=5)) for party in parties]
            under_way = Counter[str]()

            async def call(seat: Seat) -> None:
                permit = await seat.take(random.choice([10.0, 5000.0]))
                under_way["calls"] += 1
                assert under_way["calls"] <= 7
                try:
                    await asyncio.sleep(random.random())
                finally:
                    under_way["calls"] -= 1
                    permit.leave(random.choice([Outcome.SUCCESS, Outcome.OTHER, Outcome.TROUBLE]), 10.0)

            for _ in range(40):
                tasks = [asyncio.create_task(call(random.choice(seats))) for _ in range(random.randint(1, 9))]
                await asyncio.sleep(random.choice([0.0, 0.0, 0.01, 0.3]))
                for task in random.sample(tasks, random.randint(0, len(tasks))):
                    task.cancel()
                if random.random() < 0.5:
                    await asyncio.gather(*tasks, return_exceptions=True)
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*(one for one in rest if "call" in repr(one)), return_exceptions=True)
            assert line.concurrency.state.in_flight == 0
            assert line.waiting == 0
            # And the line still serves.
            (await asyncio.wait_for(seats[0].take(10.0), 600.0)).leave(Outcome.SUCCESS, 10.0)

    run_virtually(main())


def test_who_leaves_has_not_used_up_a_request() -> None:
    async def main() -> float:
        async with served(rpm=60, concurrency=9) as line:
            first, second = (line.seat(Party(), KeyLimits()) for _ in range(2))
            (await first.take(1.0)).leave(Outcome.SUCCESS, 1.0)
            gone = asyncio.create_task(first.take(1.0))
            stays = asyncio.create_task(second.take(1.0))
            await asyncio.sleep(0.5)
            gone.cancel()
            await stays
            return now()

    assert run_virtually(main()) == pytest.approx(1.0, abs=0.1)


def test_a_pause_of_one_run_holds_all_on_the_key_and_no_other_key() -> None:
    async def main() -> None:
        async with SharedLimits(clock=now) as shared:
            line = shared.line("http://one", "key", KeyLimits())
            assert shared.line("http://one/", "key", KeyLimits()) is line
            other = shared.line("http://one", "another key", KeyLimits()).seat(Party(), KeyLimits())
            first, second = (line.seat(Party(), KeyLimits()) for _ in range(2))
            first.pause(30.0)
            assert second.pause_left == 30.0
            await other.take(1.0)
            assert now() == 0.0
            await second.take(1.0)
            assert now() == 30.0

    run_virtually(main())


def test_the_limits_are_the_keys_or_else_the_most_that_a_run_was_given() -> None:
    async def main() -> None:
        async with SharedLimits(clock=now) as shared:
            line = shared.line("http://one", "key", KeyLimits(rpm=500))
            first = line.seat(Party(), KeyLimits(concurrency=8, rpm=100, tpm=5000))
            second = line.seat(Party(), KeyLimits(concurrency=32, rpm=900, tpm=9000))
            assert line.limits == KeyLimits(concurrency=32, rpm=500, tpm=9000)
            first.limit(KeyLimits(concurrency=64, rpm=None, tpm=None))
            assert line.limits == KeyLimits(concurrency=64, rpm=500, tpm=None)
            first.leave()
            assert line.limits == KeyLimits(concurrency=32, rpm=500, tpm=9000)
            second.leave()
            # A window and a cap outlive the runs.
            assert line.limits == KeyLimits(concurrency=32, rpm=500, tpm=9000)

    run_virtually(main())


def test_two_clients_learn_from_each_others_429s() -> None:
    async def main() -> None:
        async with SharedLimits(clock=now) as shared:
            line = shared.line("http://one", "key", KeyLimits(concurrency=16))
            transport = FakeTransport(scripted(error(429, retry_after="20"), reply()))

            def client() -> EndpointClient:
                return EndpointClient(
                    call_settings(concurrency=8),
                    key="key",
                    purse=FakePurse(),
                    price=None,
                    random=Random(1),
                    transport=transport,
                    shared=(line, Party()),
                )

            async with client() as one, client() as other:
                book = Book()
                first = asyncio.create_task(one.call(b"{}", EXPECTED, book.keep))
                await settle_tasks()
                assert line.concurrency.state.cap == int(16 * 0.8)
                assert one.gate.concurrency.state.cap == 8
                assert other.gate.pause_left == 20.0
                await other.call(b"{}", EXPECTED, book.keep)
                assert now() == 20.0
                await first
                assert line.concurrency.state.in_flight == 0
                one.gate.close()
                with pytest.raises(Draining):
                    await one.call(b"{}", EXPECTED, book.keep)
            assert line._seats == []

    run_virtually(main())


def test_who_is_cancelled_in_the_moment_of_its_turn_gives_it_back() -> None:
    async def main() -> None:
        async with served(concurrency=1) as line:
            first, second = (line.seat(Party(), KeyLimits()) for _ in range(2))
            taken = await first.take(1.0)
            caller = asyncio.create_task(second.take(1.0))
            await settle_tasks()
            taken.leave(Outcome.SUCCESS, 1.0)
            for _ in range(30):
                if not line.waiting:
                    break
                await asyncio.sleep(0)
            assert not line.waiting
            assert not caller.done()
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
            assert line.concurrency.state.in_flight == 0

    run_virtually(main())


def test_a_pause_holds_who_waits_for_the_rate_already() -> None:
    async def main() -> None:
        async with served(rpm=60, concurrency=9) as line:
            seat = line.seat(Party(), KeyLimits())
            await seat.take(1.0)
            caller = asyncio.create_task(seat.take(1.0))
            await asyncio.sleep(0.5)
            seat.pause(30.0)
            await caller
            assert now() == pytest.approx(30.5, abs=0.05)

    run_virtually(main())


def test_an_idle_run_comes_back_without_credit() -> None:
    async def main() -> list[str]:
        async with served(rpm=6000, concurrency=500) as line:
            idle, busy = (line.seat(Party(), KeyLimits()) for _ in range(2))
            order: list[str] = []

            async def take(seat: Seat, name: str) -> None:
                permit = await seat.take(1.0)
                order.append(name)
                permit.leave(Outcome.SUCCESS, 1.0)

            await take(idle, "idle")
            for _ in range(50):
                await take(busy, "busy")
            order.clear()
            both = [take(seat, name) for _ in range(10) for seat, name in ((busy, "busy"), (idle, "idle"))]
            await asyncio.gather(*both)
        return order

    assert 4 <= run_virtually(main())[:10].count("idle") <= 6


def test_a_gate_that_closes_while_it_waits_gives_its_place_back() -> None:
    async def main() -> None:
        async with served(concurrency=1) as line:
            gate = gate_of(line.seat(Party(), KeyLimits(concurrency=5)))
            taken = await line.seat(Party(), KeyLimits()).take(1.0)
            dispatcher = asyncio.create_task(gate.dispatch())
            caller = asyncio.create_task(gate.enter(1.0))
            await settle_tasks()
            assert line.waiting == 1
            gate.close()
            with pytest.raises(Draining):
                await caller
            taken.leave(Outcome.SUCCESS, 1.0)
            await settle_tasks()
            assert (line.waiting, line.concurrency.state.in_flight) == (0, 0)
            dispatcher.cancel()

    run_virtually(main())


def test_weights_double_with_each_step_and_have_an_end() -> None:
    assert [weight_of(step) for step in (-1, 0, 1, 3)] == [0.5, 1.0, 2.0, 8.0]
    assert weight_of(10**9) == weight_of(10)
    assert weight_of(-(10**9)) == weight_of(-10)
