import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from mmbu_async.stats import Fit, least_squares

# Anscombe (1973), Graphs in Statistical Analysis, The American Statistician 27:17-21.
ANSCOMBE_X = (10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5)
ANSCOMBE = (
    (ANSCOMBE_X, (8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68)),
    (ANSCOMBE_X, (9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74)),
    (ANSCOMBE_X, (7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73)),
    ((8, 8, 8, 8, 8, 8, 8, 19, 8, 8, 8), (6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89)),
)
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def fitted(x: tuple[float, ...], y: tuple[float, ...], level: float = 0.95) -> Fit:
    found = least_squares(x, y, level=level)
    assert found is not None
    return found


@pytest.mark.parametrize(("x", "y"), ANSCOMBE)
def test_anscombes_quartet_has_one_line(x: tuple[float, ...], y: tuple[float, ...]) -> None:
    found = fitted(x, y)
    assert found.n == 11
    assert round(found.slope, 2) == 0.5
    assert round(found.intercept, 1) == 3.0
    assert found.r_squared is not None
    assert round(found.r_squared, 2) == 0.67


def test_the_first_of_anscombes_sets_to_more_digits() -> None:
    found = fitted(*ANSCOMBE[0])
    assert found.r_squared == pytest.approx(0.666542, abs=5e-7)
    assert found.p == pytest.approx(0.00217, abs=5e-6)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(("x", "y"), ANSCOMBE)
def test_it_equals_statsmodels_and_scikit_learn(
    x: tuple[float, ...], y: tuple[float, ...], level: float
) -> None:
    found = fitted(x, y, level)
    other = sm.OLS(y, sm.add_constant(np.array(x, dtype=np.float64))).fit()
    assert (found.intercept, found.slope) == pytest.approx(tuple(other.params))
    assert found.r_squared == pytest.approx(other.rsquared)
    assert found.p == pytest.approx(other.pvalues[1])
    assert (found.slope_low, found.slope_high) == pytest.approx(tuple(other.conf_int(1 - level)[1]))
    third = LinearRegression().fit(np.reshape(x, (-1, 1)), y)
    assert (found.intercept, found.slope) == pytest.approx((third.intercept_, third.coef_[0]))


def test_points_on_a_line() -> None:
    found = fitted((1e6, 2e6, 4e6), (9.94, 10.14, 10.54))
    assert found.slope == pytest.approx(0.2e-6)
    assert found.intercept == pytest.approx(9.74)
    assert found.r_squared == pytest.approx(1.0)
    assert (found.slope_low, found.slope_high) == pytest.approx((0.2e-6, 0.2e-6), rel=1e-5)
    assert found.p == pytest.approx(0.0, abs=1e-6)


def test_two_points_leave_nothing_to_estimate_an_error_from() -> None:
    found = fitted((1, 3), (2, 8))
    assert (found.n, found.slope, found.intercept) == (2, 3.0, -1.0)
    assert found.r_squared == pytest.approx(1.0)
    assert (found.slope_low, found.slope_high, found.p) == (None, None, None)


@pytest.mark.parametrize("n", [2, 5])
def test_where_y_does_not_vary_there_is_a_line_and_nothing_to_explain(n: int) -> None:
    found = fitted(tuple(range(n)), (0.7,) * n)
    assert found == Fit(
        n=n, slope=0.0, intercept=0.7, r_squared=None, slope_low=None, slope_high=None, p=None
    )


@pytest.mark.parametrize("x", [(), (1.0,), (0.1, 0.1, 0.1), (0.0, 1e-200)])
def test_there_is_no_line_without_two_different_x(x: tuple[float, ...]) -> None:
    assert least_squares(x, tuple(range(len(x)))) is None


def test_points_need_both_coordinates() -> None:
    with pytest.raises(ValueError, match="2 values of x and 3 of y"):
        least_squares([1, 2], [1, 2, 3])


@pytest.mark.parametrize(("x", "y"), [([1, math.nan], [1, 2]), ([1, 2], [math.inf, 2])])
def test_points_that_are_nowhere_are_refused(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        least_squares(x, y)


@given(points=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8))
def test_there_is_never_a_nan(points: list[tuple[float, float]]) -> None:
    found = least_squares([x for x, _ in points], [y for _, y in points])
    if found is not None:
        for value in (found.slope, found.intercept, found.r_squared, found.p, found.slope_low):
            assert value is None or math.isfinite(value)
        assert found.r_squared is None or 0 <= found.r_squared <= 1 + 1e-12
