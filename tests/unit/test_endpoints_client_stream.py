"""Streamed replies through the client, in both wire formats: whole, cut, broken, and no stream at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.endpoints.transport import TransportError
from mmbu_async.model import Attempt, Completion, Failure, FailureKind, Finish, Usage
from tests.fake_endpoint import KEY, FakeTransport, StreamTransport, answer, error, reply, rig, scripted

LOST = TransportError(FailureKind.CONNECTION, "the connection broke in the middle of the reply", sent=True)
LATE = TransportError(FailureKind.TIMEOUT, "no byte for 3 s", sent=True)


def event(value: Any, name: str = "") -> bytes:
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + orjson.dumps(value) + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return event({"id": "c-1", "model": "m-1", "choices": [{"delta": delta, "finish_reason": finish}]})


OPENAI = [
    b": OPENROUTER PROCESSING\n\n",
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "<answer>"}),
    chunk({"content": "4</answer>"}),
    chunk({}, "stop"),
    event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}),
    b"data: [DONE]\n\n",
]


def anthropic_event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


ANTHROPIC = [
    anthropic_event(
        "message_start",
        message={"id": "c-1", "model": "m-1", "usage": {"input_tokens": 100, "output_tokens": 1}},
    ),
    anthropic_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    anthropic_event("ping"),
    anthropic_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "<answer>"}),
    anthropic_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "4</answer>"}),
    anthropic_event("content_block_stop", index=0),
    anthropic_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 20}),
    anthropic_event("message_stop"),
]
STREAMS: dict[str, list[bytes]] = {"openai": OPENAI, "anthropic": ANTHROPIC}
ENDPOINTS = pytest.mark.parametrize("endpoint", ["openai", "anthropic"])


async def attempt(transport: FakeTransport, endpoint: str) -> Attempt:
    """The only attempt of a call; its books must balance."""
    async with rig(transport, endpoint=endpoint, stream=True, max_attempts=1) as it:
        outcome = await it.call()
        assert it.in_flight == 0
    ((made, final),) = it.book.kept
    assert final
    assert made.outcome == outcome
    assert it.purse.balanced
    assert it.purse.spent == [made.cost_usd]
    return made


async def streamed(pieces: Sequence[bytes | BaseException], endpoint: str, **options: Any) -> Attempt:
    return await attempt(StreamTransport(scripted(reply()), pieces=pieces, **options), endpoint)


async def fails(pieces: Sequence[bytes | BaseException], endpoint: str, kind: FailureKind) -> Failure:
    made = await streamed(pieces, endpoint)
    assert isinstance(made.outcome, Failure)
    assert made.outcome.kind is kind
    # A stream that was begun may have been charged to its end.
    assert made.cost_usd is None
    return made.outcome


@ENDPOINTS
async def test_a_streamed_reply(endpoint: str) -> None:
    made = await streamed(STREAMS[endpoint], endpoint)
    assert isinstance(made.outcome, Completion)
    assert made.outcome.text == "<answer>4</answer>"
    assert made.outcome.finish is Finish.STOP
    assert made.outcome.usage == Usage(input_tokens=100, output_tokens=20)
    assert made.outcome.request_id == "req-7"
    assert made.cost_usd == pytest.approx(3.0)
    assert made.timing.first_token_s is not None
    assert 0 <= made.timing.first_token_s <= made.timing.total_s


@ENDPOINTS
@given(cuts=st.lists(st.integers(0, 900), max_size=12))
async def test_where_the_network_cuts_changes_nothing(endpoint: str, cuts: list[int]) -> None:
    body = b"".join(STREAMS[endpoint])
    edges = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    pieces = [body[low:high] for low, high in pairwise(edges)]
    made = await streamed(pieces, endpoint)
    assert isinstance(made.outcome, Completion)
    assert made.outcome.text == "<answer>4</answer>"
    assert made.outcome.usage == Usage(input_tokens=100, output_tokens=20)


@ENDPOINTS
async def test_a_stream_that_ends_early_is_no_reply(endpoint: str) -> None:
    body = b"".join(STREAMS[endpoint])
    text = body.index(b"4</answer>")
    for end in (0, 10, text - 5, text + 3, text + 40):
        failure = await fails([body[:end]], endpoint, FailureKind.MALFORMED)
        assert failure.status == 200


@ENDPOINTS
@pytest.mark.parametrize("trouble", [LOST, LATE])
async def test_a_connection_lost_in_the_middle(endpoint: str, trouble: TransportError) -> None:
    failure = await fails([*STREAMS[endpoint][:4], trouble], endpoint, trouble.kind)
    assert (failure.status, failure.message) == (None, str(trouble))


@ENDPOINTS
async def test_an_event_that_is_no_json(endpoint: str) -> None:
    pieces = [*STREAMS[endpoint][:4], b'data: {"choices": [{"del\n\n', *STREAMS[endpoint][4:]]
    failure = await fails(pieces, endpoint, FailureKind.MALFORMED)
    assert "event that cannot be read" in failure.message


@ENDPOINTS
async def test_an_event_of_another_shape(endpoint: str) -> None:
    odd = {"type": "content_block_delta", "delta": "x", "choices": ["x"]}
    failure = await fails([*STREAMS[endpoint][:4], event(odd)], endpoint, FailureKind.MALFORMED)
    assert "event that cannot be read" in failure.message


@ENDPOINTS
async def test_keep_alives_without_data_are_no_events(endpoint: str) -> None:
    pieces = [b":\n\n", b"data:\n\n", *STREAMS[endpoint]]
    assert isinstance((await streamed(pieces, endpoint)).outcome, Completion)


@pytest.mark.parametrize(
    ("endpoint", "trouble", "kind"),
    [
        ("openai", {"error": {"message": "busy", "type": "server_error"}}, FailureKind.SERVER_ERROR),
        ("openai", {"error": {"message": "busy", "code": 429}}, FailureKind.RATE_LIMIT),
        ("openai", {"error": {"message": "busy", "code": "insufficient_quota"}}, FailureKind.QUOTA),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            FailureKind.SERVER_ERROR,
        ),
        (
            "anthropic",
            {"type": "error", "error": {"type": "rate_limit_error", "message": "busy"}},
            FailureKind.RATE_LIMIT,
        ),
    ],
)
async def test_an_error_event_after_the_first_words(
    endpoint: str, trouble: dict[str, Any], kind: FailureKind
) -> None:
    failure = await fails([*STREAMS[endpoint][:4], event(trouble, "error")], endpoint, kind)
    assert failure.message == "busy"


async def test_the_key_in_an_error_event_is_masked() -> None:
    failure = await fails([event({"error": {"message": f"bad {KEY}"}})], "openai", FailureKind.MALFORMED)
    assert failure.message == "bad ***"


# ---------------------------------------------------------------- no stream


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
async def test_a_server_that_cannot_stream_is_read_all_the_same(content_type: str) -> None:
    made = await streamed([reply().body[:30], reply().body[30:]], "openai", content_type=content_type)
    assert isinstance(made.outcome, Completion)
    assert made.timing.first_token_s is None
    assert made.cost_usd == pytest.approx(3.0)


async def test_an_error_object_in_place_of_a_stream() -> None:
    body = orjson.dumps({"error": {"message": "busy", "code": 503}})
    made = await streamed([body], "openai", content_type="application/json")
    assert isinstance(made.outcome, Failure)
    assert (made.outcome.kind, made.outcome.message) == (FailureKind.SERVER_ERROR, "busy")


@ENDPOINTS
async def test_a_web_page_in_place_of_a_stream(endpoint: str) -> None:
    page = b"<html><head><title>Log in</title></head></html>"
    made = await streamed([page], endpoint, content_type="text/html")
    assert isinstance(made.outcome, Failure)
    assert (made.outcome.kind, made.outcome.message) == (
        FailureKind.MALFORMED,
        "the body is no JSON: Log in",
    )
    # Even where it claims to be one.
    await fails([page], endpoint, FailureKind.MALFORMED)


async def test_the_content_type_in_capitals() -> None:
    made = await streamed(OPENAI, "openai", content_type="Text/Event-Stream")
    assert isinstance(made.outcome, Completion)


@ENDPOINTS
async def test_an_error_status_in_place_of_a_stream(endpoint: str) -> None:
    made = await attempt(FakeTransport(scripted(error(503, "slow down", retry_after="3"))), endpoint)
    assert isinstance(made.outcome, Failure)
    assert (made.outcome.kind, made.outcome.message) == (FailureKind.SERVER_ERROR, "slow down")
    assert made.outcome.retry_after_s == 3.0
    assert made.cost_usd == 0.0


@ENDPOINTS
async def test_a_stream_is_tried_again(endpoint: str) -> None:
    class Mending(StreamTransport):
        def stream(self, *arguments: Any) -> Any:
            self.pieces = STREAMS[endpoint] if self.sent else STREAMS[endpoint][:3]
            return super().stream(*arguments)

    async with rig(Mending(scripted(answer(200))), endpoint=endpoint, stream=True) as it:
        assert isinstance(await it.call(), Completion)
    assert it.book.finals == [False, True]
    assert len(it.transport.sent) == 2


async def test_a_character_whose_halves_come_one_after_the_other_is_whole() -> None:
    """Servers that cut texts by UTF-16 send them so; the other half may never come."""

    def half(text: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"

    pieces = [*OPENAI[:4], half("\ud83d"), half("\ude00"), half("\ud83d"), *OPENAI[4:]]
    made = await streamed(pieces, "openai")
    assert isinstance(made.outcome, Completion), made.outcome
    assert made.outcome.text == "<answer>4</answer>\N{GRINNING FACE}\ufffd"
