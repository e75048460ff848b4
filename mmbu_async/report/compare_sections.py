"""The tables of a comparison as plain cells: those of Markdown are wider than those of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mmbu_async.report import words
from mmbu_async.report.comparison import ComparedAttribute, Comparison, PairComparison, StratumComparison
from mmbu_async.report.groups import SMALL
from mmbu_async.report.sections import Section
from mmbu_async.stats import Difference

NOT_GIVEN = "(not given)"
MARK = f"* fewer than {SMALL} rows: too few to read anything into."


def run_table(found: Comparison) -> Section:
    rows = []
    for place, run in enumerate(found.runs):
        name = f"{run.name} · {run.model}" + (" · baseline" if place == 0 else "")
        rows.append((name, words.count(run.rows), words.count(run.scored), *words.scores(run.overall)))
    return Section(
        title="Run",
        columns=("rows", "scored", "acc", "95 % CI", "F1", "95 % CI"),
        rows=tuple(rows),
        note=f"Accuracy and F1 over the {words.rows(found.common_rows)} compared.",
    )


def pair_facts(found: Comparison, pair: PairComparison) -> Iterator[tuple[str, str]]:
    """What stands at the head of a pair, a name and a value each."""
    yield "Accuracy", _difference(pair.accuracy)
    yield "Micro-F1", _difference(pair.f1)
    yield "Wins", f"{_part(pair.wins, pair.n)} right in {pair.second} alone"
    yield "Losses", f"{_part(pair.losses, pair.n)} right in {pair.first} alone"
    yield (
        "Ties",
        f"{_part(pair.ties_right, pair.n)} right in both, {_part(pair.ties_wrong, pair.n)} wrong in both",
    )
    corrected = ""
    if len(found.pairs) > 1:
        corrected = f"; Holm {words.p_value(pair.p_holm)} for {len(found.pairs)} runs against one baseline"
    yield "McNemar", f"p {words.p_value(pair.p)}{corrected}"
    yield "Resolution", resolution(found, pair)


def resolution(found: Comparison, pair: PairComparison) -> str:
    """Which gap so many rows could show, by the share of rows on which the two part."""
    if pair.disagreement is None:
        return words.NONE
    rows = f"{words.rows(pair.n)}, {words.share_percent(pair.disagreement)} of them won or lost,"
    given = f"({words.percent(found.power)} power, alpha {found.alpha:g})"
    if pair.detectable is None:
        return f"{rows} {'is' if pair.n == 1 else 'are'} too few to show any difference of accuracy {given}"
    return f"{rows} show a difference of accuracy of {words.share(pair.detectable)} or more {given}"


def verdict(found: Comparison, pair: PairComparison) -> str:
    """The outcome in a line."""
    change = pair.accuracy.difference
    told = "told from chance" if pair.p_holm < found.alpha else "not told from chance"
    p = "p" if len(found.pairs) == 1 else "Holm's p"
    independent = "" if pair.clusters is None else " if rows were independent"
    return (
        f"{pair.second} \u2212 {pair.first}: accuracy {words.signed(change.value)} "
        f"({words.difference(change)}), {p} {words.p_value(pair.p_holm)}: {told} at {found.alpha:g}"
        f"{independent}."
    )


def differences(pair: PairComparison) -> Section:
    """The families' figures side by side, for the terminal."""
    return Section(
        title="By task family",
        columns=("rows", "base", "run", "Δ acc", "95 % CI of Δ"),
        rows=tuple(
            (
                stratum.value or "",
                _rows(stratum),
                words.share(stratum.accuracy.first),
                words.share(stratum.accuracy.second),
                words.signed(stratum.accuracy.difference.value),
                words.difference(stratum.accuracy.difference),
            )
            for stratum in pair.families
        ),
    )


def tests(title: str, strata: Iterable[StratumComparison]) -> Section:
    """Wins, losses and p of each stratum, for the terminal."""
    return Section(
        title=title,
        columns=("rows", "wins", "losses", "Δ acc", "p", "Holm", "BH"),
        rows=tuple(
            (_name(stratum), _rows(stratum), *_counts(stratum), *_tested(stratum)) for stratum in strata
        ),
    )


def everything(title: str, strata: Iterable[StratumComparison]) -> Section:
    """All that is known of each stratum, for Markdown."""
    return Section(
        title=title,
        columns=(
            *("rows", "wins", "losses", "right in both", "wrong in both"),
            *("Δ acc", "95 % CI", "Δ F1", "95 % CI", "p", "Holm", "BH"),
        ),
        rows=tuple(
            (
                _name(stratum),
                _rows(stratum),
                *_counts(stratum),
                words.count(stratum.ties_right),
                words.count(stratum.ties_wrong),
                words.signed(stratum.accuracy.difference.value),
                words.difference(stratum.accuracy.difference),
                words.signed(stratum.f1.difference.value),
                words.difference(stratum.f1.difference),
                *_tested(stratum)[1:],
            )
            for stratum in strata
        ),
    )


def has_small(pair: PairComparison) -> bool:
    shown = (*pair.families, *(one for attribute in pair.attributes for one in attribute.strata))
    return any(stratum.small for stratum in shown)


def attribute_title(attribute: ComparedAttribute) -> str:
    return f"By {words.attribute(attribute.name)}"


def _name(stratum: StratumComparison) -> str:
    return NOT_GIVEN if stratum.value is None else stratum.value


def _rows(stratum: StratumComparison) -> str:
    return words.count(stratum.n) + ("*" if stratum.small else " ")


def _counts(stratum: StratumComparison) -> tuple[str, str]:
    return (words.count(stratum.wins), words.count(stratum.losses))


def _tested(stratum: StratumComparison) -> tuple[str, ...]:
    return (
        words.signed(stratum.accuracy.difference.value),
        *(words.p_value(p) for p in (stratum.p, stratum.p_holm, stratum.p_bh)),
    )


def _difference(found: Difference) -> str:
    change = found.difference
    both = f"{words.share(found.first)} \u2192 {words.share(found.second)}"
    return f"{both}, Δ {words.signed(change.value)}, 95 % CI {words.difference(change)}"


def _part(rows: int, n: int) -> str:
    return f"{words.count(rows)} ({words.share_percent(rows / n)})" if n else words.count(rows)
