"""OpenAI's Batch: a JSONL file that is uploaded first, two files of results, metadata that we may set.

https://developers.openai.com/api/docs/guides/batch and the reference of /v1/batches and /v1/files.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from mmbu_async.endpoints.batches.format import BatchLimits, End, Problem, RemoteBatch, Result, answered
from mmbu_async.endpoints.wire import WireFormat, count_of, table_of
from mmbu_async.model import Json

MARKER_KEY = "mmbu_marker"
"""Name under which the marker stands in a batch's metadata."""
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
"""The others are validating, in_progress, finalizing and cancelling."""


class OpenAIBatch:
    """Chat completions or Responses in a file of one request a line."""

    limits = BatchLimits(
        requests=50_000,
        bytes=200_000_000,
        source="https://developers.openai.com/api/reference/resources/batches/methods/create",
    )
    opening = b""
    between = b"\n"
    closing = b"\n"

    def entry(self, custom: str, url: str, body: bytes) -> bytes:
        head = orjson.dumps({"custom_id": custom, "method": "POST", "url": url})
        return head[:-1] + b',"body":' + body + b"}"

    def remote(self, payload: Mapping[str, Json]) -> RemoteBatch:
        status = str(payload["status"])
        counts = table_of(payload.get("request_counts"))
        files = (payload.get("output_file_id"), payload.get("error_file_id"))
        created = payload.get("created_at")
        return RemoteBatch(
            id=_name(payload["id"]),
            status=status,
            ended=status in _ENDED,
            refused=status == "failed",
            total=count_of(counts.get("total")),
            finished=count_of(counts.get("completed")) + count_of(counts.get("failed")),
            marker=str(table_of(payload.get("metadata")).get(MARKER_KEY) or ""),
            created_at=float(created) if isinstance(created, int | float) else None,
            results=tuple(_name(file) for file in files if file),
            problems=tuple(map(_problem, table_of(payload.get("errors")).get("data") or ())),
        )

    def result(self, line: Mapping[str, Json], wire: WireFormat, *, now: float) -> Result:
        custom = str(line["custom_id"])
        response = line.get("response")
        if isinstance(response, dict) and response.get("status_code"):
            body = orjson.dumps(response.get("body"))
            return Result(
                custom_id=custom,
                end=End.ANSWERED,
                outcome=answered(int(response["status_code"]), body, wire, now=now),
            )
        error = table_of(line.get("error"))
        code = str(error.get("code") or "")
        if code == "batch_expired":
            return Result(custom_id=custom, end=End.EXPIRED)
        if code == "batch_cancelled":
            return Result(custom_id=custom, end=End.CANCELLED)
        body = orjson.dumps({"error": error or {"message": "a result without response and error"}})
        return Result(custom_id=custom, end=End.ANSWERED, outcome=answered(500, body, wire, now=now))


def _name(value: Json) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("an id is missing")
    return value


def _problem(value: Json) -> Problem:
    table = table_of(value)
    line = table.get("line")
    return Problem(
        code=str(table.get("code") or ""),
        message=str(table.get("message") or ""),
        line=line if isinstance(line, int) else None,
    )
