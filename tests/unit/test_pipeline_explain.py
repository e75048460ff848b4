"""Fatal failures in plain words."""

from __future__ import annotations

import pytest

from mmbu_async.config import CallSettings, JudgeConfig
from mmbu_async.model import FATAL_KINDS, Failure, FailureKind
from mmbu_async.pipeline.explain import explain

SETTINGS = CallSettings(model="m-1", base_url="http://gate.example/v1", api_key_env="GATE_KEY")


@pytest.mark.parametrize("kind", sorted(FailureKind))
def test_one_sentence_that_names_the_place_and_the_words(kind: FailureKind) -> None:
    text = explain(Failure(kind=kind, message="their words"), SETTINGS)
    assert "http://gate.example/v1" in text
    assert "their words" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (FailureKind.AUTH, "the key in GATE_KEY"),
        (FailureKind.MODEL_NOT_FOUND, "'m-1'"),
        (FailureKind.QUOTA, "top it up"),
    ],
)
def test_what_to_do(kind: FailureKind, remedy: str) -> None:
    assert kind in FATAL_KINDS
    assert remedy in explain(Failure(kind=kind, message=""), SETTINGS)


def test_a_denial_is_more_than_a_wrong_key() -> None:
    text = explain(Failure(kind=FailureKind.AUTH, message="not in your region", status=403), SETTINGS)
    assert "permission" in text


def test_the_flags_are_those_of_who_was_called() -> None:
    lost = Failure(kind=FailureKind.MODEL_NOT_FOUND, message="")
    assert "check --model and --base-url" in explain(lost, SETTINGS)
    assert "check --judge-model and --judge-base-url" in explain(lost, JudgeConfig())
