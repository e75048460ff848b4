"""How much can be asked of an endpoint while objectives hold: bracketing and bisection, in bounded requests.

First a ladder: users double until throughput stops to grow or requests fail. It takes few requests and tells
about where the answer lies, and what is served at the fullest. Then probes: an open loop at a rate (or so
many users), upwards or downwards from there until one holds and one fails, and the middle between them until
they are near each other. A probe whose objectives are within their own uncertainty of the limit is repeated,
and the repeats are looked at together. At last what holds is measured again, for longer.

A rate above what is served at the fullest cannot be kept, however well a short probe looks, and fails.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mmbu_async.bench.arrivals import CONSTANT, Arrivals
from mmbu_async.bench.capacity import GROWTH, Capacity, capacity
from mmbu_async.bench.figures import Figures
from mmbu_async.bench.found import Found, Probe, bottleneck
from mmbu_async.bench.measured import EARLY_ENDS, End, Measured
from mmbu_async.bench.objective import ERRORS, Objective
from mmbu_async.bench.plan import Closed, Load, Open, Warmup
from mmbu_async.bench.record import Phase

RUNG_REQUESTS = 40
"""Of a rung of the ladder at least; four for each user where there are more."""
LONG = 3
"""Times the usual length of a probe, to confirm what was found."""
STEP = 1.25
"""From a probe to the next while only one side of the bracket is known."""
FEWEST = 20
"""Requests that a probe needs to say anything."""
ROOM = 1.02
"""By how much a rate may pass the measured capacity, which is not known better than that."""
ALONE = 0.7
"""Requests under way on average, below which they hardly meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """What is looked for, and what that may take."""

    objectives: tuple[Objective, ...]
    users: bool = False
    """Look for a number of users instead of a rate."""
    arrivals: Arrivals = CONSTANT
    tolerance: float = 0.05
    """The highest load that holds and the lowest that fails end up as near as this to each other."""
    repeats: int = 3
    """Of a probe that is not sure, at most."""
    probe_requests: int = 400
    most_requests: int = 8000
    """In all."""
    most_users: int = 512
    """On the ladder."""


class SpentError(Exception):
    """No further request may be sent: counts, money, or a word from outside."""


Run = Callable[[Load, int], Awaitable[Measured]]
"""Measures a load with so many requests at most. Raises SpentError when nothing may be sent any more."""


class Search:
    """One search on one endpoint."""

    def __init__(self, plan: SearchPlan, run: Run) -> None:
        self._plan = plan
        self._run = run
        self._left = plan.most_requests
        self._probes: dict[float, Probe] = {}
        self._rungs: list[Probe] = []
        self._long = False
        self._confirmed: set[float] = set()

    async def find(self) -> Found:
        """Look until the answer is near enough, or nothing may be sent any more."""
        complete = True
        try:
            await self._climb()
            await self._close_in()
        except SpentError:
            complete = False
        held, failed = self._bracket()
        return Found(
            held=held,
            failed=failed,
            capacity=self._capacity(),
            bottleneck=bottleneck(self._rungs, self._probes, failed, self._plan.objectives),
            complete=complete,
            requests=self._plan.most_requests - self._left,
        )

    # ------------------------------------------------------------ the ladder

    async def _climb(self) -> None:
        users = 1
        while users <= self._plan.most_users:
            rung = Probe(Closed(concurrency=users))
            self._rungs.append(rung)
            await self._measure(rung, max(RUNG_REQUESTS, 4 * users))
            failing = [one for one in self._plan.objectives if not one.holds(rung.figures)]
            if self._flat():
                # What is served at the fullest is what all rates are held against: a longer look at it.
                await self._measure(rung, max(self._plan.probe_requests, 4 * users))
                return
            if rung.verdict.client_bound or any(one.measure == ERRORS for one in failing):
                return
            users *= 2

    def _flat(self) -> bool:
        """Throughput has not grown where users doubled, twice in a row."""
        rates = [rung.figures.rates.requests.value or 0.0 for rung in self._rungs]
        return len(rates) > 2 and rates[-1] < GROWTH * rates[-2] and rates[-2] < GROWTH * rates[-3]

    # ------------------------------------------------------------ the bracket

    async def _close_in(self) -> None:
        load: float | None = self._guess()
        while load is not None:
            await self._settle(self._probe(load))
            held, failed = self._bracket()
            if held is not None and failed is not None and self._near(held, failed):
                if held in self._confirmed:
                    return
                load = held
                self._confirm(held)
            else:
                load = self._next(held, failed)
                if load in self._probes:
                    # No number lies between: what holds is the answer, if it does so for long.
                    load = held if held is not None and held not in self._confirmed else None
                    if load is not None:
                        self._confirm(load)

    def _confirm(self, size: float) -> None:
        """From here on every probe is a long one, and this one is forgotten: it began with an empty queue,
        and may have ended before that was as long as it gets."""
        self._long = True
        del self._probes[size]

    def _guess(self) -> float:
        """Where to begin: the best that the ladder held at."""
        best = next((rung for rung in reversed(self._rungs) if self._holds(rung.figures)), self._rungs[0])
        if self._plan.users:
            return best.load.size
        served = best.figures.rates.requests.value or 0.0
        full = self._capacity().rate.value
        guess = min(served, 0.95 * full) if full else served
        # Without a reply there is nothing to begin with but the least.
        return _round(guess) if guess > 0 else 0.1

    def _next(self, held: float | None, failed: float | None) -> float | None:
        if held is not None and failed is not None:
            middle = math.sqrt(held * failed)
        elif held is not None:
            middle = held * STEP
        elif failed is not None:
            if self._alone_and_broken(self._probes[failed].figures):
                return None
            middle = failed / STEP
        else:
            return None
        if not self._plan.users:
            return _round(middle)
        whole = math.ceil(middle) if failed is None else math.floor(middle)
        if whole < 1 or whole > 4 * self._plan.most_users:
            return None
        return float(max(whole, int(held) + 1 if held is not None else 1))

    def _alone_and_broken(self, found: Figures) -> bool:
        """Whether still less load mends nothing: requests hardly meet each other, and what fails is errors
        that no limit of a minute makes. Each probe would take longer than the one before, without end."""
        failing = [one for one in self._plan.objectives if not one.holds(found)]
        return (
            bool(failing)
            and all(one.measure == ERRORS for one in failing)
            and not found.phases.get(Phase.RATE_LIMIT)
            and found.on_the_wire < ALONE
        )

    def _near(self, held: float, failed: float) -> bool:
        if self._plan.users and failed - held <= 1:
            return True
        return failed <= held * (1 + self._plan.tolerance)

    def _bracket(self) -> tuple[float | None, float | None]:
        """The highest load that holds below the lowest that fails."""
        seen = {size: self._good(probe) for size, probe in self._probes.items() if probe.blocks}
        failed = min((size for size, good in seen.items() if not good), default=None)
        held = max((s for s, good in seen.items() if good and (failed is None or s < failed)), default=None)
        return held, failed

    async def _settle(self, probe: Probe) -> None:
        """Measure it, and again while it is not clear on which side of the objectives it is."""
        if self._long:
            self._confirmed.add(probe.load.size)
        for _ in range(1 if self._long else self._plan.repeats):
            await self._measure(probe, self._size(probe.load))
            found = probe.figures
            if found.ended is End.SATURATED or self._sure(found):
                return

    def _good(self, probe: Probe) -> bool:
        found = probe.figures
        if found.ended is End.SATURATED or not self._holds(found):
            return False
        full = self._capacity().rate.value
        return self._plan.users or full is None or probe.load.size <= full * ROOM

    def _holds(self, found: Figures) -> bool:
        return all(objective.holds(found) for objective in self._plan.objectives)

    def _sure(self, found: Figures) -> bool:
        return all(objective.sure(found) for objective in self._plan.objectives)

    # ------------------------------------------------------------ measuring

    def _probe(self, size: float) -> Probe:
        if size not in self._probes:
            load: Load = (
                Closed(concurrency=round(size))
                if self._plan.users
                else Open(rate=size, arrivals=self._plan.arrivals)
            )
            self._probes[size] = Probe(load)
        return self._probes[size]

    def _size(self, load: Load) -> int:
        users = load.concurrency if isinstance(load, Closed) else 0
        return max(self._plan.probe_requests, 4 * users) * (LONG if self._long else 1)

    async def _measure(self, probe: Probe, requests: int) -> None:
        requests = min(requests, self._left)
        if requests < FEWEST:
            raise SpentError
        measured = await self._run(probe.load, requests)
        self._left -= len(measured.records)
        if measured.records:
            probe.add(measured)
        if measured.ended in EARLY_ENDS and measured.ended is not End.SATURATED:
            raise SpentError

    # ------------------------------------------------------------ what it says

    def _capacity(self) -> Capacity:
        seen = [*self._rungs, *self._probes.values()]
        return capacity([probe.figures for probe in seen if probe.blocks])


def warmup_of(load: Load, requests: int) -> Warmup:
    """Of a rung or a probe. Users begin all at once, which no steady load does: their first requests do not
    count."""
    users = load.concurrency if isinstance(load, Closed) else 0
    return Warmup(requests=max(users, requests // 10))


def _round(rate: float) -> float:
    """Three digits: a rate that a person can type."""
    return float(f"{rate:.3g}")
