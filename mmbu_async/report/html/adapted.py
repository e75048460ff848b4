"""Base models and what was adapted from them, as a page: win rates over the size of the training set."""

from __future__ import annotations

from dataclasses import replace

from mmbu_async.report import words
from mmbu_async.report.adaptations import MILLION, Adaptations
from mmbu_async.report.adaptations_forms import wide_table
from mmbu_async.report.html.markup import (
    download,
    element,
    facts,
    figure,
    grid,
    listed,
    meaning,
    paragraph,
    section,
    text,
)
from mmbu_async.report.html.page import page
from mmbu_async.report.html.scatter import Point, scatter

CSV_COLUMNS = (
    *("number", "base", "adapted", "training_rows", "rows", "wins", "losses", "right_in_both"),
    *("wrong_in_both", "win_rate_percent", "loss_rate_percent", "accuracy_difference", "p", "p_holm"),
)


def adaptations_to_html(found: Adaptations) -> str:
    """All pairs of a file, and the line through them."""
    count = words.counted(len(found.pairs), "adapted model", "adapted models")
    head = (
        element("h1", text(found.benchmark), " · ", text(count)),
        *(paragraph(note, class_="notice") for note in found.notes),
    )
    opening = paragraph(found.fit_text, class_="verdict") + meaning([found.convention])
    table = wide_table(found)
    numbered = tuple(
        (f"{number}. {name}", *cells) for number, (name, *cells) in enumerate(table.rows, start=1)
    )
    parts = (
        section("rates", "Win rate over training size", grid([_rates(found)] if _points(found) else [])),
        section("pairs", "Pairs", listed(replace(table, rows=numbered))),
        section("compared", "What was compared", facts([("Fingerprint of the dataset", found.fingerprint)])),
    )
    return page(f"{found.benchmark}: {count}", "\n".join(head), opening, parts=parts)


def _points(found: Adaptations) -> list[Point]:
    return [
        Point(name=str(number), x=pair.training_size / MILLION, y=pair.win_rate)
        for number, pair in enumerate(found.pairs, start=1)
        if pair.win_rate is not None
    ]


def _rates(found: Adaptations) -> str:
    points = _points(found)
    said = "; ".join(f"pair {point.name}: {point.y:.1f} % at {point.x:.3g} million" for point in points)
    drawn = scatter(
        "win-rates",
        f"Win rate over training size. {said}.",
        points,
        x_name="training rows, millions",
        y_name="win rate, per cent of rows",
        line=None if found.fit is None else (found.fit.slope, found.fit.intercept),
    )
    caption = "Each point is a pair, by its number in the table. Dashed: the line by least squares."
    data = [
        (
            *(number, pair.base, pair.adapted, pair.training_size, pair.n, pair.wins, pair.losses),
            *(pair.ties_right, pair.ties_wrong, pair.win_rate, pair.loss_rate),
            *(pair.accuracy_difference, pair.p, pair.p_holm),
        )
        for number, pair in enumerate(found.pairs, start=1)
    ]
    return figure("win-rates", "Win rate", drawn, caption, download("win-rates", CSV_COLUMNS, data))
