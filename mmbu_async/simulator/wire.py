"""What all wire formats have in common: a request, a reply, an error, before any vendor's spelling."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson
import pybase64

from mmbu_async.model import Finish, Json, Usage
from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.pictures import Picture, picture

VOLATILE = frozenset({"stream", "stream_options", "user", "metadata", "safety_identifier", "store"})
"""Request fields that change nothing in what is answered: they are left out of the content hash."""


def bearer(sent: Mapping[str, str]) -> str:
    """The key of an `Authorization: Bearer` header."""
    scheme, _, key = sent.get("authorization", "").partition(" ")
    return key.strip() if scheme.casefold() == "bearer" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request, read and found well formed."""

    model: str
    system: str
    text: str
    """The texts of all messages but the system message."""
    pictures: tuple[Picture, ...]
    max_tokens: int | None
    stream: bool
    include_usage: bool
    """Whether a stream ends with token counts; without one they always come."""
    content: str
    """SHA-256 over what is asked, hexadecimal: path, model, texts, images, sampling."""
    cacheable: str = ""
    """The beginning that the endpoint keeps in its prompt cache; '' for none."""

    @property
    def role(self) -> str:
        return "judge" if "conservative biomedical answer-equivalence judge" in self.text else "model"

    @property
    def input_tokens(self) -> int:
        """Characters / 4, plus the images."""
        text = tokens(self.system) + tokens(self.text)
        return max(1, text + sum(image.tokens for image in self.pictures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is answered with status 200."""

    text: str | None
    finish: Finish = Finish.STOP
    reasoning: str = ""
    refusal: str = ""
    """The words of a refusal; `text` is then None."""
    empty: bool = False
    """No choice or content block at all."""
    filtered: bool = False
    """A refusal by a filter rather than by the model."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What surrounds a reply."""

    reply_id: str
    request_id: str
    model: str
    created: int


class ApiError(Exception):
    """A refusal of the request, in neutral words; each wire format spells it its own way.

    `code` is our word for the case; the vendor's type and code follow from it.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        details: Json = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = headers or {}
        self.details = details
        """What a vendor adds for machines; None where it adds nothing."""


class Wire(Protocol):
    """One vendor's spelling."""

    name: str
    """Of the format."""
    vendor: str
    """Whose headers and ways to say when to come again: `openai`, `anthropic` or `google`."""
    needs_key: bool
    """Whether a request without any key is refused, even where all keys are let in."""
    reply_prefix: str
    """How identifiers of replies begin."""

    def key(self, sent: Mapping[str, str]) -> str:
        """The API key in the headers; '' for none."""

    def read(self, body: bytes, sent: Mapping[str, str], config: SimulatorConfig) -> ChatRequest:
        """The request, or an ApiError of status 400 in the vendor's words. `sent` are the headers."""

    def body(self, reply: Reply, envelope: Envelope) -> Json: ...

    def events(self, reply: Reply, envelope: Envelope, include_usage: bool) -> Iterator[tuple[bytes, bool]]:
        """The reply as server-sent events: bytes, and whether they carry a token."""

    def error_event(self, error: ApiError, envelope: Envelope) -> bytes: ...

    def failed(self, error: ApiError, envelope: Envelope) -> Json:
        """An error that comes with status 200."""

    def error(self, error: ApiError, request_id: str) -> Json: ...

    def said(self, code: str, request: ChatRequest | None) -> tuple[int, str]:
        """Status and the vendor's own words for a case."""


def tokens(text: str) -> int:
    """The simulator's tokenizer: four characters a token, rounded up."""
    return -(-len(text) // 4)


def words(text: str) -> list[str]:
    """The text cut into tokens, for a stream."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def load(body: bytes) -> dict[str, Json]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ApiError(
            400, "bad_json", "We could not parse the JSON body of your request. (HINT: send a JSON payload.)"
        ) from None
    if not isinstance(value, dict):
        raise ApiError(400, "bad_json", "The body of the request is not a JSON object.")
    return value


def decode(text: str, declared: str) -> Picture | None:
    """An image from its base64 text; None when it is neither base64 nor an image that is accepted."""
    try:
        data = pybase64.b64decode(text, validate=True)
    except ValueError:
        return None
    return picture(data, declared, len(text))


def content_hash(wire: str, body: Mapping[str, Json]) -> str:
    """Over the body as sorted JSON without what is volatile; the caller has put hashes in place of images."""
    kept = {key: value for key, value in body.items() if key not in VOLATILE}
    return hashlib.sha256(orjson.dumps([wire, kept], option=orjson.OPT_SORT_KEYS)).hexdigest()


def check_picture(image: Picture, config: SimulatorConfig) -> str | None:
    """Which configured limit the image passes: `bytes`, `edge`, `pixels`; None when it is fine."""
    if config.max_image_base64 is not None and image.base64_chars > config.max_image_base64:
        return "bytes"
    if config.max_image_edge is not None and max(image.width, image.height) > config.max_image_edge:
        return "edge"
    if config.max_image_pixels is not None and image.width * image.height > config.max_image_pixels:
        return "pixels"
    return None
