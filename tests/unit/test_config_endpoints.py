"""Addresses and keys of each wire format: what is taken, and what is said of the rest."""

from __future__ import annotations

import pytest

from mmbu_async.config import RunConfig, build_config, load_config
from mmbu_async.endpoints.failures import failure_from_response
from mmbu_async.errors import ConfigError, MissingKeyError
from mmbu_async.model import FailureKind


@pytest.mark.parametrize(
    ("endpoint", "address", "words"),
    [
        (
            "openai",
            "https://x.example/v1/chat/completions",
            "must end before /chat/completions, which is added",
        ),
        ("openai", "https://x.example/v1/messages", "must end before /chat/completions"),
        ("responses", "https://x.example/v1/responses", "must end before /responses"),
        ("responses", "https://x.example/v1/chat/completions", "must end before /responses"),
        ("anthropic", "https://x.example/v1/messages", "must end before /v1/messages"),
        ("anthropic", "https://x.example/v1", "must end before /v1"),
        ("azure", "https://x.azure.com/openai/v1/responses", "must end before /openai/..."),
        ("gemini", "https://x.example/v1beta/models", "must end before /models"),
        ("gemini", "https://x.example/v1beta/models/g:generateContent", "must end before /models"),
        (
            "gemini",
            "https://x.example/v1beta/models/g:streamGenerateContent?alt=sse",
            "must end before /models",
        ),
        ("gemini", "https://x.example/v1beta?key=abc", "must not hold a key in its query"),
        (
            "azure",
            "https://x.azure.com?api-version=2024-10-21&api-key=abc",
            "must not hold a key in its query",
        ),
    ],
)
def test_an_address_that_holds_too_much(endpoint: str, address: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        build_config({"model": "m", "endpoint": endpoint, "base_url": address})
    assert "abc" not in str(caught.value)


def test_what_azures_portal_shows_is_taken() -> None:
    shown = "https://x.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
    config = RunConfig(model="d", endpoint="azure", base_url=shown)
    assert config.url == "https://x.azure.com/openai/deployments/d?api-version=2024-10-21"
    assert config.host == "x.azure.com"


@pytest.mark.parametrize("who", ["", "judge"])
def test_azure_without_an_address_is_one_sentence(who: str) -> None:
    settings = {"endpoint": "azure"}
    given = {"model": "m", **({who: settings} if who else settings)}
    with pytest.raises(ConfigError) as caught:
        build_config(given)
    name = f"{who}.base_url" if who else "base_url"
    assert str(caught.value) == (
        f"settings: setting '{name}': is needed for azure: give the resource's address, "
        "https://NAME.openai.azure.com."
    )


def test_the_environment_names_them() -> None:
    environment = {"MMBU_MODEL": "m", "MMBU_ENDPOINT": "gemini", "MMBU_IMAGE_DETAIL": "high"}
    config = load_config({}, environment=environment | {"MMBU_PROMPT_CACHING": "true"})
    assert (config.endpoint, config.image_detail, config.prompt_caching) == ("gemini", "high", True)
    with pytest.raises(
        ConfigError, match="MMBU_IMAGE_DETAIL: setting 'image_detail' = 'original': gemini knows"
    ):
        load_config({}, environment=environment | {"MMBU_IMAGE_DETAIL": "original"})


@pytest.mark.parametrize(
    ("endpoint", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("responses", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("azure", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_the_keys_usual_variable(endpoint: str, variable: str) -> None:
    address = "https://x.openai.azure.com" if endpoint == "azure" else None
    config = RunConfig.model_validate({"model": "m", "endpoint": endpoint, "base_url": address})
    assert config.api_key({variable: "k"}) == "k"
    with pytest.raises(MissingKeyError, match=variable):
        config.api_key({})


def test_a_server_of_ones_own_needs_no_key() -> None:
    config = RunConfig(model="m", endpoint="azure", base_url="http://localhost:8000")
    assert config.api_key({}) == ""


def test_azures_wait_stands_in_words() -> None:
    body = (
        b'{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure '
        b'OpenAI API version 2024-10-21 have exceeded call rate limit. Please retry after 38 seconds."}}'
    )
    failure = failure_from_response(429, {}, body, now=0.0)
    assert (failure.kind, failure.retry_after_s) == (FailureKind.RATE_LIMIT, 38.0)
