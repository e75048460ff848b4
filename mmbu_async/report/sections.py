"""Tables that only some benchmarks have, as plain cells: terminal and Markdown show the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmbu_async.report import words
from mmbu_async.report.model import Circular, Contrast, Measure, OfficialLine, ReportData, Rescoring
from mmbu_async.report.panel import JudgeLine, Panel
from mmbu_async.stats import Kappa


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table: the first column is foreign text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    """The header of all columns but the first, which is the title."""
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    key: str = ""
    """By which a form that has a figure to it knows the table; '' where there is none."""


def sections(report: ReportData) -> Iterator[Section]:
    """Those that this report has."""
    if report.circular is not None:
        yield _circular(report.circular)
    if report.official:
        yield _official(report.official)
    if report.measures:
        yield _measures(report.measures)
    if report.contrast is not None:
        yield _contrast(report.contrast)
    if report.panel is not None:
        yield from judges(report.panel)
    if report.rescoring is not None:
        yield rescored(report.rescoring)


def _circular(found: Circular) -> Section:
    def line(name: str, n: int, right: int, *figures: str) -> tuple[str, ...]:
        return (name, words.count(n), words.count(right), *figures)

    accuracy = (
        words.share(found.accuracy.value),
        words.interval(found.accuracy),
        words.interval(found.wilson),
    )
    mean = (words.share(found.mean.value), words.interval(found.mean), words.NONE)
    notes = []
    if found.accuracy.value is None and found.rows:
        notes.append("Accuracies are known when no row is open.")
    if found.partial:
        notes.append(f"{words.rows(found.partial)} without all rotations scored left out.")
    return Section(
        title="Circular evaluation",
        columns=("rows", "right", "acc", "95 % CI", "Wilson"),
        rows=(
            line("rows right in all rotations", found.rows, found.right, *accuracy),
            line("their rotations, plain mean", found.rotations, found.rotations_right, *mean),
        ),
        note=" ".join(notes),
    )


def _measures(found: tuple[Measure, ...]) -> Section:
    return Section(
        title="Beside right and wrong",
        columns=("rows", "mean", "95 % CI"),
        rows=tuple(
            (one.name, words.count(one.rows), words.share(one.mean), words.interval(one.interval))
            for one in found
        ),
        note="Means over the scored rows that have the measure; the intervals are normal ones.",
    )


def _official(lines: tuple[OfficialLine, ...]) -> Section:
    note = (
        "" if all(line.accuracy is not None for line in lines) else "Lines with open rows have no accuracy."
    )
    return Section(
        title="MMMU's table",
        columns=("num", "acc"),
        rows=tuple(
            ("  " * (line.level == 2) + line.name, words.count(line.n), words.share(line.accuracy))
            for line in lines
        ),
        note=note,
    )


def _contrast(found: Contrast) -> Section:
    note = (
        f"Run {found.closed_run} (closed) minus run {found.open_run} (open), over the rows that both have; "
        "the interval is paired by row. Read Δ of F1 beside Δ of acc: a closed answer that names no option "
        "counts as one FN, a wrong open one as FP and FN, so that F1 can gain where no more rows are right."
    )
    if found.differing:
        note += f" The runs also differ in {', '.join(found.differing)}."
    return Section(
        key="contrast",
        title="Δ closed \u2212 open",
        columns=("rows", "", "closed", "open", "Δ", "95 % CI of Δ"),
        rows=tuple(
            (
                delta.name,
                words.count(delta.n),
                figure,
                words.share(closed),
                words.share(opened),
                words.signed(difference.value),
                words.difference(difference),
            )
            for delta in (found.overall, *found.families)
            for figure, closed, opened, difference in (
                ("F1", delta.closed_f1, delta.open_f1, delta.difference),
                ("acc", delta.closed_accuracy, delta.open_accuracy, delta.accuracy_difference),
            )
        ),
        note=note,
    )


def judges(found: Panel) -> Iterator[Section]:
    """Each judge, and where there are several, how far they agree."""
    yield Section(
        title="Judges",
        columns=("judged", "no verdict", "right", "accuracy", "cost"),
        rows=tuple(
            (
                _judge_name(judge),
                words.count(judge.judged),
                words.count(judge.missing),
                words.count(judge.right),
                words.share(judge.accuracy) if judge.sure else words.span(judge.worst, judge.best),
                words.NONE if judge.spend is None else words.cost(judge.spend),
            )
            for judge in found.judges
        ),
        note="Accuracy: of the run, were it scored by this judge. The one with * makes its scores.",
        key="judges",
    )
    if found.pairs:
        rows = [kappa_cells(f"{pair.first} / {pair.second}", pair.agreement) for pair in found.pairs]
        if found.fleiss is not None:
            rows.append(kappa_cells("all of them (Fleiss)", found.fleiss))
        yield Section(
            title="Agreement of judges",
            columns=("rows", "agree", "kappa", "95 % CI"),
            rows=tuple(rows),
            note=_disagreement(found),
            key="agreement",
        )


def _judge_name(judge: JudgeLine) -> str:
    name = judge.name if judge.model in ("", judge.name) else f"{judge.name} ({judge.model})"
    return f"{name} *" if judge.decides else name


def kappa_cells(name: str, found: Kappa) -> tuple[str, ...]:
    percent = words.NONE if found.percent is None else f"{found.percent:.1f} %"
    interval = words.NONE
    if found.low is not None and found.high is not None:
        interval = f"{_signed(found.low)} to {_signed(found.high)}"
    return name, words.count(found.n), percent, _signed(found.kappa), interval


def _signed(value: float | None) -> str:
    """Agreement below chance has the minus of all other figures."""
    return words.share(value).replace("-", "−")


def _disagreement(found: Panel) -> str:
    if not found.compared:
        return "No row has verdicts of two judges."
    alpha = (
        "Krippendorff's alpha does not exist, since all verdicts are alike"
        if found.alpha is None
        else f"Krippendorff's alpha {_signed(found.alpha)}"
    )
    text = f"{alpha}; {words.rows(found.compared)} with verdicts of two judges at least."
    if not found.disagreeing:
        return f"{text} They disagree on none."
    more = found.disagreeing - len(found.disagreeing_rows)
    named = ", ".join(found.disagreeing_rows) + (f" and {words.count(more)} more" if more else "")
    return f"{text} They disagree on {words.rows(found.disagreeing)}: {named}."


def rescored(found: Rescoring) -> Section:
    more = found.rows - len(found.row_ids)
    named = ", ".join(found.row_ids) + (f" and {words.count(more)} more" if more else "")
    return Section(
        title="Changed by re-scoring",
        columns=("rows", "right to wrong", "wrong to right", "now open"),
        rows=tuple(
            (
                f"by another {cause.cause}",
                words.count(cause.rows),
                words.count(cause.right_to_wrong),
                words.count(cause.wrong_to_right),
                words.count(cause.now_open),
            )
            for cause in found.causes
        ),
        note=f"Re-scored {words.moment(found.at)} by mmbu-async {found.package_version}; changed: {named}.",
    )
