"""Anthropic's spelling: `POST /v1/messages`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from mmbu_async.model import Finish, Json
from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.pictures import Picture
from mmbu_async.simulator.vendor_errors import ANTHROPIC, ANTHROPIC_DETAILS
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

VERSIONS: dict[str, frozenset[str]] = {
    "2023-06-01": frozenset(),
    "2026-10-21": frozenset({"temperature", "top_p", "top_k"}),
}
"""API versions, and the request fields that each has dropped: sending one is an error."""

_FINISH = {
    Finish.STOP: "end_turn",
    Finish.LENGTH: "max_tokens",
    Finish.REFUSAL: "refusal",
    Finish.OTHER: "end_turn",
}


class Anthropic:
    """Messages."""

    name = "anthropic"
    vendor = "anthropic"
    needs_key = True
    reply_prefix = "msg_01"

    def key(self, sent: Mapping[str, str]) -> str:
        return sent.get("x-api-key", "").strip() or bearer(sent)

    def read(self, body: bytes, sent: Mapping[str, str], config: SimulatorConfig) -> ChatRequest:
        version = sent.get("anthropic-version")
        if version is None:
            raise _bad("anthropic-version: header is required")
        if version not in VERSIONS:
            raise _bad(f'anthropic-version: "{version}" is not a valid version')
        payload = load(body)
        for name in sorted(VERSIONS[version] & payload.keys()):
            raise ApiError(400, "unsupported_parameter", f"{name}: Extra inputs are not permitted")
        _require(payload, config)
        texts: list[str] = []
        pictures: list[Picture] = []
        for index, message in enumerate(payload["messages"]):
            if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
                raise _bad(f"messages.{index}.role: Input should be 'user' or 'assistant'")
            content = message.get("content")
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if not isinstance(content, list) or not content:
                raise _bad(f"messages.{index}.content: Field required")
            for place, block in enumerate(content):
                where = f"messages.{index}.content.{place}"
                kind = block.get("type") if isinstance(block, dict) else None
                if kind == "text":
                    if not str(block.get("text", "")).strip():
                        raise _bad("messages: text content blocks must contain non-whitespace text")
                    texts.append(str(block["text"]))
                elif kind == "image":
                    pictures.append(_picture(block, where, config))
                else:
                    raise _bad(f"{where}: Input tag '{kind}' does not match any of the expected tags")
        system = payload.get("system", "")
        marked = False
        if isinstance(system, list):
            marked = any(isinstance(block, dict) and block.get("cache_control") for block in system)
            system = "\n".join(str(block.get("text", "")) for block in system if isinstance(block, dict))
        return ChatRequest(
            model=payload["model"],
            system=str(system),
            text="\n".join(texts),
            pictures=tuple(pictures),
            max_tokens=payload["max_tokens"],
            stream=payload.get("stream") is True,
            include_usage=True,
            content=content_hash(self.name, payload),
            cacheable=str(system) if marked else "",
        )

    def body(self, reply: Reply, envelope: Envelope) -> Json:
        value: dict[str, Json] = {
            "id": envelope.reply_id,
            "type": "message",
            "role": "assistant",
            "model": envelope.model,
            "content": _blocks(reply),
            "stop_reason": _FINISH[reply.finish],
            "stop_sequence": None,
            "stop_details": _stop_details(reply),
        }
        if reply.usage.reported:
            value["usage"] = _usage(reply)
        return value

    def events(self, reply: Reply, envelope: Envelope, include_usage: bool) -> Iterator[tuple[bytes, bool]]:
        started = self.body(reply, envelope) | {"content": [], "stop_reason": None, "stop_details": None}
        if reply.usage.reported:
            started["usage"] = _usage(reply) | {
                "output_tokens": 1,
                "output_tokens_details": {"thinking_tokens": 0},
            }
        yield _event("message_start", {"message": started}), False
        for index, block in enumerate(_blocks(reply)):
            thinking = block["type"] == "thinking"
            empty = (
                {"type": "thinking", "thinking": "", "signature": ""} if thinking else block | {"text": ""}
            )
            yield _event("content_block_start", {"index": index, "content_block": empty}), False
            if index == 0:
                yield _event("ping", {}), False
            for word in words(block["thinking" if thinking else "text"]):
                kind = "thinking" if thinking else "text"
                delta: dict[str, Json] = {"type": f"{kind}_delta", kind: word}
                yield _event("content_block_delta", {"index": index, "delta": delta}), True
            if thinking:
                delta = {"type": "signature_delta", "signature": block["signature"]}
                yield _event("content_block_delta", {"index": index, "delta": delta}), False
            yield _event("content_block_stop", {"index": index}), False
        delta = {
            "stop_reason": _FINISH[reply.finish],
            "stop_sequence": None,
            "stop_details": _stop_details(reply),
        }
        end: dict[str, Json] = {"delta": delta}
        if reply.usage.reported:
            end["usage"] = _usage(reply)
            del end["usage"]["service_tier"]
        yield _event("message_delta", end), False
        yield _event("message_stop", {}), False

    def error_event(self, error: ApiError, envelope: Envelope) -> bytes:
        return b"event: error\ndata: " + orjson.dumps(self.error(error, envelope.request_id)) + b"\n\n"

    def failed(self, error: ApiError, envelope: Envelope) -> Json:
        return self.error(error, envelope.request_id)

    def error(self, error: ApiError, request_id: str) -> Json:
        kind = ANTHROPIC[error.code][1]
        value: dict[str, Json] = {"type": kind, "message": error.message}
        details = error.details or ANTHROPIC_DETAILS.get(error.code)
        if details is not None:
            value["details"] = details
        return {"type": "error", "error": value, "request_id": request_id}

    def said(self, code: str, request: ChatRequest | None) -> tuple[int, str]:
        status, _, text = ANTHROPIC[code]
        return status, text.replace("{model}", request.model if request else "")


def _bad(message: str) -> ApiError:
    return ApiError(400, "bad_request", message)


def _require(payload: dict[str, Json], config: SimulatorConfig) -> None:
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if name not in payload:
            raise _bad(f"{name}: Field required")
        if not isinstance(payload[name], kind) or not payload[name]:
            raise _bad(f"{name}: Input should be a valid {kind.__name__}")
    for name in sorted(config.unsupported_parameters & payload.keys()):
        raise ApiError(400, "unsupported_parameter", f"{name}: Extra inputs are not permitted")


def _picture(block: dict[str, Json], where: str, config: SimulatorConfig) -> Picture:
    """Decodes the image and puts its hash into the message, so that the content hash stays cheap."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        raise _bad(f"{where}.image.source: the simulator takes base64 sources only")
    data, declared = source.get("data"), source.get("media_type")
    place = f"{where}.image.source.base64"
    if declared not in ("image/jpeg", "image/png", "image/gif", "image/webp"):
        raise _bad(
            f"{place}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        )
    limit = config.max_image_base64
    if isinstance(data, str) and limit is not None and len(data) > limit:
        size = limit / 2**20
        raise ApiError(
            400,
            "image_too_large",
            f"{place}: image exceeds {size:g} MB maximum: {len(data)} bytes > {limit} bytes",
        )
    image = decode(data, declared) if isinstance(data, str) else None
    if image is None:
        raise ApiError(400, "image_parse", "Could not process image")
    if image.media_type != declared:
        raise _bad(
            f"{place}: The image was specified using the {declared} media type, but the image appears to be "
            f"a {image.media_type} image"
        )
    if check_picture(image, config) is not None:
        edge = config.max_image_edge
        words_ = f": {edge} pixels" if edge is not None else ""
        raise ApiError(
            400,
            "image_too_large",
            f"{place}.data: At least one of the image dimensions exceed max allowed size{words_}",
            details=None
            if edge is None
            else {
                "error_code": "image_dimensions_too_large",
                "max_side_length_pixels": edge,
                "paths": [where],
            },
        )
    source["data"] = image.sha256
    return image


def _blocks(reply: Reply) -> list[dict[str, Json]]:
    if reply.empty:
        return []
    blocks: list[dict[str, Json]] = []
    if reply.reasoning:
        signature = "EsimulatedSignature=="
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
    if reply.text is not None and (reply.text or not reply.filtered):
        blocks.append({"type": "text", "text": reply.text})
    return blocks


def _stop_details(reply: Reply) -> Json:
    if reply.finish is not Finish.REFUSAL:
        return None
    return {"type": "refusal", "category": None, "explanation": None}


def _usage(reply: Reply) -> dict[str, Json]:
    usage = reply.usage
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "service_tier": "standard",
    }


def _event(kind: str, value: dict[str, Json]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind} | value))
