import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from mmbu_async.stats import mcnemar

ROWS = st.integers(0, 5_000)


def test_two_culture_media_for_tuberculosis() -> None:
    # Armitage and Berry (1994), Statistical Methods in Medical Research, p. 127; StatsDirect's help works the
    # exact test out as P = 0.0129.
    assert round(mcnemar(12, 2), 4) == 0.0129
    assert mcnemar(12, 2) == pytest.approx(2 * (1 + 14 + 91) / 2**14)


def test_approval_of_a_prime_minister_in_two_surveys() -> None:
    # Agresti (1990), Categorical Data Analysis, p. 350: 150 changed to disapproval and 86 to approval.
    assert mcnemar(150, 86) == pytest.approx(3.716e-05, rel=1e-3)


def test_rows_that_both_runs_have_right_or_wrong_say_nothing() -> None:
    assert mcnemar(0, 0) == 1.0


def test_one_row_says_nothing() -> None:
    assert mcnemar(1, 0) == mcnemar(0, 1) == 1.0


def test_six_rows_in_one_direction_are_the_first_below_five_per_cent() -> None:
    assert mcnemar(5, 0) == pytest.approx(0.0625)
    assert mcnemar(0, 6) == pytest.approx(0.03125)


@given(first_only=ROWS, second_only=ROWS)
def test_it_equals_scipy_and_does_not_mind_the_order(first_only: int, second_only: int) -> None:
    found = mcnemar(first_only, second_only)
    assert found == mcnemar(second_only, first_only)
    assert 0 <= found <= 1
    if first_only + second_only:
        expected = binomtest(first_only, first_only + second_only, 0.5).pvalue
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("first_only", "second_only"), [(3, 5), (40, 22), (700, 700)])
def test_it_equals_statsmodels(first_only: int, second_only: int) -> None:
    expected = statsmodels_mcnemar([[10, first_only], [second_only, 10]], exact=True).pvalue
    assert mcnemar(first_only, second_only) == pytest.approx(expected)


@pytest.mark.parametrize("counts", [(-1, 3), (3, -1)])
def test_impossible_counts_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        mcnemar(*counts)
