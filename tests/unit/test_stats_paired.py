import numpy as np
import pytest

from mmbu_async.stats import Estimate, Pattern, micro_f1, paired_f1

RIGHT = Pattern(1, 0, 0, True)
WRONG = Pattern(0, 1, 1, False)
SILENT = Pattern(0, 0, 1, False)
TWO_OF_THREE = Pattern(2, 1, 1, False)
VOID = Pattern(0, 0, 0, False)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def f1(rows: list[Pattern]) -> float:
    tp, fp, fn = (sum(row[place] for row in rows) for place in range(3))
    return 2 * tp / (2 * tp + fp + fn)


def test_the_interval_equals_that_of_resampled_pairs_of_rows() -> None:
    counts = {
        (RIGHT, RIGHT): 60,
        (WRONG, RIGHT): 30,
        (RIGHT, WRONG): 10,
        (TWO_OF_THREE, RIGHT): 20,
        (SILENT, WRONG): 30,
    }
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    generator = rng(1)
    brute = []
    for _ in range(3_000):
        drawn = [pairs[number] for number in generator.integers(0, len(pairs), len(pairs))]
        brute.append(f1([second for _, second in drawn]) - f1([first for first, _ in drawn]))
    low, high = np.percentile(brute, (2.5, 97.5))

    found = paired_f1(counts, rng(2), resamples=50_000)

    assert found.first == pytest.approx(f1([first for first, _ in pairs]))
    assert found.second == pytest.approx(f1([second for _, second in pairs]))
    assert found.difference.value == pytest.approx(f1([b for _, b in pairs]) - f1([a for a, _ in pairs]))
    assert found.difference.low == pytest.approx(low, abs=0.007)
    assert found.difference.high == pytest.approx(high, abs=0.007)


def test_runs_that_agree_on_every_row_differ_by_nothing() -> None:
    found = paired_f1({(RIGHT, RIGHT): 50, (WRONG, WRONG): 50}, rng())
    assert found.first == found.second == 0.5
    assert found.difference == Estimate(value=0.0, low=0.0, high=0.0)


def test_the_order_is_second_minus_first() -> None:
    found = paired_f1({(WRONG, RIGHT): 9, (WRONG, WRONG): 1}, rng())
    assert (found.first, found.second, found.difference.value) == (0.0, 0.9, 0.9)


def test_what_has_no_f1_has_no_difference() -> None:
    assert paired_f1({}, rng()).difference == Estimate()
    found = paired_f1({(VOID, RIGHT): 3}, rng())
    assert (found.first, found.second, found.difference) == (None, micro_f1(3, 0, 0), Estimate())


def test_resamples_without_f1_are_left_out() -> None:
    found = paired_f1({(VOID, RIGHT): 1, (RIGHT, RIGHT): 1}, rng())
    assert found.difference == Estimate(value=0.0, low=0.0, high=0.0)
