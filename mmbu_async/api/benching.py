"""Load on an endpoint, and what it showed."""

from __future__ import annotations

from pathlib import Path

from mmbu_async.bench.compare import BenchComparison
from mmbu_async.bench.compare import compare as compare_benches
from mmbu_async.bench.measuring import Tell
from mmbu_async.bench.measuring import silent as quiet
from mmbu_async.bench.report import BenchReport, read_report
from mmbu_async.bench.session import Ended as BenchEnded
from mmbu_async.bench.session import run as run_bench
from mmbu_async.bench.spec import Spec
from mmbu_async.store.benches import Benches, BenchRecord


async def bench(spec: Spec, *, tell: Tell = quiet) -> BenchEnded:
    """Measure an endpoint, or two in turns, as `spec` says; what was measured is in the store.

    Raises ConfigError, DataError, EndpointError or EndpointDownError where nothing can be measured; what
    ends a bench later (money, interrupt, an endpoint that is down) is noted in the result. `tell` hears of
    each stage in a line.
    """
    return await run_bench(spec, tell=tell)


def bench_report(name: str, *, store: Path = Path("mmbu.sqlite")) -> BenchReport:
    """What a bench measured: every part with figures and verdict, computed from the stored requests."""
    return read_report(name, store)


def bench_compare(
    first: str, second: str | None = None, *, store: Path = Path("mmbu.sqlite")
) -> BenchComparison:
    """Two benches load by load; without `second` the two endpoints that the first measured in turns.

    Raises ConfigError where they have no load in common.
    """
    other = None if second is None else read_report(second, store)
    return compare_benches(read_report(first, store), other)


def benches(*, store: Path = Path("mmbu.sqlite")) -> list[BenchRecord]:
    """Every bench of a store, oldest first."""
    with Benches.open(store, create=False) as opened:
        return opened.all()
