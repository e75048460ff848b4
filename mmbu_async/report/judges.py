"""The judges of a run on a page of their own, beside each other and beside people."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.errors import ConfigError
from mmbu_async.report.files import whole_file
from mmbu_async.report.humans import Humans, build_humans, contradicts
from mmbu_async.report.labels import Labels
from mmbu_async.report.panel import Panel, build_panel, disagree, is_derived
from mmbu_async.report.plain import csv_cell
from mmbu_async.report.provenance import provenance_of
from mmbu_async.store import JudgeRecord, RunRecord, Store, VotedRow

ENDING = ".csv"
NAMED = 20
"""Rows that a page shows; `write_differing` has them all."""
COLUMNS = ("row_id", "task_family", "true_answer", "answer", "human")
"""Before a column a judge, in the file of rows that differ. `human` is there to be filled in: the file can be
read as labels again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingRow:
    """A row of which the judges, or a judge and a person, say different things."""

    row_id: str
    family: str
    truth: str
    answer: str
    human: bool | None
    votes: Mapping[str, bool | None]
    """By judge, all of the run's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesReport:
    """What `mmbu judges` says."""

    run: str
    benchmark: str
    model: str
    official: bool
    unofficial: tuple[str, ...]
    """Why the run's settings are not those of official scores, one clause each."""
    warnings: tuple[str, ...]
    """A judge of the model's own maker, and what else makes verdicts less trustworthy."""
    panel: Panel | None
    """None where no judge has given a verdict."""
    humans: Humans | None
    """None without labels."""
    differing: int
    """Rows of which judges, or a judge and a person, say different things."""
    rows: tuple[DifferingRow, ...]
    """The first of them, in dataset order."""


def build_judges(store: Store, run: RunRecord, labels: Labels | None = None) -> JudgesReport:
    """Scores are taken as stored. Raises ConfigError where labels and run do not fit."""
    with store.snapshot():
        return _build(store, store.run(run.name), labels)


def _build(store: Store, run: RunRecord, labels: Labels | None) -> JudgesReport:
    totals, judges = store.totals(run.id), store.judges(run.id)
    ran = provenance_of(store, run, selected=store.counts(run.id).selected)
    shown: list[DifferingRow] = []
    differing = 0
    for row in _differing(store, run, judges, labels):
        differing += 1
        if len(shown) < NAMED:
            shown.append(row)
    return JudgesReport(
        run=run.name,
        benchmark=run.benchmark,
        model=run.model,
        official=ran.official,
        unofficial=ran.unofficial,
        warnings=ran.warnings,
        panel=build_panel(store, run, totals),
        humans=None if labels is None else build_humans(store, run, judges, labels),
        differing=differing,
        rows=tuple(shown),
    )


def write_differing(store: Store, run: RunRecord, path: Path, labels: Labels | None = None) -> int:
    """Write every row that differs as a line of CSV, 1 for right and 0 for wrong; returns how many."""
    if path.suffix.lower() != ENDING:
        raise ConfigError(f"--disagreements {path}: rows are written as CSV; let the name end in {ENDING}.")
    judges = store.judges(run.id)
    count = 0
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*COLUMNS, *(csv_cell(judge.name) for judge in judges)))
        for row in _differing(store, run, judges, labels):
            texts = map(csv_cell, (row.row_id, row.family, row.truth, row.answer))
            writer.writerow((*texts, _digit(row.human), *map(_digit, row.votes.values())))
            count += 1
    return count


def _differing(
    store: Store, run: RunRecord, judges: Sequence[JudgeRecord], labels: Labels | None
) -> Iterator[DifferingRow]:
    asked = [judge.id for judge in judges if not is_derived(judge)]
    for row in store.voted_rows(run.id):
        label = labels.of(row.row_id) if labels is not None else None
        human = label.right if label is not None and row.votes else None
        if disagree(row.votes, asked) or (human is not None and contradicts(row, asked, human)):
            yield _row(row, judges, human)


def _row(row: VotedRow, judges: Sequence[JudgeRecord], human: bool | None) -> DifferingRow:
    return DifferingRow(
        row_id=row.row_id,
        family=row.family,
        truth=row.truth,
        answer=row.answer,
        human=human,
        votes={judge.name: row.votes.get(judge.id) for judge in judges},
    )


def _digit(vote: bool | None) -> str:
    return "" if vote is None else str(int(vote))
