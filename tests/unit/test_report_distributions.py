import random
from collections.abc import Iterable

import numpy as np
import pytest

from mmbu_async.report import distributions
from mmbu_async.report.distributions import Distributions, Histogram, Spreads
from mmbu_async.store.outcomes import Spent


def spent(seconds: float = 1.0, **tokens: int | float | None) -> Spent:
    nothing = Spent(
        total_s=seconds, first_token_s=None, input_tokens=None, output_tokens=None, reasoning_tokens=None
    )
    return nothing._replace(**tokens)  # type: ignore[arg-type]


def spread(rows: Iterable[Spent]) -> Distributions:
    spreads = Spreads()
    for row in rows:
        spreads.add(row)
    return spreads.distributions()


def of_seconds(values: Iterable[float]) -> Histogram:
    found = spread(map(spent, values)).total_s
    assert found is not None
    return found


def test_quantiles_are_those_of_the_rows_within_a_bin() -> None:
    drawn = random.Random(3)
    values = [drawn.lognormvariate(1, 0.7) for _ in range(5_000)]
    found = of_seconds(values)
    assert (found.n, found.zeros) == (5_000, 0)
    assert found.least == min(values)
    assert found.most == max(values)
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert [found.median, found.p90, found.p99] == pytest.approx(
        np.percentile(values, (50, 90, 99)), rel=0.05
    )
    assert sum(one.count for one in found.bins) == 5_000
    assert all(one.low < one.high for one in found.bins)
    for one in found.bins:
        inside = sum(one.low <= value < one.high for value in values)
        assert abs(inside - one.count) <= 1  # a value on an edge may be rounded to either side


def test_one_row_is_its_own_least_median_and_most() -> None:
    found = of_seconds([2.5])
    assert (found.least, found.median, found.p90, found.p99, found.most) == (2.5,) * 5


def test_what_was_not_reported_is_not_counted() -> None:
    rows = [spent(input_tokens=10, output_tokens=0), spent(input_tokens=None, output_tokens=5), spent()]
    found = spread(rows)
    assert found.input_tokens is not None and found.input_tokens.n == 1
    assert found.output_tokens is not None
    assert (found.output_tokens.n, found.output_tokens.zeros) == (2, 1)
    assert (found.output_tokens.least, found.output_tokens.most) == (0, 5)
    assert found.reasoning_tokens is found.first_token_s is found.max_iou is None


def test_zeros_have_a_share_in_mean_and_quantiles_and_no_bin() -> None:
    found = spread([spent(reasoning_tokens=0)] * 6 + [spent(reasoning_tokens=100)] * 4).reasoning_tokens
    assert found is not None
    assert (found.zeros, found.mean, found.median) == (6, 40, 0)
    assert found.p90 == pytest.approx(100, rel=0.05)
    assert [one.count for one in found.bins] == [4]


def test_tokens_that_no_endpoint_can_have_counted_break_nothing() -> None:
    found = spread([spent(input_tokens=2**63 - 1), spent(input_tokens=-5)]).input_tokens
    assert found is not None
    assert (found.n, found.zeros, found.least) == (2, 1, 0)
    assert found.most == pytest.approx(2**63)


def test_without_rows_there_is_no_distribution() -> None:
    found = Spreads().distributions()
    assert found.total_s is None
    assert found.max_iou is None


def test_the_scorer_decides_on_which_side_of_one_half_an_overlap_lies() -> None:
    spreads = Spreads()
    for iou, correct in ((0.5, True), (0.5 - 1e-12, True), (0.5, False), (1.0, True), (0.0, False)):
        spreads.add_iou(iou, correct=correct)
    found = spreads.distributions().max_iou
    assert found is not None
    assert found.zeros == 1
    assert [(one.low, one.count) for one in found.bins] == [(0.45, 1), (0.5, 2), (0.95, 1)]


def test_counting_in_parts_gives_what_counting_at_once_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [spent(0.1 * (number % 37), input_tokens=number) for number in range(1_000)]
    whole = spread(rows)
    monkeypatch.setattr(distributions, "TOGETHER", 64)
    parts = spread(rows)
    assert parts.input_tokens == whole.input_tokens
    assert parts.total_s is not None and whole.total_s is not None
    assert parts.total_s.bins == whole.total_s.bins


def test_no_row_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    spreads = Spreads()
    for number in range(3 * distributions.TOGETHER + 1):
        spreads.add(spent(1.0 + number))
        spreads.add_iou(0.25, correct=False)
    assert len(spreads._spent) <= distributions.TOGETHER
    assert len(spreads._overlaps) <= distributions.TOGETHER
