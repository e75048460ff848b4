"""Gemini (`POST /models/MODEL:generateContent`), at Google AI and, with an API key, at Vertex AI.

Sources: https://ai.google.dev/api/generate-content (request, response, `usageMetadata`: thoughts are counted
beside the candidates, cached tokens within the prompt), the enumerations of google-genai 3.6 for why a reply
ends, https://ai.google.dev/gemini-api/docs/media-resolution. Looked up in 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import CUT_SHORT, Headers, failure_in_ok_body, malformed, request_id
from mmbu_async.endpoints.parsed import parsed
from mmbu_async.endpoints.wire import MEDIA_TYPES, count_of, fields_of, is_count, parts_of, table_of
from mmbu_async.model import Completion, Failure, Finish, Json, PreparedImage, Prompt, Usage

_FINISHES: Mapping[str, Finish] = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "SAFETY": Finish.REFUSAL,
    "RECITATION": Finish.REFUSAL,
    "BLOCKLIST": Finish.REFUSAL,
    "PROHIBITED_CONTENT": Finish.REFUSAL,
    "SPII": Finish.REFUSAL,
    "MODEL_ARMOR": Finish.REFUSAL,
    "IMAGE_SAFETY": Finish.REFUSAL,
    "IMAGE_PROHIBITED_CONTENT": Finish.REFUSAL,
    "IMAGE_RECITATION": Finish.REFUSAL,
}
_OPENING = {media: b'{"inlineData":{"mimeType":"' + media.encode() + b'","data":"' for media in MEDIA_TYPES}
_CLOSING = b'"}}'
_CLOSING_ULTRA = b'"},"mediaResolution":{"level":"MEDIA_RESOLUTION_ULTRA_HIGH"}}'
"""The highest resolution can be asked for of a part alone, not of the whole request."""


class Gemini:
    """`generateContent`, and `streamGenerateContent` as server-sent events."""

    def path(self, settings: CallSettings) -> str:
        model = settings.model.removeprefix("models/")
        # What is tuned lies beside the models, under its whole name.
        place = quote(model if model.startswith("tunedModels/") else f"models/{model}")
        verb = "streamGenerateContent?alt=sse" if settings.stream else "generateContent"
        return f"/{place}:{verb}"

    def headers(self, key: str) -> dict[str, str]:
        """In a header: Google takes the key in the address too, where logs and proxies keep it."""
        return {"x-goog-api-key": key} if key else {}

    def body(self, settings: CallSettings, prompt: Prompt, images: Sequence[PreparedImage]) -> bytes:
        ultra = settings.image_detail == "ultra_high"
        head = fields_of(
            settings,
            {"systemInstruction": None if prompt.system is None else {"parts": [{"text": prompt.system}]}},
            params={**settings.params, "generationConfig": _generation(settings)},
        )
        closing = _CLOSING_ULTRA if ultra else _CLOSING
        parts = parts_of(prompt, images, _OPENING, closing, text_opening=b'{"text":')
        return b"".join((head, b'"contents":[{"role":"user","parts":', parts, b"}]}"))

    def read(self, payload: Mapping[str, Json], headers: Headers, status: int) -> Completion | Failure:
        found = GeminiStream()
        found.take(payload)
        return found.reply(headers, status)

    def stream_parser(self) -> GeminiStream:
        return GeminiStream()


class GeminiStream:
    """Collects responses of which each holds the next piece of the reply."""

    def __init__(self) -> None:
        self.started = False
        self.spoken = 0
        self.thought = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._finish = ""
        self._blocked = ""
        self._usage: dict[str, Json] = {}
        self._model = ""
        self._id = ""
        self._chosen = False
        self._error: Mapping[str, Any] | None = None

    def feed(self, event: bytes) -> None:
        data = parsed(event)
        if isinstance(data, dict):
            self.take(data)

    def take(self, data: Mapping[str, Json]) -> None:
        if data.get("error"):
            self._error = data
            return
        self._usage.update(table_of(data.get("usageMetadata")))
        self._model = self._model or str(data.get("modelVersion") or "")
        self._id = self._id or str(data.get("responseId") or "")
        self._blocked = str(table_of(data.get("promptFeedback")).get("blockReason") or self._blocked)
        for candidate in data.get("candidates") or ():
            if candidate.get("index"):
                # With `candidateCount` there are several; the first is the reply.
                continue
            self._chosen = True
            self._finish = str(candidate.get("finishReason") or self._finish)
            self._hear(table_of(candidate.get("content")).get("parts") or ())

    def _hear(self, parts: Sequence[Json]) -> None:
        said = _texts(parts, thoughts=False)
        thought = _texts(parts, thoughts=True)
        if said:
            self.started = True
            self.spoken += 1
        elif thought:
            self.thought += 1
        self._text.append(said)
        self._reasoning.append(thought)

    def result(self, headers: Headers, status: int) -> Completion | Failure:
        # Nothing marks the end of the stream but the reason in the last piece.
        if self._error is None and not (self._finish or self._blocked):
            return malformed(CUT_SHORT if self._chosen else _NO_CANDIDATE, headers, status)
        return self.reply(headers, status)

    def reply(self, headers: Headers, status: int) -> Completion | Failure:
        """What was taken in, whether or not it says why it ended."""
        if self._error is not None:
            failure = failure_in_ok_body(self._error, headers, status)
            return failure or malformed("the stream held an error", headers, status)
        if not self._chosen and not self._blocked:
            return malformed(_NO_CANDIDATE, headers, status)
        # A prompt that the filter stops gets no candidate: a refusal, which the input tokens are charged for.
        finish = Finish.REFUSAL if not self._chosen else _FINISHES.get(self._finish, Finish.OTHER)
        return Completion(
            text="".join(self._text),
            finish=finish,
            finish_raw=self._finish or self._blocked,
            reasoning="".join(self._reasoning),
            usage=_usage(self._usage),
            model=self._model,
            request_id=request_id(headers) or self._id,
        )


_NO_CANDIDATE = "the reply has no candidates"


def _generation(settings: CallSettings) -> Json:
    """`generationConfig`: ours, and over it what the user gave under that name, a null removing a field."""
    own = settings.params.get("generationConfig", {})
    if not isinstance(own, dict):
        return own
    detail = settings.image_detail
    ours = {
        "maxOutputTokens": settings.max_tokens or None,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "mediaResolution": f"MEDIA_RESOLUTION_{detail.upper()}"
        if detail not in (None, "ultra_high")
        else None,
    }
    return {name: value for name, value in {**ours, **own}.items() if value is not None} or None


def _texts(parts: Sequence[Json], *, thoughts: bool) -> str:
    texts = (
        part.get("text") for part in parts if isinstance(part, dict) and bool(part.get("thought")) is thoughts
    )
    return "".join(text for text in texts if isinstance(text, str))


def _usage(counts: Mapping[str, Json]) -> Usage:
    """Google leaves out what is zero, so that a reply without a token of text has no count of them."""
    if not is_count(counts.get("promptTokenCount")):
        return Usage(reported=False)
    thoughts = count_of(counts.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=count_of(counts["promptTokenCount"]) + count_of(counts.get("toolUsePromptTokenCount")),
        output_tokens=count_of(counts.get("candidatesTokenCount")) + thoughts,
        reasoning_tokens=thoughts,
        cached_tokens=count_of(counts.get("cachedContentTokenCount")),
    )
