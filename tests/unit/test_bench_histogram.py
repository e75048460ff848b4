"""The histogram beside numpy's percentiles of the values themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.bench.histogram import ERROR, Histogram, buckets_of, middles

TIMES = st.floats(1e-9, 1e6, allow_nan=False)
SHARES = (0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


@given(st.lists(TIMES, min_size=1, max_size=300))
def test_quantiles_are_numpys_within_the_stated_error(values: list[float]) -> None:
    found = Histogram.of(values)
    for share in SHARES:
        true = float(np.quantile(values, share, method="inverted_cdf"))
        assert found.quantile(share) == pytest.approx(true, rel=ERROR * 1.0001), share
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.least, found.largest) == (min(values), max(values))


@pytest.mark.parametrize("draw", ["lognormal", "exponential", "uniform", "bimodal"])
def test_the_same_of_many_values(draw: str) -> None:
    random = np.random.default_rng(5)
    values = {
        "lognormal": random.lognormal(0, 1, 50_000),
        "exponential": random.exponential(0.3, 50_000),
        "uniform": random.uniform(0.1, 0.2, 50_000),
        "bimodal": np.concatenate([random.normal(1, 0.01, 25_000), random.normal(9, 0.1, 25_000)]),
    }[draw]
    found = Histogram.of(values)
    for share in SHARES:
        true = float(np.quantile(values, share, method="inverted_cdf"))
        assert found.quantile(share) == pytest.approx(true, rel=ERROR * 1.0001)


@given(TIMES)
def test_a_value_lies_near_the_middle_of_its_bucket(value: float) -> None:
    (middle,) = middles(buckets_of([value]))
    assert middle == pytest.approx(value, rel=ERROR * 1.0001)


@given(st.lists(st.lists(TIMES, max_size=40), max_size=6))
def test_merged_is_the_same_as_added(parts: list[list[float]]) -> None:
    merged = Histogram()
    for part in parts:
        merged.merge(Histogram.of(part))
    together = Histogram.of([value for part in parts for value in part])
    mine, theirs = merged.dump(), together.dump()
    assert mine.pop("total") == pytest.approx(theirs.pop("total"))
    assert mine == theirs


@given(st.lists(TIMES, max_size=40))
def test_what_is_stored_is_read_again(values: list[float]) -> None:
    found = Histogram.of(values)
    again = Histogram.load(json.loads(json.dumps(found.dump())))
    assert again.dump() == found.dump()
    assert again.quantile(0.5) == found.quantile(0.5)


def test_nothing_has_no_quantiles() -> None:
    assert Histogram().quantile(0.5) is None
    assert Histogram().mean is None


def test_zero_is_a_time_too() -> None:
    found = Histogram.of([0.0, 0.0, 1.0])
    assert found.quantile(0.5) == pytest.approx(0.0, abs=1e-8)
    assert found.least == 0.0
