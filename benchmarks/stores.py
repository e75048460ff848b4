"""Stores to be filled, and calls as large as real ones to fill them with."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from mmbu_async.model import Attempt, Completion, Finish, Sample, Timing, Usage
from mmbu_async.store import CallRecord, LeaseOwner, Store

Synchronous = Literal["full", "normal"]
Calls = Sequence[CallRecord]

REPLY = ("The nuclei are counted field by field, and the darker ones belong to lymphocytes. " * 8)[:600]


def new_store(folder: Path, rows: int, mode: Synchronous) -> tuple[Path, Calls]:
    """An empty store with one run, and calls for each of its rows."""
    path = folder / f"{time.monotonic_ns()}.sqlite"
    samples = (
        (
            Sample(id=f"row-{n}", position=n, question="How many?", answer="7", route="single_answer"),
            "counting",
        )
        for n in range(rows)
    )
    with Store.open(path, synchronous=mode) as store:
        now = time.time()
        dataset = store.register_dataset("bench", "bench", "bench", samples, now=now)
        made = store.create_run(
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
        store.select(made.id, None, None)
        session = store.begin_session(
            made.id, kind="run", owner=LeaseOwner.current(), package_version="0", config={}, now=now
        )
        first = next(store.rows(made.id)).key
    return path, made_before(lambda: [call(made.id, session, first + number) for number in range(rows)])


def made_before(make: Callable[[], Calls]) -> Calls:
    """The records, out of the sight of the garbage collector: a run never holds so many at once, and the
    pauses to walk them would be counted as waits for the disk."""
    gc.unfreeze()
    gc.collect()
    calls = make()
    gc.freeze()
    return calls


def call(run_id: int, session: int, key: int) -> CallRecord:
    outcome = Completion(
        text=REPLY,
        finish=Finish.STOP,
        finish_raw="stop",
        model="bench-2026-01-01",
        request_id=f"req_{key:024d}",
        usage=Usage(input_tokens=1207, output_tokens=151, cached_tokens=12),
    )
    timing = Timing(started_at=1.7e9 + key / 640, total_s=0.4123, first_token_s=0.1)
    return CallRecord(
        run_id=run_id,
        session_id=session,
        sample_key=key,
        final=True,
        attempt=Attempt(number=1, timing=timing, outcome=outcome, cost_usd=0.00123),
        image_sha256="ab" * 32,
    )
