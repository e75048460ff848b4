"""Counts in, numbers out: accuracy, micro-F1, intervals, tests, agreement. No I/O, no asyncio, randomness
handed in.

scipy and statsmodels are imported inside the functions that use them: together they take a second, which
most commands need not wait for.
"""

from mmbu_async.stats import power
from mmbu_async.stats.agreement import Kappa, cohen_kappa, fleiss_kappa, krippendorff_alpha
from mmbu_async.stats.bootstrap import (
    LEVEL,
    RESAMPLES,
    Estimate,
    Headline,
    Pattern,
    headline,
    headlines,
    percentile_interval,
    resample_counts,
)
from mmbu_async.stats.clusters import ClusterSums, cluster_headline
from mmbu_async.stats.corrections import benjamini_hochberg, holm
from mmbu_async.stats.f1 import micro_f1, micro_f1_each
from mmbu_async.stats.intervals import Interval, mean_interval, wilson
from mmbu_async.stats.mcnemar import mcnemar
from mmbu_async.stats.paired import Difference, Paired, cluster_paired, paired, paired_f1
from mmbu_async.stats.power import detectable_difference, independent_disagreement, rows_needed
from mmbu_async.stats.regression import Fit, least_squares

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "ClusterSums",
    "Difference",
    "Estimate",
    "Fit",
    "Headline",
    "Interval",
    "Kappa",
    "Paired",
    "Pattern",
    "benjamini_hochberg",
    "cluster_headline",
    "cluster_paired",
    "cohen_kappa",
    "detectable_difference",
    "fleiss_kappa",
    "headline",
    "headlines",
    "holm",
    "independent_disagreement",
    "krippendorff_alpha",
    "least_squares",
    "mcnemar",
    "mean_interval",
    "micro_f1",
    "micro_f1_each",
    "paired",
    "paired_f1",
    "percentile_interval",
    "power",
    "resample_counts",
    "rows_needed",
    "wilson",
]
