"""Measurements of endpoints in the store. What a stage or a request is `bench/` knows; here they are rows."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mmbu_async.errors import BenchNotFoundError
from mmbu_async.model import Json
from mmbu_async.store import codec
from mmbu_async.store.connect import Synchronous, connect, named_errors
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

REQUEST_COLUMNS = (
    *("number", "intended_s", "delay_s", "connect_s", "sent_s", "upload_s", "first_byte_s"),
    *("first_thought_s", "first_output_s", "last_token_s", "total_s", "phase", "message", "status"),
    *("request_id", "finish", "events", "longest_gap_s", "in_one_piece", "bytes_up", "bytes_down", "images"),
    *("pixels", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "estimated"),
    *("cost_usd", "in_flight", "row", "text", "correct"),
)
"""Of a request, in the order of its values."""
NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRecord:
    """A bench as it is stored."""

    id: int
    name: str
    config: Mapping[str, Json]
    host: str
    package_version: str
    created_at: float
    ended_at: float | None
    ended: str | None
    """How it ended; None: it is at work, or was killed."""
    result: Json
    """What a search found; None: nothing was searched."""
    requests: int
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """A stage, or a block of one, as it is stored. The texts are JSON of their own."""

    number: int
    part: int
    role: str
    target: str
    plan: Json
    began_at: float
    begin_s: float
    end_s: float
    ended: str
    drained_s: float
    gaps: Json
    lags: Json
    ticks: Json
    id: int = 0
    """0: not stored yet."""


class Benches:
    """The measurements in one store. Every method raises StoreError or one of its kinds, never SQLite's."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(cls, path: Path, *, create: bool = True, synchronous: Synchronous = "full") -> Self:
        """See `Store.open`. A context manager."""
        return cls(connect(path, create=create, synchronous=synchronous), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with named_errors(self.path):
            self._connection.close()

    def create(
        self, name: str, *, config: Mapping[str, Json], host: str, package_version: str, now: float
    ) -> BenchRecord:
        """A new bench without stages, called `name`, or `name-2`, `name-3` where that is taken."""
        values = {"config": codec.dump(dict(config)), "host": host, "version": package_version, "now": now}
        with named_errors(self.path):
            for free in (codec.clean(name) if n == 1 else f"{codec.clean(name)}-{n}" for n in count(1)):
                if self._connection.execute(query("insert_bench"), {"name": free, **values}).rowcount:
                    break
        return self.get(free)

    def end(self, bench_id: int, ended: str, *, now: float, result: Json = None) -> None:
        """How it ended, in a word, and what it found."""
        values = {
            "bench": bench_id,
            "ended": ended,
            "now": now,
            "result": None if result is None else codec.dump(result),
        }
        with named_errors(self.path):
            self._connection.execute(query("end_bench"), values)

    def add_stage(self, bench_id: int, stage: StageRecord, requests: Iterable[Sequence[Any]]) -> None:
        """A stage that has ended, with all its requests, in one transaction. Values of a request are in the
        order of REQUEST_COLUMNS."""
        columns = ", ".join(("stage_id", *REQUEST_COLUMNS))
        marks = ", ".join("?" * (len(REQUEST_COLUMNS) + 1))
        insert = query("insert_bench_request").replace("/* columns */", columns)
        insert = insert.replace("/* values */", marks)
        values = {
            "bench": bench_id,
            "number": stage.number,
            "part": stage.part,
            "role": stage.role,
            "target": codec.clean(stage.target),
            "plan": codec.dump(stage.plan),
            "began_at": stage.began_at,
            "begin_s": stage.begin_s,
            "end_s": stage.end_s,
            "ended": stage.ended,
            "drained_s": stage.drained_s,
            "gaps": codec.dump(stage.gaps),
            "lags": codec.dump(stage.lags),
            "ticks": codec.dump(stage.ticks),
        }
        with named_errors(self.path), transaction(self._connection):
            number = self._connection.execute(query("insert_bench_stage"), values).lastrowid
            rows = ((number, *codec.clean_values(request)) for request in requests)
            self._connection.executemany(insert, rows)

    def all(self) -> list[BenchRecord]:
        """Oldest first."""
        with named_errors(self.path):
            return [_bench(values) for values in self._connection.execute(query("benches"), {"name": None})]

    def get(self, name: str) -> BenchRecord:
        """Raises BenchNotFoundError naming benches with a similar name."""
        with named_errors(self.path):
            found = self._connection.execute(query("benches"), {"name": codec.clean(name)}).fetchone()
            if found is not None:
                return _bench(found)
            names = [known for (known,) in self._connection.execute(query("bench_names"))]
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[-NAMES_SHOWN:]
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "it has no benches yet."
        raise BenchNotFoundError(f"{self.path}: there is no bench '{name}'; {hint}")

    def stages(self, bench_id: int) -> list[StageRecord]:
        """In the order in which they ran."""
        with named_errors(self.path):
            rows = self._connection.execute(query("bench_stages"), {"bench": bench_id}).fetchall()
            return [_stage(values) for values in rows]

    def requests(self, stage_id: int) -> Iterator[tuple[Any, ...]]:
        """Values of each request of a stage, in the order of REQUEST_COLUMNS, streamed."""
        read = query("bench_requests").replace("/* columns */", ", ".join(REQUEST_COLUMNS))
        with named_errors(self.path):
            yield from self._connection.execute(read, {"stage": stage_id})


def _bench(values: Sequence[Any]) -> BenchRecord:
    number, name, config, host, version, created_at, ended_at, ended, result, requests, cost = values
    return BenchRecord(
        id=number,
        name=name,
        config=codec.load(config),
        host=host,
        package_version=version,
        created_at=created_at,
        ended_at=ended_at,
        ended=ended,
        result=None if result is None else codec.load(result),
        requests=requests,
        cost_usd=cost,
    )


def _stage(values: Sequence[Any]) -> StageRecord:
    stage_id, number, part, role, target, plan, began_at, begin_s, end_s, ended, drained_s = values[:11]
    gaps, lags, ticks = map(codec.load, values[11:])
    return StageRecord(
        id=stage_id,
        number=number,
        part=part,
        role=role,
        target=target,
        plan=codec.load(plan),
        began_at=began_at,
        begin_s=begin_s,
        end_s=end_s,
        ended=ended,
        drained_s=drained_s,
        gaps=gaps,
        lags=lags,
        ticks=ticks,
    )
