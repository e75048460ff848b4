"""Two runs of the service on one key: how much of the key's limit they use together, how often the endpoint
has to say no, how they share it, and whether the event loop ever stands still.

    python -m benchmarks.service_limits [--json FILE] [--quick]

The simulator enforces a limit of requests or of tokens a minute and keeps the log that is counted here; the
service is told the same limit for its endpoint, the runs are told none.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.limits import BURST_S, EDGE_S, LATENCY
from benchmarks.scheme import Figure, Findings, Options, present
from benchmarks.servers import Endpoint, endpoint
from benchmarks.splits import small_split
from mmbu_async.api import run_sync
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.service.settings import EndpointSettings, ServiceConfig

LAID_OUT = 78_000
"""Rows that are validated while the loop is watched."""
PROBE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One limit of a key, and the priorities of the runs on it."""

    what: str
    rpm: float | None = None
    tpm: float | None = None
    rows: int
    """Of each run: so many that both take about 40 seconds."""
    priorities: tuple[int, int] = (0, 0)

    @property
    def flags(self) -> list[str]:
        return ["--rpm", str(self.rpm)] if self.rpm is not None else ["--tpm", str(self.tpm)]

    @property
    def a_second(self) -> float:
        return (self.rpm or self.tpm or 0.0) / 60


LIMITS = (
    Shared(what="500 requests a minute", rpm=500, rows=330),
    Shared(what="6,000 requests a minute", rpm=6000, rows=2000),
    Shared(what="1,000,000 tokens a minute", tpm=1_000_000, rows=1400),
    Shared(what="6,000 requests a minute, one run a priority higher", rpm=6000, rows=2000, priorities=(1, 0)),
)


def measure(options: Options) -> Findings:
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for limit in LIMITS:
        window = _window(limit, options)
        even = limit.priorities[0] == limit.priorities[1]
        share = window["share_of_the_first_percent"]
        figures += [
            Figure(what=f"used of {limit.what}", value=window["used_percent"], unit="%", at_least=97),
            Figure(what=f"429s under {limit.what}", value=window["refused_percent"], unit="%", at_most=0.5),
            Figure(
                what=f"share of the first of two runs, {limit.what}",
                value=share,
                unit="%",
                at_most=52 if even else 69,
            ),
        ]
        details[limit.what] = window
    lag = _lag(options)
    figures.append(
        Figure(
            what=f"longest stall of the loop while {lag['rows']:,} rows are validated",
            value=lag["longest_ms"],
            unit="ms",
            at_most=250,
        )
    )
    details["laid out"] = lag
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "The simulator, a process of its own, enforces the limit as a token bucket that saves up "
    f"{BURST_S:g} seconds at most, with a latency of {LATENCY}; one scheduler works on two runs "
    "with the endpoint's limit. Counted from the simulator's log, from when both are at work to when the "
    f"first ends, {EDGE_S:g} seconds at both ends left out, for use and shares, and nothing left out for the "
    f"429s. The loop is looked at every {PROBE_S * 1000:g} ms by a task that notes how late it wakes. "
    "One run each."
)


def _window(limit: Shared, options: Options) -> dict[str, float]:
    rows = options.rows(limit.rows, limit.rows // 2)
    split = small_split(options.folder, ["scored"] * rows)
    log = options.folder / "service-limits.jsonl"
    log.unlink(missing_ok=True)
    flags = ["--latency", LATENCY, "--blind", "--limit-burst-s", str(BURST_S), "--log", str(log)]
    with endpoint(*flags, *limit.flags) as server:
        lag = run_sync(lambda: _both(server, split, options.folder / "service-limits.sqlite", limit))
    return _counted(log, limit) | {"longest_stall_ms": lag}


async def _both(server: Endpoint, split: Path, store: Path, limit: Shared) -> float:
    """Work on both runs; returns the longest stall of the loop, in milliseconds."""
    for file in store.parent.glob(store.name + "*"):
        file.unlink()
    config = _config(server.openai, store, split, rpm=limit.rpm, tpm=limit.tpm)
    async with Scheduler(config) as desk, _probe() as late:
        for run, priority in zip(("first", "second"), limit.priorities, strict=True):
            await desk.submit(_settings(run), priority=priority)
        async with desk.subscribe() as events:
            async for event in events:
                if event.kind == "job" and all(job.state.ended for job in desk.jobs()):
                    break
        ended = {job.run: job.state.value for job in desk.jobs()}
    if set(ended.values()) != {"done"}:
        raise RuntimeError(f"the runs did not end well: {ended}")
    return round(max(late) * 1000, 1)


def _config(url: str, store: Path, split: Path, **limits: Any) -> ServiceConfig:
    own = EndpointSettings(name="sim", base_url=url, concurrency=256, **limits)
    return ServiceConfig(store=store, data={"split": str(split)}, endpoint=(own,))


def _settings(run: str) -> dict[str, Any]:
    return {"model": run, "name": run, "data": "split", "concurrency": 256, "preflight": False}


@asynccontextmanager
async def _probe() -> AsyncIterator[list[float]]:
    """Seconds by which a task woke too late, as long as it is inside."""
    late = [0.0]

    async def look() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(PROBE_S)
            late.append(time.perf_counter() - before - PROBE_S)

    probe = asyncio.create_task(look())
    try:
        yield late
    finally:
        probe.cancel()


def _counted(log: Path, limit: Shared) -> dict[str, float]:
    requests = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    times = {
        run: [one["arrived_at"] for one in requests if one["model"] == run] for run in ("first", "second")
    }
    since = max(min(run) for run in times.values()) + EDGE_S
    until = min(max(run) for run in times.values()) - EDGE_S
    admitted = [one for one in requests if since <= one["arrived_at"] < until and one["status"] != 429]
    used = float(len(admitted))
    if limit.tpm is not None:
        used = float(sum(one["input_tokens"] + one["output_tokens"] for one in admitted))
    refused = sum(one["status"] == 429 for one in requests)
    return {
        "requests": len(requests),
        "window_s": round(until - since, 2),
        "used_percent": round(used / (until - since) / limit.a_second * 100, 2),
        "refused": refused,
        "refused_percent": round(refused / len(requests) * 100, 3),
        "share_of_the_first_percent": round(
            sum(one["model"] == "first" for one in admitted) / len(admitted) * 100, 1
        ),
    }


def _lag(options: Options) -> dict[str, float]:
    rows = options.rows(LAID_OUT, LAID_OUT // 20)
    split = small_split(options.folder, ["scored"] * rows)
    store = options.folder / "service-lag.sqlite"

    async def work() -> dict[str, float]:
        for file in store.parent.glob(store.name + "*"):
            file.unlink()
        async with Scheduler(_config("http://127.0.0.1:9/v1", store, split)) as desk, _probe() as late:
            began = time.perf_counter()
            await desk.submit(_settings("first"))
            took = time.perf_counter() - began
            await desk.cancel("first")
        late.sort()
        return {
            "rows": rows,
            "validated_s": round(took, 2),
            "longest_ms": round(late[-1] * 1000, 1),
            "p99_ms": round(late[int(0.99 * len(late))] * 1000, 1),
        }

    return run_sync(work)


def main() -> None:
    present("service_limits", measure, __doc__)


if __name__ == "__main__":
    main()
