import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mmbu_async.stats import Interval, mean_interval, wilson


def test_wilson_equals_a_published_worked_example() -> None:
    # Newcombe (1998), Statistics in Medicine 17:857-872, table I, method 3.
    for successes, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)):
        found = wilson(successes, n)
        assert found is not None
        assert round(found.low, 4) == low
        assert round(found.high, 4) == high


def test_wilson_keeps_a_width_where_all_rows_are_alike() -> None:
    none_right, all_right = wilson(0, 20), wilson(20, 20)
    assert none_right is not None
    assert all_right is not None
    assert none_right.low == 0.0
    assert round(none_right.high, 4) == 0.1611
    assert all_right.high == 1.0
    assert all_right.low == pytest.approx(1 - none_right.high)


def test_wilson_of_no_rows_is_none() -> None:
    assert wilson(0, 0) is None


def test_a_wider_level_gives_a_wider_interval() -> None:
    usual, wide = wilson(5, 10), wilson(5, 10, level=0.99)
    assert usual is not None
    assert wide is not None
    assert wide.low < usual.low < 0.5 < usual.high < wide.high


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        wilson(successes, n)


@given(n=st.integers(1, 5_000), share=st.floats(0, 1), level=st.sampled_from((0.5, 0.95, 0.999)))
def test_wilson_equals_scipy(n: int, share: float, level: float) -> None:
    successes = round(share * n)
    found = wilson(successes, n, level=level)
    expected = stats.binomtest(successes, n).proportion_ci(confidence_level=level, method="wilson")
    assert found is not None
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)
    assert 0 <= found.low <= successes / n <= found.high <= 1


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_a_mean_has_the_interval_of_its_standard_error(values: list[float]) -> None:
    found = mean_interval(len(values), math.fsum(values), math.fsum(value * value for value in values))
    assert found is not None
    mean = statistics.fmean(values)
    spread = 1.959964 * statistics.stdev(values) / math.sqrt(len(values))
    assert found.low == pytest.approx(max(0.0, mean - spread), abs=1e-6)
    assert found.high == pytest.approx(min(1.0, mean + spread), abs=1e-6)


def test_one_value_has_no_interval() -> None:
    assert mean_interval(1, 0.5, 0.25) is None
    assert mean_interval(0, 0.0, 0.0) is None
    assert mean_interval(2, 2.0, 2.0) == Interval(low=1.0, high=1.0)
