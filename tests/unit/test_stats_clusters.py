from collections import Counter

import numpy as np
import pytest
from scipy import stats

from mmbu_async.stats import ClusterSums, Estimate, Pattern, cluster_headline, headline

RIGHT = ClusterSums(1, 1, 1, 0, 0)
WRONG = ClusterSums(1, 0, 0, 1, 1)
SILENT = ClusterSums(1, 0, 0, 0, 1)
BOTH_RIGHT = ClusterSums(2, 2, 2, 0, 0)
THREE_WRONG = ClusterSums(3, 0, 0, 3, 3)
HALF = ClusterSums(4, 2, 2, 1, 2)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def by_clusters(
    clusters: list[ClusterSums], resamples: int, generator: np.random.Generator
) -> list[tuple[float, float]]:
    """The textbook cluster bootstrap: cluster numbers drawn with replacement, all their rows taken."""
    found = []
    for _ in range(resamples):
        drawn = [clusters[number] for number in generator.integers(0, len(clusters), len(clusters))]
        n, right, tp, fp, fn = (sum(column) for column in zip(*drawn, strict=True))
        found.append((right / n, 2 * tp / (2 * tp + fp + fn)))
    return found


def test_the_intervals_equal_those_of_resampled_clusters() -> None:
    counts = {RIGHT: 40, WRONG: 30, SILENT: 10, BOTH_RIGHT: 20, THREE_WRONG: 10, HALF: 10}
    clusters = [sums for sums, count in counts.items() for _ in range(count)]
    brute = np.percentile(by_clusters(clusters, 4_000, rng(1)), (2.5, 97.5), axis=0)

    found = cluster_headline(counts, rng(2), resamples=50_000)

    assert found.accuracy.value == (40 + 40 + 20) / (40 + 30 + 10 + 40 + 30 + 40)
    for estimate, (low, high) in zip((found.accuracy, found.f1), brute.T, strict=True):
        assert estimate.low == pytest.approx(low, abs=0.006)
        assert estimate.high == pytest.approx(high, abs=0.006)


def test_few_clusters_have_the_exact_distribution() -> None:
    clusters = [BOTH_RIGHT, WRONG, WRONG]
    found = [
        cluster_headline(Counter(clusters), rng(seed), resamples=1).accuracy.low for seed in range(3_000)
    ]
    expected = [accuracy for accuracy, _ in by_clusters(clusters, 3_000, rng(1))]
    assert set(found) == set(expected)
    keys = sorted(set(expected))
    table = [[values.count(key) for key in keys] for values in (found, expected)]
    assert stats.chi2_contingency(table).pvalue > 0.01


def test_clusters_of_one_row_are_rows() -> None:
    by_row = headline({Pattern(1, 0, 0, True): 70, Pattern(0, 1, 1, False): 30}, rng())
    assert cluster_headline({RIGHT: 70, WRONG: 30}, rng()) == by_row


def test_rows_that_stand_and_fall_together_widen_the_interval() -> None:
    alone = cluster_headline({RIGHT: 60, WRONG: 60}, rng()).accuracy
    together = cluster_headline({BOTH_RIGHT: 30, ClusterSums(2, 0, 0, 2, 2): 30}, rng()).accuracy
    assert alone.value == together.value == 0.5
    assert None not in (alone.low, alone.high, together.low, together.high)
    widths = [(one.high or 0) - (one.low or 0) for one in (alone, together)]
    assert widths[1] / widths[0] == pytest.approx(2**0.5, rel=0.15)


def test_without_clusters_there_is_no_figure() -> None:
    assert cluster_headline({RIGHT: 0}, rng()).accuracy == Estimate()
