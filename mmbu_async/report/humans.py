"""Judges beside people: how often a judge says what a person said of the same row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmbu_async.errors import ConfigError
from mmbu_async.report.labels import Labels
from mmbu_async.stats import Interval, Kappa, cohen_kappa, wilson
from mmbu_async.store import JudgeRecord, RunRecord, Standing, Store, VotedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """One judge over the labelled rows that it judged. A positive is an answer that it found right."""

    judge: str
    n: int
    missing: int
    """Labelled rows without its verdict."""
    accuracy: float | None
    """Share of the n rows on which it says what the person said; None without rows."""
    wilson: Interval | None
    true_positives: int
    false_positives: int
    """Found right by the judge, wrong by the person."""
    false_negatives: int
    true_negatives: int
    kappa: Kappa
    """Cohen's, of judge and person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Humans:
    """All judges of a run against a file of labels."""

    labels: int
    """Labelled rows that a judge is needed for: what the judges are held against."""
    blank: int
    """Rows that the file names without a label."""
    by_rule: int
    """Labelled rows that no judge scores, or that have no reply: left out."""
    right: int
    """Of the labels, those that say right."""
    against: tuple[Against, ...]
    differing: int
    """Labelled rows on which a judge that was asked says otherwise."""


def build_humans(store: Store, run: RunRecord, judges: Sequence[JudgeRecord], labels: Labels) -> Humans:
    """Raises ConfigError where a label is of a row that the run does not have."""
    asked = [judge.id for judge in judges if "panel" not in judge.identity]
    said: dict[int, Counter[tuple[bool, bool]]] = {judge.id: Counter() for judge in judges}
    counts: Counter[str] = Counter()
    unknown = {label.line: row_id for row_id, label in labels.by_row.items()}
    for row in store.voted_rows(run.id):
        label = labels.of(row.row_id)
        if label is None:
            continue
        del unknown[label.line]
        if row.standing is not Standing.JUDGED:
            counts["by_rule"] += 1
            continue
        counts["labels"] += 1
        counts["right"] += label.right
        counts["differing"] += contradicts(row, asked, label.right)
        for judge, vote in row.votes.items():
            said[judge][vote, label.right] += 1
    _check(run, labels, unknown)
    return Humans(
        labels=counts["labels"],
        blank=labels.blank,
        by_rule=counts["by_rule"],
        right=counts["right"],
        against=tuple(_against(judge.name, said[judge.id], counts["labels"]) for judge in judges),
        differing=counts["differing"],
    )


def contradicts(row: VotedRow, asked: Sequence[int], right: bool) -> bool:
    """Whether one of the judges that were asked says otherwise than the person."""
    return any(row.votes.get(judge, right) != right for judge in asked)


def _check(run: RunRecord, labels: Labels, unknown: Mapping[int, str]) -> None:
    """`unknown`: rows by the line in which they are named."""
    if not unknown:
        return
    first = min(unknown)
    more = f" (nor {len(unknown) - 1:,} others of the file)" if len(unknown) > 1 else ""
    raise ConfigError(
        f"{labels.path}, line {first}, column {labels.id_column}: run '{run.name}' has no row "
        f"'{unknown[first]}'{more}; `mmbu export` lists its ids."
    )


def _against(judge: str, said: Mapping[tuple[bool, bool], int], labels: int) -> Against:
    tp, fp = said.get((True, True), 0), said.get((True, False), 0)
    fn, tn = said.get((False, True), 0), said.get((False, False), 0)
    n = tp + fp + fn + tn
    return Against(
        judge=judge,
        n=n,
        missing=labels - n,
        accuracy=(tp + tn) / n if n else None,
        wilson=wilson(tp + tn, n),
        true_positives=tp,
        false_positives=fp,
        false_negatives=fn,
        true_negatives=tn,
        kappa=cohen_kappa(said),
    )
