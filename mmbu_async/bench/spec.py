"""What a bench is asked to do, and the stages that follow from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from mmbu_async.bench.plan import Closed, Ends, Load, StagePlan, Warmup
from mmbu_async.bench.pool import Caching
from mmbu_async.bench.rates import ANY, Limits
from mmbu_async.bench.search import SearchPlan
from mmbu_async.bench.synthetic import Synthetic
from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json

DEFAULT_LOADS = tuple(Closed(concurrency=users) for users in (1, 4, 16, 64))
NO_ENDS = Ends()
DEFAULT_ENDS = Ends(requests=200, seconds=120.0)
DEFAULT_OF_USER = 6
"""Requests of each user by default where those are more: waves of them, of which the first is warm-up."""
LONGEST_S = 600.0
"""Of a stage that is to end by the interval of its median alone."""
WARMUP_SHARE = 0.1
"""Of a stage's requests or time, where nothing else is said; but at most MOST_WARMUP, and of a closed loop
one request of each user at least."""
MOST_WARMUP = Warmup(requests=200, seconds=30.0)
BLOCKS = 4
"""Into which a stage is cut where two endpoints take turns: one, other, other, one."""


class BesideConfig(CallSettings):
    """The other endpoint."""

    flags: ClassVar[str] = "--beside-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Everything that a bench is started with."""

    config: RunConfig
    """The endpoint, how it is asked, the benchmark whose rows are sent, the store, the money cap."""
    beside: BesideConfig | None = None
    """Another endpoint, which is measured in turns with the first."""
    name: str | None = None
    synthetic: Synthetic | None = None
    """None: rows of the benchmark."""
    loads: tuple[Load, ...] = DEFAULT_LOADS
    ends: Ends = NO_ENDS
    """Of each stage."""
    requests_in_all: int | None = None
    """Of all stages together: each gets an equal part, so that none is cut short by an earlier one."""
    warmup: Warmup | None = None
    """None: a share of the stage."""
    ramp_s: float = 0.0
    drain_s: float = 600.0
    caching: Caching = Caching.PLAIN
    seed: int = 0
    score: bool = False
    """Score the answers of rows that need no judge."""
    limits: Limits = ANY
    """That a reply must keep to count for the goodput."""
    search: SearchPlan | None = None
    """Look for the highest load at which its objectives hold, instead of measuring `loads`."""
    blocks: int = BLOCKS
    plan_for: str | None = None
    """The benchmark whose hours and money are told; None: the one whose rows are sent."""

    def __post_init__(self) -> None:
        if self.score and self.synthetic is not None:
            raise ConfigError("--score needs rows with a right answer: leave out the synthetic images.")
        if self.search is not None and (self.loads is not DEFAULT_LOADS or self.beside is not None):
            raise ConfigError(
                "a search finds its own loads, on one endpoint: leave out --concurrency, --rate and "
                "--beside-…, or --objective."
            )
        if self.requests_in_all is not None and self.ends.requests is not None:
            raise ConfigError(
                "--requests-per-stage and --requests-in-all say two different things; leave one out."
            )
        if self.requests_in_all is not None and self.requests_in_all < self.stage_count:
            raise ConfigError(
                f"--requests-in-all {self.requests_in_all}: there are {self.stage_count} stages, and each "
                "needs a request at least."
            )

    @property
    def settings(self) -> CallSettings:
        """How the first endpoint is asked; synthetic replies have a length of their own."""
        return self._asked(self.config)

    @property
    def others(self) -> tuple[CallSettings, ...]:
        return () if self.beside is None else (self._asked(self.beside),)

    @property
    def stage_count(self) -> int:
        return len(self.loads) * (1 if self.beside is None else 2)

    def plans(self) -> list[StagePlan]:
        """One for each load, for either endpoint. Where two take turns it is that of a block."""
        return [self._plan(load) for load in self.loads]

    def _plan(self, load: Load) -> StagePlan:
        ends = self._ends()
        if self.ends == NO_ENDS and self.requests_in_all is None:
            ends = replace(ends, requests=max(ends.requests or 0, DEFAULT_OF_USER * _users(load)))
        parts = 1 if self.beside is None else max(2, self.blocks) // 2
        cut = replace(
            ends,
            requests=None if ends.requests is None else max(1, ends.requests // parts),
            seconds=None if ends.seconds is None else ends.seconds / parts,
        )
        return StagePlan(
            load=load,
            ends=cut,
            warmup=self.warmup if self.warmup is not None else _share_of(cut, load),
            ramp_s=self.ramp_s,
            drain_s=self.drain_s,
        )

    def stored(self) -> dict[str, Json]:
        """All of it as JSON; keys are not in it."""
        own = {
            "synthetic": None if self.synthetic is None else asdict(self.synthetic),
            "work": self.work,
            "loads": [] if self.search is not None else [load.name for load in self.loads],
            "search": None if self.search is None else asdict(self.search),
            "ends": asdict(self._ends()),
            "requests_in_all": self.requests_in_all,
            "caching": self.caching.value,
            "seed": self.seed,
            "score": self.score,
            "limits": asdict(self.limits),
        }
        return {
            "bench": own,
            "config": self.config.model_dump(mode="json", exclude={"store", "judge", "panel"}),
            "beside": None if self.beside is None else self.beside.model_dump(mode="json"),
        }

    @property
    def work(self) -> str:
        """For people."""
        if self.synthetic is not None:
            return f"synthetic: {self.synthetic.name}"
        return f"rows of {self.config.benchmark}"

    def _asked(self, settings: CallSettings) -> CallSettings:
        if self.synthetic is None:
            return settings
        return settings.model_copy(update={"max_tokens": self.synthetic.reply_tokens})

    def _ends(self) -> Ends:
        ends = self.ends
        if self.requests_in_all is not None:
            return replace(ends, requests=self.requests_in_all // self.stage_count)
        if ends == NO_ENDS:
            return DEFAULT_ENDS
        if ends.requests is None and ends.seconds is None:
            return replace(ends, seconds=LONGEST_S)
        return ends


def _share_of(ends: Ends, load: Load) -> Warmup:
    """A tenth of the count, or of the time where there is none; and of a closed loop the first request of
    each user, since all begin at once, which no steady load does. But at most half of the count."""
    users = _users(load)
    if ends.requests is None:
        return Warmup(requests=users, seconds=min(MOST_WARMUP.seconds, (ends.seconds or 0.0) * WARMUP_SHARE))
    share = min(MOST_WARMUP.requests, int(ends.requests * WARMUP_SHARE))
    return Warmup(requests=min(max(users, share), ends.requests // 2))


def _users(load: Load) -> int:
    return load.concurrency if isinstance(load, Closed) else 0
