"""Does `mmbu bench` do what it says? Rate and start times of an open loop, and its own cost meanwhile.

python -m benchmarks.bench_precision [--json FILE] [--quick]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import OURS, bare, endpoint, pin
from mmbu_async.api import bench_report, bench_sync
from mmbu_async.bench.plan import Ends, Open, Warmup
from mmbu_async.bench.report import Part
from mmbu_async.bench.spec import Spec
from mmbu_async.bench.synthetic import ImageKind, Synthetic
from mmbu_async.config import RunConfig

RATES = (50, 500)
SECONDS = 15.0
LATENCY_S = 0.2
WORK = Synthetic(kinds=(ImageKind(width=640, height=480),), prompt_tokens=30, reply_tokens=10)
"""JPEG of about 60 KB."""


def measure(options: Options) -> Findings:
    pin(0, OURS)
    details: dict[str, Any] = {}
    figures: list[Figure] = []
    for rate in RATES:
        parts = []
        for _ in range(options.repeats):
            with endpoint(*bare(LATENCY_S)) as server:
                parts.append(_part(options, server.openai, rate))
        measured = [_figures(part, rate) for part in parts]
        details[f"{rate}/s"] = measured
        figures += _told(measured, rate, aimed=rate == 500)
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    f"Open loops at constant rates for {SECONDS:.0f} s against the bare endpoint, which answers after "
    f"{LATENCY_S * 1e3:.0f} ms, on the other core; images of 640 x 480 pixels. The start-time error is the "
    "distance of a request's actual from its intended start, early or late. The achieved rate is that of the "
    "actual starts from the first to the last."
)


def _part(options: Options, url: str, rate: float) -> Part:
    store = options.folder / "precision.sqlite"
    spec = Spec(
        config=RunConfig(model="m", base_url=url, store=store, synchronous="normal"),
        synthetic=WORK,
        loads=(Open(rate=rate),),
        ends=Ends(seconds=SECONDS if not options.quick else 5.0),
        warmup=Warmup(seconds=1.0),
    )
    ended = bench_sync(spec)
    assert ended.stopped is None, ended.stopped
    return bench_report(ended.name, store=store).parts[0]


def _figures(part: Part, rate: float) -> dict[str, float]:
    records = [record for block in part.blocks for record in block.records if block.counts(record)]
    errors = np.abs([record.delay_s for record in records])
    starts = [record.started_s for record in records]
    achieved = (len(starts) - 1) / (max(starts) - min(starts))
    latency, itself = part.figures.times.latency, part.verdict.itself
    assert latency is not None
    return {
        "rate_off_percent": abs(achieved / rate - 1) * 100,
        "start_p50_ms": float(np.quantile(errors, 0.5)) * 1e3,
        "start_p99_ms": float(np.quantile(errors, 0.99)) * 1e3,
        "lag_p99_ms": (itself.lag_p99_s or 0.0) * 1e3,
        "cpu_percent": (itself.cpu or 0.0) * 100,
        "beyond_ms": (latency.percentile("p50") - LATENCY_S) * 1e3,
        "client_limited": float(bool(part.verdict.client_limited)),
    }


def _told(measured: list[dict[str, float]], rate: float, *, aimed: bool) -> list[Figure]:
    def of(name: str) -> float:
        return median(one[name] for one in measured)

    return [
        Figure(
            what=f"distance of the achieved from the asked rate, {rate}/s",
            value=of("rate_off_percent"),
            unit="%",
            at_most=0.5 if aimed else None,
        ),
        Figure(
            what=f"start-time error, p99, {rate}/s",
            value=of("start_p99_ms"),
            unit="ms",
            at_most=3.0 if aimed else None,
        ),
        Figure(what=f"start-time error, p50, {rate}/s", value=of("start_p50_ms"), unit="ms"),
        Figure(what=f"event loop's lateness, p99, {rate}/s", value=of("lag_p99_ms"), unit="ms"),
        Figure(what=f"share of a core, {rate}/s", value=of("cpu_percent"), unit="%"),
        Figure(
            what=f"median latency beyond the endpoint's {LATENCY_S * 1e3:.0f} ms, {rate}/s",
            value=of("beyond_ms"),
            unit="ms",
        ),
    ]


def main() -> None:
    present("bench_precision", measure, __doc__)


if __name__ == "__main__":
    main()
