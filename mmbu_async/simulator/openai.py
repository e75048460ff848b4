"""OpenAI's spelling: `POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from mmbu_async.model import Finish, Json
from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.pictures import Picture
from mmbu_async.simulator.vendor_errors import OPENAI
from mmbu_async.simulator.wire import (
    ApiError,
    ChatRequest,
    Envelope,
    Reply,
    bearer,
    check_picture,
    content_hash,
    decode,
    load,
    words,
)

_FINISH = {Finish.STOP: "stop", Finish.LENGTH: "length", Finish.REFUSAL: "stop", Finish.OTHER: "stop"}


class OpenAI:
    """Chat completions."""

    name = "openai"
    vendor = "openai"
    needs_key = False
    reply_prefix = "chatcmpl-"

    def key(self, sent: Mapping[str, str]) -> str:
        return bearer(sent)

    def payload(self, body: bytes) -> dict[str, Json]:
        return load(body)

    def read(self, body: bytes, sent: Mapping[str, str], config: SimulatorConfig) -> ChatRequest:
        payload = self.payload(body)
        _require(payload, config)
        system: list[str] = []
        texts: list[str] = []
        pictures: list[Picture] = []
        for index, message in enumerate(payload["messages"]):
            where = f"messages[{index}]"
            if not isinstance(message, dict):
                raise ApiError(400, "bad_request", f"Invalid type for '{where}': expected an object.", where)
            target = system if message.get("role") in ("system", "developer") else texts
            content = message.get("content")
            if isinstance(content, str):
                target.append(content)
                continue
            for place, part in enumerate(content if isinstance(content, list) else ()):
                kind = part.get("type") if isinstance(part, dict) else None
                if kind == "text":
                    target.append(str(part.get("text", "")))
                elif kind == "image_url":
                    pictures.append(_picture(part, f"{where}.content[{place}].image_url", config))
                else:
                    raise ApiError(
                        400,
                        "bad_request",
                        f"Invalid value: '{kind}'. Supported values are: 'text' and 'image_url'.",
                        f"{where}.content[{place}].type",
                    )
        options = payload.get("stream_options")
        limit = payload.get("max_completion_tokens", payload.get("max_tokens"))
        stream = payload.get("stream") is True
        return ChatRequest(
            model=payload["model"],
            system="\n".join(system),
            text="\n".join(texts),
            pictures=tuple(pictures),
            max_tokens=limit if isinstance(limit, int) else None,
            stream=stream,
            include_usage=not stream or (isinstance(options, dict) and options.get("include_usage") is True),
            content=content_hash(self.name, payload),
            cacheable="\n".join(system),
        )

    def body(self, reply: Reply, envelope: Envelope) -> Json:
        message: dict[str, Json] = {
            "role": "assistant",
            "content": reply.text,
            "refusal": reply.refusal or None,
            "annotations": [],
        }
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        value = {
            "id": envelope.reply_id,
            "object": "chat.completion",
            "created": envelope.created,
            "model": envelope.model,
            "choices": [] if reply.empty else [choice],
        }
        if reply.usage.reported:
            value["usage"] = _usage(reply)
        return value | {"service_tier": "default", "system_fingerprint": "fp_simulator"}

    def events(self, reply: Reply, envelope: Envelope, include_usage: bool) -> Iterator[tuple[bytes, bool]]:
        head: dict[str, Json] = {
            "id": envelope.reply_id,
            "object": "chat.completion.chunk",
            "created": envelope.created,
            "model": envelope.model,
            "service_tier": "default",
            "system_fingerprint": "fp_simulator",
        }
        tail: dict[str, Json] = {"usage": None} if include_usage else {}

        def chunk(delta: dict[str, Json], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return _event(head | {"choices": [choice]} | tail)

        if not reply.empty:
            yield chunk({"role": "assistant", "content": "", "refusal": None}), False
            for word in words(reply.reasoning):
                yield chunk({"reasoning_content": word}), True
            for word in words(reply.text or ""):
                yield chunk({"content": word}), True
            for word in words(reply.refusal):
                yield chunk({"refusal": word}), True
            yield chunk({}, _finish(reply)), False
        if include_usage and reply.usage.reported:
            yield _event(head | {"choices": [], "usage": _usage(reply)}), False
        yield b"data: [DONE]\n\n", False

    def error_event(self, error: ApiError, envelope: Envelope) -> bytes:
        return _event(self.error(error, envelope.request_id))

    def failed(self, error: ApiError, envelope: Envelope) -> Json:
        return self.error(error, envelope.request_id)

    def error(self, error: ApiError, request_id: str) -> Json:
        _, kind, code, _ = OPENAI[error.code]
        return {"error": {"message": error.message, "type": kind, "param": error.param, "code": code}}

    def said(self, code: str, request: ChatRequest | None) -> tuple[int, str]:
        status, _, _, text = OPENAI[code]
        return status, text.replace("{model}", request.model if request else "")


def _require(payload: dict[str, Json], config: SimulatorConfig) -> None:
    if not isinstance(payload.get("model"), str) or not payload["model"]:
        raise ApiError(400, "bad_request", "you must provide a model parameter")
    if not isinstance(payload.get("messages"), list) or not payload["messages"]:
        raise ApiError(400, "bad_request", "Missing required parameter: 'messages'.", "messages")
    for name in sorted(config.unsupported_parameters & payload.keys()):
        raise ApiError(
            400,
            "unsupported_parameter",
            f"Unsupported parameter: '{name}' is not supported with this model.",
            name,
        )


def _picture(part: dict[str, Json], where: str, config: SimulatorConfig) -> Picture:
    """Decodes the image and puts its hash into the message, so that the content hash stays cheap."""
    holder = part.get("image_url")
    url = holder.get("url") if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or not isinstance(url, str):
        raise ApiError(400, "bad_request", f"Missing required parameter: '{where}.url'.", f"{where}.url")
    image = image_of(url, where, config)
    holder["url"] = image.sha256
    return image


def image_of(url: Json, where: str, config: SimulatorConfig) -> Picture:
    """The image in a data URL."""
    if not isinstance(url, str):
        raise ApiError(400, "bad_request", f"Missing required parameter: '{where}'.", where)
    head, _, data = url.partition(";base64,")
    if not head.startswith("data:"):
        raise ApiError(400, "bad_request", "Failed to download image: the simulator has no network.", where)
    image = decode(data, head.removeprefix("data:"))
    if image is None:
        raise ApiError(400, "image_parse", OPENAI["image_parse"][3])
    excess = check_picture(image, config)
    if excess == "bytes":
        raise ApiError(
            400,
            "image_too_large",
            f"Invalid image: {image.base64_chars} bytes of base64 exceed the limit of "
            f"{config.max_image_base64}.",
            where,
        )
    if excess is not None:
        raise ApiError(
            400,
            "image_too_large",
            f"Invalid image: its dimensions {image.width}x{image.height} exceed the allowed size.",
            where,
        )
    return image


def _finish(reply: Reply) -> str:
    return "content_filter" if reply.filtered else _FINISH[reply.finish]


def _usage(reply: Reply) -> Json:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _event(value: Json) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
