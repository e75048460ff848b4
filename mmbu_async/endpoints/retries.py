"""The one door to tenacity: an operation is tried until it succeeds, must not be retried, or time is up.

There is no second layer: a 429 that is hidden by a client library's own retries would never reach the
concurrency control.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import tenacity

from mmbu_async.model import TRANSIENT_KINDS, Completion, Failure, FailureKind, RetryDecision

SHORTEST_ASKED_S = 0.1
"""A shorter wait that is asked for is lengthened at random like one that is not: everybody who was told to
come again in 20 ms would come at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long a row is worth another attempt."""

    max_attempts: int = 6
    max_time_s: float = 1800.0
    base_s: float = 1.0
    """The first wait is drawn from 0 to this; each further bound doubles (full jitter)."""
    longest_s: float = 60.0
    max_unasked_s: float = math.inf
    """The same bound as `max_time_s`, for time in which the endpoint did not ask to be left alone."""


def decide(outcome: Completion | Failure, counted: int, policy: RetryPolicy, random: Random) -> RetryDecision:
    """What to do after an attempt of which `counted` used up an attempt so far. Pure but for the draw.

    Full jitter after exponential bounds: M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog,
    2015. A wait that the endpoint asked for is kept to and lengthened by up to a tenth, never shortened.
    `Retry-After: 0`, which is in use, asks for nothing: else a row would be sent again and again as fast as
    the network goes, and use up no attempt.
    """
    if isinstance(outcome, Completion) or outcome.kind not in TRANSIENT_KINDS:
        return RetryDecision(again=False)
    limited = outcome.kind is FailureKind.RATE_LIMIT
    asked = outcome.retry_after_s or 0.0
    counts = not (limited and asked > 0)
    if asked >= SHORTEST_ASKED_S:
        wait = asked * random.uniform(1.0, 1.1)
    else:
        bound = min(policy.longest_s, policy.base_s * 2 ** min(counted - 1, 30))
        wait = max(asked, random.uniform(0.0, bound))
    return RetryDecision(again=True, wait_s=wait, rate_limited=limited, counts=counts)


async def with_retries(
    operation: Callable[[int], Awaitable[Completion | Failure]],
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[None]],
    clock: Callable[[], float],
    random: Random,
    note: Callable[[Failure, RetryDecision], Awaitable[None]],
) -> Completion | Failure:
    """Run `operation(attempt number from 1)` until its outcome stands.

    `clock` is monotonic, in seconds. `note` hears of each failed attempt before the wait, with the decision
    that was made (`again` False: the failure stands).
    """
    counted = 0
    number = 0
    asked_s = 0.0
    began = clock()
    last = RetryDecision(again=False)

    async def attempt() -> Completion | Failure:
        nonlocal number, counted, asked_s, last
        number += 1
        counted += 1
        outcome = await operation(number)
        if isinstance(outcome, Completion):
            return outcome
        last = decide(outcome, counted, policy, random)
        if not last.counts:
            counted -= 1
        asked_s += 0.0 if last.counts else last.wait_s
        after = clock() - began + last.wait_s
        late = after > policy.max_time_s or after - asked_s > policy.max_unasked_s
        if counted >= policy.max_attempts or late:
            last = RetryDecision(again=False, rate_limited=last.rate_limited)
        await note(outcome, last)
        return outcome

    # Nearly all first attempts stand; entering tenacity for them would cost 27 µs of CPU a row.
    outcome = await attempt()
    if not last.again:
        return outcome
    await sleep(last.wait_s)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_result(lambda outcome: isinstance(outcome, Failure) and last.again),
        wait=lambda state: last.wait_s,
        stop=tenacity.stop_never,
        sleep=sleep,
        reraise=True,
    )
    return await retrying(attempt)
