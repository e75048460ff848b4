"""Streams of both wire formats into one `Completion`."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from mmbu_async.endpoints.anthropic import AnthropicMessages
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.wire import StreamParser, WireFormat
from mmbu_async.model import Completion, Failure, FailureKind, Finish, Usage

HEADERS = CIMultiDict({"x-request-id": "req-1"})
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def streamed(wire: WireFormat, *events: Any) -> Completion | Failure:
    parser: StreamParser = wire.stream_parser()
    for event in events:
        parser.feed(event if isinstance(event, bytes) else orjson.dumps(event))
    return parser.result(HEADERS, 200)


def piece(delta: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c-1", "model": "m", "choices": [choice]} | more


DONE = b"[DONE]"


def test_openai_stream() -> None:
    outcome = streamed(
        OpenAIChat(),
        {"id": "c-1", "model": "m", "choices": [], "prompt_filter_results": []},
        piece({"role": "assistant", "content": ""}),
        piece({"reasoning_content": "hm"}),
        piece({"content": "<answer>"}),
        piece({"content": "4</answer>"}, usage=None),
        piece({}, "stop"),
        {"id": "c-1", "choices": [], "usage": USAGE},
        DONE,
    )
    assert outcome == Completion(
        text="<answer>4</answer>",
        finish=Finish.STOP,
        finish_raw="stop",
        reasoning="hm",
        usage=Usage(input_tokens=100, output_tokens=20),
        model="m",
        request_id="req-1",
    )


def test_openai_stream_of_several_choices_gives_the_first() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}
    outcome = streamed(OpenAIChat(), piece({"content": "one"}, "stop"), second, DONE)
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.finish) == ("one", Finish.STOP)


def test_openai_stream_refusal() -> None:
    outcome = streamed(OpenAIChat(), piece({"refusal": "I can"}), piece({"refusal": "not."}, "stop"), DONE)
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.finish) == ("I cannot.", Finish.REFUSAL)


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([], FailureKind.MALFORMED),
        ([piece({"content": "half"})], FailureKind.MALFORMED),
        ([{"choices": [], "usage": USAGE}, DONE], FailureKind.MALFORMED),
        ([DONE], FailureKind.MALFORMED),
        (
            [piece({"content": "half"}), {"error": {"code": 502, "message": "down"}}, DONE],
            FailureKind.SERVER_ERROR,
        ),
        ([{"choices": [{"error": {"code": 429, "message": "slow"}}]}, DONE], FailureKind.RATE_LIMIT),
        ([piece({"content": "x"}), {"error": "words"}], FailureKind.MALFORMED),
    ],
)
def test_openai_stream_without_a_reply(events: list[Any], kind: FailureKind) -> None:
    outcome = streamed(OpenAIChat(), *events)
    assert isinstance(outcome, Failure)
    assert outcome.kind is kind


def test_openai_stream_may_end_without_done() -> None:
    assert isinstance(streamed(OpenAIChat(), piece({"content": "x"}, "stop")), Completion)


ANTHROPIC_STREAM: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {"id": "msg", "model": "c", "usage": {"input_tokens": 100, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "<answer>4"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "</answer>"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]


def test_anthropic_stream() -> None:
    assert streamed(AnthropicMessages(), *ANTHROPIC_STREAM) == Completion(
        text="<answer>4</answer>",
        finish=Finish.STOP,
        finish_raw="end_turn",
        reasoning="hm",
        usage=Usage(input_tokens=100, output_tokens=20),
        model="c",
        request_id="req-1",
    )


@pytest.mark.parametrize("length", range(len(ANTHROPIC_STREAM)))
def test_an_anthropic_stream_cut_anywhere_is_no_reply(length: int) -> None:
    outcome = streamed(AnthropicMessages(), *ANTHROPIC_STREAM[:length])
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.MALFORMED


def test_anthropic_error_event() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    outcome = streamed(AnthropicMessages(), *ANTHROPIC_STREAM[:5], error)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message) == (FailureKind.SERVER_ERROR, "Overloaded")


@pytest.mark.parametrize("wire", [OpenAIChat(), AnthropicMessages()], ids=["openai", "anthropic"])
def test_the_clock_of_the_first_token_starts_at_content(wire: WireFormat) -> None:
    parser = wire.stream_parser()
    head: list[Any] = [piece({"role": "assistant", "content": ""}), piece({"reasoning": "hm"})]
    token: Any = piece({"content": "x"})
    if isinstance(wire, AnthropicMessages):
        head, token = ANTHROPIC_STREAM[:5], ANTHROPIC_STREAM[5]
    for event in head:
        parser.feed(orjson.dumps(event))
    assert not parser.started
    assert (parser.spoken, parser.thought) == (0, 1)
    parser.feed(orjson.dumps(token))
    assert parser.started
    assert (parser.spoken, parser.thought) == (1, 1)


def test_a_refusal_is_a_piece_of_the_reply_to_count() -> None:
    parser = OpenAIChat().stream_parser()
    parser.feed(orjson.dumps(piece({"refusal": "I cannot"})))
    assert (parser.spoken, parser.started) == (1, False)


FIELD = st.sampled_from(
    [
        "choices",
        "delta",
        "content",
        "usage",
        "message",
        "type",
        "error",
        "finish_reason",
        "stop_reason",
        "text",
        "index",
        "thinking",
        "completion_tokens_details",
        "prompt_tokens",
        "completion_tokens",
        "input_tokens",
        "output_tokens",
    ]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 500) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD, inner, max_size=5),
    max_leaves=15,
)
TYPES = ["message_start", "content_block_delta", "message_delta", "message_stop", "error", "ping"]


@given(st.lists(st.tuples(ODD, st.sampled_from(TYPES) | st.none()), max_size=5))
def test_odd_events_are_refused_by_name_or_read(events: list[tuple[Any, str | None]]) -> None:
    for wire in (OpenAIChat(), AnthropicMessages()):
        parser = wire.stream_parser()
        for value, kind in events:
            event = value | {"type": kind} if kind and isinstance(value, dict) else value
            try:
                parser.feed(orjson.dumps(event))
            except (AttributeError, KeyError, TypeError, ValueError):
                break
        assert isinstance(parser.result(HEADERS, 200), Completion | Failure)
