"""What the service takes with 1,000 open streams of events and 50 runs in its queue, and how fast it answers.

    python -m benchmarks.service [--json FILE] [--quick] [--folder FOLDER]

`mmbu serve` in a process of its own against the simulator; streams and requests come from this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import orjson

from benchmarks import servers
from benchmarks.machine import REPOSITORY
from benchmarks.scheme import Figure, Findings, Options, present
from mmbu_async.simulator.demo import draw_split

STREAMS, RUNS, ROWS = 1_000, 50, 400
AT_WORK = 4
AIM_MS = 100
AIM_MB = 400

METHOD = (
    "`mmbu serve` in a process of its own, four runs at work at once, against the simulator in another; each "
    "stream is a connection of its own that follows all runs. A request goes to the list of runs, or to one "
    "run, over a kept connection, one after the other, while the streams are open and runs are at work; wall "
    "time to its last byte. How long an event takes is the time from the moment that stands in a progress to "
    "its arrival at a stream, for all streams. Memory is the service's resident set; a stream's is the "
    "difference before and after they were opened, divided by their number. All of it shares two cores, also "
    "the client that reads the streams, which is part of the times."
)


def measure(options: Options) -> Findings:
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> Findings:
    streams, runs = (50, 6) if options.quick else (STREAMS, RUNS)
    data = options.folder / "service-data"
    draw_split(data, options.rows(ROWS, 40), seed=1)
    details: dict[str, Any] = {}
    with (
        servers.endpoint("--latency", "0.5") as endpoint,
        _service(options.folder, data, endpoint.openai) as (address, pid),
    ):
        async with _client(address) as client:
            memory = {"idle": _memory_mb(pid)}
            details["submit_ms"] = [await _submit(client, number) for number in range(runs)]
            memory["queued"] = _memory_mb(pid)
            details["list_ms_alone"] = await _ask(client, "runs", options.rows(200, 20))
            async with _streams(address, streams) as heard:
                await _until(lambda: heard.beginnings == streams)
                memory["streams"] = _memory_mb(pid)
                heard.lags_ms.clear()
                begun, cpu = time.perf_counter(), _cpu_s(pid)
                details["list_ms"] = await _ask(client, "runs", options.rows(200, 20))
                details["one_ms"] = await _ask(client, "runs/run-0", options.rows(500, 50))
                await asyncio.sleep(options.rows(20, 2))
                details["service_cpu_share"] = (_cpu_s(pid) - cpu) / (time.perf_counter() - begun)
                details["events"] = heard.events
                details["lags_ms"] = _spread(heard.lags_ms)
                memory["end"] = _memory_mb(pid)
                details["states"] = await _states(client)
            details["memory_mb"] = memory
    return Findings(figures=list(_figures(details, streams, runs)), method=METHOD, details=_short(details))


def _figures(details: dict[str, Any], streams: int, runs: int) -> Iterator[Figure]:
    memory = details["memory_mb"]
    with_all = f"{streams:,} streams, {runs} runs"
    yield Figure(what="memory of the service after its start", value=memory["idle"], unit="MB")
    yield Figure(what=f"memory with {runs} runs submitted", value=memory["queued"], unit="MB")
    yield Figure(what=f"memory, {with_all}", value=memory["end"], unit="MB", at_most=AIM_MB)
    a_stream = 1024 * (memory["streams"] - memory["queued"]) / streams
    yield Figure(what="memory of a stream", value=a_stream, unit="KB")
    yield Figure(what="submit a run, median", value=_quantile(details["submit_ms"], 0.5), unit="ms")
    for what, name in (("list of runs", "list_ms"), ("one run", "one_ms")):
        for word, share in (("median", 0.5), ("p99", 0.99)):
            aim = AIM_MS if word == "p99" else None
            value = _quantile(details[name], share)
            yield Figure(what=f"{what}, {word}, {with_all}", value=value, unit="ms", at_most=aim)
    for word in ("p50", "p99"):
        yield Figure(what=f"an event to a stream, {word}", value=details["lags_ms"][word], unit="ms")
    share = 100 * details["service_cpu_share"]
    yield Figure(what=f"CPU of the service, {with_all}", value=share, unit="% of a core")


def _short(details: dict[str, Any]) -> dict[str, Any]:
    return {name: _spread(value) if isinstance(value, list) else value for name, value in details.items()}


def _spread(values: list[float]) -> dict[str, float | None]:
    return {
        "n": len(values),
        **{f"p{round(100 * share)}": _quantile(values, share) for share in (0.5, 0.95, 0.99, 1.0)},
    }


def _quantile(values: list[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None


@dataclass(slots=True)
class _Heard:
    beginnings: int = 0
    events: int = 0
    lags_ms: list[float] = field(default_factory=list)


@asynccontextmanager
async def _streams(address: str, count: int) -> AsyncIterator[_Heard]:
    heard = _Heard()
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        tasks = [asyncio.create_task(_listen(session, address, heard)) for _ in range(count)]
        try:
            yield heard
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(session: aiohttp.ClientSession, address: str, heard: _Heard) -> None:
    async with session.get(f"{address}api/v1/events") as answer:
        if answer.status != 200:
            raise SystemExit(f"a stream was answered with {answer.status}")
        begun, rest = False, b""
        async for content in answer.content.iter_any():
            now = time.time()
            *whole, rest = (rest + content).split(b"\n\n")
            heard.events += len(whole)
            if not begun:
                # The state at the beginning is as old as it is.
                begun = True
                heard.beginnings += 1
                continue
            for one in whole:
                if b"event: progress\n" in one:
                    found = orjson.loads(one.rpartition(b"data: ")[2])
                    heard.lags_ms.append((now - found["data"]["at"]) * 1000)


async def _ask(client: aiohttp.ClientSession, path: str, times: int) -> list[float]:
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        async with client.get(path) as answer:
            await answer.read()
            assert answer.status == 200
        took.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.01)
    return took


async def _states(client: aiohttp.ClientSession) -> dict[str, int]:
    """Runs by their state when the figures were taken."""
    async with client.get("runs") as answer:
        return dict(Counter(one["job"]["state"] for one in (await answer.json())["runs"]))


async def _submit(client: aiohttp.ClientSession, number: int) -> float:
    here = {"endpoint": "here", "concurrency": 8, "input_price": 1.0, "output_price": 4.0}
    settings = {"name": f"run-{number}", "model": "m", "data": "drawn", "preflight": False, **here}
    body = {"settings": settings | {"judge": {"model": "the-judge", **here}}}
    begun = time.perf_counter()
    async with client.post("runs", json=body) as answer:
        if answer.status != 201:
            raise SystemExit(f"run {number} was refused: {await answer.text()}")
    return (time.perf_counter() - begun) * 1000


async def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit("the streams did not begin within two minutes")
        await asyncio.sleep(0.1)


@asynccontextmanager
async def _client(address: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(base_url=f"{address}api/v1/") as client:
        yield client


@contextmanager
def _service(folder: Path, data: Path, endpoint: str) -> Iterator[tuple[str, int]]:
    """The address and the process id of `mmbu serve`, until the block ends. Ended by its process id."""
    settings = folder / "service.toml"
    settings.write_text(
        f'max_runs = {AT_WORK}\n[[endpoint]]\nname = "here"\nbase_url = "{endpoint}"\n', encoding="utf-8"
    )
    store = folder / f"service-{time.time_ns()}.sqlite"
    command = [sys.executable, "-m", "mmbu_async", "serve", "--port", "0", "--config", str(settings)]
    command += ["--store", str(store), "--data", f"drawn={data}", "--log-file", str(folder / "service.log")]
    environment = {**os.environ, "MMBU_SERVICE_TOKEN": ""}
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield next(word for word in line.split() if word.startswith("http://")), process.pid
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        if process.poll() is None:
            process.kill()
            process.wait()


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    present("service", measure, __doc__)


if __name__ == "__main__":
    main()
