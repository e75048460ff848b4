"""Bodies that are nearly JSON hold replies that were paid for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from multidict import CIMultiDict

from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.parsed import parsed, whole_texts
from mmbu_async.endpoints.wire import WireFormat, read_response
from mmbu_async.model import Completion, Failure, FailureKind, Finish
from tests.fake_endpoint import FakeTransport, answer, rig, scripted

SAID = "<answer>4</answer>"
HALF = "\ud83d"
OTHER_HALF = "\ude00"
NOTHING: CIMultiDict[str] = CIMultiDict()


def bodies(text: str) -> dict[str, Any]:
    """A reply in each wire format."""
    usage = {"input_tokens": 100, "output_tokens": 20}
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    return {
        "openai": {
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        },
        "anthropic": {
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": usage,
        },
        "gemini": {
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20},
        },
        "responses": {"status": "completed", "output": [message], "usage": usage},
    }


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "responses"])
@pytest.mark.parametrize("broken", [HALF, HALF + OTHER_HALF, OTHER_HALF + "!" + HALF])
def test_half_a_character_is_no_reason_to_buy_a_reply_again(name: str, broken: str) -> None:
    wire: WireFormat = next(make() for kind, make in WIRE_FORMATS.items() if name in kind)
    body = json.dumps(bodies(SAID + broken)[name]).encode()
    found = read_response(wire, 200, NOTHING, body)
    assert isinstance(found, Completion), found
    found = whole_texts(found)
    assert isinstance(found, Completion)
    assert found.text.startswith(SAID)
    assert found.text.encode(), "can be stored"
    assert (found.usage.input_tokens, found.usage.output_tokens) == (100, 20)
    assert ("\N{GRINNING FACE}" in found.text) == (broken == HALF + OTHER_HALF)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": "\\ud800", "b": NaN, "c": -Infinity}', {"a": "\ud800", "b": None, "c": None}),
        (b'["caf\xe9"]', ["caf\ufffd"]),
    ],
)
def test_what_is_nearly_json_is_read(body: bytes, value: Any) -> None:
    assert parsed(body) == value


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": 1', b'{"a": "\\ud800"', b"[" * 100_000])
def test_what_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(body)


def test_an_error_with_half_a_character_is_an_error() -> None:
    body = b'{"error": {"message": "no \\ud800 credit", "code": "insufficient_quota"}}'
    wire = WIRE_FORMATS["openai"]()
    found = read_response(wire, 200, NOTHING, body)
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.QUOTA
    told = whole_texts(found)
    assert isinstance(told, Failure)
    assert told.message == "no \ufffd credit"


def test_texts_that_are_whole_stay_the_same_object() -> None:
    found = Completion(text="4", finish=Finish.STOP)
    assert whole_texts(found) is found


async def test_a_reply_with_half_a_character_is_bought_once() -> None:
    body = json.dumps(bodies(SAID + HALF)["openai"]).encode()
    async with rig(FakeTransport(scripted(answer(200, body)))) as made:
        outcome = await made.call()
        assert isinstance(outcome, Completion)
        assert outcome.text == SAID + "\ufffd"
        assert len(made.transport.sent) == 1
