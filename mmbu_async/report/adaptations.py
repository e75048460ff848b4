"""Base models and what was adapted from them: how often the adapted one wins, and whether more training data
made it win more often, as in MMBU's paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmbu_async.errors import DataError
from mmbu_async.report import words
from mmbu_async.report.comparable import check_comparable
from mmbu_async.report.model import Provenance
from mmbu_async.report.pairs_file import PairLine, naming
from mmbu_async.report.provenance import provenance_of, standings
from mmbu_async.stats import LEVEL, Fit, holm, least_squares, mcnemar
from mmbu_async.store import RunRecord, Store

MILLION = 1_000_000
CONVENTION = (
    "Win rate: the share of the rows with a score in both runs, in per cent, that the adapted model has "
    "right and its base model wrong; losses the reverse, ties the rest. The fit is a straight line by least "
    "squares of the win rate on the number of training rows (images or image-text pairs) in millions, each "
    "pair one point. MMBU's paper has win rate = 0.20 x size + 9.74 with R² = 0.41. p of a pair is McNemar's "
    "exact one, Holm's corrects it for the number of pairs; interval and p of the slope take the points as "
    "independent, which pairs with one base model are not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """An adapted model beside its base, over the rows that have a score in both runs."""

    base: str
    """Name of its run."""
    adapted: str
    training_size: float
    """Rows that the adaptation was trained on."""
    n: int
    base_left_out: int
    """Rows of the base model's run that are not compared."""
    adapted_left_out: int
    wins: int
    """Rows that the adapted model alone has right."""
    losses: int
    ties_right: int
    ties_wrong: int
    win_rate: float | None
    """Per cent of n; None without rows."""
    loss_rate: float | None
    accuracy_difference: float | None
    """Adapted - base, a fraction."""
    p: float
    p_holm: float
    """Corrected for the number of pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptations:
    """All pairs of a file, and the line through them."""

    benchmark: str
    fingerprint: str
    pairs: tuple[Adaptation, ...]
    """In the order of the file."""
    fit: Fit | None
    """Win rate in per cent over millions of training rows; None where no line can be drawn."""
    fit_text: str
    """The line in words, or why there is none."""
    notes: tuple[str, ...]
    convention: str = CONVENTION
    level: float = LEVEL


def build_adaptations(
    store: Store, path: Path, lines: Sequence[tuple[PairLine, RunRecord, RunRecord]]
) -> Adaptations:
    """The pairs with their runs, base first. Scores are taken as stored. Raises DataError or ConfigError,
    naming the line, where runs cannot be compared."""
    first = lines[0][1]
    for line, base, adapted in lines:
        with naming(path, line):
            check_comparable(store, (base, adapted))
        if base.dataset.id != first.dataset.id:
            raise DataError(
                f"{path}, line {line.line}: run '{base.name}' is over other rows than '{first.name}' in line "
                f"{lines[0][0].line}, and one line can not go through both: give each content its own file."
            )
    pairs = [_adaptation(store, *each) for each in lines]
    corrected = holm([pair.p for pair in pairs])
    points = [(pair.training_size / MILLION, pair.win_rate) for pair in pairs if pair.win_rate is not None]
    fit = least_squares([size for size, _ in points], [rate for _, rate in points])
    return Adaptations(
        benchmark=first.benchmark,
        fingerprint=first.dataset.fingerprint,
        pairs=tuple(replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)),
        fit=fit,
        fit_text=_fit_text(fit, len(points)),
        notes=(*_notes(pairs), *standings(_ran(store, lines))),
    )


def _ran(
    store: Store, lines: Sequence[tuple[PairLine, RunRecord, RunRecord]]
) -> Iterator[tuple[str, Provenance]]:
    """Each run once."""
    runs = {run.name: run for _, *both in lines for run in both}
    for name, run in runs.items():
        yield name, provenance_of(store, run, selected=store.counts(run.id).selected)


def _adaptation(store: Store, line: PairLine, base: RunRecord, adapted: RunRecord) -> Adaptation:
    found = store.joint_counts(base.id, adapted.id)
    n = found.n
    p = mcnemar(found.first_only, found.second_only)
    return Adaptation(
        base=base.name,
        adapted=adapted.name,
        training_size=line.training_size,
        n=n,
        base_left_out=found.first_rows - n,
        adapted_left_out=found.second_rows - n,
        wins=found.second_only,
        losses=found.first_only,
        ties_right=found.right,
        ties_wrong=found.wrong,
        win_rate=100 * found.second_only / n if n else None,
        loss_rate=100 * found.first_only / n if n else None,
        accuracy_difference=(found.second_only - found.first_only) / n if n else None,
        p=p,
        p_holm=p,
    )


def _fit_text(fit: Fit | None, points: int) -> str:
    if fit is None:
        few = f"{words.counted(points, 'pair has', 'pairs have')} rows to compare"
        why = few if points < 2 else "all pairs have the same training size"
        return f"No line: {why}."
    sign = "\u2212" if fit.intercept < 0 else "+"
    text = f"win rate = {_number(fit.slope)} x size {sign} {_number(abs(fit.intercept))}"
    text += " (per cent of rows, over millions of training rows)"
    if fit.r_squared is not None:
        text += f", R² = {fit.r_squared:.2f}"
    if fit.slope_low is None or fit.slope_high is None:
        return f"{text}; two points make any line, so that the slope has no interval."
    text += f"; slope {words.percent(LEVEL)} CI {_number(fit.slope_low)} to {_number(fit.slope_high)}"
    return f"{text}, p {words.p_value(fit.p)}." if fit.p is not None else f"{text}."


def _number(value: float) -> str:
    """Three digits that count, and no more than two decimals where they are enough."""
    text = f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"
    return text.replace("-", "\u2212")


def _notes(pairs: Sequence[Adaptation]) -> Iterator[str]:
    for pair in pairs:
        if pair.base_left_out or pair.adapted_left_out:
            yield (
                f"{pair.adapted} and {pair.base} are compared over {words.rows(pair.n)} with a score in "
                f"both; left out: {words.count(pair.adapted_left_out)} of {pair.adapted}, "
                f"{words.count(pair.base_left_out)} of {pair.base}."
            )
    without = sum(pair.win_rate is None for pair in pairs)
    if without:
        yield f"{words.counted(without, 'pair is', 'pairs are')} in no fit for want of rows in common."
