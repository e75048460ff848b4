"""Reply bodies of both wire formats into one `Completion`."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from multidict import CIMultiDict

from mmbu_async.endpoints.anthropic import AnthropicMessages
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.wire import WireFormat, read_response
from mmbu_async.model import Completion, Failure, FailureKind, Finish, Usage

HEADERS = CIMultiDict({"x-request-id": "req-1"})
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def chat(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c-1", "model": "m-2024", "choices": [choice], "usage": USAGE} | more


def message(blocks: Any, reason: Any = "end_turn", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 20}
    return {
        "id": "msg-1",
        "type": "message",
        "model": "c",
        "content": blocks,
        "stop_reason": reason,
        "usage": usage,
    } | more


def read(wire: WireFormat, payload: Any, headers: CIMultiDict[str] = HEADERS) -> Completion | Failure:
    return read_response(wire, 200, headers, orjson.dumps(payload))


def openai(payload: Any) -> Completion:
    outcome = read(OpenAIChat(), payload)
    assert isinstance(outcome, Completion)
    return outcome


def anthropic(payload: Any) -> Completion:
    outcome = read(AnthropicMessages(), payload)
    assert isinstance(outcome, Completion)
    return outcome


# ---------------------------------------------------------------- OpenAI


def test_openai_reply() -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert openai(chat({"content": "<answer>4</answer>"}, usage=USAGE | details)) == Completion(
        text="<answer>4</answer>",
        finish=Finish.STOP,
        finish_raw="stop",
        usage=Usage(input_tokens=100, output_tokens=20, reasoning_tokens=5, cached_tokens=60),
        model="m-2024",
        request_id="req-1",
    )


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("content_filter", Finish.REFUSAL),
        ("tool_calls", Finish.OTHER),
        (None, Finish.OTHER),
    ],
)
def test_openai_finish_words(word: str | None, finish: Finish) -> None:
    reply = openai(chat({"content": "x"}, word))
    assert (reply.finish, reply.finish_raw) == (finish, word or "")


def test_openai_refusal_field() -> None:
    reply = openai(chat({"content": None, "refusal": "I can't help."}))
    assert (reply.finish, reply.text, reply.finish_raw) == (Finish.REFUSAL, "I can't help.", "stop")


def test_reasoning_is_no_answer() -> None:
    for field in ("reasoning_content", "reasoning"):
        reply = openai(chat({"content": None, field: "first I look"}, "length"))
        assert (reply.text, reply.reasoning, reply.finish) == ("", "first I look", Finish.LENGTH)


def test_content_as_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "reasoning", "text": "hm <answer>decoy</answer>"},
        {"type": "text", "text": "<answer>"},
        {"type": "output_text", "text": "4"},
        {"text": "</answer>"},
        "stray",
        {"type": "text", "text": None},
    ]
    assert openai(chat({"content": parts})).text == "<answer>4</answer>"


def test_empty_content_is_an_empty_reply() -> None:
    empty: list[Any] = [None, "", [], {}]
    for content in empty:
        assert openai(chat({"content": content})).text == ""
    assert openai(chat({})).text == ""


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "many",
        {"total_tokens": 120},
        {"prompt_tokens": None, "completion_tokens": 3},
        {"prompt_tokens": -1, "completion_tokens": 3},
        {"prompt_tokens": True, "completion_tokens": False},
        {"prompt_tokens": 1e300, "completion_tokens": 3},
    ],
)
def test_counts_that_are_none_are_unknown_and_not_zero(usage: Any) -> None:
    """Zero tokens would cost zero dollars."""
    assert openai(chat({"content": "x"}, usage=usage)).usage == Usage(reported=False)


def test_odd_details_do_not_throw_a_paid_reply_away() -> None:
    odd = {"completion_tokens_details": [1], "prompt_tokens_details": "x", "prompt_tokens": 12.0}
    reply = openai(chat({"content": "x"}, usage=USAGE | odd))
    assert reply.usage == Usage(input_tokens=12, output_tokens=20)


@pytest.mark.parametrize(
    "payload",
    [
        chat({"content": "x"}, choices=[]),
        chat({"content": "x"}, choices=None),
        chat({"content": "x"}, choices=[None]),
        chat({"content": "x"}, choices={"0": 1}),
        chat(None),
        chat("text"),
        {},
    ],
)
def test_no_choice_is_no_reply(payload: Any) -> None:
    outcome = read(OpenAIChat(), payload)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.MALFORMED


def test_an_error_inside_a_choice_is_no_reply() -> None:
    broken = chat({"content": ""}, "error")
    broken["choices"][0]["error"] = {"code": 502, "message": "Provider returned error"}
    outcome = read(OpenAIChat(), broken)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message) == (FailureKind.SERVER_ERROR, "Provider returned error")


def test_the_reply_id_stands_in_for_a_missing_request_id() -> None:
    outcome = read(OpenAIChat(), chat({"content": "x"}), CIMultiDict())
    assert isinstance(outcome, Completion)
    assert outcome.request_id == "c-1"


# ---------------------------------------------------------------- Anthropic


def test_anthropic_reply() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "text", "text": "<answer>"},
        {"type": "text", "text": "4</answer>"},
    ]
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
        "output_tokens": 20,
    }
    assert anthropic(message(blocks, usage=usage)) == Completion(
        text="<answer>4</answer>",
        finish=Finish.STOP,
        finish_raw="end_turn",
        reasoning="hm",
        usage=Usage(input_tokens=100, output_tokens=20, cached_tokens=60, cache_write_tokens=30),
        model="c",
        request_id="req-1",
    )


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.LENGTH),
        ("refusal", Finish.REFUSAL),
        ("pause_turn", Finish.OTHER),
    ],
)
def test_anthropic_stop_reasons(word: str, finish: Finish) -> None:
    reply = anthropic(message([], word))
    assert (reply.finish, reply.finish_raw, reply.text) == (finish, word, "")


@pytest.mark.parametrize("payload", [{}, message(None), message("text"), message([], None)])
def test_anthropic_without_a_reply(payload: Any) -> None:
    outcome = read(AnthropicMessages(), payload)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.MALFORMED


def test_anthropic_counts_that_are_none_are_unknown() -> None:
    for usage in (None, {}, "x", {"output_tokens": 3}, {"input_tokens": 3}):
        assert not anthropic(message([{"type": "text", "text": "x"}], usage=usage)).usage.reported


def test_a_shape_that_a_format_stumbles_over_is_no_reply_and_no_crash() -> None:
    class Stumbling(OpenAIChat):
        def read(self, payload: Any, headers: Any, status: int) -> Completion | Failure:
            raise KeyError("choices")

    outcome = read(Stumbling(), chat({"content": "x"}))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message) == (
        FailureKind.MALFORMED,
        "the reply has an unknown shape ('choices')",
    )
