"""Odd replies of Responses and Gemini, beyond what the simulator sends."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from multidict import CIMultiDict

from mmbu_async.endpoints.gemini import Gemini
from mmbu_async.endpoints.responses import OpenAIResponses
from mmbu_async.endpoints.wire import WireFormat, read_response
from mmbu_async.model import Completion, Failure, FailureKind, Finish

HEADERS: CIMultiDict[str] = CIMultiDict()
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}


def read(wire: WireFormat, payload: Any) -> Completion | Failure:
    return read_response(wire, 200, HEADERS, orjson.dumps(payload))


def streamed(wire: WireFormat, *payloads: Any) -> Completion | Failure:
    parser = wire.stream_parser()
    for payload in payloads:
        parser.feed(orjson.dumps(payload))
    return parser.result(HEADERS, 200)


def gemini(reason: str | None, *texts: str, **more: Any) -> dict[str, Any]:
    parts = [{"text": text} for text in texts]
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "g"} | more


# ---------------------------------------------------------------- Gemini


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", Finish.STOP),
        ("MAX_TOKENS", Finish.LENGTH),
        *((word, Finish.REFUSAL) for word in ("SAFETY", "RECITATION", "BLOCKLIST", "SPII", "IMAGE_SAFETY")),
        *((word, Finish.OTHER) for word in ("OTHER", "LANGUAGE", "MALFORMED_RESPONSE", "A_NEW_ONE")),
    ],
)
def test_why_it_ended(reason: str, finish: Finish) -> None:
    reply = read(Gemini(), gemini(reason, "a", "b"))
    assert isinstance(reply, Completion)
    assert (reply.text, reply.finish, reply.finish_raw) == ("ab", finish, reason)


@pytest.mark.parametrize("content", [{"role": "model"}, {}, None, {"parts": None}])
def test_a_candidate_without_text_is_an_empty_reply(content: Any) -> None:
    reply = read(Gemini(), {"candidates": [{"content": content, "finishReason": "STOP"}]})
    assert isinstance(reply, Completion)
    assert (reply.text, reply.finish, reply.usage.reported) == ("", Finish.STOP, False)


def test_a_prompt_that_is_blocked_is_a_refusal_that_is_charged() -> None:
    payload = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}
    for reply in (read(Gemini(), payload), streamed(Gemini(), payload)):
        assert isinstance(reply, Completion)
        assert (reply.finish, reply.finish_raw, reply.usage.input_tokens) == (Finish.REFUSAL, "SAFETY", 7)


@pytest.mark.parametrize("payload", [{}, {"candidates": []}, {"candidates": None, "usageMetadata": USAGE}])
def test_no_candidate_is_no_reply(payload: Any) -> None:
    for failure in (read(Gemini(), payload), streamed(Gemini(), payload)):
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.message) == (FailureKind.MALFORMED, "the reply has no candidates")


def test_thoughts_are_output_and_cached_tokens_input() -> None:
    counts = USAGE | {"thoughtsTokenCount": 50, "cachedContentTokenCount": 64, "toolUsePromptTokenCount": 3}
    reply = read(Gemini(), gemini("STOP", "x", usageMetadata=counts))
    assert isinstance(reply, Completion)
    usage = reply.usage
    assert (usage.input_tokens, usage.cached_tokens) == (103, 64)
    assert (usage.output_tokens, usage.reasoning_tokens) == (70, 50)


def test_a_stream_without_its_reason_was_cut() -> None:
    failure = streamed(Gemini(), gemini(None, "a"), gemini(None, "b"))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.MALFORMED


def test_a_streams_last_counts_hold_and_its_first_candidate() -> None:
    other = {"content": {"parts": [{"text": "no"}]}, "index": 1, "finishReason": "STOP"}
    more = gemini("STOP", "b")
    more["candidates"].append(other)
    reply = streamed(Gemini(), gemini(None, "a", usageMetadata={"promptTokenCount": 100}), more)
    assert isinstance(reply, Completion)
    assert (reply.text, reply.usage.output_tokens) == ("ab", 20)


# ---------------------------------------------------------------- Responses


def response(status: str = "completed", *items: Any, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 3}
    return {"id": "resp_1", "status": status, "model": "m", "output": list(items), "usage": usage} | more


def said(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


TEXT = {"type": "output_text", "text": "yes"}


def test_items_of_other_kinds_are_passed_over() -> None:
    reasoning = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    reply = read(
        OpenAIResponses(), response("completed", {"type": "web_search_call"}, reasoning, said(TEXT, TEXT))
    )
    assert isinstance(reply, Completion)
    assert (reply.text, reply.reasoning, reply.finish) == ("yesyes", "hm", Finish.STOP)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.request_id) == (9, 0, "resp_1")


def test_cut_before_any_text() -> None:
    details = {"reason": "max_output_tokens"}
    reply = read(OpenAIResponses(), response("incomplete", incomplete_details=details))
    assert isinstance(reply, Completion)
    assert (reply.text, reply.finish, reply.finish_raw) == ("", Finish.LENGTH, "max_output_tokens")


@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled", ""])
def test_what_has_not_ended_is_no_reply(status: str) -> None:
    failure = read(OpenAIResponses(), response(status, said(TEXT)))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.MALFORMED


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", FailureKind.SERVER_ERROR),
        ("rate_limit_exceeded", FailureKind.RATE_LIMIT),
        ("invalid_prompt", FailureKind.BAD_REQUEST),
        ("image_content_policy_violation", FailureKind.BAD_REQUEST),
        ("insufficient_quota", FailureKind.QUOTA),
        ("something_new", FailureKind.MALFORMED),
    ],
)
def test_a_response_that_failed_is_the_failure_that_its_code_says(code: str, kind: FailureKind) -> None:
    failed = response("failed", error={"code": code, "message": "no"})
    event = {"type": "response.failed", "response": failed}
    alone = {"type": "error", "code": code, "message": "no"}
    for failure in (
        read(OpenAIResponses(), failed),
        streamed(OpenAIResponses(), event),
        streamed(OpenAIResponses(), alone),
    ):
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.message) == (kind, "no")


def test_a_last_event_without_the_output_that_was_sent() -> None:
    pieces = [{"type": "response.output_text.delta", "delta": word} for word in ("ye", "s")]
    reply = streamed(OpenAIResponses(), *pieces, {"type": "response.completed", "response": response()})
    assert isinstance(reply, Completion)
    assert reply.text == "yes"


def test_a_stream_without_its_last_event_was_cut() -> None:
    failure = streamed(OpenAIResponses(), {"type": "response.output_text.delta", "delta": "ye"})
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.MALFORMED
