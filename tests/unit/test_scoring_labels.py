from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.labels import count_labels, normal, split_labels

LABELS = st.lists(st.sampled_from(["effusion", "cardiomegaly", "nodule", "mass"]), unique=True)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("effusion, cardiomegaly", ("effusion", "cardiomegaly")),
        ("effusion,cardiomegaly ,", ("effusion", "cardiomegaly")),
        ("Effusion, effusion.", ("Effusion",)),
        ("carcinoma, ductal, nodule", ("carcinoma, ductal", "nodule")),
        ("Carcinoma,  Ductal", ("Carcinoma, Ductal",)),
        ("carcinoma, lobular", ("carcinoma", "lobular")),
        (", .", ()),
        ("", ()),
    ],
)
def test_labels_between_commas(text: str, labels: tuple[str, ...]) -> None:
    assert split_labels(text, ("carcinoma, ductal", "nodule")) == labels


def test_a_label_in_normal_form() -> None:
    assert normal(" Pleural \n Effusion. ") == "pleural effusion"


@pytest.mark.parametrize(
    ("true", "given_labels", "correct", "counts"),
    [
        ("ab", "ab", True, (2, 0, 0)),
        ("ab", "xy", True, (2, 0, 0)),
        ("ab", "a", False, (1, 0, 1)),
        ("ab", "abx", False, (2, 1, 0)),
        ("ab", "xy", False, (0, 2, 2)),
        ("a", "x", False, (0, 1, 1)),
        ("ab", "", False, (0, 0, 2)),
        ("a", "a", False, (0, 1, 1)),
        ("ab", "BA", False, (1, 1, 1)),
    ],
)
def test_counts(true: str, given_labels: str, correct: bool, counts: tuple[int, int, int]) -> None:
    assert count_labels(tuple(true), tuple(given_labels), correct=correct) == counts


@given(LABELS.filter(bool), LABELS, st.booleans())
def test_counts_add_up_and_follow_the_judge(true: list[str], answer: list[str], correct: bool) -> None:
    tp, fp, fn = count_labels(true, answer, correct=correct)
    assert tp + fn == len(true)
    assert (fp + fn == 0) == correct
    assert correct or tp + fp == len(answer)
