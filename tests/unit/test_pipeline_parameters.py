"""Which refusals speak of a parameter of ours, and what the sentence says to do."""

from __future__ import annotations

import pytest

from mmbu_async.config import CallSettings, JudgeConfig, RunConfig
from mmbu_async.model import Failure, FailureKind
from mmbu_async.pipeline.explain import concerns_every_row, explain
from mmbu_async.pipeline.parameters import refused_parameter

PARAMS = {"top_p": 0.9, "reasoning_effort": "low", "top_k": None}
SETTINGS = RunConfig(model="m", temperature=0.0, seed=1, stream=True, params=PARAMS)

CALLED = RunConfig(
    model="m",
    endpoint="gemini",
    image_detail="low",
    prompt_caching=True,
    params={"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
)


def refused(message: str, kind: FailureKind = FailureKind.BAD_REQUEST) -> Failure:
    return Failure(kind=kind, message=message, status=400)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        ("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value "
         "is supported.", "temperature"),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
         "temperature"),
        ("top_p: Extra inputs are not permitted", "top_p"),
        ("invalid temperature: only 1 is allowed for this model", "temperature"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
         "'max_completion_tokens' instead.", "max_tokens"),
        ("Unknown parameter: 'stream_options'.", "stream_options"),
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
    ],
)  # fmt: skip
def test_the_parameter_is_named(message: str, name: str) -> None:
    failure = refused(message)
    assert refused_parameter(failure, SETTINGS) == name
    assert concerns_every_row(failure, SETTINGS, proven=False)
    assert not concerns_every_row(failure, SETTINGS, proven=True), "then the row is to blame"
    assert f"the parameter '{name}' for m ({message})" in explain(failure, SETTINGS)


@pytest.mark.parametrize(
    "failure",
    [
        refused("max_tokens is too large: 2048. This model's maximum context length is 4096 tokens."),
        refused("The temperature of the patient is not supported by the content policy", FailureKind.AUTH),
        refused("This image is not supported."),
        refused("Your request was rejected as a result of our safety system; temperature"),
        # Words that only hold the name of a parameter, and one that is not sent.
        refused("not-temperature and temperatures are not supported"),
        refused("top_k is not supported"),
    ],
)
def test_a_row_that_is_refused_says_nothing_of_others(failure: Failure) -> None:
    assert refused_parameter(failure, SETTINGS) is None
    assert failure.kind is FailureKind.AUTH or not concerns_every_row(failure, SETTINGS, proven=False)


@pytest.mark.parametrize(
    ("settings", "name", "advice"),
    [
        (SETTINGS, "temperature", "leave out --temperature; a run that was begun with it"),
        (SETTINGS, "top_p", "leave out --param top_p;"),
        (SETTINGS, "stream_options", "leave out --stream;"),
        (CALLED, "prompt_cache_key", "leave out --prompt-caching;"),
        (CALLED, "mediaResolution", "leave out --image-detail;"),
        (CALLED, "thinkingConfig", "leave out thinkingConfig in the generationConfig of --param;"),
        (SETTINGS, "max_tokens", "give --max-tokens 0, and the limit by the name that this model takes with "
         "--param;"),
        (JudgeConfig(temperature=0.0), "temperature", "leave out --judge-temperature; `mmbu rejudge`"),
    ],
)  # fmt: skip
def test_the_sentence_says_what_to_do(settings: CallSettings, name: str, advice: str) -> None:
    assert advice in explain(refused(f"{name} is not supported"), settings)
