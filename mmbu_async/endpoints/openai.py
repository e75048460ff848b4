"""OpenAI chat completions, and every server that speaks them (vLLM, SGLang, Ollama, OpenRouter, gateways)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    text_of,
)
from mmbu_async.model import Completion, Failure, Finish, Json, PreparedImage, Prompt, Usage

_FINISHES: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "end_turn": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
    "refusal": Finish.REFUSAL,
}
_OPENING = {
    media: b'{"type":"image_url","image_url":{"url":"data:' + media.encode() + b";base64,"
    for media in MEDIA_TYPES
}


class OpenAIChat:
    """`POST /chat/completions`."""

    def path(self, settings: CallSettings) -> str:
        return "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, settings: CallSettings, prompt: Prompt, images: Sequence[PreparedImage]) -> bytes:
        own_limit = "max_completion_tokens" in settings.params
        head = fields_of(
            settings,
            {
                "model": settings.model,
                "max_tokens": None if own_limit else settings.max_tokens or None,
                "temperature": settings.temperature,
                "seed": settings.seed,
                "stream": settings.stream or None,
                "stream_options": {"include_usage": True} if settings.stream else None,
                "prompt_cache_key": cache_key(settings, prompt),
            },
        )
        system = (
            b'{"role":"system","content":' + text_json(prompt.system) + b"},"
            if prompt.system is not None
            else b""
        )
        if len(prompt.parts) == 1 and isinstance(prompt.parts[0], str):
            content = text_json(prompt.parts[0])
        else:
            detail = b'","detail":"' + settings.image_detail.encode() if settings.image_detail else b""
            content = parts_of(prompt, images, _OPENING, detail + b'"}}')
        return b"".join((head, b'"messages":[', system, b'{"role":"user","content":', content, b"}]}"))

    def read(self, payload: Mapping[str, Json], headers: Headers, status: int) -> Completion | Failure:
        choices = payload.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return malformed("the reply has no choices", headers, status)
        choice = choices[0]
        # OpenRouter puts what went wrong at the model's host here, under status 200.
        if choice.get("error"):
            failure = failure_in_ok_body({"error": choice["error"]}, headers, status)
            return failure or malformed("the reply's first choice is an error", headers, status)
        message = choice.get("message")
        if not isinstance(message, dict):
            return malformed("the reply's first choice has no message", headers, status)
        return _completion(
            text=text_of(message.get("content")),
            refusal=text_of(message.get("refusal")),
            reasoning=text_of(message.get("reasoning_content") or message.get("reasoning")),
            finish=str(choice.get("finish_reason") or ""),
            usage=payload.get("usage"),
            model=str(payload.get("model") or ""),
            request=request_id(headers) or str(payload.get("id") or ""),
        )

    def stream_parser(self) -> OpenAIStream:
        return OpenAIStream()


class OpenAIStream:
    """Collects `chat.completion.chunk` events."""

    def __init__(self) -> None:
        self.started = False
        self.spoken = 0
        self.thought = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._finish = ""
        self._usage: Json = None
        self._model = ""
        self._id = ""
        self._done = False
        self._chosen = False
        self._error: Mapping[str, Any] | None = None

    def feed(self, event: bytes) -> None:
        if event == b"[DONE]":
            self._done = True
            return
        chunk = parsed(event)
        if not isinstance(chunk, dict):
            return
        if chunk.get("error"):
            self._error = chunk
            return
        self._usage = chunk.get("usage") or self._usage
        self._model = self._model or str(chunk.get("model") or "")
        self._id = self._id or str(chunk.get("id") or "")
        for choice in chunk.get("choices") or ():
            if choice.get("error"):
                self._error = choice
                return
            self._chosen = True
            if choice.get("index"):
                # With `n` in the params there are several; as without streaming, the first is the reply.
                continue
            delta = choice.get("delta") or {}
            said = text_of(delta.get("content"))
            refused = text_of(refusal) if (refusal := delta.get("refusal")) else ""
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            reasoning = text_of(thought) if thought else ""
            if said or refused:
                self.spoken += 1
                self.started = self.started or bool(said)
                self._text.append(said)
                self._refusal.append(refused)
            elif reasoning:
                self.thought += 1
            if reasoning:
                self._reasoning.append(reasoning)
            self._finish = str(choice.get("finish_reason") or self._finish)

    def result(self, headers: Headers, status: int) -> Completion | Failure:
        if self._error is not None:
            failure = failure_in_ok_body(self._error, headers, status)
            return failure or malformed("the stream held an error", headers, status)
        if not self._finish and not self._done:
            return malformed(CUT_SHORT, headers, status)
        if not self._chosen:
            return malformed("the reply has no choices", headers, status)
        return _completion(
            text="".join(self._text),
            refusal="".join(self._refusal),
            reasoning="".join(self._reasoning),
            finish=self._finish,
            usage=self._usage,
            model=self._model,
            request=request_id(headers) or self._id,
        )


def _completion(
    *, text: str, refusal: str, reasoning: str, finish: str, usage: Json, model: str, request: str
) -> Completion:
    end = _FINISHES.get(finish, Finish.OTHER)
    if refusal:
        end, text = Finish.REFUSAL, text or refusal
    return Completion(
        text=text,
        finish=end,
        finish_raw=finish,
        reasoning=reasoning,
        usage=_usage(usage),
        model=model,
        request_id=request,
    )


def _usage(usage: Json) -> Usage:
    counts = table_of(usage)
    if not (is_count(counts.get("prompt_tokens")) and is_count(counts.get("completion_tokens"))):
        return Usage(reported=False)
    output_details = table_of(counts.get("completion_tokens_details"))
    input_details = table_of(counts.get("prompt_tokens_details"))
    return Usage(
        input_tokens=count_of(counts.get("prompt_tokens")),
        output_tokens=count_of(counts.get("completion_tokens")),
        reasoning_tokens=count_of(output_details.get("reasoning_tokens")),
        cached_tokens=count_of(input_details.get("cached_tokens")),
        cache_write_tokens=count_of(input_details.get("cache_write_tokens")),
    )
