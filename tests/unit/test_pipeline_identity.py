"""What makes two runs the same experiment."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async import tasks
from mmbu_async.config import JudgeConfig, RunConfig, build_config
from mmbu_async.images.limits import UNLIMITED
from mmbu_async.pipeline.identity import canonical, differences, judge_identity, run_identity

POLICY = {"max_edge": 8000, "accepted": ["image/png"]}


def identity(fingerprint: str = "f" * 64, **changes: Any) -> dict[str, Any]:
    config = build_config({"model": "m", "params": {}} | changes)
    benchmark = tasks.load("mmbu-public")
    return run_identity(config, benchmark, fingerprint=fingerprint, image_policy=POLICY)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "other"},
        {"endpoint": "anthropic"},
        {"max_tokens": 99},
        {"temperature": 0.0},
        {"seed": 1},
        {"image_detail": "low"},
        {"params": {"reasoning_effort": "low"}},
        # A null takes a field out of the request.
        {"params": {"max_tokens": None}},
    ],
)
def test_what_changes_answers_is_another_experiment(changes: dict[str, Any]) -> None:
    (line,) = differences(identity(), identity(**changes))
    assert next(iter(changes)) in line
    assert canonical(identity()) != canonical(identity(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://mirror.example/v1"},
        {"api_key_env": "OTHER"},
        {"concurrency": 3},
        {"rpm": 10},
        {"tpm": 10},
        {"timeout": 5},
        {"connect_timeout": 5},
        {"idle_timeout": 5},
        {"max_attempts": 1},
        {"max_retry_time": 1},
        {"input_price": 1, "output_price": 2},
        {"stream": True},
        {"prompt_caching": True},
        {"limit": 5},
        {"max_cost": 5},
        {"store": "other.sqlite"},
        {"data": "elsewhere"},
        {"synchronous": "normal"},
        {"preflight": False},
        {"judge": {"model": "other"}},
    ],
)
def test_what_does_not_change_answers_may_change(changes: dict[str, Any]) -> None:
    assert differences(identity(), identity(**changes)) == ()
    assert canonical(identity()) == canonical(identity(**changes))


def test_the_data_and_the_images_belong_to_it() -> None:
    (line,) = differences(identity(), identity("e" * 64))
    assert line.startswith("dataset: ffff")
    other = run_identity(
        RunConfig(model="m"),
        tasks.load("mmbu-public"),
        fingerprint="f" * 64,
        image_policy=POLICY | {"max_edge": 1568},
    )
    assert differences(identity(), other) == ("images.max_edge: 8000 -> 1568",)


def test_every_prompt_belongs_to_it() -> None:
    changed = identity()
    changed["prompts"] = changed["prompts"] | {"system": "0" * 64}
    (line,) = differences(identity(), changed)
    assert line.startswith("prompts.system: ")


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [
        ({}, {"a": 1}, "params.a: not set -> 1"),
        ({"a": 1}, {}, "params.a: 1 -> not set"),
        ({"a": None}, {}, "params.a: none -> not set"),
        ({"a": True}, {"a": 1}, "params.a: True -> 1"),
        ({"a": False}, {"a": 0}, "params.a: False -> 0"),
        ({"a": [{"b": True}]}, {"a": [{"b": 1}]}, "params.a: [{'b': True}] -> [{'b': 1}]"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "params.a.b: 1 -> 2"),
        ({"a": {}}, {}, "params.a: {} -> not set"),
        ({"a": "x" * 200}, {"a": "y"}, f"params.a: {'x' * 77}... -> y"),
    ],
)
def test_parameters_are_compared_strictly_and_shown_in_one_line(
    before: dict[str, Any], now: dict[str, Any], line: str
) -> None:
    assert differences(identity(params=before), identity(params=now)) == (line,)


def test_a_setting_that_an_earlier_version_did_not_know_is_none() -> None:
    older = {name: value for name, value in identity().items() if name != "seed"}
    assert differences(older, identity()) == ()
    assert differences(older, identity(seed=3)) == ("seed: none -> 3",)


def test_numbers_that_json_writes_in_two_ways_are_the_same() -> None:
    assert differences(identity(temperature=0), identity(temperature=0.0)) == ()
    assert differences(identity(params={"top_p": 1}), identity(params={"top_p": 1.0})) == ()


def test_a_judge_is_its_model_its_sampling_and_its_prompt() -> None:
    judge = JudgeConfig()
    same = JudgeConfig(name="other name", base_url="http://mirror.example", concurrency=2, timeout=3.0)
    assert canonical(judge_identity(judge, "p" * 64)) == canonical(judge_identity(same, "p" * 64))
    for other in (JudgeConfig(model="x"), JudgeConfig(max_tokens=9), JudgeConfig(temperature=0.1)):
        assert canonical(judge_identity(judge, "p" * 64)) != canonical(judge_identity(other, "p" * 64))
    assert canonical(judge_identity(judge, "p" * 64)) != canonical(judge_identity(judge, "q" * 64))


def test_the_order_of_parameters_means_nothing() -> None:
    one, two = identity(params={"a": 1, "b": 2}), identity(params={"b": 2, "a": 1})
    assert canonical(one) == canonical(two)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)
PARAMS = st.dictionaries(st.text("abcd", min_size=1, max_size=3), VALUES, max_size=3)


@given(before=PARAMS, now=PARAMS)
def test_two_runs_are_the_same_exactly_when_no_difference_is_shown(
    before: dict[str, Any], now: dict[str, Any]
) -> None:
    old, new = identity(params=before), identity(params=now)
    lines = differences(old, new)
    assert (lines == ()) == (canonical(old) == canonical(new))
    assert differences(old, old) == ()
    for line in lines:
        assert "\n" not in line.replace("\\n", "")


def test_no_limit_on_images_is_said_in_words() -> None:
    before = {"images": {"max_edge": UNLIMITED}, "seed": UNLIMITED}
    (images, seed) = differences(before, {"images": {"max_edge": 8000}, "seed": 8000})
    assert images == "images.max_edge: no limit -> 8000"
    assert "no limit" not in seed
