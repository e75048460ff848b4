import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from mmbu_async.stats import benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)

# Neuhaus et al. (1992), cardiac and other events after thrombolysis in myocardial infarction, as they are
# worked out by Benjamini and Hochberg (1995), section 3.2: Bonferroni rejects three hypotheses at 5 %,
# controlling the false discovery rate four.
INFARCTION = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
    *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]


def rejected(adjusted: tuple[float, ...]) -> list[int]:
    return [place for place, value in enumerate(adjusted) if value <= 0.05]


def test_events_after_thrombolysis() -> None:
    assert rejected(benjamini_hochberg(INFARCTION)) == [0, 1, 2, 3]
    assert rejected(holm(INFARCTION)) == [0, 1, 2]
    assert benjamini_hochberg(INFARCTION)[3] == pytest.approx(0.0095 * 15 / 4)
    # The fifth is 0.0201 · 15 / 5, and no smaller than the sixth and seventh may be: 0.0298 · 15 / 7.
    assert benjamini_hochberg(INFARCTION)[4:7] == pytest.approx((0.0603, 0.0298 * 15 / 7, 0.0298 * 15 / 7))


def test_holms_steps_by_hand() -> None:
    # Smallest times 4, next times 3; then 2 · 0.03 and 1 · 0.04, of which the second may not be smaller.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_benjamini_and_hochbergs_steps_by_hand() -> None:
    # From the largest: 0.04 · 4/4, 0.03 · 4/3, 0.01 · 4/2, 0.005 · 4/1.
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.02, 0.04, 0.04, 0.02))


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_one_test_needs_no_correction_and_none_have_none(
    correct: Callable[[Sequence[float]], tuple[float, ...]],
) -> None:
    assert correct([0.03]) == (0.03,)
    assert correct([]) == ()


@given(p=P_VALUES)
def test_both_equal_the_definitions(p: list[float]) -> None:
    order = sorted(range(len(p)), key=lambda place: p[place])
    step_down, step_up, largest, smallest = [0.0] * len(p), [0.0] * len(p), 0.0, 1.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[place]))
        step_down[place] = largest
    for rank, place in reversed(list(enumerate(order, start=1))):
        smallest = min(smallest, p[place] * len(p) / rank)
        step_up[place] = smallest
    assert holm(p) == pytest.approx(step_down)
    assert benjamini_hochberg(p) == pytest.approx(step_up)


@given(p=P_VALUES)
def test_the_false_discovery_rate_equals_that_of_statsmodels(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1].tolist())


@pytest.mark.parametrize("p", [INFARCTION, [0.5, 0.5, 0.01, 0.0, 1.0, 0.01]])
def test_holm_equals_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist())


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no p-value"):
        holm([0.5, value])
    with pytest.raises(ValueError, match="no p-value"):
        benjamini_hochberg([0.5, value])
