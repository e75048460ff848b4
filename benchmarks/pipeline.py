"""The main job on large images: CPU a row at no latency, and throughput at a usual one.

    python -m benchmarks.pipeline [--json FILE] [--quick]

5,000 rows with images of 140 KB each, against the bare endpoint in a process of its own on the other core.
A scored-only split takes one call a row, a judged one two (no two prompts are alike, so none is shared).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import measured
from benchmarks.machine import file_system
from benchmarks.measured import Measured
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import bare, endpoint
from benchmarks.splits import Kind, noise_split

ROWS, MANY_ROWS = 5000, 20_000
CONCURRENCY = 64
LATENCY_S = 0.4
WIDE = 256
"""Concurrency at 400 ms."""
IDEAL = WIDE / LATENCY_S
"""Rows a second that this latency and concurrency allow."""
CPU_AIMS: dict[Kind, float] = {"scored": 0.8, "judged": 1.3}
"""Milliseconds of CPU a row, checkpoint included."""
CALLS: dict[Kind, str] = {"scored": "one call a row", "judged": "two calls a row, the judge's the second"}


def measure(options: Options) -> Findings:
    figures: list[Figure] = []
    details: dict[str, Any] = {"disk": file_system(options.folder)}
    for kind in CPU_AIMS:
        split = noise_split(options.folder, kind, options.rows(ROWS, 400))
        with endpoint(*bare()) as server:
            runs = [
                measured.run(server, split, _store(options), concurrency=CONCURRENCY)
                for _ in range(options.repeats)
            ]
        figures += _at_no_latency(kind, runs)
        details[kind] = [one.summary() for one in runs]
    for rows in (ROWS,) if options.quick else (ROWS, MANY_ROWS):
        split = noise_split(options.folder, "scored", options.rows(rows, rows // 2))
        with endpoint(*bare(LATENCY_S)) as server:
            runs = [
                measured.run(server, split, _store(options), concurrency=WIDE) for _ in range(options.repeats)
            ]
        figures += _at_usual_latency(runs)
        details[f"latency {rows}"] = [
            one.summary() | {"steady_rows_a_second": round(one.steady_rows_a_second(WIDE), 1)} for one in runs
        ]
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "Our process and the bare endpoint (bodies drained, a fixed reply) run on a core each. CPU is user and "
    "system time of all threads from the call of evaluate() to its return, with reading, checking and "
    "registering the rows, the checkpoint under synchronous FULL, and scoring in it; start-up (interpreter "
    f"and imports) is stated apart. Concurrency {CONCURRENCY} at no latency. At 400 ms and concurrency "
    f"{WIDE} the ideal is {IDEAL:.0f} rows a second. 'In all' is evaluate() from call to return: opening, "
    "preflight (one row goes ahead alone), slow start from 16 calls at once, the tail, and scoring. 'Steady' "
    "is the time between the slow start's end and the point where nine tenths of the rows are done."
)


def _at_no_latency(kind: Kind, runs: list[Measured]) -> list[Figure]:
    return [
        Figure(
            what=f"CPU a row, {CALLS[kind]}",
            value=median(one.cpu_ms_a_row for one in runs),
            unit="ms",
            at_most=CPU_AIMS[kind],
        ),
        Figure(
            what=f"rows a second, {CALLS[kind]}",
            value=median(one.rows_a_second for one in runs),
            unit="rows/s",
        ),
        Figure(
            what=f"start-up before that, {CALLS[kind]}",
            value=median(one.start_up_cpu_s for one in runs),
            unit="s of CPU",
        ),
    ]


def _at_usual_latency(runs: list[Measured]) -> list[Figure]:
    rows = runs[0].rows
    return [
        Figure(
            what=f"share of the ideal at 400 ms, {rows:,} rows, steady",
            value=median(one.steady_rows_a_second(WIDE) for one in runs) / IDEAL * 100,
            unit="%",
            at_least=95,
        ),
        Figure(
            what=f"share of the ideal at 400 ms, {rows:,} rows, in all",
            value=median(one.rows_a_second for one in runs) / IDEAL * 100,
            unit="%",
            at_least=95,
        ),
    ]


def _store(options: Options) -> Path:
    return options.folder / "pipeline.sqlite"


def main() -> None:
    present("pipeline", measure, __doc__)


if __name__ == "__main__":
    main()
