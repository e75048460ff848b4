from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mmbu_async.stats import (
    Estimate,
    Headline,
    Pattern,
    bootstrap,
    headline,
    headlines,
    micro_f1,
    percentile_interval,
    resample_counts,
)

RIGHT = Pattern(1, 0, 0, True)
WRONG = Pattern(0, 1, 1, False)
SILENT = Pattern(0, 0, 1, False)
TWO_OF_THREE = Pattern(2, 1, 1, False)
VOID = Pattern(0, 0, 0, False)

COUNTS = st.dictionaries(
    st.builds(Pattern, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.booleans()),
    st.integers(0, 500),
    max_size=6,
)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def by_rows(rows: list[Pattern], resamples: int, generator: np.random.Generator) -> np.ndarray:
    """The textbook bootstrap: row numbers drawn with replacement. Gives (accuracy, F1) a resample."""
    table = np.array(rows, dtype=np.int64)
    result = []
    for _ in range(resamples):
        tp, fp, fn, right = table[generator.integers(0, len(rows), len(rows))].sum(axis=0)
        result.append((right / len(rows), 2 * tp / (2 * tp + fp + fn)))
    return np.array(result)


def test_resampled_figures_are_distributed_as_those_of_resampled_rows() -> None:
    counts = {RIGHT: 60, WRONG: 25, SILENT: 10, TWO_OF_THREE: 25}
    rows = [pattern for pattern, count in counts.items() for _ in range(count)]
    brute = by_rows(rows, 4_000, rng(1))

    drawn = resample_counts(list(counts.values()), rng(2), 4_000) @ np.array(list(counts), dtype=np.int64)
    accuracy = drawn[:, 3] / len(rows)
    f1 = 2 * drawn[:, 0] / (2 * drawn[:, 0] + drawn[:, 1] + drawn[:, 2])

    for ours, theirs in ((accuracy, brute[:, 0]), (f1, brute[:, 1])):
        assert stats.ks_2samp(ours, theirs).pvalue > 0.01
        assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.05)
    # Accuracy and F1 come from the same rows, so their joint distribution has to agree too.
    assert np.corrcoef(accuracy, f1)[0, 1] == pytest.approx(np.corrcoef(brute.T)[0, 1], abs=0.02)


def test_pattern_counts_have_the_exact_probabilities_of_all_possible_resamples() -> None:
    rows = [0, 0, 1, 2]
    every = Counter(
        tuple(Counter(picked).get(pattern, 0) for pattern in range(3)) for picked in product(rows, repeat=4)
    )
    drawn = Counter(map(tuple, resample_counts([2, 1, 1], rng(), 50_000).tolist()))

    assert set(drawn) <= set(every)
    observed = [drawn[key] for key in every]
    expected = [50_000 * ways / len(rows) ** 4 for ways in every.values()]
    assert stats.chisquare(observed, expected).pvalue > 0.01


def test_rare_patterns_drawn_row_by_row_have_the_exact_probabilities_too() -> None:
    rows = [0, 1, 2, 2, 3]
    every = Counter(
        tuple(Counter(picked).get(pattern, 0) for pattern in range(4)) for picked in product(rows, repeat=5)
    )
    drawn = Counter(map(tuple, resample_counts([1, 1, 2, 1], rng(), 50_000).tolist()))

    assert set(drawn) <= set(every)
    # Outcomes that are expected less than 20 times are taken together.
    often = [key for key, ways in every.items() if 50_000 * ways / len(rows) ** 5 >= 20]
    observed = [drawn[key] for key in often]
    expected = [50_000 * every[key] / len(rows) ** 5 for key in often]
    observed.append(50_000 - sum(observed))
    expected.append(50_000 - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > 0.01


@pytest.mark.parametrize("rows_at_once", [bootstrap.ROWS_AT_ONCE, 0])
def test_frequent_and_rare_patterns_have_the_moments_of_a_multinomial(
    monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(bootstrap, "ROWS_AT_ONCE", rows_at_once)
    observed = np.array([5, 120, 1, 9, 70, 2, 3, bootstrap.RARE])
    n = observed.sum()
    share = observed / n

    drawn = resample_counts(observed, rng(), 40_000)

    assert (drawn.sum(axis=1) == n).all()
    covariance = n * (np.diag(share) - np.outer(share, share))
    error = np.sqrt(np.diag(covariance) / 40_000)
    assert (np.abs(drawn.mean(axis=0) - observed) < 4 * error).all()
    assert np.cov(drawn.T) == pytest.approx(covariance, rel=0.05, abs=0.3)


def test_there_may_be_more_patterns_than_two_bytes_can_number() -> None:
    drawn = resample_counts(np.ones(2**16 + 4, dtype=np.int64), rng(), 2)
    assert drawn.sum(axis=1).tolist() == [2**16 + 4] * 2
    assert drawn[:, 2**15 :].any(axis=1).all()


def test_rows_with_one_label_are_drawn_from_the_multinomial_itself() -> None:
    # Reports of such runs keep their intervals from version to version.
    observed = np.array([3, 12, 9])
    expected = rng().multinomial(24, observed / 24, size=50)
    assert resample_counts(observed, rng(), 50).tolist() == expected.tolist()


def test_the_intervals_equal_those_of_resampled_rows() -> None:
    counts = {RIGHT: 300, WRONG: 120, SILENT: 80}
    rows = [pattern for pattern, count in counts.items() for _ in range(count)]
    brute = np.percentile(by_rows(rows, 4_000, rng(3)), (2.5, 97.5), axis=0)

    found = headline(counts, rng(4), resamples=100_000)

    assert found.accuracy.value == 0.6
    assert found.f1.value == micro_f1(300, 120, 200)
    for estimate, (low, high) in zip((found.accuracy, found.f1), brute.T, strict=True):
        assert estimate.low == pytest.approx(low, abs=0.004)
        assert estimate.high == pytest.approx(high, abs=0.004)


def test_f1_equals_accuracy_where_every_row_has_one_prediction() -> None:
    found = headline({RIGHT: 70, WRONG: 30}, rng())
    assert found.accuracy == found.f1
    assert found.accuracy.value == 0.7


def test_the_same_generator_gives_the_same_intervals() -> None:
    counts = {RIGHT: 70, WRONG: 30}
    assert headline(counts, rng(5)) == headline(counts, rng(5))
    assert headline(counts, rng(5)) != headline(counts, rng(6))


def test_a_lower_level_gives_a_narrower_interval() -> None:
    narrow, usual = (headline({RIGHT: 70, WRONG: 30}, rng(), level=level).accuracy for level in (0.5, 0.95))
    assert narrow.low is not None
    assert usual.low is not None
    assert narrow.low > usual.low


@pytest.mark.parametrize("counts", [{}, {RIGHT: 0}])
def test_no_rows_have_no_figures(counts: dict[Pattern, int]) -> None:
    found = headline(counts, rng())
    assert found.accuracy == found.f1 == Estimate(value=None, low=None, high=None)


@pytest.mark.parametrize(("pattern", "value"), [(RIGHT, 1.0), (WRONG, 0.0), (SILENT, 0.0)])
@pytest.mark.parametrize("n", [1, 50])
def test_rows_that_are_all_alike_have_an_interval_of_no_width(pattern: Pattern, value: float, n: int) -> None:
    found = headline({pattern: n}, rng())
    assert found.accuracy == found.f1 == Estimate(value=value, low=value, high=value)


def test_rows_with_nothing_to_find_have_an_accuracy_and_no_f1() -> None:
    found = headline({VOID: 10}, rng())
    assert found.accuracy == Estimate(value=0.0, low=0.0, high=0.0)
    assert found.f1 == Estimate()


def test_an_f1_that_no_resample_has_stands_without_interval() -> None:
    # One row in ten thousand has a label; a single resample misses it with this seed.
    found = headline({VOID: 9_999, RIGHT: 1}, rng(2), resamples=1)
    assert found.f1 == Estimate(value=1.0, low=None, high=None)


def test_percentiles_of_nothing_are_none() -> None:
    assert percentile_interval(np.array([])) is None


@given(counts=COUNTS)
def test_figures_are_fractions_or_none_and_never_nan(counts: dict[Pattern, int]) -> None:
    found = headline(counts, rng(), resamples=50)
    for estimate in (found.accuracy, found.f1):
        for number in (estimate.value, estimate.low, estimate.high):
            assert number is None or 0.0 <= number <= 1.0


@given(many=st.lists(COUNTS, max_size=5))
def test_many_sets_at_once_have_the_figures_of_each(many: list[dict[Pattern, int]]) -> None:
    together = list(headlines([(counts, rng(seed)) for seed, counts in enumerate(many)], resamples=40))
    assert together == [headline(counts, rng(seed), resamples=40) for seed, counts in enumerate(many)]


def test_sets_beyond_a_block_come_in_order() -> None:
    many = [{RIGHT: 1 + number, WRONG: 1} for number in range(bootstrap.BLOCK + 3)]
    found = list(headlines(((counts, rng()) for counts in many), resamples=3))
    assert [one.accuracy.value for one in found] == [n / (n + 1) for n in range(1, len(many) + 1)]


def test_sets_are_drawn_one_block_at_a_time() -> None:
    taken = []

    def sets() -> Iterator[tuple[dict[Pattern, int], np.random.Generator]]:
        for number in range(3 * bootstrap.BLOCK):
            taken.append(number)
            yield {RIGHT: 1}, rng()

    next(headlines(sets(), resamples=2))
    assert len(taken) == bootstrap.BLOCK


def test_an_f1_that_some_resamples_lack_is_that_of_the_others() -> None:
    counts = {VOID: 9, RIGHT: 1, WRONG: 1}
    found = headline(counts, rng(), resamples=2_000)
    drawn = resample_counts(list(counts.values()), rng(), 2_000)
    with_label = drawn[drawn[:, 1:].sum(axis=1) > 0]
    assert 0 < len(with_label) < 2_000
    f1 = with_label[:, 1] / with_label[:, 1:].sum(axis=1)
    low, high = np.percentile(f1, (2.5, 97.5))
    assert found == Headline(
        accuracy=found.accuracy, f1=Estimate(value=0.5, low=float(low), high=float(high))
    )
