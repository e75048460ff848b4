"""Does `mmbu bench` find what is known to be true?

    python -m benchmarks.bench_truth [--json FILE] [--quick]

The simulator queues before a fixed number of servers in exact times, draws latencies evenly from a known
distribution, and stands still when it is told to. So percentiles, capacity and the effect of a stall are
known before anything is measured, and each request's own time stands in the simulator's log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import OURS, endpoint, pin
from mmbu_async.api import bench_report, bench_sync
from mmbu_async.bench.arrivals import Arrivals
from mmbu_async.bench.measured import Measured
from mmbu_async.bench.objective import parse_all
from mmbu_async.bench.plan import Ends, Open, Warmup
from mmbu_async.bench.report import BenchReport
from mmbu_async.bench.search import SearchPlan
from mmbu_async.bench.spec import Spec
from mmbu_async.bench.synthetic import ImageKind, Synthetic
from mmbu_async.config import RunConfig

SERVERS, MEDIAN_S, SIGMA = 32, 0.3, 0.5
FLAGS = ("--servers", str(SERVERS), "--latency", f"lognormal:{MEDIAN_S},{SIGMA}", "--even", "--blind")
REPLY = ("--reply-tokens", "10")
CAPACITY = SERVERS / (MEDIAN_S * float(np.exp(SIGMA**2 / 2)))
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
WORK = Synthetic(kinds=(ImageKind(width=256, height=192),), prompt_tokens=30, reply_tokens=10)
STALL_S = 2.0


def measure(options: Options) -> Findings:
    pin(0, OURS)
    details: dict[str, Any] = {"capacity": CAPACITY}
    figures = [
        *_percentiles(options, details, "half full", 0.5 * CAPACITY),
        *_percentiles(options, details, "nine tenths full", 0.9 * CAPACITY),
        *_knee(options, details),
        *_stall(options, details),
    ]
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    f"{SERVERS} servers, first in first out, service times spread evenly over a lognormal distribution of "
    f"median {MEDIAN_S * 1e3:.0f} ms and sigma {SIGMA}: a capacity of {CAPACITY:.1f} requests a second. "
    "Poisson arrivals; images of 256 x 192 pixels; the simulator on the other core. True times of a request "
    "are those of its own log line, by plan of the queue; measured ones also hold HTTP and both processes' "
    f"lateness. The search looks for p95 <= 5 s. The stall: no server does anything for {STALL_S:.0f} s of "
    "an open loop of 12 s, at a tenth of the capacity."
)


def _percentiles(options: Options, details: dict[str, Any], name: str, rate: float) -> list[Figure]:
    """The relative distance of each percentile, the median of the repeats."""
    wrong: dict[str, list[float]] = {share: [] for share in SHARES}
    pairs = []
    for repeat in range(options.repeats):
        log = options.folder / f"truth-{name}-{repeat}.jsonl".replace(" ", "-")
        log.unlink(missing_ok=True)
        with endpoint(*FLAGS, *REPLY, "--log", str(log)) as server:
            load = Open(rate=float(f"{rate:.3g}"), arrivals=Arrivals(kind="poisson"))
            ends = Ends(requests=options.rows(2000, 300))
            report = _bench(options, server.openai, loads=(load,), ends=ends, warmup=Warmup(), seed=repeat)
        (block,) = report.parts[0].blocks
        true = _true(log, block)
        latency = report.parts[0].figures.times.latency
        assert latency is not None
        for share, at in SHARES.items():
            known = float(np.quantile(true, at, method="inverted_cdf"))
            found = latency.percentile(share)
            wrong[share].append(abs(found - known) / known)
            pairs.append({"load": name, "share": share, "true_s": known, "found_s": found})
    details[f"percentiles, {name}"] = pairs
    return [
        Figure(
            what=f"{share}, {name}: distance from the truth",
            value=median(wrong[share]) * 100,
            unit="%",
            at_most=2.0,
        )
        for share in SHARES
    ]


def _true(log: Path, block: Measured) -> Sequence[float]:
    """By the queue's plan, of the requests that were measured: the first line is the one ahead of them."""
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    lines.sort(key=lambda line: int(line["number"]))
    assert len(lines) == len(block.records) + 1
    return [line["queued_s"] + line["service_s"] for line in lines[1:]]


def _knee(options: Options, details: dict[str, Any]) -> list[Figure]:
    found = []
    for repeat in range(min(2, options.repeats)):
        plan = SearchPlan(
            objectives=parse_all(["p95 <= 5s"]),
            arrivals=Arrivals(kind="poisson"),
            probe_requests=options.rows(400, 100),
            most_requests=options.rows(8000, 1200),
        )
        with endpoint(*FLAGS, *REPLY) as server:
            report = _bench(options, server.openai, search=plan, seed=repeat)
        found.append(report.bench.result)
    details["knee"] = found
    return [
        Figure(
            what="knee: distance from the capacity",
            value=median(abs((one["capacity"]["rate"]["value"] or 0) / CAPACITY - 1) for one in found) * 100,
            unit="%",
            at_most=5.0,
        ),
        Figure(
            what="rate that was found to hold, of the capacity",
            value=median((one["held"] or 0.0) / CAPACITY for one in found) * 100,
            unit="%",
        ),
        Figure(what="requests of a search", value=median(one["requests"] for one in found), unit="requests"),
    ]


def _stall(options: Options, details: dict[str, Any]) -> list[Figure]:
    rate = float(f"{CAPACITY / 10:.2g}")
    with endpoint(*FLAGS, *REPLY, "--freeze", f"5-{5 + STALL_S:g}") as server:
        loads = (Open(rate=rate),)
        report = _bench(options, server.openai, loads=loads, ends=Ends(seconds=12.0), warmup=Warmup())
    latency = report.parts[0].figures.times.latency
    assert latency is not None
    details["stall"] = {"p50_s": latency.percentile("p50"), "p99_s": latency.percentile("p99")}
    return [
        Figure(
            what=f"p99 of an open loop with a stall of {STALL_S:.0f} s in it",
            value=latency.percentile("p99"),
            unit="s",
            at_least=0.8 * STALL_S,
        )
    ]


def _bench(options: Options, url: str, **spec: Any) -> BenchReport:
    store = options.folder / "truth.sqlite"
    config = RunConfig(model="m", base_url=url, store=store, synchronous="normal")
    ended = bench_sync(Spec(config=config, synthetic=WORK, **spec))
    assert ended.stopped is None, ended.stopped
    return bench_report(ended.name, store=store)


def main() -> None:
    present("bench_truth", measure, __doc__)


if __name__ == "__main__":
    main()
