"""One model at one address: a request body in, a reply or a failure out, every attempt told.

async with EndpointClient(settings, ...) as client:
    outcome = await client.call(body, tokens=1200, keep=keep)
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol, Self

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.anthropic import AnthropicMessages
from mmbu_async.endpoints.azure import AzureChat
from mmbu_async.endpoints.concurrency import START, AdaptiveConcurrency, Outcome
from mmbu_async.endpoints.exchange import Body, Exchange, Exchanged, HttpExchange
from mmbu_async.endpoints.gate import Draining, Gate
from mmbu_async.endpoints.gemini import Gemini
from mmbu_async.endpoints.limits import RequestRate, TokenBudget
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.responses import OpenAIResponses
from mmbu_async.endpoints.retries import RetryPolicy, with_retries
from mmbu_async.endpoints.shared import KeyLimits, Party, SharedLine
from mmbu_async.endpoints.transport import Transport
from mmbu_async.endpoints.wire import WireFormat
from mmbu_async.model import (
    Attempt,
    Completion,
    Failure,
    FailureKind,
    RetryDecision,
    Timing,
    Usage,
)
from mmbu_async.telemetry import About, EndpointState, Observer, Seen, current

WIRE_FORMATS: dict[str, Callable[[], WireFormat]] = {
    "openai": OpenAIChat,
    "responses": OpenAIResponses,
    "azure": AzureChat,
    "anthropic": AnthropicMessages,
    "gemini": Gemini,
}

MOST = 10_000
"""Calls under way at once that a run may be given: where others learn, it starts with all of its own."""

Keep = Callable[[Attempt, bool], Awaitable[None]]
"""Told of each attempt, and whether it is the row's last. Awaited inside the slot for a reply."""


class Purse(Protocol):
    """Who holds the money."""

    async def hold(self, usd: float | None) -> None:
        """Set aside the most that a call may cost (None: unknown), or wait until calls under way have left
        enough. Raises Draining when the cap forbids another call.
        """

    def settle(self, held: float | None, spent: float | None) -> None:
        """The call cost this much; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a call may use, in tokens: input as estimated, output at most, and output as usual."""

    input_tokens: int
    most_output_tokens: int
    usual_output_tokens: int


class EndpointClient:
    """Limits, retries and bookkeeping around one wire format; use as an async context manager."""

    def __init__(
        self,
        settings: CallSettings,
        *,
        key: str,
        purse: Purse,
        price: Price | None,
        random: Random,
        transport: Transport | None = None,
        exchange: Exchange | None = None,
        start_concurrency: int = START,
        role: str = "model",
        run: str = "",
        shared: tuple[SharedLine, Party] | None = None,
    ) -> None:
        """`role` (`model` or `judge`) and `run` are for those who watch. `shared`: the line of the key and
        the run that calls, where other runs call on the key too. What the key takes is learnt there, and this
        client keeps to its own limits before it."""
        self.settings = settings
        self.price = price
        self.wire = WIRE_FORMATS[settings.endpoint]()
        self._exchange: Exchange = exchange or HttpExchange(settings, self.wire, key=key, transport=transport)
        self._seat = None if shared is None else shared[0].seat(shared[1], _limits(settings))
        self.gate = Gate(
            AdaptiveConcurrency(settings.concurrency, start_concurrency if shared is None else MOST),
            RequestRate(settings.rpm),
            TokenBudget(settings.tpm),
            beyond=self._seat,
        )
        self._purse = purse
        self._random = random
        self._policy = RetryPolicy(max_attempts=settings.max_attempts, max_time_s=settings.max_retry_time)
        self._stack = AsyncExitStack()
        self._role, self._run = role, run
        self._observer: Observer | None = None
        """None: nobody watches, and nothing is told."""

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        if (telemetry := current()) is not None:
            about = About.of(self.settings, role=self._role, run=self._run)
            self._observer = self._stack.enter_context(telemetry.endpoint(about, self._state))
        if self._seat is not None:
            self._stack.callback(self._seat.leave)
        if isinstance(self._exchange, HttpExchange):
            await self._stack.enter_async_context(self._exchange)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        dispatcher = group.create_task(self.gate.dispatch(), name=f"dispatch to {self.settings.model}")
        self._stack.callback(dispatcher.cancel)
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._stack.__aexit__(*details)  # type: ignore[arg-type]

    def limit(self, settings: CallSettings) -> None:
        """Take over the limits of these settings, at once; they differ in nothing else."""
        self.settings = settings
        self.gate.limit(concurrency=settings.concurrency, rpm=settings.rpm, tpm=settings.tpm)
        if self._seat is not None:
            self._seat.limit(_limits(settings))

    async def call(
        self, body: Body, expected: Expected, keep: Keep, *, patience_s: float = math.inf
    ) -> Completion | Failure:
        """The outcome that stands after all attempts. Raises Draining when no further call may start.

        `patience_s`: seconds after which no further attempt is made, waits that the endpoint asks for apart.

        A reply is handed to `keep` before its slot is given back, so that at most `concurrency` paid replies
        can ever be unstored.
        """
        held = self._worst_cost(expected)
        last: list[Attempt] = []

        async def attempt(number: int) -> Completion | Failure:
            permit = await self.gate.enter(expected.input_tokens + expected.usual_output_tokens)
            outcome: Completion | Failure | None = None
            used = 0.0
            try:
                await self._purse.hold(held)
                try:
                    # Money may have come late, and the gate be held or closed since the permit.
                    await self.gate.unheld()
                except BaseException:
                    self._purse.settle(held, 0.0)
                    raise
                spent = held
                used = expected.input_tokens + expected.usual_output_tokens
                try:
                    made = await self._attempt(number, body)
                    outcome, spent = made.outcome, made.cost_usd
                    used = _tokens(outcome, used)
                finally:
                    self._purse.settle(held, spent)
                if isinstance(outcome, Completion):
                    await keep(made, True)
                last[:] = [made]
            finally:
                permit.leave(_load(outcome), used)
            return outcome

        async def note(failure: Failure, decision: RetryDecision) -> None:
            if decision.again and self._observer is not None:
                self._observer.retried(failure.kind)
            if decision.again and decision.rate_limited and failure.retry_after_s:
                self.gate.pause(failure.retry_after_s)
                if self._observer is not None:
                    self._observer.paused(failure.retry_after_s)
            await keep(last[0], not decision.again)

        return await with_retries(
            attempt,
            replace(self._policy, max_unasked_s=patience_s),
            sleep=self.gate.sleep,
            clock=self.gate.time_for_calls,
            random=self._random,
            note=note,
        )

    async def _attempt(self, number: int, body: Body) -> Attempt:
        """One exchange, whatever comes of it."""
        started_at = time.time()
        try:
            made = await self._exchange.send(body)
        except BaseException:
            self._tell(number, body, started_at, None, None)
            raise
        timing = Timing(started_at=started_at, total_s=made.total_s, first_token_s=made.first_token_s)
        cost_usd = self._cost(made.outcome, sent=made.sent)
        self._tell(number, body, started_at, made, cost_usd)
        return Attempt(number=number, timing=timing, outcome=made.outcome, cost_usd=cost_usd)

    def _tell(
        self, number: int, body: Body, started_at: float, made: Exchanged | None, cost_usd: float | None
    ) -> None:
        """Whoever watches; `made` None: the exchange was cancelled."""
        if self._observer is None:
            return
        seen = Seen(
            started_at=started_at,
            total_s=time.time() - started_at if made is None else made.total_s,
            first_token_s=None if made is None else made.first_token_s,
            outcome=None if made is None else made.outcome,
            number=number,
            cost_usd=cost_usd,
            bytes_up=len(body),
            bytes_down=0 if made is None else made.bytes_down,
        )
        self._observer.ended(seen)

    def _state(self) -> EndpointState:
        state = self.gate.concurrency.state
        return EndpointState(
            in_flight=state.in_flight,
            waiting=self.gate.waiting,
            limit=state.cap,
            pause_s=self.gate.pause_left,
        )

    def _cost(self, outcome: Completion | Failure, *, sent: bool) -> float | None:
        """Dollars; None: unknown. A call that the endpoint answered with an error status is not charged."""
        if isinstance(outcome, Completion):
            if self.price is None or not outcome.usage.reported:
                return None
            return self.price.cost(outcome.usage)
        if outcome.usage is not None and self.price is not None:
            return self.price.cost(outcome.usage)
        charged_unseen = sent and (outcome.status is None or outcome.status < 300)
        return None if charged_unseen else 0.0

    def _worst_cost(self, expected: Expected) -> float | None:
        if self.price is None:
            return None
        return self.price.cost(
            Usage(input_tokens=expected.input_tokens, output_tokens=expected.most_output_tokens)
        )


def _limits(settings: CallSettings) -> KeyLimits:
    return KeyLimits(concurrency=settings.concurrency, rpm=settings.rpm, tpm=settings.tpm)


def _load(outcome: Completion | Failure | None) -> Outcome:
    """What the concurrency control should think of it."""
    if isinstance(outcome, Completion):
        return Outcome.SUCCESS
    if outcome is None:
        return Outcome.OTHER
    if outcome.kind is FailureKind.RATE_LIMIT or outcome.status == 529:
        return Outcome.RATE_LIMITED
    if outcome.kind in (FailureKind.SERVER_ERROR, FailureKind.TIMEOUT, FailureKind.CONNECTION):
        return Outcome.TROUBLE
    return Outcome.OTHER


def _tokens(outcome: Completion | Failure, expected: float) -> float:
    """What the token budget is charged: as reported, else as expected; nothing for a refused request."""
    if isinstance(outcome, Completion) and outcome.usage.reported:
        return outcome.usage.input_tokens + outcome.usage.output_tokens
    if isinstance(outcome, Failure) and outcome.status is not None and outcome.status >= 300:
        return 0.0
    return expected


__all__ = ["Draining", "EndpointClient", "Expected", "Keep", "Purse"]
