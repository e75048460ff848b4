"""One model at one address: a request body in, a reply or a failure out, every attempt told.

async with EndpointClient(settings, ...) as client:
    outcome = await client.call(body, tokens=1200, keep=keep)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random
from typing import Protocol, Self

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.anthropic import AnthropicMessages
from mmbu_async.endpoints.azure import AzureChat
from mmbu_async.endpoints.concurrency import START, AdaptiveConcurrency, Outcome
from mmbu_async.endpoints.exchange import Body, Exchange, HttpExchange
from mmbu_async.endpoints.gate import Draining, Gate
from mmbu_async.endpoints.gemini import Gemini
from mmbu_async.endpoints.limits import RequestRate, TokenBudget
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.responses import OpenAIResponses
from mmbu_async.endpoints.retries import RetryPolicy, with_retries
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

WIRE_FORMATS: dict[str, Callable[[], WireFormat]] = {
    "openai": OpenAIChat,
    "responses": OpenAIResponses,
    "azure": AzureChat,
    "anthropic": AnthropicMessages,
    "gemini": Gemini,
}

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
    ) -> None:
        self.settings = settings
        self.price = price
        self.wire = WIRE_FORMATS[settings.endpoint]()
        self.gate = Gate(
            AdaptiveConcurrency(settings.concurrency, start_concurrency),
            RequestRate(settings.rpm),
            TokenBudget(settings.tpm),
        )
        self._purse = purse
        self._random = random
        self._policy = RetryPolicy(max_attempts=settings.max_attempts, max_time_s=settings.max_retry_time)
        self._exchange: Exchange = exchange or HttpExchange(settings, self.wire, key=key, transport=transport)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
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

    async def call(self, body: Body, expected: Expected, keep: Keep) -> Completion | Failure:
        """The outcome that stands after all attempts. Raises Draining when no further call may start.

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
            if decision.again and decision.rate_limited and failure.retry_after_s:
                self.gate.pause(failure.retry_after_s)
            await keep(last[0], not decision.again)

        return await with_retries(
            attempt,
            self._policy,
            sleep=self.gate.sleep,
            clock=self.gate.time_for_calls,
            random=self._random,
            note=note,
        )

    async def _attempt(self, number: int, body: Body) -> Attempt:
        """One exchange, whatever comes of it."""
        started_at = time.time()
        made = await self._exchange.send(body)
        timing = Timing(started_at=started_at, total_s=made.total_s, first_token_s=made.first_token_s)
        cost_usd = self._cost(made.outcome, sent=made.sent)
        return Attempt(number=number, timing=timing, outcome=made.outcome, cost_usd=cost_usd)

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
