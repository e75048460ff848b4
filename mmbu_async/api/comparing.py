"""Runs, judges and adapted models beside each other, and how many rows that takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mmbu_async.api.scoring import with_current_scores
from mmbu_async.errors import ConfigError
from mmbu_async.pipeline.looking import open_to_look
from mmbu_async.report.adaptations import Adaptations, build_adaptations
from mmbu_async.report.comparable import check_comparable
from mmbu_async.report.compare import build_comparison
from mmbu_async.report.comparison import Comparison
from mmbu_async.report.flips import write_flips
from mmbu_async.report.judges import JudgesReport, build_judges, write_differing
from mmbu_async.report.labels import read_labels
from mmbu_async.report.pairs_file import naming, read_pairs
from mmbu_async.report.plan import Plan, make_plan
from mmbu_async.stats.power import ALPHA, POWER
from mmbu_async.store import RunRecord


def compare(
    runs: Sequence[str], *, store: Path = Path("mmbu.sqlite"), flips: Path | None = None
) -> Comparison:
    """Runs over the same content of one benchmark, row by row; the first is the baseline. Scores are brought
    up to date first. `flips`: a .csv file for every row that a later run gained or lost.

    Raises ConfigError or DataError where the runs cannot be compared, and says what to do instead.
    """
    with open_to_look(store) as opened:
        found = [opened.run(name) for name in runs]
        check_comparable(opened, found)
        current = [with_current_scores(opened, run, store) for run in found]
        compared = build_comparison(opened, current)
        if flips is not None:
            write_flips(opened, current, flips)
        return compared


def judges(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    labels: Path | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    disagreements: Path | None = None,
) -> JudgesReport:
    """The judges of a run beside each other, and beside the labels of people from a CSV file. Scores are
    brought up to date first. `disagreements`: a .csv file for every row on which they differ.

    Raises ConfigError naming line and column of what is wrong with the labels.
    """
    if labels is None and (id_column or label_column):
        raise ConfigError("--id-column and --label-column name columns of --labels: give that file too.")
    given = None if labels is None else read_labels(labels, id_column=id_column, label_column=label_column)
    with open_to_look(store) as opened:
        found = with_current_scores(opened, opened.run(run), store)
        page = build_judges(opened, found, given)
        if disagreements is not None:
            write_differing(opened, found, disagreements, given)
        return page


def compare_pairs(file: Path, *, store: Path = Path("mmbu.sqlite")) -> Adaptations:
    """Adapted models beside their base models, from a CSV file with the columns base, adapted (names of runs)
    and training_size: win rates, and the line of win rate over training rows."""
    pairs = read_pairs(file)
    with open_to_look(store) as opened:
        known: dict[str, RunRecord] = {}
        for pair in pairs:
            for name in (pair.base, pair.adapted):
                with naming(file, pair):
                    known[name] = known.get(name) or with_current_scores(opened, opened.run(name), store)
        return build_adaptations(
            opened, file, [(pair, known[pair.base], known[pair.adapted]) for pair in pairs]
        )


def plan(
    run: str | None = None,
    *,
    store: Path = Path("mmbu.sqlite"),
    difference: float | None = None,
    rows: int | None = None,
    accuracy: float | None = None,
    disagreement: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
) -> Plan:
    """How many rows show a difference of accuracy between two runs, or which difference so many rows show.
    `run` gives its accuracy, and its rows where neither is asked. Raises ConfigError for what cannot be."""
    if run is not None:
        if accuracy is not None:
            raise ConfigError(f"--accuracy {accuracy:g}: run '{run}' has its own; leave one of the two out.")
        with open_to_look(store) as opened:
            found = with_current_scores(opened, opened.run(run), store)
            counts = opened.joint_counts(found.id, found.id)
        if not counts.n:
            raise ConfigError(f"run '{run}' has no row with a score, and so no accuracy; give --accuracy.")
        accuracy = counts.right / counts.n
        rows = counts.n if rows is None and difference is None else rows
    return make_plan(
        difference=difference,
        rows=rows,
        accuracy=accuracy,
        disagreement=disagreement,
        power=power,
        alpha=alpha,
        run=run,
    )
