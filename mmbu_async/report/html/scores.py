"""The upper half of a page: the headline, and the figures of every group of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mmbu_async.report import words
from mmbu_async.report.groups import SMALL, Attribute, Group
from mmbu_async.report.heatmap import Heatmap
from mmbu_async.report.html.forest import Mark, Metric, forest, marks
from mmbu_async.report.html.heat import MOST_COLUMNS, MOST_ROWS, heat
from mmbu_async.report.html.heat import shown as drawn
from mmbu_async.report.html.markup import (
    Cells,
    details,
    download,
    element,
    figure,
    grid,
    meaning,
    number,
    paragraph,
    section,
    slug,
    table,
)
from mmbu_async.report.model import ReportData
from mmbu_async.report.plan import resolution_text

MOST_DRAWN = 12
"""Values of an attribute in its figure; the table below it and the CSV have all of them."""
MOST_LISTED = 1_000
"""Values in a table: a column with more names rows rather than sorting them. The CSV has it whole."""

COLUMNS = ("rows", "right", "open", "accuracy", "95 % CI", "Wilson", "micro-F1", "95 % CI")
CSV_COLUMNS = (
    *("rows", "right", "open", "accuracy", "accuracy_low", "accuracy_high", "wilson_low", "wilson_high"),
    *("f1", "f1_low", "f1_high", "accuracy_worst", "accuracy_best", "f1_worst", "f1_best", "random"),
)


def headline(report: ReportData) -> str:
    """The two figures, large, and what they mean."""
    overall = report.overall
    accuracy, accuracy_interval, f1, f1_interval = words.scores(overall)
    interval = f"{words.percent(report.level)} interval" + ("s of both" if overall.open else "")
    numbers = [
        number("Accuracy", accuracy, f"{interval} {accuracy_interval}"),
        number("Micro-F1", f1, f"{interval} {f1_interval}"),
        number("Right", words.count(overall.right), f"of {words.rows(overall.n)}"),
    ]
    if overall.chance is not None:
        numbers.append(number("Random", words.share(overall.chance), "picking options at random"))
    return f"{element('div', *numbers, class_='numbers')}\n{meaning(_meaning(report))}"


def notes(report: ReportData) -> str:
    """What a reader must know before the numbers."""
    return "".join(paragraph(note, class_="notice") + "\n" for note in report.notes)


def _meaning(report: ReportData) -> Iterator[str]:
    overall = report.overall
    if not overall.n:
        yield "Without rows there is nothing to count."
        return
    if overall.open:
        yield (
            f"{words.rows(overall.open)} without a score: every figure is given as two ends, from all of "
            "them wrong to all of them right. There is no accuracy before the run is complete."
        )
    yield report.convention
    unit = "clusters of rows" if overall.clusters is not None else "rows"
    yield (
        f"Intervals: {words.count(report.resamples)} times as many {unit} as there are were drawn from them "
        f"with replacement, and the middle {words.percent(report.level)} of the figures is shown. They say "
        "how far the choice of rows moves a figure. They do not say how it moves from run to run of one "
        "model, or where a judge errs."
    )
    if overall.wilson is not None:
        yield (
            "Wilson's interval of the accuracy stands beside it in the tables: it keeps a width where all "
            "rows are alike, and takes rows as independent."
        )
    if report.resolution is not None:
        yield resolution_text(report.resolution, clustered=overall.clusters is not None)


def families(report: ReportData) -> str:
    """Both figures of each task family."""
    if not report.families:
        return ""
    figures = []
    for metric, title in METRICS.items():
        found = marks(report.families, metric)
        overall = getattr(report.overall, metric).value
        identity = f"families-{metric}"
        drawn = forest(identity, _spoken(title, found), found, reference=overall)
        data = _data(identity, "task_family", report.families)
        figures.append(figure(identity, title, drawn, "", data))
    return section(
        "families",
        "By task family",
        paragraph(_how_to_read(report, report.families), class_="note lead"),
        grid(figures),
        _table("Task families", report.families),
    )


METRICS: Mapping[Metric, str] = {"accuracy": "Accuracy", "f1": "Micro-F1"}


def maps(report: ReportData) -> str:
    """Accuracy over two properties at once."""
    if not report.heatmaps:
        return ""
    return section(
        "maps",
        "Accuracy over two properties",
        *(_map(f"map-{number}", found) for number, found in enumerate(report.heatmaps, start=1)),
    )


def _map(identity: str, found: Heatmap) -> str:
    one, other = words.attribute(found.by_row), words.attribute(found.by_column)
    title = f"Accuracy by {one} and {other}"
    rows, columns = drawn(found)
    caption = "In each cell the accuracy, and below it the rows."
    if any(cell.small for cell in found.cells):
        caption += f" Hollow and *: fewer than {SMALL} rows, too few to read anything into."
    if any(cell.open for cell in found.cells):
        caption += " Two numbers: open rows all wrong, and all right."
    for shown, all_of_them, name, most in (
        (rows, found.rows, one, MOST_ROWS),
        (columns, found.columns, other, MOST_COLUMNS),
    ):
        if len(shown) < len(all_of_them):
            caption += (
                f" The {most} largest of {words.count(len(all_of_them))} values of {name}; the CSV has all."
            )
    if found.left_out:
        caption += f" {words.rows(found.left_out)} without one of the two are left out."
    spoken = f"{title}: {len(found.cells)} groups of rows. The numbers are in the CSV below."
    data = download(
        title,
        (one, other, "rows", "right", "open", "accuracy_worst", "accuracy_best"),
        [
            (cell.row, cell.column, cell.n, cell.right, cell.open, cell.worst, cell.best)
            for cell in found.cells
        ],
    )
    return figure(identity, title, heat(identity, spoken, found), caption, data, wide=True)


def strata(report: ReportData) -> str:
    """A figure an attribute; those that would say nothing new are named in a sentence."""
    figures: list[str] = []
    alike: list[str] = []
    repeated: list[str] = []
    known: dict[tuple[Group, ...], str] = {}
    for place, attribute in enumerate(report.attributes, start=1):
        title = words.attribute(attribute.name)
        if len(attribute.groups) == 1:
            alike.append(f"{title} {attribute.groups[0].name or '(blank)'}")
        elif attribute.groups in known:
            repeated.append(f"{title} has the groups of {known[attribute.groups]}")
        else:
            known[attribute.groups] = title
            figures.append(_stratum(report, attribute, title, f"stratum-{place}"))
    ends = [f"The same in all rows: {', '.join(alike)}."] if alike else []
    ends += [f"Not shown twice: {'; '.join(repeated)}."] if repeated else []
    if not figures and not ends:
        return ""
    opening = ""
    if figures:
        every = [group for attribute in report.attributes for group in attribute.groups]
        opening = paragraph(f"Accuracy. {_how_to_read(report, every, by_row=True)}", class_="note lead")
    closing = "".join(paragraph(sentence, class_="note") for sentence in ends)
    return section("strata", "By metadata", opening, grid(figures), closing)


def _stratum(report: ReportData, attribute: Attribute, title: str, identity: str) -> str:
    groups = attribute.groups
    # One that would be left out alone is drawn instead of announced.
    shown = groups if len(groups) <= MOST_DRAWN + 1 else groups[:MOST_DRAWN]
    found = marks(shown)
    left_out = len(shown) < len(groups)
    drawn = forest(
        identity, _spoken(f"Accuracy by {title}", found), found, reference=report.overall.accuracy.value
    )
    return figure(
        identity,
        f"By {title}",
        drawn,
        f"The {MOST_DRAWN} largest of {words.count(len(groups))} groups." if left_out else "",
        _listed(title, groups),
        _data(f"by {title}", attribute.name, groups),
    )


def _listed(title: str, groups: Sequence[Group]) -> str:
    kept = groups[:MOST_LISTED]
    note = ""
    if len(kept) < len(groups):
        note = f"The {words.count(MOST_LISTED)} largest of {words.count(len(groups))}; the CSV has all."
    return details(
        f"Table of {words.counted(len(kept), 'group', 'groups')}", _table(f"By {title}", kept, note=note)
    )


def _how_to_read(report: ReportData, groups: Sequence[Group], *, by_row: bool = False) -> str:
    """How the intervals were made, and what the marks are. `by_row`: whatever clusters there are."""
    unit = "row" if by_row or report.overall.clusters is None else "cluster"
    sentences = [
        f"Lines: {words.percent(report.level)} intervals, {unit} bootstrap, "
        f"{words.count(report.resamples)} resamples."
    ]
    if report.overall.score is not None:
        sentences.append("Dashed: all rows.")
    if any(group.open for group in groups):
        sentences.append(
            "Hatched: from all open rows wrong to all of them right, the line with both intervals."
        )
    if any(group.small for group in groups):
        sentences.append(f"Hollow and *: fewer than {SMALL} rows, too few to read anything into.")
    if any(group.chance is not None for group in groups):
        sentences.append("Diamond: picking options at random.")
    return " ".join(sentences)


def _spoken(name: str, found: Sequence[Mark]) -> str:
    """What the figure says to who cannot see it."""
    said = "; ".join(
        f"{mark.name} {words.share(mark.value) if mark.bounds is None else words.span(*mark.bounds)}"
        for mark in found[:MOST_DRAWN]
    )
    return f"{name}: {said}."


def _table(caption: str, groups: Sequence[Group], *, note: str = "") -> str:
    random = any(group.chance is not None for group in groups)
    rows = [(*_cells(group), *((words.share(group.chance),) if random else ())) for group in groups]
    return table(caption, ("", *COLUMNS, *(("random",) if random else ())), rows, shown=False, note=note)


def _cells(group: Group) -> tuple[str, ...]:
    accuracy, accuracy_interval, f1, f1_interval = words.scores(group)
    return (
        "(not given)" if group.name is None else group.name or "(blank)",
        words.count(group.n) + ("*" if group.small else ""),
        words.count(group.right),
        words.count(group.open),
        accuracy,
        accuracy_interval,
        words.interval(group.wilson),
        f1,
        f1_interval,
    )


def _data(name: str, attribute: str, groups: Sequence[Group]) -> str:
    return download(slug(name), (attribute, *CSV_COLUMNS), map(_values, groups))


def _values(group: Group) -> Cells:
    worst, best, wilson = group.worst, group.best, group.wilson
    return (
        "" if group.name is None else group.name,
        *(group.n, group.right, group.open),
        *(group.accuracy.value, group.accuracy.low, group.accuracy.high),
        *((wilson.low, wilson.high) if wilson else (None, None)),
        *(group.f1.value, group.f1.low, group.f1.high),
        *(worst.accuracy.value, best.accuracy.value, worst.f1.value, best.f1.value),
        group.chance,
    )
