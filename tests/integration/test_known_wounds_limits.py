"""Known wounds: limits that lift, and the controller that must notice. Hours of them, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from random import Random

import pytest

from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.concurrency import AdaptiveConcurrency
from mmbu_async.endpoints.gate import Gate
from mmbu_async.endpoints.limits import RequestRate, TokenBudget
from mmbu_async.endpoints.transport import Response, StreamedResponse
from mmbu_async.model import Completion
from tests.fake_endpoint import EXPECTED, Book, FakePurse, error, reply, settings
from tests.virtual_time import run_virtually

CAP = 64
CALL_S = 2.0
LIFTS_AT_S = 600.0
RETRY_AFTER_S = 60.0
"""Far longer than the gap between two requests, which is 31 ms at full concurrency."""
STATED_S = 180.0
"""From the moment at which the limit lifts to 90 % of the cap: the last Retry-After, and two minutes."""


@dataclass
class Provider:
    """Serves `most` calls at once until its limit lifts, and says nothing else than 429 to the others."""

    clock: Callable[[], float]
    most: int
    under_way: int = 0
    refused: int = 0
    served: int = 0
    served_after: int = 0

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        if self.under_way >= self.most and self.clock() < LIFTS_AT_S:
            self.refused += 1
            await asyncio.sleep(0.05)
            return error(429, "slow down", retry_after=str(RETRY_AFTER_S))
        self.under_way += 1
        try:
            await asyncio.sleep(CALL_S)
        finally:
            self.under_way -= 1
        self.served += 1
        self.served_after += self.clock() >= LIFTS_AT_S
        return reply()

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        raise NotImplementedError


@pytest.mark.parametrize("most", [0, 2, 20])
def test_a_retry_after_longer_than_the_gap_between_requests_does_not_freeze_the_concurrency(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    async def main() -> tuple[float, Provider]:
        clock = asyncio.get_running_loop().time
        monkeypatch.setattr("time.monotonic", clock)
        provider = Provider(clock=clock, most=most)
        book = Book()
        client = EndpointClient(
            settings(concurrency=CAP, max_attempts=2, max_retry_time=7200),
            key="",
            purse=FakePurse(),
            price=None,
            random=Random(7),
            transport=provider,
        )
        concurrency = AdaptiveConcurrency(CAP, clock=clock)
        client.gate = Gate(concurrency, RequestRate(None), TokenBudget(None, clock=clock), clock=clock)
        recovered = float("inf")

        async def rows() -> None:
            while clock() < LIFTS_AT_S + 2 * STATED_S:
                outcome = await client.call(b"{}", EXPECTED, book.keep)
                assert isinstance(outcome, Completion), "waiting for Retry-After uses up no attempt"

        async def look() -> None:
            nonlocal recovered
            await asyncio.sleep(LIFTS_AT_S)
            assert concurrency.state.cap < CAP / 2, "the limit was felt"
            while clock() < LIFTS_AT_S + 2 * STATED_S and recovered > STATED_S:
                await asyncio.sleep(0.5)
                if concurrency.state.cap >= 0.9 * CAP:
                    recovered = clock() - LIFTS_AT_S

        async with client, asyncio.TaskGroup() as group:
            group.create_task(look())
            for _ in range(CAP + CAP // 2):
                group.create_task(rows())
        return recovered, provider

    recovered, provider = run_virtually(main())
    assert provider.refused > 0
    assert recovered <= STATED_S
    # And it is used: what a full house serves in the second half of the time, or nearly.
    assert provider.served_after >= 0.9 * CAP / CALL_S * STATED_S
