"""What it costs to have every reply on the disk before it is forgotten.

    python -m benchmarks.checkpointing [--json FILE] [--quick] [--folder FOLDER]

Under synchronous FULL (survives a power cut; the default) and NORMAL (survives the end of the process): rows
a second of the writer when callers wait for each acknowledgement, and how long they wait; the same with one
commit a row through aiosqlite, the usual way; and the CPU that the store adds to a row, once beside a loop
that is busy with other work, once where rows come at a pace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import aiosqlite
import uvloop

from benchmarks.machine import file_system
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.stores import Calls, Synchronous, call, made_before, new_store
from mmbu_async.store import CallRecord, Writer
from mmbu_async.store.calls import CALL_COLUMNS

CALLERS = (64, 256, 1024)
RATE_AIM, WAIT_AIM_MS = 50_000, 50.0
WORK_S = 0.0005
"""CPU of other work a row, in four pieces, beside which the store is measured."""
ROW_BUDGET_US = 800.0
"""What a row may cost the whole program (issue: CPU a row with one call)."""
PACE = 640
"""Rows a second of a run with concurrency 256 at 400 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One measurement."""

    what: str
    synchronous: str
    rows: int
    rows_per_s: float
    rows_per_transaction: float
    wait_p50_ms: float
    wait_p99_ms: float
    wait_max_ms: float
    cpu_us_per_row: float


class Sink(Protocol):
    """Where rows go: the writer, or nowhere."""

    transactions: int

    async def write(self, record: CallRecord, /) -> bool: ...


class Nowhere:
    """Takes rows and keeps none: what is left is the cost of the clockwork here."""

    transactions = 1

    async def write(self, record: CallRecord, /) -> bool:
        return True


def measure(options: Options) -> Findings:
    found: list[Timed] = []
    for _ in range(options.repeats):
        found += uvloop.run(one_round(options))
    figures: list[Figure] = []
    for mode in ("full", "normal"):
        figures += figures_of(mode, found)
    return Findings(
        figures=figures,
        method=METHOD.format(disk=file_system(options.folder)),
        details=[asdict(one) for one in found],
    )


METHOD = (
    "Records as large as real ones (a reply of 600 bytes, 29 columns, the real store's foreign keys and "
    "indexes), made before the clock starts; files on {disk}. With N callers, each writes one row, waits for "
    "its acknowledgement, and writes the next. The busy loop burns 0.5 ms of CPU a row in 64 tasks; the "
    "store's CPU is what comes on top of the same loop without it. Medians of the rounds; each round is in "
    "the details."
)


async def one_round(options: Options) -> list[Timed]:
    found: list[Timed] = []
    for mode in MODES:
        for callers in CALLERS:
            rows = options.rows(60_000, 3_000)
            found.append(await run(f"{callers} callers", options.folder, mode, rows, callers=callers))
        busy = options.rows(4_000, 500)
        found.append(await run("busy", options.folder, mode, busy, callers=64, work_s=WORK_S))
        found.append(await run("busy, no store", None, mode, busy, callers=64, work_s=WORK_S))
        paced = options.rows(2_000, 300)
        found.append(await run("pace", options.folder, mode, paced, pace=PACE))
        found.append(await run("pace, no store", None, mode, paced, pace=PACE))
        found.append(await commit_a_row(options.folder, mode, options.rows(3_000, 300)))
    return found


MODES: tuple[Synchronous, ...] = ("full", "normal")


async def run(
    what: str,
    folder: Path | None,
    mode: Synchronous,
    rows: int,
    *,
    callers: int = 1,
    work_s: float = 0.0,
    pace: float | None = None,
) -> Timed:
    """Drive rows into a new store in `folder`, or nowhere."""
    waits: list[float] = []
    async with sink_for(folder, mode, rows) as (sink, calls):
        begun, cpu = time.perf_counter(), time.process_time()
        if pace is None:
            await waiting_callers(sink, calls, waits, callers, work_s)
        else:
            await at_a_pace(sink, calls, waits, pace)
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        transactions = sink.transactions
    return timed(what, mode, rows, took, cpu, waits, transactions)


async def waiting_callers(sink: Sink, calls: Calls, waits: list[float], callers: int, work_s: float) -> None:
    """Each caller waits for the acknowledgement before the next row."""
    left = iter(calls)

    async def caller() -> None:
        for record in left:
            for _ in range(4 if work_s else 0):
                burn(work_s / 4)
                await asyncio.sleep(0.002)
            waits.append(await waited_for(sink, record))

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())


async def at_a_pace(sink: Sink, calls: Calls, waits: list[float], pace: float) -> None:
    """Rows that come one by one, as replies do."""

    async def one(record: CallRecord) -> None:
        waits.append(await waited_for(sink, record))

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, record in enumerate(calls):
            await asyncio.sleep(max(0.0, begun + number / pace - time.perf_counter()))
            group.create_task(one(record))


async def waited_for(sink: Sink, record: CallRecord) -> float:
    begun = time.perf_counter()
    await sink.write(record)
    return time.perf_counter() - begun


def burn(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def commit_a_row(folder: Path, mode: Synchronous, rows: int) -> Timed:
    """The usual way: execute, commit, next; into our table with its indexes and foreign keys."""
    path, calls = new_store(folder, rows, mode)
    waits: list[float] = []
    marks = ", ".join("?" * len(CALL_COLUMNS))
    sql = f"INSERT INTO call ({', '.join(CALL_COLUMNS)}) VALUES ({marks})"  # noqa: S608
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")
        await connection.execute(f"PRAGMA synchronous = {mode.upper()}")
        begun, cpu = time.perf_counter(), time.process_time()
        for record in calls:
            one = time.perf_counter()
            await connection.execute(sql, record.values())
            await connection.commit()
            waits.append(time.perf_counter() - one)
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    path.unlink()
    return timed("one commit a row", mode, rows, took, cpu, waits, rows)


def timed(
    what: str, mode: str, rows: int, took: float, cpu: float, waits: list[float], transactions: int
) -> Timed:
    waits.sort()
    return Timed(
        what=what,
        synchronous=mode,
        rows=rows,
        rows_per_s=rows / took,
        rows_per_transaction=rows / transactions,
        wait_p50_ms=waits[len(waits) // 2] * 1e3,
        wait_p99_ms=waits[int(len(waits) * 0.99)] * 1e3,
        wait_max_ms=waits[-1] * 1e3,
        cpu_us_per_row=cpu / rows * 1e6,
    )


@asynccontextmanager
async def sink_for(folder: Path | None, mode: Synchronous, rows: int) -> AsyncIterator[tuple[Sink, Calls]]:
    """A writer to a new store, or nowhere; and records for it."""
    if folder is None:
        yield Nowhere(), made_before(lambda: [call(1, 1, number) for number in range(rows)])
        return
    path, calls = new_store(folder, rows, mode)
    async with Writer.open(path, synchronous=mode) as writer:
        yield writer, calls
    path.unlink()


def figures_of(mode: str, found: Sequence[Timed]) -> list[Figure]:
    of = {
        what: [one for one in found if (one.what, one.synchronous) == (what, mode)]
        for what in {one.what for one in found}
    }
    name = mode.upper()
    aimed = mode == "full"
    figures: list[Figure] = []
    for callers in CALLERS:
        times = of[f"{callers} callers"]
        figures += [
            Figure(
                what=f"{name}, {callers} callers: rows",
                value=median(one.rows_per_s for one in times),
                unit="rows/s",
                at_least=RATE_AIM if aimed and callers > CALLERS[0] else None,
                note=f"{median(one.cpu_us_per_row for one in times):.0f} µs of CPU a row",
            ),
            Figure(
                what=f"{name}, {callers} callers: acknowledgement, p99",
                value=median(one.wait_p99_ms for one in times),
                unit="ms",
                at_most=WAIT_AIM_MS if aimed else None,
                note=f"p50 {median(one.wait_p50_ms for one in times):.1f} ms",
            ),
        ]
    usual = median(one.rows_per_s for one in of["one commit a row"])
    busy, paced = added(of["busy"], of["busy, no store"]), added(of["pace"], of["pace, no store"])
    gathered = median(one.rows_per_transaction for one in of["busy"])
    return [
        *figures,
        Figure(what=f"{name}, one commit a row: rows", value=usual, unit="rows/s"),
        Figure(
            what=f"{name}, CPU of the store beside a busy loop",
            value=busy,
            unit="µs/row",
            note=f"{100 * busy / ROW_BUDGET_US:.1f} % of 0.8 ms; {gathered:.1f} rows a transaction",
        ),
        Figure(
            what=f"{name}, CPU of the store at {PACE} rows/s",
            value=paced,
            unit="µs/row",
            note=f"p99 {median(one.wait_p99_ms for one in of['pace']):.1f} ms; a transaction a row",
        ),
    ]


def added(with_store: Sequence[Timed], without: Sequence[Timed]) -> float:
    """CPU of the store, in µs a row."""
    return median(one.cpu_us_per_row for one in with_store) - median(one.cpu_us_per_row for one in without)


def main() -> None:
    present("checkpointing", measure, __doc__)


if __name__ == "__main__":
    main()
