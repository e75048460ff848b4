"""Google's spelling: `POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent?alt=sse`.

What is sent back follows https://ai.google.dev/api/generate-content: counts that are zero and candidates that
a filter stopped before they began are left out, an event of a stream is a response with the next piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from mmbu_async.model import Finish, Json
from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.google_errors import BLOCKED, GEMINI, details
from mmbu_async.simulator.pictures import Picture
from mmbu_async.simulator.wire import (
    ApiError,
    ChatRequest,
    Envelope,
    Reply,
    check_picture,
    content_hash,
    decode,
    load,
    words,
)

_FINISH = {
    Finish.STOP: "STOP",
    Finish.LENGTH: "MAX_TOKENS",
    Finish.REFUSAL: "PROHIBITED_CONTENT",
    Finish.OTHER: "OTHER",
}
_FIELDS = frozenset(
    {
        *("contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig"),
        *("cachedContent", "serviceTier", "store"),
    }
)
"""Of a request; any other is refused, as Google does."""
_GENERATION = frozenset(
    {
        *("maxOutputTokens", "temperature", "topP", "topK", "seed", "stopSequences", "candidateCount"),
        *("thinkingConfig", "mediaResolution", "responseMimeType", "responseSchema", "responseJsonSchema"),
        *("presencePenalty", "frequencyPenalty", "responseModalities", "responseLogprobs", "logprobs"),
    }
)


class Gemini:
    """One request's: model and kind of delivery stand in its address."""

    name = "gemini"
    vendor = "google"
    needs_key = True
    reply_prefix = ""

    def __init__(self, model: str = "", *, stream: bool = False) -> None:
        self._model = model
        self._stream = stream

    def key(self, sent: Mapping[str, str]) -> str:
        """In the header alone: a key in the address counts for none, so that no client gets used to it."""
        return sent.get("x-goog-api-key", "").strip()

    def read(self, body: bytes, sent: Mapping[str, str], config: SimulatorConfig) -> ChatRequest:
        payload = load(body)
        generation = payload.get("generationConfig") or {}
        _known(payload, _FIELDS, "")
        _known(generation, _GENERATION, " at 'generation_config'")
        for name in sorted(config.unsupported_parameters & generation.keys()):
            raise ApiError(400, "unsupported_parameter", f"{name} is not supported by this model.")
        if not isinstance(payload.get("contents"), list) or not payload["contents"]:
            raise _bad("* GenerateContentRequest.contents: contents is not specified")
        texts: list[str] = []
        pictures: list[Picture] = []
        for index, content in enumerate(payload["contents"]):
            for place, part in enumerate(content.get("parts") or ()):
                if isinstance(part.get("text"), str):
                    texts.append(part["text"])
                elif isinstance(part.get("inlineData"), dict):
                    pictures.append(_picture(part["inlineData"], config))
                else:
                    raise _bad(
                        f"* GenerateContentRequest.contents[{index}].parts[{place}].data: required oneof "
                        f"field "
                        "'data' must have one initialized field"
                    )
        parts = (payload.get("systemInstruction") or {}).get("parts") or ()
        system = "\n".join(str(part.get("text", "")) for part in parts)
        limit = generation.get("maxOutputTokens")
        return ChatRequest(
            model=self._model,
            system=system,
            text="\n".join(texts),
            pictures=tuple(pictures),
            max_tokens=limit if isinstance(limit, int) else None,
            stream=self._stream,
            include_usage=True,
            content=content_hash(self.name, payload | {"model": self._model}),
            cacheable=system,
        )

    def body(self, reply: Reply, envelope: Envelope) -> Json:
        value = _envelope(envelope)
        if not reply.empty:
            value = {"candidates": [_candidate(_parts(reply), _finish(reply))]} | value
        if reply.usage.reported:
            value["usageMetadata"] = _usage(reply)
        return value

    def events(self, reply: Reply, envelope: Envelope, include_usage: bool) -> Iterator[tuple[bytes, bool]]:
        tail = _envelope(envelope)
        before: dict[str, Json] = {}
        if reply.usage.reported:
            count = reply.usage.input_tokens
            before = {"usageMetadata": {"promptTokenCount": count, "totalTokenCount": count}}
        if not reply.empty:
            pieces = [
                *({"text": word, "thought": True} for word in words(reply.reasoning)),
                *({"text": word} for word in words(reply.text or "")),
            ]
            for piece in pieces:
                yield _event({"candidates": [_candidate([piece])]} | before | tail), True
        last: dict[str, Json] = {"usageMetadata": _usage(reply)} if reply.usage.reported else {}
        if not reply.empty:
            last = {"candidates": [_candidate([], _finish(reply))]} | last
        yield _event(last | tail), False

    def error_event(self, error: ApiError, envelope: Envelope) -> bytes:
        return _event(self.error(error, envelope.request_id))

    def failed(self, error: ApiError, envelope: Envelope) -> Json:
        return self.error(error, envelope.request_id)

    def error(self, error: ApiError, request_id: str) -> Json:
        if error.code == BLOCKED:
            # The one refusal that comes with status 200 and in the place of a reply.
            return {
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1},
                "modelVersion": self._model,
                "responseId": request_id,
            }
        value: dict[str, Json] = {
            "code": error.status,
            "message": error.message,
            "status": GEMINI[error.code][1],
        }
        if said := [*details(error.code, self._model), *(error.details or ())]:
            value["details"] = said
        return {"error": value}

    def said(self, code: str, request: ChatRequest | None) -> tuple[int, str]:
        status, _, text = GEMINI[code]
        return status, text.replace("{model}", self._model)


def _bad(message: str) -> ApiError:
    return ApiError(400, "bad_request", message)


def _known(value: Mapping[str, Json], names: frozenset[str], where: str) -> None:
    for name in sorted(value.keys() - names):
        raise _bad(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def _picture(data: dict[str, Json], config: SimulatorConfig) -> Picture:
    """Decodes the image and puts its hash into the message, so that the content hash stays cheap. Names in
    either spelling and base64 in either alphabet are taken, as Google's JSON has it."""
    text, declared = data.get("data"), data.get("mimeType") or data.get("mime_type")
    if declared not in ("image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"):
        raise _bad(f"Unsupported MIME type: {declared}")
    if isinstance(text, str) and ("-" in text or "_" in text):
        text = text.replace("-", "+").replace("_", "/")
    image = decode(text, declared) if isinstance(text, str) else None
    if image is None:
        raise ApiError(400, "image_parse", GEMINI["image_parse"][2])
    if check_picture(image, config) is not None:
        raise ApiError(400, "image_too_large", GEMINI["image_too_large"][2])
    data["data"] = image.sha256
    return image


def _parts(reply: Reply) -> list[Json]:
    parts: list[Json] = []
    if reply.reasoning:
        parts.append({"text": reply.reasoning, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    return parts


def _candidate(parts: list[Json], finish: str = "") -> dict[str, Json]:
    value: dict[str, Json] = {}
    if parts or finish in ("STOP", "MAX_TOKENS", ""):
        value["content"] = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    if finish:
        value["finishReason"] = finish
    return value | {"index": 0}


def _finish(reply: Reply) -> str:
    return "SAFETY" if reply.filtered else _FINISH[reply.finish]


def _envelope(envelope: Envelope) -> dict[str, Json]:
    return {"modelVersion": envelope.model, "responseId": envelope.reply_id}


def _usage(reply: Reply) -> dict[str, Json]:
    usage = reply.usage
    counts = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
    }
    return {name: count for name, count in counts.items() if count}


def _event(value: Json) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"
