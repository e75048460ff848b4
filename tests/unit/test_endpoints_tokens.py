"""Token estimates: by the makers' rules at first, by what endpoints report later."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.tokens import (
    FIRST_OUTPUT_GUESS,
    UNLIMITED_OUTPUT,
    Estimator,
    image_tokens,
    most_output_tokens,
    text_tokens,
)
from mmbu_async.model import Completion, Finish, PreparedImage, Usage


def reported(input_tokens: int, output_tokens: int, *, known: bool = True) -> Completion:
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, reported=known)
    return Completion(text="", finish=Finish.STOP, usage=usage)


def settings(**changes: Any) -> CallSettings:
    return CallSettings.model_validate({"model": "m"} | changes)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 1), ("abcde", 2)])
def test_text(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        # Examples of OpenAI's guide: 1024 x 1024 is 765, 2048 x 4096 is 1105.
        (1024, 1024, 765),
        (2048, 4096, 1105),
        (512, 512, 255),
        (1, 1, 255),
        (8000, 1, 85 + 170 * 4),
    ],
)
def test_openai_images(width: int, height: int, tokens: int) -> None:
    assert image_tokens("openai", width, height) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    # Examples of Anthropic's guide: 200 x 200 is about 54, 1000 x 1000 about 1334.
    [(200, 200, 54), (1000, 1000, 1334), (8000, 8000, 3279), (8000, 10, 5), (1, 1, 1)],
)
def test_anthropic_images(width: int, height: int, tokens: int) -> None:
    assert image_tokens("anthropic", width, height) == tokens


@pytest.mark.parametrize(
    ("model", "detail", "width", "height", "tokens"),
    [
        # Google's guides: 258 up to 384 pixels; 960 x 540 is six tiles; from Gemini 3 on by resolution alone.
        ("gemini-2.5-flash", None, 384, 384, 258),
        ("gemini-2.5-flash", None, 960, 540, 6 * 258),
        ("gemini-2.5-flash", "low", 960, 540, 64),
        ("gemini-2.5-pro", "medium", 4000, 3000, 256),
        ("gemini-2.5-pro", "high", 384, 10, 258),
        ("gemini-3-pro-preview", None, 960, 540, 1120),
        ("gemini-3.5-flash", "low", 960, 540, 280),
        ("gemini-3.5-flash", "ultra_high", 10, 10, 2240),
    ],
)
def test_gemini_images(model: str, detail: str | None, width: int, height: int, tokens: int) -> None:
    assert image_tokens("gemini", width, height, model=model, detail=detail) == tokens
    image = PreparedImage(data=b"", media_type="image/png", width=width, height=height)
    asked = settings(endpoint="gemini", model=model, image_detail=detail)
    assert Estimator.of(asked).raw_input((), (image,)) == tokens


def test_openai_images_of_low_detail() -> None:
    assert image_tokens("openai", 2048, 4096, detail="low") == 85


def test_raw_input_adds_texts_and_images() -> None:
    image = PreparedImage(data=b"", media_type="image/png", width=512, height=512)
    assert Estimator("openai", 100).raw_input(("abcde", "", "x"), (image, image)) == 3 + 2 * 255


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"max_tokens": 300}, 300),
        ({"max_tokens": 0}, UNLIMITED_OUTPUT),
        ({"endpoint": "anthropic", "max_tokens": 0}, 4096),
        ({"endpoint": "anthropic", "max_tokens": 300}, 300),
        # What `params` send in its place is what can be charged.
        ({"params": {"max_completion_tokens": 16_000}}, 16_000),
        ({"params": {"max_tokens": 9000}}, 9000),
        ({"params": {"max_tokens": 10, "max_completion_tokens": 20}}, 20),
        ({"params": {"max_tokens": None}}, UNLIMITED_OUTPUT),
        ({"params": {"max_tokens": True}}, UNLIMITED_OUTPUT),
        ({"endpoint": "responses", "params": {"max_output_tokens": 12_000}}, 12_000),
        ({"endpoint": "gemini", "max_tokens": 300}, 300),
        ({"endpoint": "gemini", "params": {"generationConfig": {"maxOutputTokens": 9000}}}, 9000),
        ({"endpoint": "gemini", "params": {"generationConfig": {"maxOutputTokens": None}}}, UNLIMITED_OUTPUT),
        ({"endpoint": "gemini", "params": {"generationConfig": {"topK": 1}}, "max_tokens": 7}, 7),
    ],
)
def test_the_most_a_reply_can_cost(changes: dict[str, Any], most: int) -> None:
    assert most_output_tokens(settings(**changes)) == most
    assert Estimator.of(settings(**changes)).expect(10).most_output_tokens == most


def test_before_any_reply() -> None:
    expected = Estimator("openai", 2048).expect(1000)
    assert (expected.input_tokens, expected.usual_output_tokens) == (1000, FIRST_OUTPUT_GUESS)
    assert Estimator("openai", 50).expect(1000).usual_output_tokens == 50


def test_the_first_reply_replaces_the_rules() -> None:
    estimator = Estimator("openai", 2048)
    estimator.learn(1000, reported(3000, 90))
    expected = estimator.expect(500)
    assert (expected.input_tokens, expected.usual_output_tokens) == (1500, 90)


def test_what_says_nothing_teaches_nothing() -> None:
    estimator = Estimator("openai", 2048)
    before = estimator.expect(1000)
    for raw, reply in ((1000, reported(0, 0, known=False)), (0, reported(9, 9)), (1000, reported(0, 9))):
        estimator.learn(raw, reply)
    assert estimator.expect(1000) == before


@given(
    ratio=st.floats(0.1, 10),
    sizes=st.lists(st.integers(200, 5000), min_size=1, max_size=50),
    odd=st.lists(st.integers(1, 100_000), max_size=3),
)
def test_estimates_come_to_what_is_reported(ratio: float, sizes: list[int], odd: list[int]) -> None:
    estimator = Estimator("openai", 2048)
    for number in odd:
        estimator.learn(1000, reported(number, number))
    for size in sizes * (400 // len(sizes) + 1):
        estimator.learn(size, reported(round(size * ratio), 70))
    expected = estimator.expect(1000)
    assert expected.input_tokens == pytest.approx(1000 * ratio, rel=0.15, abs=2)
    assert expected.usual_output_tokens == pytest.approx(70, rel=0.15, abs=2)
