import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mmbu_async.stats import (
    detectable_difference,
    independent_disagreement,
    mcnemar,
    power,
    rows_needed,
)

SHARES = st.floats(0.01, 1.0)


def exact_power(n: int, difference: float, disagreement: float, alpha: float = 0.05) -> float:
    """Probability that McNemar's exact test of `n` rows comes to `alpha` or less: over all numbers of rows
    on which the runs disagree, and all that the better one can have of them."""
    total = 0.0
    better = (disagreement + difference) / (2 * disagreement)
    for differing in range(n + 1):
        weight = binom.pmf(differing, n, disagreement)
        if weight > 1e-9:
            wins = np.arange(differing + 1)
            finds = [mcnemar(differing - won, won) <= alpha for won in wins.tolist()]
            total += weight * binom.pmf(wins, differing, better)[finds].sum()
    return float(total)


@pytest.mark.parametrize(
    ("difference", "disagreement", "n"),
    [
        # Worked out by powerandsamplesize.com (p01 = 0.45, p10 = 0.05) with Connor's formula, p. 209.
        (0.40, 0.50, 23),
        # Worked out by clinicaltrials-tools (p_d = 0.45, odds ratio 2) with the same.
        (0.15, 0.45, 155),
    ],
)
def test_worked_examples_of_connors_formula(difference: float, disagreement: float, n: int) -> None:
    assert rows_needed(difference, disagreement=disagreement) == n


def test_connors_formula_by_hand() -> None:
    expected = (1.959963985 * math.sqrt(0.2) + 1.281551566 * math.sqrt(0.2 - 0.0025)) ** 2 / 0.0025
    assert rows_needed(-0.05, disagreement=0.2, power=0.9) == math.ceil(expected) == 837


@pytest.mark.parametrize(
    ("difference", "disagreement", "lowest"),
    [
        (0.2, 0.3, 0.76),
        (0.1, 0.1, 0.76),
        (0.1, 0.2, 0.76),
        (0.05, 0.1, 0.76),
        (0.1, 0.5, 0.76),
        (0.05, 0.3, 0.78),
    ],
)
def test_the_exact_test_falls_short_by_what_is_said(
    difference: float, disagreement: float, lowest: float
) -> None:
    n = rows_needed(difference, disagreement=disagreement)
    assert lowest <= exact_power(n, difference, disagreement) <= 0.80
    assert exact_power(n + math.ceil(2 / difference), difference, disagreement) >= 0.80


def test_simulated_runs_are_told_apart_as_often() -> None:
    n = rows_needed(0.1, disagreement=0.3)
    rng = np.random.default_rng(3)
    found = [
        mcnemar(losses, wins) <= 0.05
        for wins, losses, _ in rng.multinomial(n, [0.2, 0.1, 0.7], size=4_000).tolist()
    ]
    assert np.mean(found) == pytest.approx(exact_power(n, 0.1, 0.3), abs=0.02)


@given(n=st.integers(0, 100_000), disagreement=SHARES, share=st.sampled_from([0.5, 0.8, 0.95]))
def test_the_detectable_difference_is_the_smallest_that_the_rows_are_enough_for(
    n: int, disagreement: float, share: float
) -> None:
    found = detectable_difference(n, disagreement=disagreement, power=share)
    if found is None:
        assert rows_needed(disagreement, disagreement=disagreement, power=share) > n
        return
    assert 0 < found <= disagreement
    assert rows_needed(found, disagreement=disagreement, power=share) <= n
    assert rows_needed(found * (1 - 1e-12), disagreement=disagreement, power=share) > n


@given(disagreement=SHARES, part=st.floats(0.01, 1.0))
def test_rows_needed_are_enough_and_one_less_is_not(disagreement: float, part: float) -> None:
    difference = part * disagreement
    n = rows_needed(difference, disagreement=disagreement)
    found, fewer = (detectable_difference(rows, disagreement=disagreement) for rows in (n, n - 1))
    assert found is not None
    assert found <= difference
    assert fewer is None or fewer > difference


def test_the_public_split_resolves_two_points() -> None:
    found = detectable_difference(3_147, disagreement=0.2)
    assert found == pytest.approx(0.0223, abs=5e-5)


def test_too_few_rows_detect_nothing() -> None:
    assert detectable_difference(3, disagreement=0.2) is None
    assert detectable_difference(0, disagreement=1.0) is None


def test_runs_that_never_disagree_show_no_difference() -> None:
    assert detectable_difference(10_000, disagreement=0.0) is None


def test_more_rows_show_less() -> None:
    few, many = (detectable_difference(n, disagreement=0.3) for n in (500, 5_000))
    assert few is not None
    assert many is not None
    assert few > many


@pytest.mark.parametrize("difference", [0.0, 0.31, -0.31, math.nan])
def test_what_no_number_of_rows_can_show_is_refused(difference: float) -> None:
    with pytest.raises(ValueError, match=r"cannot be found where runs disagree on 0\.3"):
        rows_needed(difference, disagreement=0.3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"disagreement": 1.1}, "no share of rows"),
        ({"disagreement": -0.1}, "no share of rows"),
        ({"disagreement": 0.3, "power": 1.0}, "power of 1.0 cannot be"),
        ({"disagreement": 0.3, "alpha": 0.0}, "alpha of 0.0 cannot be"),
    ],
)
def test_shares_out_of_range_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_needed(0.1, **settings)
    with pytest.raises(ValueError, match=message):
        power.detectable_difference(100, **settings)


def test_disagreement_of_runs_that_know_nothing_of_each_other() -> None:
    assert independent_disagreement(0.5, 0.6) == pytest.approx(0.5)
    assert independent_disagreement(1.0, 1.0) == independent_disagreement(0.0, 0.0) == 0.0
    assert independent_disagreement(1.0, 0.0) == 1.0


@given(one=st.floats(0, 1), other=st.floats(0, 1))
def test_independent_disagreement_covers_the_difference(one: float, other: float) -> None:
    assert abs(one - other) - 1e-12 <= independent_disagreement(one, other) <= 1


@pytest.mark.parametrize("accuracies", [(1.1, 0.5), (0.5, -0.1)])
def test_what_is_no_accuracy_is_refused(accuracies: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="no accuracy"):
        independent_disagreement(*accuracies)
