"""Request bodies of Responses, Azure and Gemini; image detail and prompt caching in all formats."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mmbu_async.config import IMAGE_DETAILS, CallSettings
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.wire import MEDIA_TYPES, request_url
from mmbu_async.model import ImageSlot, PreparedImage, Prompt
from tests.simulated import BASES

PIXELS = b"\x89PNG\r\n\x1a\n not really"
BASE64 = base64.b64encode(PIXELS)
PNG = PreparedImage(data=PIXELS, media_type="image/png", width=4, height=3)
LOOK = Prompt(system="Be brief.", parts=(ImageSlot(index=0), "How many?\n"))
NEW = pytest.mark.parametrize("endpoint", ["responses", "azure", "gemini"])


def settings(endpoint: str, **changes: Any) -> CallSettings:
    given = {"model": "m", "endpoint": endpoint, "base_url": "https://x.example", "max_tokens": 64}
    return CallSettings.model_validate(given | changes)


def body(endpoint: str, prompt: Prompt = LOOK, **changes: Any) -> bytes:
    return WIRE_FORMATS[endpoint]().body(settings(endpoint, **changes), prompt, (PNG,))


def test_responses_body() -> None:
    assert body("responses", temperature=0.0, seed=7, stream=True) == (
        b'{"model":"m","max_output_tokens":64,"temperature":0.0,"stream":true,"store":false,'
        b'"instructions":"Be brief.","input":[{"role":"user","content":['
        b'{"type":"input_image","image_url":"data:image/png;base64,' + BASE64 + b'","detail":"auto"},'
        b'{"type":"input_text","text":"How many?\\n"}]}]}'
    )


def test_gemini_body() -> None:
    assert body("gemini", temperature=0.5, seed=7) == (
        b'{"systemInstruction":{"parts":[{"text":"Be brief."}]},'
        b'"generationConfig":{"maxOutputTokens":64,"temperature":0.5,"seed":7},'
        b'"contents":[{"role":"user","parts":['
        b'{"inlineData":{"mimeType":"image/png","data":"' + BASE64 + b'"}},{"text":"How many?\\n"}]}]}'
    )


def test_text_alone() -> None:
    plain = Prompt(parts=("x",))
    assert body("responses", plain, max_tokens=0) == (
        b'{"model":"m","store":false,"input":[{"role":"user","content":"x"}]}'
    )
    assert body("gemini", plain, max_tokens=0) == b'{"contents":[{"role":"user","parts":[{"text":"x"}]}]}'


def test_azure_asks_as_openai_does() -> None:
    assert body("azure", temperature=0.0) == body("openai", temperature=0.0)


@NEW
@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_image_bytes_are_carried_untouched(endpoint: str, media_type: str) -> None:
    data = bytes(range(256)) * 5
    image = PreparedImage(data=data, media_type=media_type, width=1, height=1)
    made = WIRE_FORMATS[endpoint]().body(settings(endpoint), LOOK, (image,))
    assert made.count(base64.b64encode(data)) == 1
    assert media_type.encode() in made


@NEW
def test_half_a_surrogate_pair_does_not_stop_the_run(endpoint: str) -> None:
    for parts in (("bad \ud800 text",), ("bad \ud800 text", "more")):
        json.loads(WIRE_FORMATS[endpoint]().body(settings(endpoint), Prompt(system="s", parts=parts), ()))


def test_params_of_responses_win_and_null_removes() -> None:
    made = json.loads(body("responses", params={"store": None, "reasoning": {"effort": "low"}, "model": "n"}))
    assert "store" not in made
    assert (made["reasoning"], made["model"]) == ({"effort": "low"}, "n")


def test_params_of_gemini_reach_into_the_generation_config() -> None:
    config = {"thinkingConfig": {"thinkingBudget": 0}, "maxOutputTokens": None, "temperature": 0.1}
    made = json.loads(
        body("gemini", temperature=1.0, params={"generationConfig": config, "labels": {"a": "b"}})
    )
    assert made["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 0}, "temperature": 0.1}
    assert made["labels"] == {"a": "b"}
    assert "generationConfig" not in json.loads(body("gemini", params={"generationConfig": None}))


# ---------------------------------------------------------------- addresses and keys


@pytest.mark.parametrize(
    ("model", "stream", "place"),
    [
        ("gemini-2.5-flash", False, "/models/gemini-2.5-flash:generateContent"),
        ("models/gemini-2.5-flash", False, "/models/gemini-2.5-flash:generateContent"),
        ("tunedModels/mine-1", False, "/tunedModels/mine-1:generateContent"),
        ("gemini-2.5-flash", True, "/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        ("a b?c", False, "/models/a%20b%3Fc:generateContent"),
    ],
)
def test_where_gemini_is_asked(model: str, stream: bool, place: str) -> None:
    asked = settings("gemini", model=model, stream=stream)
    assert request_url(asked, WIRE_FORMATS["gemini"]()) == "https://x.example" + place


def test_a_query_of_the_format_and_one_of_the_user() -> None:
    asked = settings("gemini", base_url="https://x.example/v1?region=eu", stream=True)
    url = request_url(asked, WIRE_FORMATS["gemini"]())
    assert url == "https://x.example/v1/models/m:streamGenerateContent?alt=sse&region=eu"


def test_a_deployment_is_quoted() -> None:
    asked = settings("azure", model="a/b", base_url="https://x.example?api-version=2024-10-21")
    url = request_url(asked, WIRE_FORMATS["azure"]())
    assert url == "https://x.example/openai/deployments/a%2Fb/chat/completions?api-version=2024-10-21"


@pytest.mark.parametrize(
    ("endpoint", "headers"),
    [
        ("responses", {"Authorization": "Bearer k"}),
        ("azure", {"api-key": "k"}),
        ("gemini", {"x-goog-api-key": "k"}),
    ],
)
def test_the_key_goes_into_its_header_and_nowhere_else(endpoint: str, headers: dict[str, str]) -> None:
    wire = WIRE_FORMATS[endpoint]()
    assert wire.headers("k") == headers
    assert wire.headers("") == {}
    assert b'"k"' not in body(endpoint)


# ---------------------------------------------------------------- image detail


@pytest.mark.parametrize(
    ("endpoint", "detail"), [(kind, word) for kind, known in IMAGE_DETAILS.items() for word in known]
)
def test_image_detail_is_asked_for_in_the_formats_own_way(endpoint: str, detail: str) -> None:
    made = json.loads(body(endpoint, image_detail=detail))
    if endpoint == "gemini":
        level = f"MEDIA_RESOLUTION_{detail.upper()}"
        part = made["contents"][0]["parts"][0]
        if detail == "ultra_high":
            assert part["mediaResolution"] == {"level": level}
            assert "mediaResolution" not in made["generationConfig"]
        else:
            assert made["generationConfig"]["mediaResolution"] == level
            assert part.keys() == {"inlineData"}
    elif endpoint == "responses":
        assert made["input"][0]["content"][0]["detail"] == detail
    else:
        assert made["messages"][1]["content"][0]["image_url"]["detail"] == detail


@pytest.mark.parametrize(
    ("endpoint", "detail", "words"),
    [
        ("anthropic", "low", "anthropic has no such setting"),
        ("openai", "medium", "openai knows low, high, original, auto"),
        ("gemini", "auto", "gemini knows low, medium, high, ultra_high"),
    ],
)
def test_a_detail_that_the_format_does_not_know(endpoint: str, detail: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settings(endpoint, image_detail=detail)


# ---------------------------------------------------------------- prompt caching


@pytest.mark.parametrize("endpoint", list(BASES))
def test_prompt_caching_changes_nothing_of_what_is_asked(endpoint: str) -> None:
    without, made = (json.loads(body(endpoint, prompt_caching=caching)) for caching in (False, True))
    if endpoint == "anthropic":
        (block,) = made.pop("system")
        assert block == {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
        assert without.pop("system") == "Be brief."
    elif endpoint != "gemini":
        key = made.pop("prompt_cache_key")
        assert key.startswith("mmbu-")
        other = Prompt(system="Be brief.", parts=("Another row.",))
        assert json.loads(body(endpoint, other, prompt_caching=True))["prompt_cache_key"] == key
        another = Prompt(system="Be long.", parts=("Another row.",))
        assert json.loads(body(endpoint, another, prompt_caching=True))["prompt_cache_key"] != key
    assert made == without


def test_nothing_is_marked_where_nothing_is_alike() -> None:
    """Without a system message each row's own text would be written into the cache, for a quarter more."""
    plain = Prompt(parts=("x",))
    assert body("anthropic", plain, prompt_caching=True) == body("anthropic", plain)
