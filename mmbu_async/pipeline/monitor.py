"""What happens in a run right now, in plain counters that stages bump and displays read."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field

from mmbu_async.model import Attempt, Completion, FailureKind

RATE_WINDOW_S = 60.0
LATEST = 512
"""Answered calls whose duration is kept."""


@dataclass(slots=True, kw_only=True)
class Monitor:
    """Counters of one session. Times are monotonic seconds."""

    run: str
    total: int = 0
    """Rows of the selection."""
    done_before: int = 0
    """Rows that earlier sessions finished."""
    done: int = 0
    """Rows this session finished: replied and, where a judge is needed, asked about."""
    replied: int = 0
    failed: int = 0
    unjudged: int = 0
    """Rows of which a judge gave no usable verdict."""
    judge_waiting: int = 0
    """Rows with a reply that wait for a verdict."""
    shared_verdicts: int = 0
    retries: int = 0
    rate_limited: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spent: float = 0.0
    price_known: bool = True
    unpriced: int = 0
    """Calls whose cost was not learnt."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Failed attempts by kind."""
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))
    """Seconds of the latest calls that were answered."""
    paused: bool = False
    """Asked to start no call for now."""
    started: float = field(default_factory=time.monotonic)
    under_way: dict[str, float] = field(default_factory=dict)
    """Row id, with the judge's name where a judge is at work on it -> when that began: what the tail of a
    run waits for."""
    batches: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Model or judge -> a line on each of its batches that are out."""
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def attempt(self, attempt: Attempt, *, final: bool) -> None:
        """Take in one HTTP exchange."""
        self.calls += 1
        self.retries += not final
        outcome = attempt.outcome
        if isinstance(outcome, Completion):
            self.input_tokens += outcome.usage.input_tokens
            self.output_tokens += outcome.usage.output_tokens
            self.latencies.append(attempt.timing.total_s)
        else:
            self.kinds[outcome.kind] += 1
            self.rate_limited += outcome.kind is FailureKind.RATE_LIMIT
        if attempt.cost_usd is None:
            self.price_known = False
            self.unpriced += 1
        else:
            self.spent += attempt.cost_usd

    @property
    def open(self) -> int:
        return max(0, self.total - self.done_before - self.done - self.failed)

    def rate(self, now: float) -> float:
        """Rows a second over the last minute, or since the start where that is less long ago."""
        finished = self.done + self.failed
        if not self._recent:
            self._recent.append((self.started, 0))
        self._recent.append((now, finished))
        while len(self._recent) > 2 and now - self._recent[0][0] > RATE_WINDOW_S:
            self._recent.popleft()
        since, before = self._recent[0]
        return (finished - before) / (now - since) if now > since else 0.0

    def slowest(self, now: float) -> tuple[str, float] | None:
        """The row under way for the longest, and for how many seconds."""
        if not self.under_way:
            return None
        row, since = min(self.under_way.items(), key=lambda item: item[1])
        return row, now - since
