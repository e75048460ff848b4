"""OpenAI Responses (`POST /responses`), and the servers that speak them too.

Sources: https://developers.openai.com/api/reference/resources/responses (request, response, events), and the
types of openai 3.57 for `status`, `incomplete_details`, `error.code` and `usage`; looked up in 2026-11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import CUT_SHORT, Headers, failure_in_ok_body, malformed, request_id
from mmbu_async.endpoints.parsed import parsed
from mmbu_async.endpoints.wire import (
    MEDIA_TYPES,
    cache_key,
    count_of,
    fields_of,
    is_count,
    parts_of,
    table_of,
    text_json,
)
from mmbu_async.model import Completion, Failure, Finish, Json, PreparedImage, Prompt, Usage

_FINISHES: Mapping[str, Finish] = {
    "completed": Finish.STOP,
    "max_output_tokens": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
}
_OPENING = {
    media: b'{"type":"input_image","image_url":"data:' + media.encode() + b";base64," for media in MEDIA_TYPES
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXT = b'{"type":"input_text","text":'


class OpenAIResponses:
    """`POST /responses`, each request for itself: nothing is kept at the endpoint (`store` is false)."""

    def path(self, settings: CallSettings) -> str:
        return "/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, settings: CallSettings, prompt: Prompt, images: Sequence[PreparedImage]) -> bytes:
        head = fields_of(
            settings,
            {
                "model": settings.model,
                "max_output_tokens": settings.max_tokens or None,
                "temperature": settings.temperature,
                "stream": settings.stream or None,
                "store": False,
                "instructions": prompt.system,
                "prompt_cache_key": cache_key(settings, prompt),
            },
        )
        # The field is mandatory, and `auto` what is meant where nothing is said.
        closing = b'","detail":"' + (settings.image_detail or "auto").encode() + b'"}'
        if len(prompt.parts) == 1 and isinstance(prompt.parts[0], str):
            content = text_json(prompt.parts[0])
        else:
            content = parts_of(prompt, images, _OPENING, closing, text_opening=_TEXT)
        return b"".join((head, b'"input":[{"role":"user","content":', content, b"}]}"))

    def read(self, payload: Mapping[str, Json], headers: Headers, status: int) -> Completion | Failure:
        return _reply(payload, headers, status)

    def stream_parser(self) -> ResponsesStream:
        return ResponsesStream()


class ResponsesStream:
    """Collects typed events; the last holds the whole response, which counts."""

    def __init__(self) -> None:
        self.started = False
        self.spoken = 0
        self.thought = 0
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._last: Mapping[str, Any] | None = None
        self._error: Mapping[str, Any] | None = None

    def feed(self, event: bytes) -> None:
        if event == b"[DONE]":
            # OpenAI sends none here; servers that speak chat completions as well do.
            return
        data = parsed(event)
        kind = data.get("type") if isinstance(data, dict) else None
        if kind == "response.output_text.delta":
            self.spoken += 1
            self.started = True
            self._text.append(str(data.get("delta") or ""))
        elif kind == "response.refusal.delta":
            self.spoken += 1
            self._refusal.append(str(data.get("delta") or ""))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self.thought += 1
        elif kind in _ENDS:
            self._last = table_of(data.get("response"))
        elif kind == "error":
            self._error = data

    def result(self, headers: Headers, status: int) -> Completion | Failure:
        failed = self._error
        if failed is None and self._last is not None and self._last.get("error"):
            failed = self._last
        if failed is not None:
            failure = failure_in_ok_body(failed, headers, status)
            return failure or malformed("the stream held an error", headers, status)
        if self._last is None:
            return malformed(CUT_SHORT, headers, status)
        # Some servers leave the output out of the last event, since they have sent it.
        said = {"text": "".join(self._text), "refusal": "".join(self._refusal)}
        return _reply(self._last, headers, status, **said)


def _reply(
    response: Mapping[str, Json], headers: Headers, status: int, *, text: str = "", refusal: str = ""
) -> Completion | Failure:
    """The reply in a response that has ended; `text` and `refusal` are what a stream brought before it."""
    ended = str(response.get("status") or "")
    output = response.get("output")
    if ended not in ("completed", "incomplete"):
        return malformed(f"the response is not complete (status {ended or 'unknown'})", headers, status)
    if not isinstance(output, list) or (ended == "completed" and not output and not text and not refusal):
        return malformed("the response has no output", headers, status)
    text = "".join(_contents(output, "message", "content", "output_text", "text")) or text
    refusal = "".join(_contents(output, "message", "content", "refusal", "refusal")) or refusal
    thoughts = [
        *_contents(output, "reasoning", "summary", "summary_text", "text"),
        *_contents(output, "reasoning", "content", "reasoning_text", "text"),
    ]
    reason = ended
    if ended == "incomplete":
        reason = str(table_of(response.get("incomplete_details")).get("reason") or ended)
    finish = _FINISHES.get(reason, Finish.OTHER)
    if refusal:
        finish, text = Finish.REFUSAL, text or refusal
    return Completion(
        text=text,
        finish=finish,
        finish_raw=reason,
        reasoning="\n\n".join(thoughts),
        usage=_usage(response.get("usage")),
        model=str(response.get("model") or ""),
        request_id=request_id(headers) or str(response.get("id") or ""),
    )


def _contents(output: Sequence[Json], item: str, field: str, kind: str, key: str) -> Iterator[str]:
    """The texts `key` of all parts of a kind, in the `field` of all output items of a type."""
    for one in output:
        if not isinstance(one, dict) or one.get("type") != item:
            continue
        parts = one.get(field)
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == kind and isinstance(part.get(key), str):
                yield part[key]


def _usage(usage: Json) -> Usage:
    counts = table_of(usage)
    if not (is_count(counts.get("input_tokens")) and is_count(counts.get("output_tokens"))):
        return Usage(reported=False)
    inside = table_of(counts.get("input_tokens_details"))
    return Usage(
        input_tokens=count_of(counts.get("input_tokens")),
        output_tokens=count_of(counts.get("output_tokens")),
        reasoning_tokens=count_of(table_of(counts.get("output_tokens_details")).get("reasoning_tokens")),
        cached_tokens=count_of(inside.get("cached_tokens")),
        cache_write_tokens=count_of(inside.get("cache_write_tokens")),
    )
