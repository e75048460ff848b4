"""Taking a dataset into the store: streamed, once, recognised again by its content.

The fingerprint is over what the rows say, in the dataset's order, not over the bytes they came in: the same
rows from another file format or another copy are the same dataset, and a run can go on with them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from mmbu_async.errors import DataError, StoreError
from mmbu_async.model import Sample
from mmbu_async.store import codec
from mmbu_async.store.connect import transaction
from mmbu_async.store.records import DatasetRecord
from mmbu_async.store.sql import query

ROWS_AT_ONCE = 1000
IDS_NAMED = 10


def find(
    connection: sqlite3.Connection,
    benchmark: str,
    *,
    stamp: str | None = None,
    fingerprint: str | None = None,
) -> DatasetRecord | None:
    """The newest dataset of a benchmark with this stamp or fingerprint."""
    found = connection.execute(
        query("datasets"), {"benchmark": benchmark, "stamp": stamp, "fingerprint": fingerprint}
    ).fetchone()
    return None if found is None else dataset_from(found)


def dataset_from(values: tuple[Any, ...]) -> DatasetRecord:
    """From the columns in the order of the record's fields."""
    number, benchmark, source, stamp, fingerprint, rows, created_at = values
    return DatasetRecord(
        id=number,
        benchmark=benchmark,
        source=source,
        stamp=stamp,
        fingerprint=fingerprint,
        rows=rows,
        created_at=created_at,
    )


class _KnownError(Exception):
    """The rows turned out to be a dataset that the store has: undo what was written of them."""


def register(
    connection: sqlite3.Connection,
    benchmark: str,
    source: str,
    stamp: str,
    samples: Iterable[tuple[Sample, str]],
    now: float,
) -> DatasetRecord:
    """Store (sample, family) pairs in one transaction, or find that they are there already.

    Raises DataError for rows with the same id, naming the ids, and for a dataset without rows.
    """
    source, stamp = codec.clean(source), codec.clean(stamp)
    fingerprint = ""
    try:
        with transaction(connection):
            dataset = connection.execute(
                query("insert_dataset"),
                {"benchmark": benchmark, "source": source, "stamp": stamp, "now": now},
            ).lastrowid
            rows, fingerprint = _store_samples(connection, dataset, source, samples)
            if find(connection, benchmark, fingerprint=fingerprint) is not None:
                raise _KnownError
            connection.execute(
                query("finish_dataset"), {"dataset": dataset, "fingerprint": fingerprint, "rows": rows}
            )
    except _KnownError:
        _restamp(connection, benchmark, source, stamp, fingerprint)
    found = find(connection, benchmark, fingerprint=fingerprint)
    if found is None:
        raise StoreError(f"the dataset {source} vanished while it was being stored; try again.")
    return found


def _restamp(
    connection: sqlite3.Connection, benchmark: str, source: str, stamp: str, fingerprint: str
) -> None:
    """Note where a known dataset was read from this time, so that the next start finds it without reading."""
    known = find(connection, benchmark, fingerprint=fingerprint)
    if known is not None:
        connection.execute(query("restamp_dataset"), {"dataset": known.id, "source": source, "stamp": stamp})


def _store_samples(
    connection: sqlite3.Connection, dataset: int | None, source: str, samples: Iterable[tuple[Sample, str]]
) -> tuple[int, str]:
    """Insert the rows. Returns their number and their fingerprint."""
    (first_key,) = connection.execute(query("first_key"), {"dataset": dataset}).fetchone()
    digest = hashlib.sha256()
    rows, doubles = 0, dict[str, None]()
    stream = iter(samples)
    last_position = -1
    while page := list(islice(stream, ROWS_AT_ONCE)):
        rows += len(page)
        for sample, _ in page:
            if sample.position <= last_position:
                raise DataError(
                    f"{source}: row '{sample.id}' has position {sample.position} after {last_position}; "
                    "positions must rise."
                )
            last_position = sample.position
            digest.update(_content(sample))
        values = [
            (first_key + sample.position, dataset, *codec.sample_values(sample, family))
            for sample, family in page
        ]
        if _insert(connection, values) < len(values):
            doubles.update((sample.id, None) for sample in _refused(connection, first_key, page))
    if doubles:
        named = ", ".join(f"'{row_id}'" for row_id in islice(doubles, IDS_NAMED))
        more = f" and {len(doubles) - IDS_NAMED} more" if len(doubles) > IDS_NAMED else ""
        raise DataError(
            f"{source}: {len(doubles)} row id(s) occur more than once: {named}{more}; give each row an id of "
            "its own."
        )
    if not rows:
        raise DataError(f"{source}: holds no rows.")
    return rows, digest.hexdigest()


def _insert(connection: sqlite3.Connection, values: list[tuple[Any, ...]]) -> int:
    """How many of the rows were stored; the others have an id that is taken."""
    before = connection.total_changes
    connection.execute("SAVEPOINT page")
    try:
        connection.executemany(query("insert_sample"), values)
    except (UnicodeEncodeError, OverflowError):
        connection.execute("ROLLBACK TO page")
        before = connection.total_changes
        connection.executemany(query("insert_sample"), [codec.clean_values(row) for row in values])
    connection.execute("RELEASE page")
    return connection.total_changes - before


def _refused(
    connection: sqlite3.Connection, first_key: int, page: list[tuple[Sample, str]]
) -> Iterator[Sample]:
    for sample, _ in page:
        if connection.execute(query("has_key"), (first_key + sample.position,)).fetchone() is None:
            yield sample


def _content(sample: Sample) -> bytes:
    """What a row says, in one canonical line. Strata and family are read out of it, so they add nothing."""
    images = [image.locator for image in sample.images]
    content = (sample.id, sample.question, sample.answer, sample.options, sample.route, images)
    return codec.dump([*content, dict(sample.fields)]).encode() + b"\n"
