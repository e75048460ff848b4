from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mmbu_async.stats import (
    ClusterSums,
    Difference,
    Estimate,
    Paired,
    Pattern,
    cluster_paired,
    headline,
    micro_f1,
    paired,
    paired_f1,
)

RIGHT = Pattern(1, 0, 0, True)
WRONG = Pattern(0, 1, 1, False)
SILENT = Pattern(0, 0, 1, False)
TWO_OF_THREE = Pattern(2, 1, 1, False)
VOID = Pattern(0, 0, 0, False)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def f1(rows: list[Pattern]) -> float:
    tp, fp, fn = (sum(row[place] for row in rows) for place in range(3))
    return 2 * tp / (2 * tp + fp + fn)


def test_the_interval_equals_that_of_resampled_pairs_of_rows() -> None:
    counts = {
        (RIGHT, RIGHT): 60,
        (WRONG, RIGHT): 30,
        (RIGHT, WRONG): 10,
        (TWO_OF_THREE, RIGHT): 20,
        (SILENT, WRONG): 30,
    }
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    generator = rng(1)
    brute = []
    for _ in range(3_000):
        drawn = [pairs[number] for number in generator.integers(0, len(pairs), len(pairs))]
        brute.append(f1([second for _, second in drawn]) - f1([first for first, _ in drawn]))
    low, high = np.percentile(brute, (2.5, 97.5))

    found = paired_f1(counts, rng(2), resamples=50_000)

    assert found.first == pytest.approx(f1([first for first, _ in pairs]))
    assert found.second == pytest.approx(f1([second for _, second in pairs]))
    assert found.difference.value == pytest.approx(f1([b for _, b in pairs]) - f1([a for a, _ in pairs]))
    assert found.difference.low == pytest.approx(low, abs=0.007)
    assert found.difference.high == pytest.approx(high, abs=0.007)


def test_runs_that_agree_on_every_row_differ_by_nothing() -> None:
    found = paired_f1({(RIGHT, RIGHT): 50, (WRONG, WRONG): 50}, rng())
    assert found.first == found.second == 0.5
    assert found.difference == Estimate(value=0.0, low=0.0, high=0.0)


def test_the_order_is_second_minus_first() -> None:
    found = paired_f1({(WRONG, RIGHT): 9, (WRONG, WRONG): 1}, rng())
    assert (found.first, found.second, found.difference.value) == (0.0, 0.9, 0.9)


def test_what_has_no_f1_has_no_difference() -> None:
    assert paired_f1({}, rng()).difference == Estimate()
    found = paired_f1({(VOID, RIGHT): 3}, rng())
    assert (found.first, found.second, found.difference) == (None, micro_f1(3, 0, 0), Estimate())


def test_resamples_without_f1_are_left_out() -> None:
    found = paired_f1({(VOID, RIGHT): 1, (RIGHT, RIGHT): 1}, rng())
    assert found.difference == Estimate(value=0.0, low=0.0, high=0.0)


PATTERNS = st.builds(Pattern, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.booleans())
ONE_ROW = {
    RIGHT: ClusterSums(1, 1, 1, 0, 0),
    WRONG: ClusterSums(1, 0, 0, 1, 1),
    SILENT: ClusterSums(1, 0, 0, 0, 1),
    TWO_OF_THREE: ClusterSums(1, 0, 2, 1, 1),
}


def differences(pairs: list[tuple[Pattern, Pattern]]) -> tuple[float, float]:
    """Accuracy and F1 of the second run minus those of the first, from the rows."""
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    right = sum(row.correct for row in second) - sum(row.correct for row in first)
    return right / len(pairs), f1(second) - f1(first)


def test_both_differences_are_distributed_as_those_of_resampled_rows() -> None:
    counts = {(RIGHT, RIGHT): 30, (WRONG, RIGHT): 14, (RIGHT, SILENT): 6, (TWO_OF_THREE, WRONG): 10}
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    generator = rng(1)
    brute = np.array(
        [
            differences([pairs[number] for number in generator.integers(0, len(pairs), len(pairs))])
            for _ in range(2_000)
        ]
    )
    # One resample each time: both ends of its interval are one draw from the distribution.
    ours = [paired(counts, rng(seed), resamples=1) for seed in range(2_000)]
    drawn = np.array([(one.accuracy.difference.low, one.f1.difference.low) for one in ours])

    for place in (0, 1):
        # Rounded, since equal differences of fractions can differ in their last bit.
        assert stats.ks_2samp(drawn[:, place].round(9), brute[:, place].round(9)).pvalue > 0.01
        assert drawn[:, place].mean() == pytest.approx(brute[:, place].mean(), abs=0.01)
    # Accuracy and F1 come from the same rows, so their joint distribution has to agree too.
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(np.corrcoef(brute.T)[0, 1], abs=0.03)


def test_the_difference_of_accuracies_has_its_exact_variance() -> None:
    # Wins less losses, over n: the variance of a mean of values -1, 0 and 1.
    counts = {(RIGHT, RIGHT): 500, (WRONG, RIGHT): 200, (RIGHT, WRONG): 100, (WRONG, WRONG): 200}
    found = paired(counts, rng(), resamples=40_000).accuracy
    assert (found.first, found.second) == (0.6, 0.7)
    assert found.difference.value == pytest.approx(0.1)
    spread = stats.norm.ppf(0.975) * ((0.3 - 0.1**2) / 1_000) ** 0.5
    assert found.difference.low == pytest.approx(0.1 - spread, abs=0.0015)
    assert found.difference.high == pytest.approx(0.1 + spread, abs=0.0015)


def test_the_difference_of_f1_alone_is_that_of_both() -> None:
    counts = {(RIGHT, WRONG): 20, (RIGHT, RIGHT): 50, (SILENT, TWO_OF_THREE): 30}
    both = paired(counts, rng(), resamples=200, level=0.9)
    assert paired_f1(counts, rng(), resamples=200, level=0.9) == both.f1


def test_what_both_runs_find_hard_widens_nothing() -> None:
    # Apart, the two accuracies waver by some 6 points each way; together they do not waver at all.
    counts = {(RIGHT, RIGHT): 150, (WRONG, WRONG): 100}
    assert paired(counts, rng()).accuracy == Difference(
        first=0.6, second=0.6, difference=Estimate(value=0.0, low=0.0, high=0.0)
    )
    alone = headline({RIGHT: 150, WRONG: 100}, rng()).accuracy
    assert (alone.high or 0) - (alone.low or 0) > 0.1


@pytest.mark.parametrize("counts", [{}, {(RIGHT, WRONG): 0}])
def test_no_rows_have_no_differences(counts: dict[tuple[Pattern, Pattern], int]) -> None:
    nothing = Difference(first=None, second=None, difference=Estimate())
    assert paired(counts, rng()) == Paired(accuracy=nothing, f1=nothing)
    assert cluster_paired({}, rng()) == Paired(accuracy=nothing, f1=nothing)


@pytest.mark.parametrize(("first", "second"), [(RIGHT, WRONG), (WRONG, RIGHT), (RIGHT, RIGHT)])
@pytest.mark.parametrize("n", [1, 40])
def test_rows_that_are_all_alike_have_an_interval_of_no_width(
    first: Pattern, second: Pattern, n: int
) -> None:
    found = paired({(first, second): n}, rng())
    step = float(second.correct) - float(first.correct)
    assert found.accuracy == found.f1
    assert found.accuracy.difference == Estimate(value=step, low=step, high=step)


def test_rows_with_nothing_to_find_differ_in_accuracy_alone() -> None:
    found = paired({(VOID, VOID): 4, (VOID, VOID._replace(correct=True)): 6}, rng())
    assert found.accuracy.difference.value == 0.6
    assert found.f1 == Difference(first=None, second=None, difference=Estimate())


@given(counts=st.dictionaries(st.tuples(PATTERNS, PATTERNS), st.integers(0, 60), max_size=6))
def test_differences_are_from_minus_one_to_one_or_none(counts: dict[tuple[Pattern, Pattern], int]) -> None:
    found = paired(counts, rng(), resamples=50)
    for one in (found.accuracy, found.f1):
        for number in (one.difference.value, one.difference.low, one.difference.high):
            assert number is None or -1.0 <= number <= 1.0


def test_clusters_of_one_row_are_rows() -> None:
    counts = {(RIGHT, WRONG): 20, (RIGHT, RIGHT): 50, (SILENT, TWO_OF_THREE): 30}
    clusters = {(ONE_ROW[first], ONE_ROW[second]): count for (first, second), count in counts.items()}
    assert cluster_paired(clusters, rng()) == paired(counts, rng())


def test_the_interval_by_cluster_equals_that_of_resampled_clusters() -> None:
    three_right, two_of_three = ClusterSums(3, 3, 3, 0, 0), ClusterSums(3, 2, 2, 1, 1)
    counts = {
        (three_right, two_of_three): 25,
        (two_of_three, three_right): 40,
        (ONE_ROW[RIGHT], ONE_ROW[SILENT]): 30,
        (ONE_ROW[WRONG], ONE_ROW[RIGHT]): 45,
    }
    clusters = [pair for pair, count in counts.items() for _ in range(count)]
    table = np.array([(*one, *other) for one, other in clusters])
    generator = rng(1)
    brute = []
    for _ in range(4_000):
        sums = table[generator.integers(0, len(table), len(table))].sum(axis=0).tolist()
        one, other = ClusterSums(*sums[:5]), ClusterSums(*sums[5:])
        f1s = [micro_f1(*run[2:]) or 0.0 for run in (one, other)]
        brute.append((other.right / other.n - one.right / one.n, f1s[1] - f1s[0]))

    found = cluster_paired(counts, rng(2), resamples=50_000)

    assert found.accuracy.first == pytest.approx((75 + 80 + 30) / (75 + 120 + 30 + 45))
    for estimate, (low, high) in zip(
        (found.accuracy, found.f1), np.percentile(brute, (2.5, 97.5), axis=0).T, strict=True
    ):
        assert estimate.difference.low == pytest.approx(low, abs=0.007)
        assert estimate.difference.high == pytest.approx(high, abs=0.007)


def test_clusters_that_change_together_widen_the_interval() -> None:
    alone = paired({(RIGHT, WRONG): 40, (RIGHT, RIGHT): 80}, rng()).accuracy.difference
    four_right, four_wrong = ClusterSums(4, 4, 4, 0, 0), ClusterSums(4, 0, 0, 4, 4)
    clusters = Counter({(four_right, four_wrong): 10, (four_right, four_right): 20})
    together = cluster_paired(clusters, rng()).accuracy.difference
    assert alone.value == together.value
    widths = [(one.high or 0) - (one.low or 0) for one in (alone, together)]
    assert widths[1] / widths[0] == pytest.approx(2.0, rel=0.15)
