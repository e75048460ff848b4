"""The comparison of runs as a page: each later run beside the baseline, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmbu_async.report import compare_sections as cells
from mmbu_async.report import words
from mmbu_async.report.comparison import Comparison, PairComparison
from mmbu_async.report.groups import SMALL
from mmbu_async.report.html.compared_strata import (
    SHOWN,
    attributes,
    families,
    flips,
)
from mmbu_async.report.html.forest import forest, marks
from mmbu_async.report.html.markup import (
    download,
    element,
    facts,
    figure,
    grid,
    listed,
    meaning,
    number,
    paragraph,
    section,
    text,
)
from mmbu_async.report.html.page import page


def comparison_to_html(found: Comparison) -> str:
    """The whole comparison."""
    state = "state complete" if found.common_rows else "state incomplete"
    names = ", ".join(run.name for run in found.runs)
    head = (
        paragraph(found.first_line, class_=state),
        element("h1", text(found.benchmark), " · ", text(names)),
        *(paragraph(f"Left out: {note}", class_="notice") for note in found.left_out),
        *(paragraph(note, class_="notice") for note in found.notes),
    )
    pairs = [
        _pair(found, pair, f"pair-{place}")
        for place, pair in enumerate(found.pairs, start=1)
        if found.common_rows
    ]
    return page(
        f"{found.benchmark}: {names}",
        "\n".join(head),
        _opening(found),
        parts=(_runs(found), *pairs, _provenance(found)),
    )


def _opening(found: Comparison) -> str:
    verdicts = "".join(
        paragraph(cells.verdict(found, pair), class_="verdict") for pair in found.pairs if pair.n
    )
    intervals = (
        f"Intervals: {words.percent(found.level)}, paired bootstrap, {words.count(found.resamples)} "
        "resamples. They say how far the choice of rows moves a difference, not how it moves from run to run "
        "of one model."
    )
    return verdicts + meaning((found.convention, found.correction, intervals))


def _runs(found: Comparison) -> str:
    drawn = ""
    if found.common_rows:
        named = [
            replace(mark, name=f"{run.name} (baseline)" if place == 0 else run.name, aside=False)
            for place, (run, mark) in enumerate(
                zip(found.runs, marks([run.overall for run in found.runs]), strict=True)
            )
        ]
        said = "; ".join(f"{mark.name} {words.share(mark.value)}" for mark in named)
        drawn = figure(
            "runs-accuracy",
            "Accuracy over the compared rows",
            forest("runs-accuracy", f"Accuracy of each run: {said}.", named),
            "Each run's own interval, row bootstrap. Whether two runs part is told by the difference below, "
            "not by whether these intervals meet: they do not know that the rows are the same.",
            download(
                "runs",
                ("run", "model", "rows", "accuracy", "low", "high"),
                [
                    (run.name, run.model, mark.n, mark.value, mark.low, mark.high)
                    for run, mark in zip(found.runs, named, strict=True)
                ],
            ),
        )
    return section("runs", "Runs", grid([drawn]) if drawn else "", listed(cells.run_table(found)))


def _pair(found: Comparison, pair: PairComparison, identity: str) -> str:
    corrected = "" if len(found.pairs) == 1 else f", by Holm {words.p_value(pair.p_holm)}"
    change = pair.accuracy.difference
    numbers = (
        number("Δ accuracy", words.signed(change.value), f"95 % interval {words.difference(change)}"),
        number("Wins", words.count(pair.wins), f"right in {pair.second} alone"),
        number("Losses", words.count(pair.losses), f"right in {pair.first} alone"),
        number("p", words.p_value(pair.p), f"McNemar's exact test{corrected}"),
    )
    return section(
        identity,
        f"{pair.second} against {pair.first}",
        element("div", *numbers, class_="numbers"),
        paragraph(_how_to_read(found, pair), class_="note"),
        grid([*families(found, pair, identity), facts(cells.pair_facts(found, pair))]),
        listed(cells.everything("By task family", pair.families)),
        attributes(found, pair, identity),
        flips(pair, identity),
    )


def _how_to_read(found: Comparison, pair: PairComparison) -> str:
    unit = (
        "rows"
        if pair.clusters is None
        else f"{words.count(pair.clusters)} clusters (by rows below the families)"
    )
    sentences = [
        f"Lines: {words.percent(found.level)} intervals, paired bootstrap of {unit}, "
        f"{words.count(found.resamples)} resamples. {SHOWN}: p below {found.alpha:g} after Holm's correction "
        "for the groups of one attribute."
    ]
    if cells.has_small(pair):
        sentences.append(f"Hollow and *: fewer than {SMALL} rows, too few to read anything into.")
    return " ".join(sentences)


def _provenance(found: Comparison) -> str:
    return section("compared", "What was compared", facts(_provenance_facts(found)))


def _provenance_facts(found: Comparison) -> Iterator[tuple[str, str]]:
    yield "Benchmark", found.benchmark
    yield "Fingerprint of the dataset", found.fingerprint
    yield "Rows compared", words.count(found.common_rows)
    for run in found.runs:
        settings = "official settings" if run.official else "unofficial settings"
        yield (
            f"Run {run.name}",
            f"{run.model}, judge {run.judge or 'none'}, {settings}; {words.rows(run.rows)}, "
            f"{words.count(run.scored)} scored",
        )
    for pair in found.pairs:
        if pair.differing:
            yield f"{pair.first} and {pair.second} differ in", ", ".join(pair.differing)
