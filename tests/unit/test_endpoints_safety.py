"""Keys stay between the user and the endpoint: masked where one comes back, warned of where it may stray."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.config import CallSettings, JudgeConfig, PanelJudge
from mmbu_async.endpoints.masking import MASK, masked
from mmbu_async.endpoints.safety import is_local, warnings
from mmbu_async.model import Completion, Failure, FailureKind, Finish

KEY = "sk-canary-0123456789"


def told(key: str = KEY, kind: type[CallSettings] = CallSettings, **settings: Any) -> list[str]:
    return list(warnings(kind.model_validate({"model": "m"} | settings), key))


# ---------------------------------------------------------------- to whom a key goes


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"endpoint": "anthropic"},
        {"endpoint": "responses"},
        {"endpoint": "gemini"},
        {"endpoint": "gemini", "base_url": "https://aiplatform.googleapis.com/v1/publishers/google"},
        {"endpoint": "azure", "base_url": "https://mine.openai.azure.com"},
        {"endpoint": "azure", "base_url": "https://mine.cognitiveservices.azure.com/openai/v1"},
        {"base_url": "https://eu.api.openai.com/v1"},
        {"base_url": "https://API.OpenAI.com./v1"},
        {"base_url": "https://models.example/v1", "api_key_env": "OPENAI_API_KEY"},
        {"base_url": "https://models.example/v1", "api_key_env": "MY_KEY"},
        {"base_url": "http://localhost:8000/v1"},
        {"base_url": "http://127.0.0.2:8000/v1"},
        {"base_url": "http://[::1]:8000/v1"},
        {"base_url": "http://vllm.localhost/v1"},
        {"base_url": "http://host.docker.internal:8000/v1"},
    ],
)
def test_what_is_meant_is_not_warned_of(settings: dict[str, Any]) -> None:
    assert told(**settings) == []


@pytest.mark.parametrize(
    ("host", "endpoint", "variable"),
    [
        ("openrouter.ai", "openai", "OPENAI_API_KEY"),
        ("api.openai.com.evil.example", "openai", "OPENAI_API_KEY"),
        ("notopenai.com", "openai", "OPENAI_API_KEY"),
        ("api.anthropic.com", "openai", "OPENAI_API_KEY"),
        ("proxy.example", "anthropic", "ANTHROPIC_API_KEY"),
        ("10.0.0.5", "openai", "OPENAI_API_KEY"),
        ("mine.openai.azure.com", "responses", "OPENAI_API_KEY"),
        ("azure.com.evil.example", "azure", "AZURE_OPENAI_API_KEY"),
        ("gemini.example", "gemini", "GEMINI_API_KEY"),
        ("localhost.example", "openai", "OPENAI_API_KEY"),
    ],
)
def test_a_makers_key_that_goes_elsewhere_is_warned_of(host: str, endpoint: str, variable: str) -> None:
    (text,) = told(base_url=f"https://{host}/x", endpoint=endpoint)
    assert text == (
        f"the key in {variable} goes to {host}, which is not the maker's own address: if that is meant, say "
        f"so with --api-key-env {variable}; else name the variable with the key for {host}."
    )
    assert told("", base_url=f"https://{host}/x", endpoint=endpoint) == [], "there is no key to stray"


def test_each_judge_is_told_by_its_own_flags() -> None:
    address = {"base_url": "https://models.example"}
    (judge,) = told(kind=JudgeConfig, **address)
    assert "with --judge-api-key-env ANTHROPIC_API_KEY" in judge
    (panel,) = told(kind=PanelJudge, name="third", **address)
    assert "with `api_key_env` in the [[panel]] table of third ANTHROPIC_API_KEY" in panel


@pytest.mark.parametrize(
    ("key", "what"), [(KEY, "the key, prompts and images"), ("", "prompts and images")], ids=["key", "none"]
)
def test_plain_http_to_another_machine_is_warned_of(key: str, what: str) -> None:
    (text,) = told(key, base_url="http://gpu7.example:8000/v1", api_key_env="MY_KEY")
    assert text == (
        f"--base-url is plain http, so that {what} can be read on their way to gpu7.example: use https, or a "
        "tunnel that ends on this machine."
    )
    assert len(told(base_url="http://gpu7.example/v1")) == 2


def test_this_machine_by_any_of_its_names() -> None:
    for host in ("localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.255.0.9", "::1"):
        assert is_local(host), host
    for host in (
        "",
        "local",
        "localhost.example",
        "0.0.0.0",  # noqa: S104 - no server listens here
        "10.0.0.1",
        "192.168.1.1",
        "::2",
        "127.0.0.1.nip.io",
    ):
        assert not is_local(host), host


# ---------------------------------------------------------------- masking


def failure(message: str, **changes: Any) -> Failure:
    return Failure(kind=FailureKind.AUTH, message=message, status=401, **changes)


def completion(texts: dict[str, Any]) -> Completion:
    return Completion(finish=Finish.STOP, **texts)


@pytest.mark.parametrize(
    ("text", "without"),
    [
        (f"Incorrect key: {KEY}.", "Incorrect key: ***."),
        (f"{KEY}{KEY} {KEY}", "****** ***"),
        (f"cut {KEY[:-1]}", "cut ***"),
        (f"cut {KEY[:6]}", "cut ***"),
        (f"cut {KEY[:12]}; and more behind it", "cut ***; and more behind it"),
        (f"in the middle {KEY[:-4]}... of it", "in the middle ***... of it"),
        ("sk-can do", "sk-can do"),
        (f"the end alone {KEY[-8:]}", f"the end alone {KEY[-8:]}"),
        ("", ""),
    ],
)
def test_the_key_is_masked_in_every_text(text: str, without: str) -> None:
    found = masked(failure(text, request_id=text), KEY)
    assert found == failure(without, request_id=without)
    names = ("text", "reasoning", "finish_raw", "model", "request_id")
    assert masked(completion(dict.fromkeys(names, text)), KEY) == completion(dict.fromkeys(names, without))


@pytest.mark.parametrize("key", ["", "x", "none", "EMPTY"])
def test_what_stands_in_for_a_key_is_left_in_words(key: str) -> None:
    said = failure(f"there is none, and EMPTY is x {key}")
    assert masked(said, key) is said


@given(st.text(max_size=30), st.text(max_size=30), st.text("abc-123", min_size=6, max_size=20))
def test_wherever_it_stands_no_half_of_a_key_is_left(before: str, after: str, key: str) -> None:
    found = masked(failure(before + key + after), key)
    assert isinstance(found, Failure)
    half = key[: max(6, len(key) // 2)]
    assert half not in found.message or half in (MASK + after) or half in (before + MASK)
    assert key not in found.message or key in before + MASK or key in MASK + after


def test_an_outcome_without_it_is_the_same_object() -> None:
    reply = completion({"text": "<answer>7</answer>"})
    assert masked(reply, KEY) is reply
