"""What the store gives out about datasets, judges, runs and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from mmbu_async.model import Json, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """One content of a benchmark's rows, wherever it was read from."""

    id: int
    benchmark: str
    source: str
    """Where it was last read from, in the source's words."""
    stamp: str
    """Cheap mark of the source's bytes, by which the dataset is found again without reading it."""
    fingerprint: str
    """SHA-256 over the content of all rows, hexadecimal."""
    rows: int
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRecord:
    """A judge: a model with fixed settings and a prompt. Verdicts are kept under its name."""

    id: int
    name: str
    identity: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One model on one benchmark with fixed settings."""

    id: int
    name: str
    benchmark: str
    dataset: DatasetRecord
    model: str
    endpoint: str
    host: str
    identity: Mapping[str, Json]
    """What changes answers; must match on resume."""
    config: Mapping[str, Json]
    """Everything the run was started with."""
    judge: JudgeRecord | None
    """Whose verdicts the scores are made with."""
    package_version: str
    created_at: float
    scored_at: float | None
    scored_version: str | None
    """The package version that last rewrote the scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One stay of a process at a run."""

    id: int
    run_id: int
    kind: str
    """`run`, `resume`, `rejudge` or `cancel`."""
    started_at: float
    ended_at: float | None
    """None while it lives. For a process that died: its last sign of life."""
    ended: str | None
    """How it ended, `died` where the next one found it dead; None while it lives."""
    host: str
    pid: int
    package_version: str
    config: Mapping[str, Json]

    @property
    def wall_s(self) -> float | None:
        return None if self.ended_at is None else self.ended_at - self.started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSample:
    """A sample with the key by which calls and verdicts name it."""

    key: int
    sample: Sample
    family: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Where the selected rows of a run stand. completed + failed + pending = selected."""

    selected: int
    completed: int
    """Rows with a reply."""
    failed: int
    """Rows without a reply whose last session gave them up."""
    pending: int
    """Rows without a reply that no session gave up."""
    judged: int
    """Rows with a usable verdict of the run's judge."""
    unjudged: int
    """Rows whose verdict of the run's judge is unusable."""
    scored: int
    """Rows that the last scoring found right or wrong, or found to have no public answer."""
    ungraded: int = 0
    """Of these, the rows without a public answer."""
    by_verdict: int = 0
    """Of these, the rows with a usable verdict of the run's judge."""
    to_judge: int
    """Rows with a reply, and neither a usable verdict nor a score made without one. Before the first
    scoring this includes rows that need no judge: only the benchmark knows those."""

    @property
    def graded(self) -> int:
        """Rows that the last scoring found right or wrong."""
        return self.scored - self.ungraded

    @property
    def need_judge(self) -> int:
        """Rows with a reply that cannot be scored without a verdict, as far as the last scoring knows."""
        return self.by_verdict + self.completed - self.scored

    @property
    def coverage(self) -> float:
        """Share of these that are scored; 1 where there are none."""
        return self.by_verdict / self.need_judge if self.need_judge else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals:
    """Sums over all calls to one side (the model under test, or judges), failed ones included."""

    calls: int = 0
    ok: int = 0
    retries: int = 0
    """Calls that repeat an earlier one of the same session."""
    rate_limited: int = 0
    """Calls that were answered with 'too many requests'."""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    usage_unreported: int = 0
    """Replies for which the endpoint reported no tokens."""
    cost_usd: float = 0.0
    """Sum of the known costs."""
    cost_unknown: int = 0
    """Calls that were charged for, or may have been (a reply that was lost on its way), nobody knows how
    much."""
    seconds: float = 0.0
    """Time under way, summed over calls."""

    def __add__(self, other: CallTotals) -> CallTotals:
        return CallTotals(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """What is known of the calls to one side whose cost is not."""

    input_tokens: int = 0
    """Of calls whose tokens are known, but no price was when they were made."""
    output_tokens: int = 0
    unseen: int = 0
    """Calls of which the tokens are not known either."""
    most_input_tokens: int = 0
    """Of any call to that side; 0 where none reported any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedVerdicts:
    """Verdicts of a judge that were not bought: the reply to an identical prompt was there."""

    judge: str
    verdicts: int
    usd_each: float | None
    """Mean cost of a verdict that was bought of this judge, in any run of the store; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """What a run has cost so far, over all sessions."""

    infer: CallTotals
    judge: CallTotals
    unpriced_infer: Unpriced
    unpriced_judge: Unpriced
    failures: Mapping[str, int]
    """Failed calls of the model under test by kind."""
    judges: Mapping[int, CallTotals]
    """The calls to each judge."""
    shared: tuple[SharedVerdicts, ...]
    """Of each judge that has any."""
    sessions: tuple[SessionRecord, ...]
    first_call_at: float | None
    last_reply_at: float | None

    @property
    def cost_usd(self) -> float:
        return self.infer.cost_usd + self.judge.cost_usd

    @property
    def cost_unknown(self) -> int:
        return self.infer.cost_unknown + self.judge.cost_unknown

    @property
    def wall_s(self) -> float:
        """Seconds in which a session was at work, the ended ones."""
        return sum(session.wall_s or 0.0 for session in self.sessions)
