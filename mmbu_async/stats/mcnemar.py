"""McNemar's exact test: do two runs differ on the rows that they share?"""

from __future__ import annotations


def mcnemar(first_only: int, second_only: int) -> float:
    """Two-sided exact p-value; `first_only` rows were right in the first run alone, `second_only` in the
    second alone. 1.0 where there is neither.

    Rows on which both runs agree say nothing about which is better. Of the others, under the null hypothesis,
    each is a fair coin: the p-value is that of the binomial test with probability one half (McNemar 1947,
    Psychometrika 12:153-157, in its exact form), by scipy's binomial distribution. `scipy.stats.binomtest`
    gives the same, but takes 0.2 to 0.6 ms for each of some thousand strata instead of 2 µs, and is imported
    in 0.6 s instead of 0.2 s. Raises ValueError for a negative count.
    """
    if first_only < 0 or second_only < 0:
        raise ValueError(f"{first_only} and {second_only} rows cannot be.")
    n = first_only + second_only
    if n == 0:
        return 1.0
    from scipy.special import bdtr

    # The distribution is symmetric: the other tail is as probable.
    return min(1.0, 2 * float(bdtr(min(first_only, second_only), n, 0.5)))
