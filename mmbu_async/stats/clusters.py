"""Cluster bootstrap: rows that share a figure stand or fall together, so figures are drawn, not rows.

Clusters with equal sums are alike to every figure computed here. Drawing clusters with replacement and
counting them by their sums is one draw from a multinomial, as with rows: the result is exactly that of
resampling clusters. Clusters differ in size, so the number of rows differs from resample to resample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mmbu_async.stats.bootstrap import LEVEL, RESAMPLES, Estimate, Headline, estimate, resample_counts
from mmbu_async.stats.f1 import micro_f1, micro_f1_each


class ClusterSums(NamedTuple):
    """The rows of one cluster summed up."""

    n: int
    right: int
    tp: int
    fp: int
    fn: int


def cluster_headline(
    counts: Mapping[ClusterSums, int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Headline:
    """Accuracy and micro-F1 over all rows of the clusters; `counts` is how many clusters have which sums.

    Every cluster has at least one row.
    """
    kept = [(sums, count) for sums, count in counts.items() if count]
    if not kept:
        return Headline(accuracy=Estimate(), f1=Estimate())
    table = np.array([sums for sums, _ in kept], dtype=np.int64)
    observed = np.array([count for _, count in kept], dtype=np.int64)
    n, right, tp, fp, fn = (int(total) for total in observed @ table)
    drawn = resample_counts(observed, rng, resamples) @ table
    return Headline(
        accuracy=estimate(right / n, drawn[:, 1] / drawn[:, 0], level),
        f1=estimate(micro_f1(tp, fp, fn), micro_f1_each(*drawn[:, 2:].T), level),
    )
