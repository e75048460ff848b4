"""McNemar's exact test: do two runs differ on the rows that they share?"""

from __future__ import annotations


def mcnemar(first_only: int, second_only: int) -> float:
    """Two-sided exact p-value; `first_only` rows were right in the first run alone, `second_only` in the
    second alone. 1.0 where there is neither.

    Rows on which both runs agree say nothing about which is better. Of the others, under the null hypothesis,
    each is a fair coin: the p-value is that of the binomial test with probability one half (McNemar 1947,
    Psychometrika 12:153-157, in its exact form). Raises ValueError for a negative count.
    """
    if first_only < 0 or second_only < 0:
        raise ValueError(f"{first_only} and {second_only} rows cannot be.")
    n = first_only + second_only
    if n == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(first_only, n, 0.5).pvalue)
