"""OpenAI's other spelling: `POST /v1/responses` (https://developers.openai.com/api/reference, Responses)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import orjson

from mmbu_async.model import Finish, Json
from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.openai import OpenAI, image_of
from mmbu_async.simulator.pictures import Picture
from mmbu_async.simulator.vendor_errors import OPENAI
from mmbu_async.simulator.wire import ApiError, ChatRequest, Envelope, Reply, content_hash, words

_CHAT_ONLY = ("messages", "max_tokens", "max_completion_tokens", "stream_options")


class _Event(Protocol):
    """Writes the next event of a stream."""

    def __call__(self, kind: str, **fields: Json) -> bytes: ...


class Responses(OpenAI):
    """Responses; errors, keys and headers are those of chat completions."""

    name = "responses"
    reply_prefix = "resp_"

    def read(self, body: bytes, sent: Mapping[str, str], config: SimulatorConfig) -> ChatRequest:
        payload = self.payload(body)
        if not isinstance(payload.get("model"), str) or not payload["model"]:
            raise ApiError(400, "bad_request", "Missing required parameter: 'model'.", "model")
        for name in _CHAT_ONLY:
            if name in payload:
                raise ApiError(400, "bad_request", f"Unknown parameter: '{name}'.", name)
        for name in sorted(config.unsupported_parameters & payload.keys()):
            words_ = f"Unsupported parameter: '{name}' is not supported with this model."
            raise ApiError(400, "unsupported_parameter", words_, name)
        asked = payload.get("input")
        messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        if not isinstance(messages, list) or not messages:
            raise ApiError(400, "bad_request", "Missing required parameter: 'input'.", "input")
        system = [str(payload.get("instructions") or "")]
        texts: list[str] = []
        pictures: list[Picture] = []
        for index, message in enumerate(messages):
            target = system if message.get("role") in ("system", "developer") else texts
            content = message.get("content")
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            for place, part in enumerate(parts or ()):
                where = f"input[{index}].content[{place}]"
                if part.get("type") == "input_text":
                    target.append(str(part.get("text", "")))
                elif part.get("type") == "input_image":
                    image = image_of(part.get("image_url"), f"{where}.image_url", config)
                    part["image_url"] = image.sha256
                    pictures.append(image)
                else:
                    raise ApiError(
                        400,
                        "bad_request",
                        f"Invalid value: '{part.get('type')}'. Supported values are: 'input_text' and "
                        "'input_image'.",
                        where,
                    )
        limit = payload.get("max_output_tokens")
        return ChatRequest(
            model=payload["model"],
            system="\n".join(filter(None, system)),
            text="\n".join(texts),
            pictures=tuple(pictures),
            max_tokens=limit if isinstance(limit, int) else None,
            stream=payload.get("stream") is True,
            include_usage=True,
            content=content_hash(self.name, payload),
            cacheable="\n".join(filter(None, system)),
        )

    def body(self, reply: Reply, envelope: Envelope) -> Json:
        status, reason = _status(reply)
        return _response(envelope, status) | {
            "incomplete_details": {"reason": reason} if reason else None,
            "output": [] if reply.empty else _items(reply, envelope, status),
            "usage": _usage(reply) if reply.usage.reported else None,
        }

    def events(self, reply: Reply, envelope: Envelope, include_usage: bool) -> Iterator[tuple[bytes, bool]]:
        numbers = iter(range(1_000_000))

        def event(kind: str, **fields: Json) -> bytes:
            value = {"type": kind, "sequence_number": next(numbers), **fields}
            return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(value))

        begun = _response(envelope, "in_progress")
        yield event("response.created", response=begun), False
        yield event("response.in_progress", response=begun), False
        whole = self.body(reply, envelope)
        for index, item in enumerate(whole["output"]):
            field = "summary" if item["type"] == "reasoning" else "content"
            yield (
                event(
                    "response.output_item.added",
                    output_index=index,
                    item=item | {field: [], "status": "in_progress"},
                ),
                False,
            )
            for place, part in enumerate(item[field]):
                at = {"item_id": item["id"], "output_index": index}
                yield from _part(event, part, at, place)
            yield event("response.output_item.done", output_index=index, item=item), False
        yield event(f"response.{whole['status']}", response=whole), False

    def error_event(self, error: ApiError, envelope: Envelope) -> bytes:
        value = {"type": "response.failed", "sequence_number": 9, "response": self.failed(error, envelope)}
        return b"event: response.failed\ndata: " + orjson.dumps(value) + b"\n\n"

    def failed(self, error: ApiError, envelope: Envelope) -> Json:
        said = {"code": OPENAI[error.code][1], "message": error.message}
        return _response(envelope, "failed") | {"error": said}


def _part(
    event: _Event, part: dict[str, Json], at: dict[str, Json], place: int
) -> Iterator[tuple[bytes, bool]]:
    """The events of one part, empty at first, whole at last."""
    kind = part["type"]
    key = "refusal" if kind == "refusal" else "text"
    if kind == "summary_text":
        at, name, piece = at | {"summary_index": place}, "reasoning_summary_part", "reasoning_summary_text"
    else:
        at, name, piece = at | {"content_index": place}, "content_part", kind
    more: dict[str, Json] = {"logprobs": []} if kind == "output_text" else {}
    yield event(f"response.{name}.added", part=part | {key: ""}, **at), False
    for word in words(part[key]):
        yield event(f"response.{piece}.delta", delta=word, **at, **more), True
    yield event(f"response.{piece}.done", **{key: part[key]}, **at, **more), False
    yield event(f"response.{name}.done", part=part, **at), False


def _status(reply: Reply) -> tuple[str, str]:
    if reply.filtered:
        return "incomplete", "content_filter"
    return ("incomplete", "max_output_tokens") if reply.finish is Finish.LENGTH else ("completed", "")


def _items(reply: Reply, envelope: Envelope, status: str) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    tail = envelope.reply_id.removeprefix(Responses.reply_prefix)
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append({"id": f"rs_{tail}", "type": "reasoning", "summary": summary, "status": status})
    content: list[dict[str, Json]] = []
    if reply.text is not None:
        content.append({"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []})
    if reply.refusal:
        content.append({"type": "refusal", "refusal": reply.refusal})
    if content:
        items.append(
            {
                "id": f"msg_{tail}",
                "type": "message",
                "role": "assistant",
                "status": status,
                "content": content,
            }
        )
    return items


def _response(envelope: Envelope, status: str) -> dict[str, Json]:
    return {
        "id": envelope.reply_id,
        "object": "response",
        "created_at": envelope.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": envelope.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "metadata": {},
    }


def _usage(reply: Reply) -> Json:
    usage = reply.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
