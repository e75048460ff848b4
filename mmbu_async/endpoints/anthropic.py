"""Anthropic messages (`POST /v1/messages`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import CUT_SHORT, Headers, failure_in_ok_body, malformed, request_id
from mmbu_async.endpoints.parsed import parsed
from mmbu_async.endpoints.wire import (
    MEDIA_TYPES,
    count_of,
    fields_of,
    is_count,
    parts_of,
    table_of,
    text_json,
)
from mmbu_async.model import Completion, Failure, Finish, Json, PreparedImage, Prompt, Usage

API_VERSION = "2023-06-01"
FALLBACK_MAX_TOKENS = 4096
"""The field is mandatory here; sent when the settings name no limit."""

_FINISHES: Mapping[str, Finish] = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}
_OPENING = {
    media: b'{"type":"image","source":{"type":"base64","media_type":"' + media.encode() + b'","data":"'
    for media in MEDIA_TYPES
}


class AnthropicMessages:
    """`POST /v1/messages`."""

    def path(self, settings: CallSettings) -> str:
        return "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": API_VERSION}
        return {"x-api-key": key, **version} if key else version

    def body(self, settings: CallSettings, prompt: Prompt, images: Sequence[PreparedImage]) -> bytes:
        head = fields_of(
            settings,
            {
                "model": settings.model,
                "max_tokens": settings.max_tokens or FALLBACK_MAX_TOKENS,
                "temperature": settings.temperature,
                "stream": settings.stream or None,
                "system": _system(settings, prompt.system),
            },
        )
        if len(prompt.parts) == 1 and isinstance(prompt.parts[0], str):
            content = text_json(prompt.parts[0])
        else:
            content = parts_of(prompt, images, _OPENING, b'"}}')
        return b"".join((head, b'"messages":[{"role":"user","content":', content, b"}]}"))

    def read(self, payload: Mapping[str, Json], headers: Headers, status: int) -> Completion | Failure:
        blocks = payload.get("content")
        if not isinstance(blocks, list):
            return malformed("the reply has no content", headers, status)
        reason = str(payload.get("stop_reason") or "")
        if not blocks and not reason:
            return malformed("the reply is empty and has no stop reason", headers, status)
        return _completion(
            text=_texts(blocks, "text", "text"),
            reasoning=_texts(blocks, "thinking", "thinking"),
            reason=reason,
            usage=payload.get("usage"),
            model=str(payload.get("model") or ""),
            request=request_id(headers) or str(payload.get("id") or ""),
        )

    def stream_parser(self) -> AnthropicStream:
        return AnthropicStream()


class AnthropicStream:
    """Collects `message_start` … `message_stop` events."""

    def __init__(self) -> None:
        self.started = False
        self.spoken = 0
        self.thought = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reason = ""
        self._usage: dict[str, Json] = {}
        self._model = ""
        self._id = ""
        self._stopped = False
        self._error: Mapping[str, Any] | None = None

    def feed(self, event: bytes) -> None:
        data = parsed(event)
        kind = data.get("type") if isinstance(data, dict) else None
        if kind == "content_block_delta":
            delta = data.get("delta") or {}
            text = str(delta.get("text") or "")
            self.started = self.started or bool(text)
            reasoning = str(delta.get("thinking") or "")
            if text:
                self.spoken += 1
            elif reasoning:
                self.thought += 1
            self._text.append(text)
            self._reasoning.append(reasoning)
        elif kind == "message_start":
            message = data.get("message") or {}
            self._usage.update(table_of(message.get("usage")))
            self._model = str(message.get("model") or "")
            self._id = str(message.get("id") or "")
        elif kind == "message_delta":
            self._reason = str((data.get("delta") or {}).get("stop_reason") or self._reason)
            self._usage.update(table_of(data.get("usage")))
        elif kind == "message_stop":
            self._stopped = True
        elif kind == "error":
            self._error = data

    def result(self, headers: Headers, status: int) -> Completion | Failure:
        if self._error is not None:
            failure = failure_in_ok_body(self._error, headers, status)
            return failure or malformed("the stream held an error", headers, status)
        if not self._stopped:
            return malformed(CUT_SHORT, headers, status)
        return _completion(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            reason=self._reason,
            usage=self._usage,
            model=self._model,
            request=request_id(headers) or self._id,
        )


def _system(settings: CallSettings, text: str | None) -> Json:
    """With prompt caching the system message, the one part that is alike in all requests, is marked. Without
    one nothing is: marking the last block would pay for writing each row's own text and never read it."""
    if text is None or not settings.prompt_caching:
        return text
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def _texts(blocks: Sequence[Json], kind: str, key: str) -> str:
    return "".join(
        str(block.get(key) or "") for block in blocks if isinstance(block, dict) and block.get("type") == kind
    )


def _completion(
    *, text: str, reasoning: str, reason: str, usage: Json, model: str, request: str
) -> Completion:
    return Completion(
        text=text,
        finish=_FINISHES.get(reason, Finish.OTHER),
        finish_raw=reason,
        reasoning=reasoning,
        usage=_usage(usage),
        model=model,
        request_id=request,
    )


def _usage(usage: Json) -> Usage:
    """Anthropic counts cached input apart from `input_tokens`; ours includes it."""
    counts = table_of(usage)
    if not (is_count(counts.get("input_tokens")) and is_count(counts.get("output_tokens"))):
        return Usage(reported=False)
    read = count_of(counts.get("cache_read_input_tokens"))
    written = count_of(counts.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count_of(counts.get("input_tokens")) + read + written,
        output_tokens=count_of(counts.get("output_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
    )
