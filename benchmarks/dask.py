"""What it costs to have the work done by worker processes, and what they add, on one machine.

    python -m benchmarks.dask [--json FILE] [--quick]

The main job on images of 140 KB, one call a row, against the bare endpoint: by this process alone, and with
Dask workers of this machine. Real gains need machines of their own; what a driver can feed is seen here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import measured
from benchmarks.machine import usable_cores
from benchmarks.measured import Measured
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import Endpoint, bare, endpoint
from benchmarks.splits import noise_split

ROWS = 2000
CONCURRENCY = 64
LATENCY_S = 0.4
WIDE = 256
IDEAL = WIDE / LATENCY_S
"""Rows a second that this latency and concurrency allow."""
WORKERS = (0, 1, 2)
"""0: this process alone."""
FROM, UNTIL = 0.2, 0.9
"""Shares of the rows between which the rate is taken: workers load packages before, and a tail follows."""


def measure(options: Options) -> Findings:
    split = noise_split(options.folder, "scored", options.rows(ROWS, 600))
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for workers in WORKERS:
        with endpoint(*bare()) as server:
            runs = [_run(options, server, split, workers, CONCURRENCY) for _ in range(options.repeats)]
        figures += _at_no_latency(workers, runs)
        details[f"{workers} workers"] = [_summary(one) for one in runs]
    for workers in (0, WORKERS[-1]):
        with endpoint(*bare(LATENCY_S)) as server:
            runs = [_run(options, server, split, workers, WIDE) for _ in range(options.repeats)]
        figures.append(
            Figure(
                what=f"share of the ideal at {LATENCY_S * 1e3:.0f} ms, {_who(workers)}",
                value=median(_rate(one) for one in runs) / IDEAL * 100,
                unit="%",
            )
        )
        details[f"{workers} workers at a latency"] = [_summary(one) for one in runs]
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    f"{ROWS:,} rows with an image of 140 KB each, one call a row, concurrency {CONCURRENCY} at no latency "
    f"and {WIDE} at {LATENCY_S * 1e3:.0f} ms (ideal: {IDEAL:.0f} rows a second). Driver, workers and "
    f"endpoint share {len(usable_cores())} cores, none pinned: rows a second at no latency say what is left "
    "of this machine, not what workers on machines of their own add. CPU of the driver is what bounds how "
    "many of those one driver can feed. Rates are taken between a fifth and nine tenths of the rows; CPU of "
    "the driver is from the first row read to the last reply on disk, that of workers from their start, "
    "packages loaded."
)


def _run(options: Options, server: Endpoint, split: Path, workers: int, concurrency: int) -> Measured:
    store = options.folder / "dask.sqlite"
    config = {
        "model": "bare",
        "base_url": server.openai,
        "data": str(split),
        "store": str(store),
        "judge": {"base_url": server.url},
        "concurrency": concurrency,
        **({"dask_workers": workers} if workers else {}),
    }
    measured.remove_store(store)
    try:
        return measured.work({"config": config}, pinned=False)
    finally:
        measured.remove_store(store)


def _at_no_latency(workers: int, runs: list[Measured]) -> list[Figure]:
    who = _who(workers)
    figures = [
        Figure(what=f"rows a second, {who}", value=median(map(_rate, runs)), unit="rows/s"),
        Figure(
            what=f"CPU of the driver a row, {who}",
            value=median(one.engine_cpu_ms_a_row for one in runs),
            unit="ms",
        ),
    ]
    if workers:
        cpu = median(_workers_cpu_ms(one) for one in runs)
        figures.append(Figure(what=f"CPU of the workers a row, {who}", value=cpu, unit="ms"))
    return figures


def _who(workers: int) -> str:
    return f"{workers} local worker{'s' * (workers > 1)}" if workers else "one process"


def _rate(run: Measured) -> float:
    """Rows a second in the middle of a run."""
    begun = next((at, done) for at, done, _ in run.samples if done >= FROM * run.rows)
    ended = [(at, done) for at, done, _ in run.samples if done <= UNTIL * run.rows][-1]
    if ended[0] <= begun[0]:
        # A quick run is over before it was looked at twice.
        return run.engine_rows_a_second
    return (ended[1] - begun[1]) / (ended[0] - begun[0])


def _workers_cpu_ms(run: Measured) -> float:
    return run.marks["ended"]["children_s"] / run.rows * 1e3


def _summary(run: Measured) -> dict[str, Any]:
    return run.summary() | {
        "middle_rows_a_second": round(_rate(run), 1),
        "workers_cpu_ms_a_row": round(_workers_cpu_ms(run), 4),
    }


def main() -> None:
    present("dask", measure, __doc__)


if __name__ == "__main__":
    main()
