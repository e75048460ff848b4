"""Comparisons of made-up runs against figures computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mmbu_async.report.compare import FLIPS_KEPT, build_comparison
from mmbu_async.report.comparison import Comparison, Flip, PairComparison
from mmbu_async.report.flips import flips
from mmbu_async.report.groups import SMALL
from mmbu_async.stats import Difference, rows_needed
from mmbu_async.store import LeaseOwner
from tests.compared import make_runs
from tests.stored_run import IDENTITY, MakeRun, Row

FIRST, SECOND = "++++------", "+++-+++---"
"""Three wins, one loss, three ties right, three ties wrong."""


def compared(make_run: MakeRun, *outcomes: str, **options: object) -> Comparison:
    store, runs = make_runs(make_run, *outcomes, **options)  # type: ignore[arg-type]
    return build_comparison(store, runs)


def pair(make_run: MakeRun, *outcomes: str, **options: object) -> PairComparison:
    (found,) = compared(make_run, *outcomes, **options).pairs
    return found


def test_wins_ties_losses_and_differences(make_run: MakeRun) -> None:
    found = pair(make_run, FIRST, SECOND)
    assert (found.first, found.second, found.n) == ("a", "b", 10)
    assert (found.wins, found.losses, found.ties_right, found.ties_wrong) == (3, 1, 3, 3)
    assert (found.accuracy.first, found.accuracy.second) == (0.4, 0.6)
    assert found.accuracy.difference.value == pytest.approx(0.2)
    low, high = found.accuracy.difference.low, found.accuracy.difference.high
    assert low is not None and high is not None
    assert -0.4 < low < 0.2 < high < 0.7
    # One or fewer of four coins, and as many on the other side: 2 * (1 + 4) / 16.
    assert found.p == found.p_holm == 0.625
    assert found.disagreement == 0.4


def test_an_unanswered_row_weighs_less_in_f1(make_run: MakeRun) -> None:
    found = pair(make_run, "+-", "+0")
    assert found.accuracy.difference.value == 0
    assert found.f1.first == 2 / (2 + 1 + 1)
    assert found.f1.second == 2 / (2 + 0 + 1)
    assert found.f1.difference.value == pytest.approx(2 / 3 - 1 / 2)


def test_a_run_at_work_is_told_of(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, FIRST, SECOND)
    store.acquire_lease(runs[1].id, LeaseOwner.current(), 86_400.0)
    assert build_comparison(store, runs).notes[0].startswith("run b is at work (process ")
    store.release_lease(runs[1].id, LeaseOwner.current())
    assert not any("at work" in note for note in build_comparison(store, runs).notes)


def test_the_order_of_the_runs_turns_every_sign(make_run: MakeRun) -> None:
    store, (a, b) = make_runs(make_run, FIRST, SECOND)
    (there,), (back,) = build_comparison(store, [a, b]).pairs, build_comparison(store, [b, a]).pairs
    assert (back.wins, back.losses) == (there.losses, there.wins)
    assert back.accuracy.difference.value == pytest.approx(-0.2)
    assert back.p == there.p
    assert [flip.direction for flip in back.flips] == ["gained", "lost", "lost", "lost"]


def test_equal_stores_and_seeds_give_equal_pages(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, FIRST, SECOND)
    assert build_comparison(store, runs, seed=3) == build_comparison(store, runs, seed=3)
    other = build_comparison(store, runs, seed=4).pairs[0].accuracy
    assert other != build_comparison(store, runs, seed=3).pairs[0].accuracy


def test_families_are_corrected_among_themselves(make_run: MakeRun) -> None:
    def shape(number: int) -> Row:
        return {"family": "counting" if number < 6 else "classification"}

    found = pair(make_run, "------+-+-", "+++++++-+-", shape=shape)
    counting, classification = found.families
    assert (counting.value, counting.n, counting.wins, counting.losses) == ("counting", 6, 6, 0)
    assert (classification.value, classification.n, classification.ties) == ("classification", 4, 4)
    assert counting.p == 2 / 64
    assert (counting.p_holm, counting.p_bh) == (2 * 2 / 64, 2 * 2 / 64)
    assert (classification.p, classification.p_holm, classification.p_bh) == (1.0, 1.0, 1.0)
    assert counting.accuracy.difference.value == 1.0


def test_every_value_of_an_attribute_and_the_rows_without_one(make_run: MakeRun) -> None:
    def shape(number: int) -> Row:
        topics = (("nuclei", "smear"), ("nuclei",), ())[number % 3]
        return {"strata": {"task": topics, "metadata_stain": ("H&E",)}}

    found = pair(make_run, FIRST, SECOND, shape=shape)
    task, stain = found.attributes
    assert (task.name, stain.name) == ("task", "metadata_stain")
    # Rows 0 3 6 9 are nuclei and smear, 1 4 7 nuclei, 2 5 8 neither; 4 5 6 are won, 3 is lost.
    assert [(one.value, one.n, one.wins, one.losses, one.ties_right) for one in task.strata] == [
        ("nuclei", 7, 2, 1, 2),
        ("smear", 4, 1, 1, 1),
        (None, 3, 1, 0, 1),
    ]
    assert [(one.value, one.n, one.p_holm) for one in stain.strata] == [("H&E", 10, 0.625)]
    assert task.strata[0].p == 1.0 and all(one.small for one in task.strata)


@pytest.mark.parametrize(("n", "small"), [(SMALL - 1, True), (SMALL, False)])
def test_small_strata_are_marked(n: int, small: bool, make_run: MakeRun) -> None:
    assert pair(make_run, "+" * n, "-" * n).families[0].small is small


def test_rows_that_not_both_have_are_counted_aloud(make_run: MakeRun) -> None:
    limits = [{"limit": 6}, {}]
    found = compared(make_run, "+-?+u-++", "++--++++", options=limits)
    first, second = found.runs
    assert found.common_rows == found.pairs[0].n == 4
    assert (first.rows, first.scored, first.elsewhere, first.open) == (6, 4, 0, 2)
    assert (second.rows, second.scored, second.elsewhere, second.open) == (8, 8, 2, 0)
    # Rows 0, 1, 3 and 5 are left: + - + - against + + - +.
    assert (found.pairs[0].wins, found.pairs[0].losses) == (2, 1)
    assert found.left_out == (
        "2 rows of b that the other has not selected.",
        "2 rows of all runs without a score in some (2 in a).",
    )
    assert [flip.row_id for flip in found.pairs[0].flips] == ["row-1", "row-3", "row-5"]


def test_rows_without_a_public_answer_are_left_out(make_run: MakeRun) -> None:
    found = compared(make_run, "+g", "-g")
    assert (found.common_rows, found.left_out) == (1, ("1 row without a public answer.",))


def test_of_three_runs_the_rows_of_all_are_compared(make_run: MakeRun) -> None:
    found = compared(make_run, "------+", "++++++?", "-----+?")
    assert found.common_rows == 6
    one, two = found.pairs
    assert [(each.second, each.wins, each.losses) for each in found.pairs] == [("b", 6, 0), ("c", 1, 0)]
    assert (one.p, two.p) == (2 / 64, 1.0)
    assert (one.p_holm, two.p_holm) == (4 / 64, 1.0)
    assert found.left_out == ("1 row of all runs without a score in some (1 in b, 1 in c).",)


def test_flips_of_three_runs_are_those_of_the_rows_of_all(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, "-+-", "++-", "+?+")
    found = build_comparison(store, runs)
    assert found.common_rows == 2
    assert [[flip.row_id for flip in each.flips] for each in found.pairs] == [["row-0"], ["row-0", "row-2"]]
    assert [flip.row_id for flip in flips(store, runs[0], runs[2], among=runs[::2])] == ["row-0", "row-2"]


def test_a_flip_has_both_answers_and_the_truth(make_run: MakeRun) -> None:
    found = pair(make_run, "-", "+", shape=lambda number: {"family": "counting", "id": "the row"})
    assert found.flips == (
        Flip(
            row_id="the row",
            family="counting",
            direction="gained",
            first_answer="nucleolus",
            second_answer="nucleus",
            truth="nucleus",
        ),
    )


def test_a_comparison_holds_the_first_flips_and_the_store_gives_all(make_run: MakeRun) -> None:
    n = FLIPS_KEPT + 5
    store, runs = make_runs(make_run, "-" * n, "+" * n)
    found = build_comparison(store, runs).pairs[0]
    assert [flip.row_id for flip in found.flips] == [f"row-{number}" for number in range(FLIPS_KEPT)]
    assert len(list(flips(store, *runs))) == n == found.wins + found.losses


def test_rows_of_one_cluster_are_drawn_together(make_run: MakeRun) -> None:
    """Ten figures with six questions each; the runs part on whole figures."""

    def outcome(number: int, right: str) -> Row:
        return {
            "id": f"row-{number}",
            "reply": "x",
            "correct": right[number // 6] == "+",
            "detail": {"cluster": f"figure {number // 6}"},
        }

    def differences(rows: Sequence[Sequence[Row]], *names: str) -> PairComparison:
        made = [make_run(each, name=name) for each, name in zip(rows, names, strict=True)]
        return build_comparison(made[0][0], [run for _, run in made]).pairs[0]

    texts = ("-----+++++", "+++--++-++")
    clustered = [[outcome(number, text) for number in range(60)] for text in texts]
    alone: list[list[Row]] = [[{**row, "detail": {}} for row in rows] for rows in clustered]
    by_figure, by_row = differences(clustered, "a", "b"), differences(alone, "c", "d")
    assert (by_figure.clusters, by_row.clusters) == (10, None)
    assert by_figure.accuracy.difference.value == by_row.accuracy.difference.value == pytest.approx(0.2)
    width = width_of(by_figure.accuracy)
    # The standard error is √6 times that of as many rows that know nothing of each other.
    assert width == pytest.approx(6**0.5 * width_of(by_row.accuracy), rel=0.15)
    assert width_of(by_figure.families[0].accuracy) == width


def width_of(found: Difference) -> float:
    interval = found.difference
    assert interval.low is not None and interval.high is not None
    return interval.high - interval.low


def test_clusters_are_said_and_runs_have_their_intervals_too(make_run: MakeRun) -> None:
    rows = [
        {"id": f"{n}@{turn}", "reply": "x", "correct": n % 2 == 0, "detail": {"circular_row": f"{n}"}}
        for n in range(8)
        for turn in range(4)
    ]
    alone = {"id": "alone", "reply": "x", "correct": True}
    made = [make_run([*rows, alone], name=name) for name in "ab"]
    found = build_comparison(made[0][0], [run for _, run in made])
    assert [run.overall.clusters for run in found.runs] == [9, 9]
    assert all(run.overall.wilson is None for run in found.runs)
    assert any("(9 clusters): intervals of all rows" in note for note in found.notes)


def test_the_smallest_difference_that_the_rows_show(make_run: MakeRun) -> None:
    found = pair(make_run, "+-" * 30 + "-" * 40, "-+" * 30 + "-" * 40)
    assert found.detectable is not None and found.disagreement == 0.6
    assert rows_needed(found.detectable, disagreement=0.6) <= 100
    assert rows_needed(found.detectable * 0.99, disagreement=0.6) > 100


def test_settings_that_differ_are_named_and_the_model_is_not(make_run: MakeRun) -> None:
    changed = IDENTITY | {
        "model": "other",
        "max_tokens": 512,
        "prompts": {**IDENTITY["prompts"], "system": "9" * 64},  # type: ignore[dict-item]
        "params": {"top_p": 0.5},
    }
    judge = {"model": "gpt-4o", "endpoint": "openai", "prompt": "x"}
    found = compared(
        make_run, "+", "+", options=[{}, {"identity": changed, "judge": judge, "model": "other"}]
    )
    assert found.pairs[0].differing == (
        "max_tokens (2048 against 512)",
        "params.top_p (none against 0.5)",
        "prompt system",
        "judge (claude-sonnet-5 against gpt-4o)",
    )
    (note,) = [note for note in found.notes if "also differ" in note]
    assert "a and b also differ in max_tokens (2048 against 512)" in note
    assert (found.runs[1].judge, found.runs[1].official) == ("gpt-4o", False)
    assert found.notes[-2] == "a: official settings."
    assert found.notes[-1].startswith("b: unofficial: the judge is gpt-4o, not claude-sonnet-5; ")


def test_runs_alike_have_no_such_note(make_run: MakeRun) -> None:
    found = compared(make_run, "+", "-")
    assert found.pairs[0].differing == ()
    assert not any("differ" in note for note in found.notes)


def test_scores_by_other_versions_are_said(make_run: MakeRun) -> None:
    store, (a, b) = make_runs(make_run, "+", "-")
    store.replace_scores(b.id, b.judge.id if b.judge else None, (), package_version="0.9", now=9.0)
    found = build_comparison(store, [a, store.run("b")])
    assert found.pairs[0].differing == ("scored by version (0.1.0 against 0.9)",)
