"""What every wire format can do: a prompt into a request body, a response into a `Completion`. Pure.

Bodies are spliced from bytes: base64 of an image is copied once and never passes through a JSON encoder,
which would cost more CPU than all the rest of a request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import orjson
import pybase64

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import Headers, failure_in_ok_body, malformed
from mmbu_async.endpoints.parsed import parsed
from mmbu_async.model import Completion, Failure, ImageSlot, Json, PreparedImage, Prompt


class StreamParser(Protocol):
    """Collects the events of one streamed reply."""

    started: bool
    """Whether a content token has come."""
    spoken: int
    """Events so far with a piece of the reply, a refusal included."""
    thought: int
    """Events so far with a piece of reasoning and none of the reply."""

    def feed(self, event: bytes) -> None:
        """Take the data of one server-sent event."""

    def result(self, headers: Headers, status: int) -> Completion | Failure:
        """The reply, once the stream ended; a Failure when it ended too early or held an error."""


class WireFormat(Protocol):
    """One vendor's request and response bodies."""

    def path(self, settings: CallSettings) -> str:
        """What is added to the base URL, with a query of its own where the vendor wants one."""

    def headers(self, key: str) -> dict[str, str]:
        """Request headers, the key among them."""

    def body(self, settings: CallSettings, prompt: Prompt, images: Sequence[PreparedImage]) -> bytes:
        """The request body."""

    def read(self, payload: Mapping[str, Json], headers: Headers, status: int) -> Completion | Failure:
        """The reply in a parsed body that holds no error object."""

    def stream_parser(self) -> StreamParser:
        """A fresh parser for one streamed reply."""


def request_url(settings: CallSettings, wire: WireFormat) -> str:
    """Where requests go. The path stands before a query, which gateways and Azure want in the address
    (`?api-version=...`)."""
    base, _, query = settings.url.partition("?")
    path, _, own = wire.path(settings).partition("?")
    joined = "&".join(filter(None, (own, query)))
    return base.rstrip("/") + path + ("?" + joined if joined else "")


def read_response(wire: WireFormat, status: int, headers: Headers, body: bytes) -> Completion | Failure:
    """The reply in a response under status 200, or why there is none."""
    try:
        payload = parsed(body)
    except ValueError:
        return malformed("the body is no JSON", headers, status, body[:2000])
    if (failure := failure_in_ok_body(payload, headers, status)) is not None:
        return failure
    try:
        return wire.read(payload, headers, status)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return malformed(f"the reply has an unknown shape ({error})", headers, status)


def fields_of(
    settings: CallSettings, fields: Mapping[str, Json], *, params: Mapping[str, Json] | None = None
) -> bytes:
    """The JSON of a request's plain fields, closing brace off and comma on, ready for one more field.

    `params`, those of the settings unless given, come last and win; a null there removes the field.
    """
    merged = {**fields, **(settings.params if params is None else params)}
    head = orjson.dumps({key: value for key, value in merged.items() if value is not None})[:-1]
    return head + b"," if len(head) > 1 else head


def cache_key(settings: CallSettings, prompt: Prompt) -> str | None:
    """OpenAI's `prompt_cache_key`: requests with the same go to the same machine, so that what is alike at
    their beginning, the system message, is found in its cache. None: not to be sent."""
    if not settings.prompt_caching:
        return None
    return "mmbu-" + hashlib.sha256((prompt.system or "").encode("utf-8", "replace")).hexdigest()[:16]


def text_json(text: str) -> bytes:
    """A JSON string. Half a surrogate pair, which a damaged dataset can hold, is sent as `?`."""
    try:
        return orjson.dumps(text)
    except TypeError:
        return orjson.dumps(text.encode("utf-8", "replace").decode())


def parts_of(
    prompt: Prompt,
    images: Sequence[PreparedImage],
    opening: Mapping[str, bytes],
    closing: bytes,
    text_opening: bytes = b'{"type":"text","text":',
) -> bytes:
    """The JSON array of a user message's parts; `opening` maps a media type to what stands before base64."""
    pieces: list[bytes] = [b"["]
    for part in prompt.parts:
        if len(pieces) > 1:
            pieces.append(b",")
        if isinstance(part, ImageSlot):
            image = images[part.index]
            pieces += (opening[image.media_type], pybase64.b64encode(image.data), closing)
        else:
            pieces.append(text_opening + text_json(part) + b"}")
    pieces.append(b"]")
    return b"".join(pieces)


_TEXT_PARTS = ("text", "output_text")
_MOST_TOKENS = 2**53
MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def text_of(value: Json) -> str:
    """Reply text that arrives as a string, null, or a list of parts, of which some may be reasoning."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part for part in value if isinstance(part, dict))
        texts = (part.get("text") for part in parts if part.get("type", "text") in _TEXT_PARTS)
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def count_of(value: Json) -> int:
    """A token count, or 0 for whatever else stands there."""
    return int(value) if is_count(value) else 0


def is_count(value: Json) -> bool:
    """Servers in JavaScript may write 12.0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS


def table_of(value: Json) -> Mapping[str, Json]:
    """A JSON object, or an empty one for whatever else stands there: a reply is not thrown away for that."""
    return value if isinstance(value, dict) else {}
