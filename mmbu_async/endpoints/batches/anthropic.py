"""Anthropic's Message Batches: one JSON body with all requests, one file of results, nothing to be found by
but the custom ids, which are told only with the results.

https://platform.claude.com/docs/en/build-with-claude/batch-processing and the reference of
/v1/messages/batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import orjson

from mmbu_async.endpoints.batches.format import BatchLimits, End, RemoteBatch, Result, answered
from mmbu_async.endpoints.wire import WireFormat, count_of, table_of
from mmbu_async.model import Json

_FINISHED = ("succeeded", "errored", "canceled", "expired")


class AnthropicBatch:
    """Messages in one body."""

    limits = BatchLimits(
        requests=100_000,
        # 256 MB may mean either million; the lesser is safe.
        bytes=256_000_000,
        source="https://platform.claude.com/docs/en/build-with-claude/batch-processing",
    )
    opening = b'{"requests":['
    between = b","
    closing = b"]}"

    def entry(self, custom: str, url: str, body: bytes) -> bytes:
        return b'{"custom_id":' + orjson.dumps(custom) + b',"params":' + body + b"}"

    def remote(self, payload: Mapping[str, Json]) -> RemoteBatch:
        status = str(payload["processing_status"])
        counts = table_of(payload.get("request_counts"))
        finished = sum(count_of(counts.get(name)) for name in _FINISHED)
        name = payload["id"]
        if not isinstance(name, str) or not name:
            raise ValueError("an id is missing")
        return RemoteBatch(
            id=name,
            status=status,
            ended=status == "ended",
            total=finished + count_of(counts.get("processing")),
            finished=finished,
            created_at=_seconds(payload.get("created_at")),
            # Its `results_url` is not followed: the key goes to the address of the settings and nowhere else.
            results=(name,) if status == "ended" else (),
        )

    def result(self, line: Mapping[str, Json], wire: WireFormat, *, now: float) -> Result:
        custom = str(line["custom_id"])
        result = line["result"]
        match result["type"]:
            case "expired":
                return Result(custom_id=custom, end=End.EXPIRED)
            case "canceled":
                return Result(custom_id=custom, end=End.CANCELLED)
            case "succeeded":
                body = orjson.dumps(result["message"])
            case _:
                error = table_of(result.get("error"))
                body = orjson.dumps(error if error.get("error") else {"type": "error", "error": error})
        # What went wrong is an error object under status 200, whose own word says which status it had.
        return Result(custom_id=custom, end=End.ANSWERED, outcome=answered(200, body, wire, now=now))


def _seconds(text: Json) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None
