"""Counts in, numbers out: accuracy, micro-F1, intervals. No I/O, no asyncio, randomness handed in."""

from mmbu_async.stats.bootstrap import (
    LEVEL,
    RESAMPLES,
    Estimate,
    Headline,
    Pattern,
    headline,
    percentile_interval,
    resample_counts,
)
from mmbu_async.stats.clusters import ClusterSums, cluster_headline
from mmbu_async.stats.f1 import micro_f1, micro_f1_each
from mmbu_async.stats.intervals import Interval, wilson
from mmbu_async.stats.paired import Difference, paired_f1

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "ClusterSums",
    "Difference",
    "Estimate",
    "Headline",
    "Interval",
    "Pattern",
    "cluster_headline",
    "headline",
    "micro_f1",
    "micro_f1_each",
    "paired_f1",
    "percentile_interval",
    "resample_counts",
    "wilson",
]
