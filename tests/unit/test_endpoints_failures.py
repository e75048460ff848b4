"""What a response that is no reply means, in each vendor's own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from mmbu_async.endpoints.anthropic import AnthropicMessages
from mmbu_async.endpoints.failures import (
    MESSAGE_LIMIT,
    failure_from_response,
    failure_in_ok_body,
    request_id,
)
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.wire import WireFormat, read_response
from mmbu_async.model import FATAL_KINDS, TRANSIENT_KINDS, Completion, Failure, FailureKind

NO_HEADERS: CIMultiDict[str] = CIMultiDict()

Case = dict[str, Any]
_FILE = Path(__file__).parents[1] / "data" / "error_responses.jsonl"
CASES: list[Case] = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
ERRORS = [case for case in CASES if case["status"] >= 300]
UNDER_200 = [case for case in CASES if case["status"] == 200]


def raw(case: Case) -> bytes:
    return case["text"].encode("latin-1") if "text" in case else json.dumps(case["body"]).encode()


def name(case: Case) -> str:
    return f"{case['who']}-{case['status']}-{case['kind']}-{case['words']}".replace(" ", "_")


def openai_error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "t", "code": None}}).encode()


@pytest.mark.parametrize("case", ERRORS, ids=name)
def test_error_status(case: Case) -> None:
    failure = failure_from_response(case["status"], NO_HEADERS, raw(case), now=0.0)
    assert failure.kind == case["kind"]
    assert case["words"] in failure.message
    assert "\n" not in failure.message
    assert failure.status == case["status"]


@pytest.mark.parametrize("wire", [OpenAIChat(), AnthropicMessages()], ids=["openai", "anthropic"])
@pytest.mark.parametrize("case", UNDER_200, ids=name)
def test_status_200_without_a_reply(case: Case, wire: WireFormat) -> None:
    outcome = read_response(wire, 200, CIMultiDict({"x-request-id": "r1"}), raw(case))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.status, outcome.request_id) == (case["kind"], 200, "r1")
    assert case["words"] in outcome.message


def test_the_cases_reach_every_line_of_the_failure_table() -> None:
    kinds = {FailureKind(case["kind"]) for case in CASES}
    assert kinds == FATAL_KINDS | TRANSIENT_KINDS - {FailureKind.CONNECTION} | {FailureKind.BAD_REQUEST}
    statuses = {case["status"] for case in CASES}
    assert statuses >= {200, 400, 401, 402, 403, 404, 408, 425, 429, 500, 502, 503, 529}


def test_a_reply_with_a_null_error_is_a_reply() -> None:
    assert failure_in_ok_body({"error": None, "choices": []}, NO_HEADERS, 200) is None
    assert failure_in_ok_body({"error": {}, "type": "message"}, NO_HEADERS, 200) is None


def test_an_absurd_code_is_no_status() -> None:
    failure = failure_in_ok_body({"error": {"code": "9" * 5000, "message": "odd"}}, NO_HEADERS, 200)
    assert failure is not None
    assert failure.kind is FailureKind.MALFORMED


def test_openrouter_holds_calls_back_with_a_402_that_names_a_wait() -> None:
    body = json.dumps({"error": {"code": 402, "message": "in-flight budget"}}).encode()
    failure = failure_from_response(402, CIMultiDict({"Retry-After": "3"}), body, now=0.0)
    assert (failure.kind, failure.retry_after_s) == (FailureKind.RATE_LIMIT, 3.0)


@pytest.mark.parametrize(
    ("status", "message", "wait"),
    [
        (429, "Rate limit reached. Please try again in 1m2.5s. Visit", 62.5),
        (429, "Please try again in 20ms.", 0.02),
        (429, "Please retry after 6 seconds.", 6.0),
        (429, "* Quota exceeded for metric: requests, limit: 15\nPlease retry in 36.5s.", 36.5),
        (429, "Please try again later.", None),
        (500, "Please try again in 9s.", None),
    ],
)
def test_the_text_of_a_429_says_when_where_no_header_does(
    status: int, message: str, wait: float | None
) -> None:
    failure = failure_from_response(status, NO_HEADERS, openai_error(message), now=0.0)
    assert failure.retry_after_s == (None if wait is None else pytest.approx(wait))
    header = CIMultiDict({"retry-after": "2"})
    assert failure_from_response(status, header, openai_error(message), now=0.0).retry_after_s == 2.0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_named_and_not_worth_another_attempt(status: int) -> None:
    headers = CIMultiDict({"Location": "https://elsewhere.example/v1"})
    failure = failure_from_response(status, headers, b"<html></html>", now=0.0)
    assert failure.kind not in TRANSIENT_KINDS
    assert "redirects to https://elsewhere.example/v1" in failure.message


def test_header_bytes_that_are_no_utf8_can_be_stored() -> None:
    broken = b"\xff-id".decode("utf-8", "surrogateescape")
    headers = CIMultiDict({"location": broken, "x-request-id": broken})
    failure = failure_from_response(302, headers, b"", now=0.0)
    assert "-id" in failure.request_id
    (failure.message + failure.request_id).encode()


def test_the_request_id_of_either_vendor() -> None:
    assert request_id(CIMultiDict({"X-Request-Id": "a"})) == "a"
    assert request_id(CIMultiDict({"request-id": "b"})) == "b"
    assert request_id(NO_HEADERS) == ""


def test_long_words_are_cut() -> None:
    failure = failure_from_response(500, NO_HEADERS, openai_error("x " * 5000), now=0.0)
    assert len(failure.message) <= MESSAGE_LIMIT


# ---------------------------------------------------------------- whatever comes

KEYS = (
    "error message type code object status detail choices content finish_reason text delta refusal reasoning "
    "stop_reason usage prompt_tokens completion_tokens completion_tokens_details prompt_tokens_details "
    "input_tokens output_tokens cache_read_input_tokens"
)
KEY = st.sampled_from(KEYS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, min_size=1, max_size=5),
    max_leaves=25,
)
BODIES = st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode())


@given(body=BODIES, status=st.integers(100, 599))
def test_no_body_breaks_the_reader(body: bytes, status: int) -> None:
    failure = failure_from_response(status, NO_HEADERS, body, now=0.0)
    assert 0 < len(failure.message) <= MESSAGE_LIMIT
    for wire in (OpenAIChat(), AnthropicMessages()):
        assert isinstance(read_response(wire, 200, NO_HEADERS, body), Completion | Failure)
