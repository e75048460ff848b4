"""What a search found, and what gave way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmbu_async.bench.capacity import Capacity
from mmbu_async.bench.figures import Figures, figures
from mmbu_async.bench.measured import Measured
from mmbu_async.bench.objective import ERRORS, Objective
from mmbu_async.bench.plan import Load
from mmbu_async.bench.record import Phase
from mmbu_async.bench.verdict import Verdict, judge
from mmbu_async.report.words import share_percent


class Probe:
    """A load, and what was seen of it so far."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.blocks: list[Measured] = []
        self._seen: tuple[Figures, Verdict] | None = None

    def add(self, measured: Measured) -> None:
        self.blocks.append(measured)
        self._seen = None

    @property
    def figures(self) -> Figures:
        return self._look()[0]

    @property
    def verdict(self) -> Verdict:
        return self._look()[1]

    def _look(self) -> tuple[Figures, Verdict]:
        if self._seen is None:
            found = figures(self.blocks)
            self._seen = (found, judge(self.blocks, found))
        return self._seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Why there is no more."""

    kind: str
    """`429`, `latency`, `errors`, `client`, or `none` where nothing gave way."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer. `held` None: the objectives fail at the least load already; `failed` None: at no load that
    was tried."""

    held: float | None
    failed: float | None
    capacity: Capacity
    bottleneck: Bottleneck
    complete: bool
    """False: requests, money or patience ended before held and failed were near each other."""
    requests: int


def bottleneck(
    rungs: Sequence[Probe],
    probes: Mapping[float, Probe],
    failed: float | None,
    objectives: Sequence[Objective],
) -> Bottleneck:
    """What gave way first: at the lowest load that failed, else at the top of the ladder."""
    seen = [probe for probe in (*rungs, *probes.values()) if probe.blocks]
    limited = next((probe for probe in seen if probe.verdict.client_bound), None)
    first = probes.get(failed) if failed is not None else None
    if first is None:
        tried = [rung for rung in rungs if rung.blocks]
        first = next((rung for rung in tried if _failing(rung, objectives)), None)
    if first is None:
        if limited is not None:
            return _client(limited)
        return Bottleneck(kind="none", text="nothing gave way at any load that was tried")
    found, where = first.figures, first.load.name
    if first.verdict.client_bound:
        return _client(first)
    refused = found.phases.get(Phase.RATE_LIMIT, 0)
    if refused and refused >= 0.5 * (found.counted - found.phases.get(Phase.OK, 0)):
        share = refused / found.counted
        return Bottleneck(
            kind="429", text=f"a limit of the endpoint: at {where} it answers {share_percent(share)} with 429"
        )
    failing = _failing(first, objectives)
    if any(one.measure == ERRORS for one in failing):
        phases = ", ".join(
            f"{phase.value} {count}" for phase, count in found.phases.items() if phase is not Phase.OK
        )
        return Bottleneck(kind="errors", text=f"errors of the endpoint at {where}: {phases}")
    names = ", ".join(one.name for one in failing)
    why = f"requests queue, and {names} fails" if failing else "more is asked than it serves"
    return Bottleneck(kind="latency", text=f"waiting at the endpoint: at {where} {why}")


def _failing(probe: Probe, objectives: Sequence[Objective]) -> list[Objective]:
    return [one for one in objectives if not one.holds(probe.figures)]


def _client(probe: Probe) -> Bottleneck:
    return Bottleneck(
        kind="client",
        text=f"this process, at {probe.load.name}: {'; '.join(probe.verdict.client_limited)}; the endpoint "
        "may do more",
    )
