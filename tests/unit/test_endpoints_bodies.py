"""Request bodies, compared byte for byte."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.anthropic import FALLBACK_MAX_TOKENS, AnthropicMessages
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.wire import MEDIA_TYPES, WireFormat
from mmbu_async.model import ImageSlot, PreparedImage, Prompt

PIXELS = b"\x89PNG\r\n\x1a\n not really"
BASE64 = base64.b64encode(PIXELS)
PNG = PreparedImage(data=PIXELS, media_type="image/png", width=4, height=3)
LOOK = Prompt(system="Be brief.", parts=(ImageSlot(index=0), "How many?\n"))


def settings(**changes: Any) -> CallSettings:
    return CallSettings.model_validate({"model": "m", "max_tokens": 64} | changes)


def openai(prompt: Prompt = LOOK, *images: PreparedImage, **changes: Any) -> bytes:
    return OpenAIChat().body(settings(**changes), prompt, images or (PNG,))


def anthropic(prompt: Prompt = LOOK, *images: PreparedImage, **changes: Any) -> bytes:
    return AnthropicMessages().body(settings(endpoint="anthropic", **changes), prompt, images or (PNG,))


# ---------------------------------------------------------------- OpenAI


def test_openai_body() -> None:
    assert openai(temperature=0.0, seed=7) == (
        b'{"model":"m","max_tokens":64,"temperature":0.0,"seed":7,"messages":['
        b'{"role":"system","content":"Be brief."},'
        b'{"role":"user","content":['
        b'{"type":"image_url","image_url":{"url":"data:image/png;base64,' + BASE64 + b'"}},'
        b'{"type":"text","text":"How many?\\n"}]}]}'
    )


def test_openai_text_alone_is_a_plain_string_without_a_system_message() -> None:
    assert openai(Prompt(parts=("Is it right?",))) == (
        b'{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"Is it right?"}]}'
    )


def test_openai_stream_asks_for_usage() -> None:
    assert openai(Prompt(parts=("x",)), stream=True) == (
        b'{"model":"m","max_tokens":64,"stream":true,"stream_options":{"include_usage":true},'
        b'"messages":[{"role":"user","content":"x"}]}'
    )


def test_max_completion_tokens_takes_the_place_of_max_tokens() -> None:
    body = json.loads(openai(params={"max_completion_tokens": 900}))
    assert body["max_completion_tokens"] == 900
    assert "max_tokens" not in body


def test_no_limit_is_sent_where_the_settings_name_none() -> None:
    assert "max_tokens" not in json.loads(openai(max_tokens=0))


def test_openai_key_goes_into_its_header_and_nowhere_where_there_is_none() -> None:
    assert OpenAIChat().headers("sk-1") == {"Authorization": "Bearer sk-1"}
    assert OpenAIChat().headers("") == {}


# ---------------------------------------------------------------- Anthropic


def test_anthropic_body() -> None:
    assert anthropic(temperature=0.5, seed=7) == (
        b'{"model":"m","max_tokens":64,"temperature":0.5,"system":"Be brief.",'
        b'"messages":[{"role":"user","content":['
        b'{"type":"image","source":{"type":"base64","media_type":"image/png","data":"' + BASE64 + b'"}},'
        b'{"type":"text","text":"How many?\\n"}]}]}'
    )


def test_anthropic_text_alone() -> None:
    assert anthropic(Prompt(parts=("x",)), stream=True) == (
        b'{"model":"m","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"x"}]}'
    )


def test_anthropic_needs_a_limit() -> None:
    assert json.loads(anthropic(max_tokens=0))["max_tokens"] == FALLBACK_MAX_TOKENS


def test_anthropic_headers() -> None:
    assert AnthropicMessages().headers("k") == {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    assert AnthropicMessages().headers("") == {"anthropic-version": "2023-06-01"}


# ---------------------------------------------------------------- both

BOTH = pytest.mark.parametrize("wire", [OpenAIChat(), AnthropicMessages()], ids=["openai", "anthropic"])


@BOTH
def test_params_win_and_null_removes(wire: WireFormat) -> None:
    params = {"temperature": None, "max_tokens": 9, "thinking": {"type": "disabled", "budget": None}}
    body = json.loads(wire.body(settings(temperature=1.0, params=params), LOOK, (PNG,)))
    assert "temperature" not in body
    assert body["max_tokens"] == 9
    # Only a field of the request itself is removed; what is inside a parameter is the server's business.
    assert body["thinking"] == {"type": "disabled", "budget": None}


@BOTH
def test_a_request_of_which_every_field_is_removed_is_still_json(wire: WireFormat) -> None:
    body = wire.body(settings(params={"model": None, "max_tokens": None}), Prompt(parts=("x",)), ())
    assert json.loads(body) == {"messages": [{"role": "user", "content": "x"}]}


@BOTH
@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_image_bytes_are_carried_untouched(wire: WireFormat, media_type: str) -> None:
    data = bytes(range(256)) * 5
    image = PreparedImage(data=data, media_type=media_type, width=1, height=1)
    body = wire.body(settings(), LOOK, (image,))
    assert body.count(base64.b64encode(data)) == 1
    assert media_type.encode() in body


@BOTH
def test_images_stand_where_their_slots_are(wire: WireFormat) -> None:
    images = tuple(
        PreparedImage(data=data, media_type="image/png", width=1, height=1) for data in (b"first", b"second")
    )
    prompt = Prompt(parts=("a", ImageSlot(index=1), "b", ImageSlot(index=0)))
    content = json.loads(wire.body(settings(), prompt, images))["messages"][0]["content"]
    assert [part["type"] == "text" for part in content] == [True, False, True, False]
    assert base64.b64encode(b"second").decode() in json.dumps(content[1])
    assert base64.b64encode(b"first").decode() in json.dumps(content[3])


@BOTH
def test_half_a_surrogate_pair_does_not_stop_the_run(wire: WireFormat) -> None:
    for parts in (("bad \ud800 text",), ("bad \ud800 text", "more")):
        json.loads(wire.body(settings(), Prompt(system="s", parts=parts), ()).decode())


@BOTH
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4),
    system=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    params=st.dictionaries(st.text(max_size=5).filter(lambda key: key != "messages"), st.integers(0, 9)),
)
def test_what_goes_in_is_what_a_json_reader_gets(
    wire: WireFormat, texts: list[str], system: str | None, params: dict[str, int]
) -> None:
    body = json.loads(wire.body(settings(params=params), Prompt(system=system, parts=tuple(texts)), ()))
    user = body["messages"][-1]
    content = user["content"] if isinstance(user["content"], str) else [p["text"] for p in user["content"]]
    assert content == (texts[0] if len(texts) == 1 else texts)
    spoken = [message["content"] for message in body["messages"] if message["role"] == "system"]
    if "system" not in params:
        assert (spoken or [body.get("system")]) == [system]
    assert {key: body[key] for key in params} == params
