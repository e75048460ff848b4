"""A bench as its readers see it: each part with figures and verdict, computed from the store alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.bench.figures import Figures, figures
from mmbu_async.bench.measured import Measured
from mmbu_async.bench.plan import Load
from mmbu_async.bench.rates import Limits
from mmbu_async.bench.storing import PREFLIGHT, Kept, stored
from mmbu_async.bench.verdict import Verdict, judge
from mmbu_async.store.benches import Benches, BenchRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One load on one endpoint."""

    role: str
    target: str
    load: Load
    blocks: tuple[Measured, ...]
    figures: Figures
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """All of it."""

    bench: BenchRecord
    parts: tuple[Part, ...]
    """In the order in which they began."""

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.target for part in self.parts))

    @property
    def work(self) -> str:
        return str(self.bench.config["bench"]["work"])

    def of(self, target: str) -> tuple[Part, ...]:
        """The parts on one endpoint."""
        return tuple(part for part in self.parts if part.target == target)


def read_report(name: str, store: Path) -> BenchReport:
    """The bench of that name. Raises BenchNotFoundError."""
    with Benches.open(store, create=False) as benches:
        bench = benches.get(name)
        return build_report(bench, stored(benches, bench.id))


def build_report(bench: BenchRecord, kept: Iterable[Kept]) -> BenchReport:
    """From what the store holds."""
    limits = Limits(**bench.config["bench"]["limits"])
    parts: dict[tuple[int, str], list[Kept]] = {}
    for one in kept:
        if one.role != PREFLIGHT:
            parts.setdefault((one.part, one.measured.target), []).append(one)
    made = []
    for blocks in parts.values():
        measured = [one.measured for one in blocks]
        found = figures(measured, limits)
        made.append(
            Part(
                role=blocks[0].role,
                target=found.target,
                load=found.load,
                blocks=tuple(measured),
                figures=found,
                verdict=judge(measured, found),
            )
        )
    return BenchReport(bench=bench, parts=tuple(made))
