from collections import Counter

import pytest

from mmbu_async.report.groups import SMALL, Figures, Group, Tally
from mmbu_async.stats import Estimate, Pattern, wilson

RIGHT = Pattern(1, 0, 0, True)
WRONG = Pattern(0, 1, 1, False)
SILENT = Pattern(0, 0, 1, False)


def group(counts: dict[Pattern | None, int], seed: int = 0) -> Group:
    return Figures(seed=seed).group("g", Counter(counts))


def test_a_group_without_open_rows_has_a_score() -> None:
    found = group({RIGHT: 60, WRONG: 30, SILENT: 10})
    assert (found.n, found.right, found.open, found.small) == (100, 60, 0, False)
    assert found.score is not None
    assert found.accuracy.value == 0.6
    assert found.f1.value == 120 / (120 + 30 + 40)
    assert found.wilson == wilson(60, 100)
    assert found.worst == found.best == found.score


def test_open_rows_give_two_ends_and_no_score() -> None:
    found = group({RIGHT: 50, WRONG: 40, None: 10})
    assert (found.n, found.right, found.open) == (100, 50, 10)
    assert found.score is None
    assert found.wilson is None
    assert found.accuracy == found.f1 == Estimate()
    assert found.worst.accuracy.value == 0.5
    assert found.best.accuracy.value == 0.6
    assert found.worst.f1.value == 0.5  # an open row that turns out wrong was answered: one FP and one FN
    assert found.best.f1.value == 0.6


@pytest.mark.parametrize(("n", "small"), [(SMALL - 1, True), (SMALL, False)])
def test_small_groups_are_marked(n: int, small: bool) -> None:
    assert group({RIGHT: n}).small is small


def test_a_group_without_rows_has_no_figures() -> None:
    found = group({})
    assert (found.n, found.right, found.open) == (0, 0, 0)
    assert found.accuracy == found.f1 == Estimate()
    assert found.wilson is None


def test_equal_counts_have_equal_intervals_whatever_else_is_reported() -> None:
    figures = Figures(seed=3)
    alone = figures.group("a", Counter({RIGHT: 20, WRONG: 30}))
    figures.group("b", Counter({RIGHT: 7, WRONG: 9}))
    again = figures.group("c", Counter({WRONG: 30, RIGHT: 20}))
    assert alone.score == again.score == group({RIGHT: 20, WRONG: 30}, seed=3).score
    assert alone.score != group({RIGHT: 20, WRONG: 30}, seed=4).score


def test_a_row_counts_once_in_each_group_it_names() -> None:
    tally = Tally()
    tally.add("classification", {"task": ("nuclei", "smear", "nuclei"), "stain": ("H&E",)}, RIGHT)
    tally.add("classification", {"task": ("nuclei",)}, WRONG)
    tally.add("counting", {"task": ("smear",), "stain": ("DNA",)}, None)

    assert tally.all == {RIGHT: 1, WRONG: 1, None: 1}
    assert tally.families == {"classification": {RIGHT: 1, WRONG: 1}, "counting": {None: 1}}
    found = {
        attribute.name: [(one.name, one.n, one.right, one.open) for one in attribute.groups]
        for attribute in tally.attributes(Figures(seed=0))
    }
    assert found == {
        "task": [("nuclei", 2, 1, 0), ("smear", 2, 1, 1)],
        "stain": [("DNA", 1, 0, 1), ("H&E", 1, 1, 0), (None, 1, 0, 0)],
    }


def test_attributes_are_ordered_topics_then_metadata_then_others() -> None:
    tally = Tally()
    names = ("zeta", "metadata_stain", "VQA_type", "metadata_body_part", "task")
    tally.add("classification", dict.fromkeys(names, ("x",)), RIGHT)
    assert [attribute.name for attribute in tally.attributes(Figures(seed=0))] == [
        "task",
        "metadata_body_part",
        "metadata_stain",
        "VQA_type",
        "zeta",
    ]


def test_an_attribute_without_values_is_as_good_as_absent() -> None:
    tally = Tally()
    tally.add("classification", {"stain": ()}, RIGHT)
    tally.add("classification", {"stain": ("H&E",)}, WRONG)
    (stain,) = tally.attributes(Figures(seed=0))
    assert [(one.name, one.n) for one in stain.groups] == [("H&E", 1), (None, 1)]
