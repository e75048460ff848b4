"""What it costs to have every reply on the disk before it is forgotten.

    python benchmarks/checkpointing.py [--json FILE] [--rows 100000] [--folder FOLDER]

Three questions, each under synchronous FULL (survives a power cut; the default) and NORMAL (survives the end
of the process):

- How many rows a second does the writer take when callers wait for each acknowledgement, and how long do
  they wait? Callers are tasks that write one row after the other.
- How many does one commit a row through aiosqlite take, the usual way?
- What CPU does a row cost when rows come at a pace, as from an endpoint? That is what a run pays.

The folder should be on the disk that is asked about; a temporary one is made in it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import aiosqlite
from machine import describe, headline, write_json

from mmbu_async.model import Attempt, Completion, Finish, Sample, Timing, Usage
from mmbu_async.store import CallRecord, LeaseOwner, Store, Writer
from mmbu_async.store.calls import CALL_COLUMNS

Synchronous = Literal["full", "normal"]

REPLY = ("The nuclei are counted field by field, and the darker ones belong to lymphocytes. " * 8)[:600]
CALLERS = (64, 256, 1024)
PACED = ((640, 2000), (1500, 4000))
"""Rows a second, rows in all."""
COMMITS = 3000
"""Rows for one commit a row, which is slow."""


def new_store(folder: Path, rows: int, synchronous: Synchronous) -> tuple[Path, Callable[[int], CallRecord]]:
    """An empty store with one run, and what makes its calls."""
    path = folder / f"{time.monotonic_ns()}.sqlite"
    samples = (
        (
            Sample(id=f"row-{n}", position=n, question="How many?", answer="7", route="single_answer"),
            "counting",
        )
        for n in range(rows)
    )
    with Store.open(path, synchronous=synchronous) as store:
        now = time.time()
        dataset = store.register_dataset("bench", "bench", "bench", samples, now=now)
        run = store.create_run(
            name="bench",
            benchmark="bench",
            dataset_id=dataset.id,
            model="bench",
            endpoint="openai",
            host="localhost",
            identity={},
            config={},
            package_version="0",
            now=now,
        )
        store.select(run.id, None, None)
        (first_key,) = (stored.key for stored in store.rows(run.id) if stored.sample.position == 0)
        session = store.begin_session(
            run.id, kind="run", owner=LeaseOwner.current(), package_version="0", config={}, now=now
        )

    def call(n: int) -> CallRecord:
        started_at = 1.7e9 + n / 640
        outcome = Completion(
            text=REPLY,
            finish=Finish.STOP,
            finish_raw="stop",
            model="bench-2026-01-01",
            request_id=f"req_{n:024d}",
            usage=Usage(input_tokens=1207, output_tokens=151, cached_tokens=12),
        )
        timing = Timing(started_at=started_at, total_s=0.4123, first_token_s=0.1)
        return CallRecord(
            run_id=run.id,
            session_id=session,
            sample_key=first_key + n,
            final=True,
            attempt=Attempt(number=1, timing=timing, outcome=outcome, cost_usd=0.00123),
            image_sha256="ab" * 32,
        )

    return path, call


def made_before(call: Callable[[int], CallRecord], rows: int) -> list[CallRecord]:
    """The records, made outside the measured time and out of the sight of the garbage collector: a run never
    holds so many at once, and the pauses to walk them would be counted as waits for the disk."""
    gc.unfreeze()
    gc.collect()
    records = [call(n) for n in range(rows)]
    gc.freeze()
    return records


async def closed_loop(folder: Path, rows: int, callers: int, synchronous: Synchronous) -> dict[str, Any]:
    """Callers that each wait for the acknowledgement before the next row."""
    path, call = new_store(folder, rows, synchronous)
    waits: list[float] = []
    records = iter(made_before(call, rows))
    async with Writer.open(path, synchronous=synchronous) as writer:

        async def caller() -> None:
            for record in records:
                begun = time.perf_counter()
                await writer.write(record)
                waits.append(time.perf_counter() - begun)

        begun, cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        transactions = writer.transactions
    assert transactions < rows
    return _figures("group commit", f"{callers} callers", synchronous, rows, took, cpu, waits, transactions)


async def paced(
    folder: Path, rows: int, rate: float, synchronous: Synchronous, *, stored: bool = True
) -> dict[str, Any]:
    """Rows that come one by one at a rate, as replies do. `stored` False leaves the writer out: what is then
    left is the cost of the clockwork here, to be taken off."""
    path, call = new_store(folder, rows, synchronous)
    records = made_before(call, rows)
    waits: list[float] = []
    async with Writer.open(path, synchronous=synchronous) as writer:

        async def one(record: CallRecord) -> None:
            begun = time.perf_counter()
            if stored:
                await writer.write(record)
            waits.append(time.perf_counter() - begun)

        begun, cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for n, record in enumerate(records):
                wait = begun + n / rate - time.perf_counter()
                if wait > 0:
                    await asyncio.sleep(wait)
                group.create_task(one(record))
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        transactions = writer.transactions
    way = "group commit" if stored else "nothing stored"
    return _figures(way, f"{rate:.0f} rows/s come", synchronous, rows, took, cpu, waits, transactions)


async def commit_a_row(folder: Path, rows: int, synchronous: Synchronous) -> dict[str, Any]:
    """The usual way: execute, commit, next. The table is ours, with its indexes and foreign keys."""
    path, call = new_store(folder, rows, synchronous)
    waits: list[float] = []
    records = made_before(call, rows)
    marks = ", ".join("?" * len(CALL_COLUMNS))
    sql = f"INSERT INTO call ({', '.join(CALL_COLUMNS)}) VALUES ({marks})"  # noqa: S608
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")
        await connection.execute(f"PRAGMA synchronous = {synchronous.upper()}")
        begun, cpu = time.perf_counter(), time.process_time()
        for record in records:
            one = time.perf_counter()
            await connection.execute(sql, record.values())
            await connection.commit()
            waits.append(time.perf_counter() - one)
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return _figures("one commit a row", "1 caller", synchronous, rows, took, cpu, waits, rows)


def _figures(
    way: str,
    load: str,
    synchronous: str,
    rows: int,
    took: float,
    cpu: float,
    waits: list[float],
    transactions: int,
) -> dict[str, Any]:
    waits.sort()
    return {
        "way": way,
        "load": load,
        "synchronous": synchronous,
        "rows": rows,
        "rows_per_s": round(rows / took),
        "rows_per_transaction": round(rows / transactions, 1) if transactions else 0,
        "ack_p50_ms": round(waits[len(waits) // 2] * 1e3, 2),
        "ack_p99_ms": round(waits[int(len(waits) * 0.99)] * 1e3, 2),
        "ack_max_ms": round(waits[-1] * 1e3, 2),
        "cpu_us_per_row": round(cpu / rows * 1e6, 1),
    }


async def measure(folder: Path, rows: int) -> list[dict[str, Any]]:
    results = [await paced(folder, some, rate, "full", stored=False) for rate, some in PACED]
    for synchronous in ("full", "normal"):
        mode: Synchronous = synchronous
        results += [await closed_loop(folder, rows, callers, mode) for callers in CALLERS]
        results += [await paced(folder, some, rate, mode) for rate, some in PACED]
        results.append(await commit_a_row(folder, COMMITS, mode))
    return results


def table(results: list[dict[str, Any]]) -> str:
    heads: tuple[str, ...] = (
        "way",
        "load",
        "synchronous",
        "rows_per_s",
        "rows_per_transaction",
        "ack_p50_ms",
        "ack_p99_ms",
    )
    heads += ("ack_max_ms", "cpu_us_per_row")
    lines = [[head.replace("_per_", "/").replace("_", " ") for head in heads]]
    lines += [
        [f"{one[head]:,}" if head == "rows_per_s" else str(one[head]) for head in heads] for one in results
    ]
    widths = [max(len(line[n]) for line in lines) for n in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n < 3 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk that is asked about")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if sys.platform == "win32":
            results = asyncio.run(measure(Path(folder), options.rows))
        else:
            import uvloop

            results = uvloop.run(measure(Path(folder), options.rows))
    print(headline(describe()))
    print(table(results))
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
