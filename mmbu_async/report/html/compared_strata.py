"""The groups of a comparison in figures and tables: who won, by how much, and on which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mmbu_async.report import compare_sections as cells
from mmbu_async.report import words
from mmbu_async.report.comparison import (
    ComparedAttribute,
    Comparison,
    PairComparison,
    StratumComparison,
)
from mmbu_async.report.html.bars import Change, Outcomes, changes, outcomes
from mmbu_async.report.html.markup import (
    Cells,
    details,
    download,
    figure,
    grid,
    listed,
    paragraph,
    slug,
    table,
)
from mmbu_async.report.html.scores import MOST_DRAWN, MOST_LISTED
from mmbu_async.stats import Difference

CSV_COLUMNS = (
    *("rows", "wins", "losses", "right_in_both", "wrong_in_both"),
    *("accuracy_first", "accuracy_second", "accuracy_difference", "accuracy_low", "accuracy_high"),
    *("f1_first", "f1_second", "f1_difference", "f1_low", "f1_high", "p", "p_holm", "p_bh"),
)
SHOWN = "\u2020"
"""Behind a difference whose corrected p is below alpha."""


def families(found: Comparison, pair: PairComparison, identity: str) -> list[str]:
    """Wins and losses, and both differences, of each task family."""
    return [
        _outcomes(pair, f"{identity}-outcomes"),
        _changes(found, f"{identity}-accuracy", "Δ accuracy by task family", pair.families, "accuracy"),
        _changes(found, f"{identity}-f1", "Δ micro-F1 by task family", pair.families, "f1"),
    ]


def _outcomes(pair: PairComparison, identity: str) -> str:
    total = Outcomes(
        name="all rows",
        n=pair.n,
        wins=pair.wins,
        ties_right=pair.ties_right,
        ties_wrong=pair.ties_wrong,
        losses=pair.losses,
    )
    bars = [total, *map(_outcome, pair.families)]
    said = "; ".join(f"{bar.name} {bar.wins} wins, {bar.losses} losses of {bar.n} rows" for bar in bars)
    columns = ("group", "rows", "wins", "right_in_both", "wrong_in_both", "losses")
    data = [(bar.name, bar.n, bar.wins, bar.ties_right, bar.ties_wrong, bar.losses) for bar in bars]
    return figure(
        identity,
        "Wins, ties, losses",
        outcomes(identity, f"Wins and losses: {said}.", bars),
        f"Filled: right in {pair.second} alone. Grey: right in both. Empty: wrong in both. Hatched: right in "
        f"{pair.first} alone.",
        download(identity, columns, data),
    )


def _outcome(stratum: StratumComparison) -> Outcomes:
    return Outcomes(
        name=_name(stratum),
        n=stratum.n,
        wins=stratum.wins,
        ties_right=stratum.ties_right,
        ties_wrong=stratum.ties_wrong,
        losses=stratum.losses,
        small=stratum.small,
    )


def _changes(
    found: Comparison,
    identity: str,
    title: str,
    strata: Sequence[StratumComparison],
    metric: str,
    *under: str,
) -> str:
    kept = strata if len(strata) <= MOST_DRAWN + 1 else strata[:MOST_DRAWN]
    points = [_change(found, stratum, metric) for stratum in kept]
    said = "; ".join(f"{point.name} {words.signed(point.value)}" for point in points)
    caption = ""
    if len(kept) < len(strata):
        caption = f"The {MOST_DRAWN} largest of {words.count(len(strata))} groups."
    drawn = changes(identity, f"{title}: {said}.", points, bars=False)
    return figure(identity, title, drawn, caption, *under, _data(identity, strata))


def _change(found: Comparison, stratum: StratumComparison, metric: str) -> Change:
    change: Difference = stratum.accuracy if metric == "accuracy" else stratum.f1
    # The test is one of right and wrong: it says nothing of F1.
    told = metric == "accuracy" and stratum.p_holm < found.alpha
    return Change(
        name=_name(stratum),
        n=stratum.n,
        value=change.difference.value,
        low=change.difference.low,
        high=change.difference.high,
        small=stratum.small,
        note=SHOWN if told else "",
    )


def attributes(found: Comparison, pair: PairComparison, identity: str) -> str:
    """A figure an attribute; those that would say nothing are named in a sentence."""
    figures: list[str] = []
    alike: list[str] = []
    repeated: list[str] = []
    known: dict[tuple[tuple[str | None, int, int, int, int], ...], str] = {}
    for attribute in pair.attributes:
        title = words.attribute(attribute.name)
        key = tuple((one.value, one.n, one.wins, one.losses, one.ties_right) for one in attribute.strata)
        if len(attribute.strata) == 1:
            alike.append(f"{title} {_name(attribute.strata[0])}")
        elif key in known:
            repeated.append(f"{title} has the groups of {known[key]}")
        else:
            known[key] = title
            figures.append(_attribute(found, attribute, f"{identity}-{len(known)}"))
    ends = [f"The same in all rows: {', '.join(alike)}."] if alike else []
    ends += [f"Not shown twice: {'; '.join(repeated)}."] if repeated else []
    return grid(figures) + "".join(paragraph(end, class_="note") for end in ends)


def _attribute(found: Comparison, attribute: ComparedAttribute, identity: str) -> str:
    kept = attribute.strata[:MOST_LISTED]
    cut = len(kept) < len(attribute.strata)
    note = f"The {words.count(MOST_LISTED)} largest; the CSV has all." if cut else ""
    title = f"Δ accuracy by {words.attribute(attribute.name)}"
    folded = details(
        f"Table of {words.counted(len(kept), 'group', 'groups')}",
        listed(replace(cells.everything(title, kept), note=note)),
    )
    return _changes(found, identity, title, attribute.strata, "accuracy", folded)


def flips(pair: PairComparison, identity: str) -> str:
    """The rows that one of the two has right and the other wrong."""
    flipped = pair.wins + pair.losses
    if not flipped:
        return paragraph("No row flipped.", class_="note")
    columns = ("row", "family", "flip", pair.first, pair.second, "truth")
    rows = [
        (flip.row_id, flip.family, flip.direction, flip.first_answer, flip.second_answer, flip.truth)
        for flip in pair.flips
    ]
    note = ""
    if len(rows) < flipped:
        note = "mmbu compare … --flips FILE.csv writes every one, with whole answers."
    title = f"Rows that flipped, {words.count(len(rows))} of {words.count(flipped)}, in dataset order"
    shown = table(title, columns, rows, note=note, numbers=False)
    return shown + download(f"{identity}-flips", columns, rows)


def _name(stratum: StratumComparison) -> str:
    return cells.NOT_GIVEN if stratum.value is None else stratum.value or "(blank)"


def _data(name: str, strata: Sequence[StratumComparison]) -> str:
    attribute = strata[0].attribute if strata else "group"
    return download(slug(name), (attribute, *CSV_COLUMNS), map(_values, strata))


def _values(stratum: StratumComparison) -> Cells:
    return (
        "" if stratum.value is None else stratum.value,
        *(stratum.n, stratum.wins, stratum.losses, stratum.ties_right, stratum.ties_wrong),
        *_difference(stratum.accuracy),
        *_difference(stratum.f1),
        *(stratum.p, stratum.p_holm, stratum.p_bh),
    )


def _difference(found: Difference) -> Cells:
    return (
        found.first,
        found.second,
        found.difference.value,
        found.difference.low,
        found.difference.high,
    )
