import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.stats import micro_f1, micro_f1_each

COUNT = st.integers(min_value=0, max_value=100_000)


@pytest.mark.parametrize(
    ("tp", "fp", "fn", "expected"),
    [
        (1, 0, 0, 1.0),
        (0, 1, 1, 0.0),
        (3, 1, 1, 0.75),  # one prediction a row: F1 equals accuracy
        (3, 0, 1, 6 / 7),  # the wrong row gave no answer: no FP
        (0, 0, 5, 0.0),
        (0, 0, 0, None),
    ],
)
def test_micro_f1(tp: int, fp: int, fn: int, expected: float | None) -> None:
    assert micro_f1(tp, fp, fn) == expected


@given(tp=COUNT, fp=COUNT, fn=COUNT)
def test_micro_f1_is_the_harmonic_mean_of_precision_and_recall(tp: int, fp: int, fn: int) -> None:
    if tp:
        precision, recall = tp / (tp + fp), tp / (tp + fn)
        assert micro_f1(tp, fp, fn) == pytest.approx(2 * precision * recall / (precision + recall))


@given(rows=st.lists(st.tuples(COUNT, COUNT, COUNT), max_size=20))
def test_the_array_form_agrees_with_the_scalar_and_leaves_out_what_has_no_value(
    rows: list[tuple[int, int, int]],
) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    expected = [value for row in rows if (value := micro_f1(*row)) is not None]
    assert micro_f1_each(*table.T).tolist() == expected
