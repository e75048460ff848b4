"""Who made a model is told by its name, and by nothing that only looks like one."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from mmbu_async.makers import makers, same_makers, warning


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("gpt-4o-mini", "OpenAI"),
        ("gpt-4.1-2025-04-14", "OpenAI"),
        ("chatgpt-4o-latest", "OpenAI"),
        ("o3", "OpenAI"),
        ("o4-mini-2025", "OpenAI"),
        ("ft:gpt-4o-mini:lab::7", "OpenAI"),
        ("openai/gpt-oss-120b", "OpenAI"),
        ("claude-sonnet-5", "Anthropic"),
        ("anthropic/claude-opus-4.1", "Anthropic"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "Anthropic"),
        ("claude-3-5-sonnet@20240620", "Anthropic"),
        ("models/gemini-2.5-pro", "Google"),
        ("google/medgemma-4b-it", "Google"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "Meta"),
        ("accounts/fireworks/models/llama4-scout", "Meta"),
        ("llama3.2-vision:11b", "Meta"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Alibaba"),
        ("qwen2.5vl:7b", "Alibaba"),
        ("qwq-32b", "Alibaba"),
        ("microsoft/llava-med-v1.5-mistral-7b", "Microsoft"),
        ("llava-1.5-7b-hf", "LLaVA"),
        ("OpenGVLab/InternVL3-8B", "OpenGVLab"),
        ("EleutherAI/gpt-j-6b", "EleutherAI"),
        ("pixtral-12b", "Mistral AI"),
    ],
)
def test_names_as_they_are_written(model: str, maker: str) -> None:
    assert makers(model) == {maker}


@pytest.mark.parametrize(
    "model", ["", "my-model", "o1x", "o11", "gptq-thing", "llamafile", "phinx", "/", "claudette"]
)
def test_names_that_tell_nothing(model: str) -> None:
    assert makers(model) == frozenset()


def test_a_model_can_have_an_owner_and_a_base() -> None:
    assert makers("nvidia/llama-3.1-nemotron-70b") == {"NVIDIA", "Meta"}


def test_judges_of_the_models_maker() -> None:
    judges = ("claude-sonnet-5", "gpt-4o", "anthropic/claude-haiku-4", "gpt-4o", "local")
    assert list(same_makers("openai/o3", judges)) == [("gpt-4o", "OpenAI")]
    assert [judge for judge, _ in same_makers("claude-opus-4", judges)] == [
        "claude-sonnet-5",
        "anthropic/claude-haiku-4",
    ]
    assert list(same_makers("unknown", ("unknown",))) == []
    assert "claude-x and the model under test, claude-y, are both by Anthropic" in warning(
        "claude-y", "claude-x", "Anthropic"
    )


def test_every_maker_says_where_its_names_come_from() -> None:
    text = resources.files("mmbu_async").joinpath("makers.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)["maker"]
    owners = [owner for entry in entries for owner in entry["owners"]]
    beginnings = [beginning for entry in entries for beginning in entry["models"]]
    assert len(set(owners)) == len(owners) and len(set(beginnings)) == len(beginnings)
    for entry in entries:
        assert entry.keys() == {"name", "models", "owners", "source"}
        assert entry["source"].startswith("https://")
        assert all(word == word.lower() for word in (*entry["models"], *entry["owners"]))
