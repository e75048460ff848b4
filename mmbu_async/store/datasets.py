"""Taking a dataset into the store: streamed, once, recognised again by its content.

The fingerprint is over what the rows say, in the dataset's order, not over the bytes they came in: the same
rows from another file format or another copy are the same dataset, and a run can go on with them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from itertools import islice
from typing import Any, cast

from mmbu_async.errors import DataError
from mmbu_async.model import Sample
from mmbu_async.store import codec
from mmbu_async.store.records import DatasetRecord
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import insert_page, transaction

ROWS_AT_ONCE = 250
"""Rows in memory at once."""
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


def register(
    connection: sqlite3.Connection,
    benchmark: str,
    source: str,
    stamp: str,
    samples: Iterable[tuple[Sample, str]],
    now: float,
) -> DatasetRecord:
    """Store (sample, family) pairs, all or none, or find that they are there already.

    They gather in a temporary table of this connection: a source may be slow, and a run that is writing must
    not wait for it. Raises DataError for rows with the same id, naming the ids, and for no rows at all.
    """
    source, stamp = codec.clean(source), codec.clean(stamp)
    connection.execute(query("new_samples"))
    try:
        rows, fingerprint = _gather(connection, source, samples)
        values: dict[str, Any] = {"benchmark": benchmark, "source": source, "stamp": stamp}
        with transaction(connection):
            known = find(connection, benchmark, fingerprint=fingerprint)
            if known is None:
                values |= {"fingerprint": fingerprint, "rows": rows, "now": now}
                dataset = connection.execute(query("insert_dataset"), values).lastrowid
                connection.execute(query("publish_samples"), {"dataset": dataset})
            else:
                # Where it was read from this time, so that the next start finds it without reading.
                connection.execute(query("restamp_dataset"), values | {"dataset": known.id})
            stored = find(connection, benchmark, fingerprint=fingerprint)
    finally:
        connection.execute(query("drop_new_samples"))
    return cast(DatasetRecord, stored)


def fingerprint(connection: sqlite3.Connection, dataset: int) -> str:
    """Computed anew from the rows that are stored."""
    digest = hashlib.sha256()
    first = 0
    while page := connection.execute(
        query("dataset_page"), {"dataset": dataset, "first": first, "n": ROWS_AT_ONCE}
    ).fetchall():
        for values in page:
            digest.update(_content(codec.sample_from(values[1:])[0]))
        first = page[-1][0] + 1
    return digest.hexdigest()


def _gather(
    connection: sqlite3.Connection, source: str, samples: Iterable[tuple[Sample, str]]
) -> tuple[int, str]:
    """Put the rows into the temporary table. Returns their number and their fingerprint."""
    digest = hashlib.sha256()
    rows, last, doubles = 0, -1, dict[str, None]()
    stream = iter(samples)
    while page := list(islice(stream, ROWS_AT_ONCE)):
        rows += len(page)
        for sample, _ in page:
            if sample.position <= last:
                raise ValueError(f"{source}: row '{sample.id}': position {sample.position} follows {last}")
            last = sample.position
            digest.update(_content(sample))
        values = [codec.sample_values(sample, family) for sample, family in page]
        if insert_page(connection, query("put_new_sample"), values) < len(values):
            doubles.update((sample.id, None) for sample, _ in page if not _is_stored(connection, sample))
    if doubles:
        named = ", ".join(f"'{row_id}'" for row_id in islice(doubles, IDS_NAMED))
        more = f" and {len(doubles) - IDS_NAMED} more" if len(doubles) > IDS_NAMED else ""
        raise DataError(
            f"{source}: row ids that occur more than once: {named}{more}; give each row an id of its own."
        )
    if not rows:
        raise DataError(f"{source}: holds no rows; check that it is the right data.")
    return rows, digest.hexdigest()


def _is_stored(connection: sqlite3.Connection, sample: Sample) -> bool:
    return connection.execute(query("has_new_sample"), (sample.position,)).fetchone() is not None


def _content(sample: Sample) -> bytes:
    """What a row says, in one canonical line. Strata and family are read out of it, so they add nothing."""
    images = [image.locator for image in sample.images]
    content = (sample.id, sample.question, sample.answer, sample.options, sample.route, images)
    return codec.dump([*content, dict(sample.fields)]).encode() + b"\n"
