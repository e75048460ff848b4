"""The rows that one of two runs has right and the other wrong: streamed, and written as CSV."""

from __future__ import annotations

import csv
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmbu_async.errors import ConfigError, StoreFullError
from mmbu_async.report.comparison import Flip
from mmbu_async.report.plain import csv_cell
from mmbu_async.store import RunRecord, Store

ENDING = ".csv"
COLUMNS = (
    *("baseline", "run", "row_id", "task_family", "direction"),
    *("baseline_answer", "run_answer", "true_answer"),
)


def flips(
    store: Store, first: RunRecord, second: RunRecord, *, among: Sequence[RunRecord] = ()
) -> Iterator[Flip]:
    """Every row that `second` gained or lost against `first`, in dataset order, streamed; of those with a
    score in all of the runs `among` too."""
    for row in store.flips(first.id, second.id, among=[run.id for run in among]):
        yield Flip(
            row_id=row.row_id,
            family=row.family,
            direction="lost" if row.first_correct else "gained",
            first_answer=row.first_answer,
            second_answer=row.second_answer,
            truth=row.truth,
        )


def write_flips(store: Store, runs: Sequence[RunRecord], path: Path) -> int:
    """Write all rows that a later run gained or lost against the first one, a line each; returns how many.

    Goes to a file beside it first, which takes its place at the end. Raises ConfigError where the ending or
    the place is no good, StoreFullError where the disk is full.
    """
    if path.suffix.lower() != ENDING:
        raise ConfigError(f"--flips {path}: the rows are written as CSV; let the name end in {ENDING}.")
    part = path.with_name(path.name + ".part")
    try:
        count = _write(store, runs, part)
        part.replace(path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(f"{path}: the disk is full; make room or choose another place.") from None
        reason = error.strerror or error
        raise ConfigError(f"{path}: cannot be written ({reason}); choose another place.") from None
    finally:
        part.unlink(missing_ok=True)
    return count


def _write(store: Store, runs: Sequence[RunRecord], path: Path) -> int:
    count = 0
    first = runs[0]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for second in runs[1:]:
            for flip in flips(store, first, second, among=runs):
                texts = (flip.row_id, flip.family, flip.direction, flip.first_answer, flip.second_answer)
                writer.writerow(map(csv_cell, (first.name, second.name, *texts, flip.truth)))
                count += 1
    return count
