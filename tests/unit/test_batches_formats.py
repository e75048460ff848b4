"""Both vendors' batch files and words, without a network."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from mmbu_async.config import CallSettings, RunConfig, build_config
from mmbu_async.endpoints.anthropic import AnthropicMessages
from mmbu_async.endpoints.batches.anthropic import AnthropicBatch
from mmbu_async.endpoints.batches.format import (
    End,
    custom_id,
    marker_of,
    number_of,
    without_stream,
)
from mmbu_async.endpoints.batches.openai import OpenAIBatch
from mmbu_async.endpoints.batches.prices import BATCH_SHARE, batch_price
from mmbu_async.endpoints.batches.upload import TooLargeError, Upload
from mmbu_async.endpoints.openai import OpenAIChat
from mmbu_async.endpoints.prices import Prices
from mmbu_async.errors import ConfigError
from mmbu_async.model import Completion, Failure, FailureKind, Usage

MARKER = "mmbu" + "0a" * 10
FORMS = pytest.mark.parametrize("form", [OpenAIBatch(), AnthropicBatch()], ids=["openai", "anthropic"])


async def whole(upload: Upload) -> bytes:
    return b"".join([chunk async for chunk in upload.chunks()])


def requests_in(data: bytes) -> list[dict[str, Any]]:
    if data.startswith(b'{"requests":'):
        found: list[dict[str, Any]] = orjson.loads(data)["requests"]
        return found
    return [orjson.loads(line) for line in data.splitlines()]


def test_an_id_says_which_batch_and_which_request() -> None:
    assert number_of(custom_id(MARKER, 49_999), MARKER) == 49_999
    assert number_of(custom_id(MARKER, 1), "mmbu" + "0b" * 10) is None
    assert number_of("row-7", MARKER) is None
    assert marker_of(custom_id(MARKER, 3)) == MARKER
    assert marker_of("somebody-3") == ""
    assert len(custom_id(MARKER, 99_999)) <= 64


@FORMS
async def test_a_file_holds_the_requests_and_is_as_long_as_it_says(form: Any) -> None:
    bodies = [orjson.dumps({"model": "m", "n": number}) for number in range(5)]
    with Upload(form, MARKER, "/v1/x", most_requests=5, most_bytes=10_000) as upload:
        assert [upload.add(body) for body in bodies] == [0, 1, 2, 3, 4]
        data = await whole(upload)
        assert upload.add(b"{}") is None
        assert await whole(upload) == data
        assert len(data) == upload.size
    found = requests_in(data)
    assert [one["custom_id"] for one in found] == [custom_id(MARKER, number) for number in range(5)]
    assert [one.get("body", one.get("params")) for one in found] == [orjson.loads(b) for b in bodies]


@FORMS
async def test_a_file_never_passes_the_limit_of_bytes(form: Any) -> None:
    body = orjson.dumps({"text": "x" * 100})
    with Upload(form, MARKER, "/v1/x", most_requests=50, most_bytes=1000) as upload:
        while upload.add(body) is not None:
            pass
        assert 2 <= upload.requests < 10
        assert len(await whole(upload)) == upload.size <= 1000
    with (
        Upload(form, MARKER, "/v1/x", most_requests=50, most_bytes=100) as upload,
        pytest.raises(TooLargeError, match="larger than a batch may be"),
    ):
        upload.add(body)


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        *((word, False) for word in ("validating", "in_progress", "finalizing", "cancelling")),
        *((word, True) for word in ("completed", "failed", "expired", "cancelled")),
    ],
)
def test_openai_says_when_a_batch_has_ended(status: str, ended: bool) -> None:
    remote = OpenAIBatch().remote(
        {
            "id": "batch_1",
            "status": status,
            "created_at": 17,
            "metadata": {"mmbu_marker": MARKER},
            "request_counts": {"total": 5, "completed": 2, "failed": 1},
            "output_file_id": "file-1",
            "error_file_id": None,
            "errors": {"data": [{"code": "c", "message": "m", "line": 3}]} if status == "failed" else None,
        }
    )
    assert (remote.ended, remote.refused, remote.marker) == (ended, status == "failed", MARKER)
    assert (remote.total, remote.finished, remote.created_at, remote.results) == (5, 3, 17.0, ("file-1",))
    assert [problem.line for problem in remote.problems] == ([3] if status == "failed" else [])


def test_anthropic_says_when_a_batch_has_ended() -> None:
    payload = {
        "id": "msgbatch_1",
        "processing_status": "in_progress",
        "created_at": "2026-01-02T03:04:05.5Z",
        "request_counts": {"processing": 4, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
    }
    remote = AnthropicBatch().remote(payload)
    assert (remote.ended, remote.total, remote.finished, remote.results) == (False, 4, 0, ())
    assert remote.created_at == 1767323045.5
    counts = {"processing": 0, "succeeded": 1, "errored": 1, "canceled": 1, "expired": 1}
    ended = AnthropicBatch().remote(payload | {"processing_status": "ended", "request_counts": counts})
    assert (ended.ended, ended.total, ended.finished, ended.results) == (True, 4, 4, ("msgbatch_1",))


REPLY = {"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}], "model": "m"}


def test_openai_results_in_all_their_forms() -> None:
    def read(**line: Any) -> Any:
        return OpenAIBatch().result({"custom_id": "a"} | line, OpenAIChat(), now=0.0)

    good = read(response={"status_code": 200, "body": REPLY}, error=None)
    assert isinstance(good.outcome, Completion)
    assert (good.end, good.outcome.text) == (End.ANSWERED, "7")
    refused = read(response={"status_code": 400, "body": {"error": {"message": "no such image"}}})
    assert isinstance(refused.outcome, Failure)
    assert (refused.outcome.kind, refused.outcome.message) == (FailureKind.BAD_REQUEST, "no such image")
    assert read(response=None, error={"code": "batch_expired", "message": "late"}).end is End.EXPIRED
    assert read(response=None, error={"code": "batch_cancelled", "message": "off"}).end is End.CANCELLED
    odd = read(response=None, error={"code": "server_error", "message": "broke"})
    assert isinstance(odd.outcome, Failure)
    assert odd.outcome.kind is FailureKind.SERVER_ERROR


def test_anthropic_results_in_all_their_forms() -> None:
    def read(**result: Any) -> Any:
        return AnthropicBatch().result({"custom_id": "a", "result": result}, AnthropicMessages(), now=0.0)

    message = {"content": [{"type": "text", "text": "7"}], "stop_reason": "end_turn"}
    good = read(type="succeeded", message=message)
    assert isinstance(good.outcome, Completion)
    assert good.outcome.text == "7"
    error = {"type": "invalid_request_error", "message": "no such image"}
    for form in (error, {"type": "error", "error": error, "request_id": "r"}):
        refused = read(type="errored", error=form)
        assert isinstance(refused.outcome, Failure)
        assert (refused.outcome.kind, refused.outcome.message) == (FailureKind.BAD_REQUEST, "no such image")
    busy = read(type="errored", error={"type": "overloaded_error", "message": "busy"})
    assert isinstance(busy.outcome, Failure)
    assert busy.outcome.kind is FailureKind.SERVER_ERROR
    assert (read(type="expired").end, read(type="canceled").end) == (End.EXPIRED, End.CANCELLED)


def test_nothing_is_streamed_in_a_batch() -> None:
    config = RunConfig(model="m", stream=True)
    assert not without_stream(config).stream
    assert without_stream(config).model == "m"


@pytest.mark.parametrize(
    ("endpoint", "model"), [("openai", "gpt-4o-mini"), ("anthropic", "claude-sonnet-4-5")]
)
def test_a_batch_costs_half(endpoint: Any, model: str) -> None:
    usage = Usage(input_tokens=10_000, output_tokens=500, cached_tokens=4000)
    settings = CallSettings(model=model, endpoint=endpoint)
    usual, batched = Prices().find(settings), batch_price(settings)
    assert usual is not None
    assert batched is not None
    assert batched.cost(usage) == pytest.approx(usual.cost(usage) / 2)
    assert "50% in a batch" in batched.source
    assert BATCH_SHARE[endpoint][1].startswith("https://")


def test_prices_that_the_user_gave_are_those_of_a_batch() -> None:
    both = CallSettings(model="gpt-4o-mini", input_price=1.0, output_price=2.0)
    price = batch_price(both)
    assert price is not None
    assert price.cost(Usage(input_tokens=1_000_000, output_tokens=1_000_000)) == 3.0
    half = batch_price(CallSettings(model="gpt-4o-mini", input_price=1.0))
    usual = Prices().find(CallSettings(model="gpt-4o-mini"))
    assert half is not None
    assert usual is not None
    assert half.input.base == 1e-6
    assert half.output.base == usual.output.base / 2
    assert batch_price(CallSettings(model="nobody-knows-it", base_url="http://10.0.0.1/v1")) is None


def test_judges_ask_in_batches_where_the_run_does_and_they_can() -> None:
    def batched(**settings: Any) -> list[bool | None]:
        config = build_config({"model": "m", "panel": [{"model": "j2", "endpoint": "gemini"}]} | settings)
        return [judge.batch for judge in config.judges]

    assert batched() == [None, None]
    assert batched(batch=True) == [True, False]
    assert batched(batch=True, judge={"batch": False}) == [False, False]
    assert batched(judge={"batch": True}) == [True, None]
    with pytest.raises(ConfigError, match="batches are known of the endpoints openai, responses, anthropic"):
        build_config({"model": "m", "endpoint": "gemini", "batch": True})
