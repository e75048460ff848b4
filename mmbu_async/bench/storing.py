"""Stages to and from the store: figures can be computed anew from what lies there, and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from mmbu_async.bench.arrivals import Arrivals
from mmbu_async.bench.gaps import Gaps
from mmbu_async.bench.histogram import Histogram
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.plan import Closed, Ends, Load, Open, StagePlan, Warmup
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.watching import Tick
from mmbu_async.model import Json
from mmbu_async.store.benches import REQUEST_COLUMNS, Benches, StageRecord

PREFLIGHT, STAGE, PROBE = "preflight", "stage", "probe"
"""Roles of a stage: the first request, which counts nowhere; a load that was asked for; one of a search."""

_values = attrgetter(*REQUEST_COLUMNS)
_TRUTHS = tuple(map(REQUEST_COLUMNS.index, ("in_one_piece", "estimated", "correct")))
_PHASE = REQUEST_COLUMNS.index("phase")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A block as it lies in the store."""

    number: int
    """Order within the bench, from 0."""
    part: int
    """Blocks of one load on one endpoint have the same."""
    role: str
    measured: Measured


def keep(benches: Benches, bench_id: int, kept: Kept) -> None:
    """Store a block with all its requests."""
    measured = kept.measured
    row = StageRecord(
        number=kept.number,
        part=kept.part,
        role=kept.role,
        target=measured.target,
        plan=dump_plan(measured.plan),
        began_at=measured.began_at,
        begin_s=measured.begin_s,
        end_s=measured.end_s,
        ended=measured.ended.value,
        drained_s=measured.drained_s,
        gaps=measured.gaps.dump(),
        lags=measured.lags.dump(),
        ticks=[
            [tick.at_s, tick.outstanding, tick.in_flight, tick.lag_s, tick.cpu] for tick in measured.ticks
        ],
    )
    benches.add_stage(bench_id, row, (_values(record) for record in measured.records))


def stored(benches: Benches, bench_id: int) -> list[Kept]:
    """All blocks of a bench, in the order in which they ran."""
    return [
        Kept(
            number=row.number,
            part=row.part,
            role=row.role,
            measured=Measured(
                plan=load_plan(row.plan),
                target=row.target,
                began_at=row.began_at,
                begin_s=row.begin_s,
                end_s=row.end_s,
                ended=End(row.ended),
                records=tuple(map(_record, benches.requests(row.id))),
                gaps=Gaps.load(row.gaps),
                ticks=tuple(
                    Tick(at_s=at, outstanding=due, in_flight=sent, lag_s=lag, cpu=cpu)
                    for at, due, sent, lag, cpu in row.ticks
                ),
                lags=Histogram.load(row.lags),
                drained_s=row.drained_s,
            ),
        )
        for row in benches.stages(bench_id)
    ]


def _record(values: Sequence[Any]) -> Record:
    plain = list(values)
    for place in _TRUTHS:
        plain[place] = None if plain[place] is None else bool(plain[place])
    plain[_PHASE] = Phase(plain[_PHASE])
    return Record(**dict(zip(REQUEST_COLUMNS, plain, strict=True)))


def dump_plan(plan: StagePlan) -> Json:
    """As JSON that `load_plan` reads."""
    return asdict(plan)


def load_plan(dumped: Json) -> StagePlan:
    return StagePlan(
        load=load_load(dumped["load"]),
        ends=Ends(**dumped["ends"]),
        warmup=Warmup(**dumped["warmup"]),
        ramp_s=dumped["ramp_s"],
        drain_s=dumped["drain_s"],
        watch_saturation=dumped["watch_saturation"],
    )


def load_load(dumped: Json) -> Load:
    if "concurrency" in dumped:
        return Closed(**dumped)
    return Open(**{**dumped, "arrivals": Arrivals(**dumped["arrivals"])})
