"""What several runs share that call on one key: its limits, its pauses, and what is learnt of its load.

A provider counts by key, not by run. Each run keeps its own gate, with its own line, pause and lower limits;
behind the gates stands one `SharedLine` a key, in which each gate's dispatcher is one waiter. So first in,
first out holds within a run because it holds in its gate, and the limiters still have one waiter, the line's
own dispatcher.

Between runs it is start-time fair queueing (Goyal, Vin, Cheng, IEEE/ACM Transactions on Networking 5, 1997):
a run's tag rises by what its calls take of the key's limits over its weight, the lowest tag is next, and who
comes back from an idle time begins at the present one, without credit. A run's model and judges have one tag
where they call on one key.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from mmbu_async.endpoints.concurrency import START, AdaptiveConcurrency, Outcome, Slot
from mmbu_async.endpoints.gate import LONGEST_PAUSE_S, Pass
from mmbu_async.endpoints.limits import Clock, RequestRate, Sleep, TokenBudget

DEFAULT_CONCURRENCY = 64
MOST_STEPS = 10
"""Of priority, up or down, that still make a difference between two runs' shares."""


def weight_of(priority: int) -> float:
    """The share of a priority: each step up has twice as much, where both want more than there is."""
    return 2.0 ** max(-MOST_STEPS, min(priority, MOST_STEPS))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """Of a key, or of one run on it; None: none is set."""

    concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None


@dataclass(slots=True, kw_only=True)
class Party:
    """A run, in the lines of all keys that it calls on."""

    weight: float = 1.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Account:
    """One party in one line."""

    party: Party
    tag: float = 0.0
    turns: int = 0
    """Of its gates that wait now."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Turn:
    account: _Account
    tokens: float
    granted: asyncio.Future[Pass]


class Seat:
    """One gate's place in a line; see `Gate`. Leave it when the gate has closed."""

    def __init__(self, line: SharedLine, account: _Account, own: KeyLimits) -> None:
        self._line = line
        self._account = account
        self.own = own

    async def take(self, tokens: float) -> Pass:
        """Wait for the right to make a call of about this many tokens on the key. Cancelled while it waits,
        it has taken nothing."""
        return await self._line._take(self._account, tokens)

    def pause(self, seconds: float) -> None:
        """Start no call on the key for a while: Retry-After speaks of the key, not of the run."""
        self._line.pause(seconds)

    @property
    def pause_left(self) -> float:
        """Seconds until calls are started again; 0 where none are held back by a pause."""
        return self._line.pause_left

    def limit(self, own: KeyLimits) -> None:
        """The run has other limits, which are the key's where nobody has set the key's own."""
        self.own = own
        self._line._settle()

    def leave(self) -> None:
        self._line._leave(self)


class SharedLine:
    """The line of one key. Run `dispatch()` as a task beside the gates."""

    def __init__(
        self,
        fixed: KeyLimits,
        *,
        start_concurrency: int = START,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._fixed = fixed
        self.limits = fixed
        """In force."""
        self._clock = clock
        self.concurrency = AdaptiveConcurrency(
            fixed.concurrency or DEFAULT_CONCURRENCY, start_concurrency, clock=clock, sleep=sleep
        )
        self._rate = RequestRate(fixed.rpm)
        self._tokens = TokenBudget(fixed.tpm, clock=clock, sleep=sleep)
        self._seats: list[Seat] = []
        self._accounts: dict[int, _Account] = {}
        self._waiting: list[_Turn] = []
        self._filled = asyncio.Event()
        self._now = 0.0
        """The tag of the run that was served last."""
        self._broken: Exception | None = None

    @property
    def waiting(self) -> int:
        """Gates in the line."""
        return len(self._waiting)

    @property
    def pause_left(self) -> float:
        return max(0.0, self.concurrency.paused_until - self._clock())

    def pause(self, seconds: float) -> None:
        until = self._clock() + min(seconds, LONGEST_PAUSE_S)
        self.concurrency.pause_until(until)
        self._tokens.pause_until(until)

    def seat(self, party: Party, own: KeyLimits) -> Seat:
        """A place for one gate of a run, whose limits are these."""
        account = self._accounts.setdefault(id(party), _Account(party=party, tag=self._now))
        seat = Seat(self, account, own)
        self._seats.append(seat)
        self._settle()
        return seat

    def even_out(self, party: Party | None = None) -> None:
        """Let a run, or all, begin at the present tag: what they took before counts no more."""
        for account in self._accounts.values():
            if party is None or account.party is party:
                account.tag = self._now

    def _leave(self, seat: Seat) -> None:
        self._seats.remove(seat)
        if all(other._account is not seat._account for other in self._seats):
            del self._accounts[id(seat._account.party)]
        if self._seats:
            self._settle()

    def _settle(self) -> None:
        """Let the limits be those of the key, else the most that a run was given."""
        runs = [seat.own for seat in self._seats]
        fixed = self._fixed
        limits = KeyLimits(
            concurrency=fixed.concurrency or max(own.concurrency or DEFAULT_CONCURRENCY for own in runs),
            rpm=fixed.rpm or _most([own.rpm for own in runs]),
            tpm=fixed.tpm or _most([own.tpm for own in runs]),
        )
        before, self.limits = self.limits, limits
        if (limits.rpm, limits.tpm) != (before.rpm, before.tpm):
            # Tags were made of other limits.
            self.even_out()
        if limits.concurrency != self.concurrency.state.maximum:
            self.concurrency.change(limits.concurrency or DEFAULT_CONCURRENCY)
        if limits.rpm != before.rpm:
            self._rate.change(limits.rpm)
        if limits.tpm != before.tpm:
            self._tokens.change(limits.tpm)

    async def _take(self, account: _Account, tokens: float) -> Pass:
        if self._broken is not None:
            raise self._broken
        turn = _Turn(account=account, tokens=tokens, granted=asyncio.get_running_loop().create_future())
        if account.turns == 0:
            account.tag = max(account.tag, self._now)
        account.turns += 1
        self._waiting.append(turn)
        self._filled.set()
        try:
            return await turn.granted
        except asyncio.CancelledError:
            if turn.granted.done() and not (turn.granted.cancelled() or turn.granted.exception()):
                turn.granted.result().leave(Outcome.OTHER, 0)
            raise
        finally:
            if turn in self._waiting:
                self._forget(turn)

    def _forget(self, turn: _Turn) -> None:
        self._waiting.remove(turn)
        turn.account.turns -= 1

    async def dispatch(self) -> None:
        """Serve the line for ever; ends by cancellation. An error here is one of every run in the line."""
        try:
            while True:
                if not self._waiting:
                    self._filled.clear()
                    await self._filled.wait()
                slot = await self.concurrency.acquire()
                try:
                    await self._serve(slot)
                except BaseException:
                    slot.release(Outcome.OTHER)
                    raise
        except Exception as error:
            self._broken = error
            for turn in self._waiting:
                if not turn.granted.done():
                    turn.granted.set_exception(error)
            raise

    async def _serve(self, slot: Slot) -> None:
        """Give the slot to the run whose turn it is."""
        if not self._waiting:
            slot.release(Outcome.OTHER)
            return
        await self._rate.acquire()
        # Who leaves meanwhile has not used up the request that was let through: the next one has it.
        while self._waiting:
            turn = min(self._waiting, key=lambda waiting: waiting.account.tag)
            reservation = await self._tokens.reserve(turn.tokens)
            if turn.granted.done():
                reservation.settle(0)
                await asyncio.sleep(0)
                continue
            self._forget(turn)
            account = turn.account
            self._now = max(self._now, account.tag)
            account.tag += self._taken(turn.tokens) / account.party.weight
            turn.granted.set_result(Pass(slot=slot, reservation=reservation))
            # So that the gate which was served stands in the line again before the next one is chosen.
            await asyncio.sleep(0)
            return
        slot.release(Outcome.OTHER)

    def _taken(self, tokens: float) -> float:
        """What a call takes of the limit that it uses up most of, in minutes of it; without limits one call
        is like any other."""
        requests = 1.0 / self.limits.rpm if self.limits.rpm else 0.0
        budget = tokens / self.limits.tpm if self.limits.tpm else 0.0
        return max(requests, budget) or 1.0


def _most(values: list[float | None]) -> float | None:
    """None is any number."""
    most = max(math.inf if value is None else value for value in values)
    return None if most == math.inf else most


@dataclass(slots=True, kw_only=True)
class SharedLimits:
    """The lines of all keys of a process; an async context manager, inside of which they are served."""

    clock: Clock = time.monotonic
    sleep: Sleep = asyncio.sleep
    start_concurrency: int = START
    _lines: dict[Hashable, SharedLine] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        # What ended one of them early was an error of the runs in its line.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def line(self, url: str, key: str, fixed: KeyLimits) -> SharedLine:
        """That of an address and a key; it lasts as long as the process, since a window and a pause outlive
        the run that met them. `fixed` counts the first time."""
        # Not the key itself: nothing that may be printed holds one.
        place = (url.rstrip("/"), hashlib.sha256(key.encode()).digest())
        if place not in self._lines:
            line = SharedLine(
                fixed, start_concurrency=self.start_concurrency, clock=self.clock, sleep=self.sleep
            )
            self._lines[place] = line
            self._tasks.append(asyncio.create_task(line.dispatch(), name=f"shared line of {url}"))
        return self._lines[place]

    def weigh(self, party: Party, weight: float) -> None:
        """A run has another weight from now on."""
        if party.weight != weight:
            party.weight = weight
            for line in self._lines.values():
                line.even_out(party)
