"""Schedules of open loops: their rate, their spread, their ramp."""

from __future__ import annotations

from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.bench.arrivals import Arrivals, starts
from mmbu_async.errors import ConfigError


def drawn(text: str, rate: float, count: int, ramp_s: float = 0.0) -> np.ndarray:
    return np.array(list(islice(starts(rate, Arrivals.parse(text), Random(3), ramp_s=ramp_s), count)))


@pytest.mark.parametrize(
    ("text", "variation"),
    [("constant", 0.0), ("poisson", 1.0), ("gamma:1", 1.0), ("gamma:0.25", 2.0), ("gamma:4", 0.5)],
)
def test_gaps_have_their_mean_and_their_spread(text: str, variation: float) -> None:
    gaps = np.diff(drawn(text, 50.0, 40_000))
    assert gaps.mean() == pytest.approx(0.02, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(variation, abs=0.05)


def test_a_constant_schedule_does_not_drift() -> None:
    found = drawn("constant", 500.0, 10_000)
    assert found == pytest.approx(np.arange(10_000) / 500, abs=1e-9)


@given(rate=st.floats(0.1, 1000), ramp_s=st.floats(0.1, 30))
def test_a_ramp_starts_half_as_many_and_then_the_full_rate(rate: float, ramp_s: float) -> None:
    found = drawn("constant", rate, 400, ramp_s)
    assert (np.diff(found) > 0).all()
    in_ramp = (found < ramp_s).sum()
    expected = rate * ramp_s / 2
    assert in_ramp == pytest.approx(min(400, expected), abs=1.001)
    after = np.diff(found[found >= ramp_s])
    assert after == pytest.approx(np.full(len(after), 1 / rate))
    first_half = (found < ramp_s / 2).sum()
    assert first_half == pytest.approx(min(400, expected / 4), abs=1.001)


@pytest.mark.parametrize("text", ["", "even", "poisson:2", "gamma", "gamma:0", "gamma:x", "gamma:inf"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match="gamma:SHAPE"):
        Arrivals.parse(text)


@pytest.mark.parametrize("text", ["constant", "poisson", "gamma:0.5"])
def test_names_are_read_again(text: str) -> None:
    assert Arrivals.parse(text).name == text
