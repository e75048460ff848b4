"""Which runs can be compared: those over the same content of one benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mmbu_async.errors import ConfigError, DataError
from mmbu_async.report import words
from mmbu_async.report.contrast import CLOSED, OPEN
from mmbu_async.report.plain import short
from mmbu_async.store import RunRecord, Store

SHOWN_ROWS = 10
"""Ids of differing rows that a refusal names."""
LONGEST_ID = 60
"""Characters of an id that are shown."""


def check_comparable(store: Store, runs: Sequence[RunRecord]) -> None:
    """Raise ConfigError for fewer than two runs or one that is named twice, DataError for runs of another
    benchmark or over other content than the first."""
    if len(runs) < 2:
        raise ConfigError("a comparison needs two runs or more: `mmbu compare BASELINE RUN`.")
    for name, times in Counter(run.name for run in runs).items():
        if times > 1:
            raise ConfigError(f"run '{name}' is named twice: compare it with another one.")
    first, *others = runs
    for other in others:
        if first.benchmark != other.benchmark:
            raise DataError(_other_benchmark(first, other))
        if first.dataset.id != other.dataset.id:
            raise DataError(_other_content(store, first, other))


def _other_benchmark(first: RunRecord, other: RunRecord) -> str:
    named = f"run '{first.name}' is of {first.benchmark} and run '{other.name}' of {other.benchmark}"
    if {first.benchmark, other.benchmark} == {OPEN, CLOSED}:
        return (
            f"{named}, which ask the same rows in two formats: the part 'Δ closed \u2212 open' of "
            "`mmbu report` sets the two formats of one model side by side."
        )
    return f"{named}: compare runs of one benchmark, asked in one form."


def _other_content(store: Store, first: RunRecord, other: RunRecord) -> str:
    changed = store.changed_rows(first.dataset.id, other.dataset.id)
    named = ", ".join(short(row, LONGEST_ID) for row in changed[:SHOWN_ROWS])
    if len(changed) > SHOWN_ROWS:
        named += f" and {words.count(len(changed) - SHOWN_ROWS)} more"
    rows = f"{words.counted(len(changed), 'row differs', 'rows differ')} ({named})"
    if not changed:
        rows = "the rows stand in another order"
    return (
        f"runs '{first.name}' and '{other.name}' are over different content of {first.benchmark} "
        f"(fingerprints {first.dataset.fingerprint[:12]} and {other.dataset.fingerprint[:12]}), {rows}: run "
        "both over one copy of the data."
    )
