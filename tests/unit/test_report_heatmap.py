from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from mmbu_async.report import build_report
from mmbu_async.report.groups import Figures, Group
from mmbu_async.report.heatmap import FAMILY, Heatmap, explained
from mmbu_async.stats import Pattern
from tests.stored_run import MakeRun, Row

RIGHT: Row = {"reply": "x", "judged": True}
WRONG: Row = {"reply": "x", "judged": False}


def of(rows: Sequence[Row], make_run: MakeRun, **settings: Any) -> tuple[Heatmap, ...]:
    return build_report(*make_run(rows, **settings)).heatmaps


def placed(row: Row, family: str = "counting", **strata: str | tuple[str, ...]) -> Row:
    values = {name: (value,) if isinstance(value, str) else value for name, value in strata.items()}
    return {**row, "family": family, "strata": values}


def cells(found: Heatmap) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {(one.row, one.column): (one.n, one.right, one.open) for one in found.cells}


def test_modality_is_crossed_with_families_and_with_topics(make_run: MakeRun) -> None:
    rows = [
        placed(RIGHT, metadata_modality="CT", task=("nuclei", "cells")),
        placed(WRONG, metadata_modality="CT", task="nuclei"),
        placed(RIGHT, "detection", metadata_modality="MRI", task="cells"),
        placed(RIGHT, "detection", metadata_modality="MRI"),
        placed(RIGHT, "detection"),
    ]
    by_family, by_topic = of(rows, make_run)
    assert (by_family.by_row, by_family.by_column) == (FAMILY, "metadata_modality")
    assert cells(by_family) == {("counting", "CT"): (2, 1, 0), ("detection", "MRI"): (2, 2, 0)}
    assert by_topic.by_row == "task"
    assert cells(by_topic) == {
        ("nuclei", "CT"): (2, 1, 0),
        ("cells", "CT"): (1, 1, 0),
        ("cells", "MRI"): (1, 1, 0),
    }
    assert by_topic.left_out == 1
    assert by_topic.rows == ("cells", "nuclei")
    assert all(cell.small for cell in by_topic.cells)


def test_a_cell_with_open_rows_has_two_ends(make_run: MakeRun) -> None:
    rows = [placed(RIGHT, modality="CT"), placed({"failures": ["timeout"]}, modality="CT")]
    rows += [placed(RIGHT, "detection", modality="MRI")]
    (found,) = of(rows, make_run)
    cell = next(one for one in found.cells if one.column == "CT")
    assert (cell.worst, cell.best) == (0.5, 1.0)


def test_without_modality_the_two_most_telling_properties_are_crossed(make_run: MakeRun) -> None:
    rows = [
        placed(RIGHT if stain == "H&E" or body == "liver" else WRONG, stain=stain, body=body, noise=noise)
        for stain in ("H&E", "DAPI")
        for body in ("liver", "lung")
        for noise in ("a", "b")
        for _ in range(5)
    ]
    (found,) = of(rows, make_run)
    assert {found.by_row, found.by_column} == {"stain", "body"}
    assert len(found.cells) == 4


def test_a_property_that_follows_from_another_is_not_crossed_with_it(make_run: MakeRun) -> None:
    rows = [
        placed(
            RIGHT if number % 4 == 0 or side == "left" else WRONG,
            discipline=f"d{number // 2}",
            subject=f"s{number}",
            side=side,
        )
        for number in range(8)
        for side in ("left", "right")
        for _ in range(10)
    ]
    (found,) = of(rows, make_run)
    assert {found.by_row, found.by_column} != {"discipline", "subject"}


@pytest.mark.parametrize("rows", [[], [RIGHT], [placed(RIGHT, metadata_modality="CT")] * 4, [{}, {}]])
def test_where_there_is_nothing_to_compare_there_is_no_map(rows: list[Row], make_run: MakeRun) -> None:
    assert of(rows or [RIGHT], make_run, limit=None if rows else 0) == ()


def test_rows_whose_answer_is_not_public_are_in_no_cell(make_run: MakeRun) -> None:
    rows = [placed(RIGHT, modality="CT"), placed(RIGHT, "detection", modality="MRI")]
    (found,) = of([*rows, placed({"reply": "x", "ungraded": True}, modality="CT")], make_run)
    assert sum(cell.n for cell in found.cells) == 2


def groups(*counts: tuple[int, int]) -> tuple[Group, ...]:
    figures = Figures(seed=0)
    right, wrong = Pattern(tp=1, fp=0, fn=0, correct=True), Pattern(tp=0, fp=1, fn=1, correct=False)
    return figures.groups(
        {str(place): Counter({right: good, wrong: n - good}) for place, (good, n) in enumerate(counts)}
    )


def test_explained_is_the_share_between_groups_less_that_of_chance() -> None:
    assert explained(groups((10, 10), (0, 10))) == 1.0
    assert explained(groups((5, 10), (5, 10))) == 0.0
    assert explained(groups((10, 10), (10, 10))) == 0.0  # all alike: nothing to explain
    assert explained(groups((3, 10))) == 0.0
    # Twenty rows in twenty groups explain all, and would of any rows.
    assert explained(groups(*[(number % 2, 1) for number in range(20)])) == 0.0
    # eta squared 0.36; less (2 - 1) / (20 - 2) of the rest
    assert explained(groups((8, 10), (2, 10))) == pytest.approx(0.36 - 0.64 / 18)
