"""How one model is reached and sampled: the model under test, a judge, one of a panel."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from mmbu_async.config.kinds import (
    ADDED,
    ADDED_PATHS,
    BATCH_ENDPOINTS,
    DEFAULT_BASE_URLS,
    DEFAULT_KEY_VARIABLES,
    IMAGE_DETAILS,
    EndpointKind,
    ImageDetail,
)
from mmbu_async.config.secrets import SECRET_NAME, looks_like_a_key, secret_in
from mmbu_async.errors import ConfigError, MissingKeyError
from mmbu_async.model import Json

OFFICIAL_JUDGE = "claude-sonnet-5"
"""The judge that official MMBU scores use (MMBU-public dataset card)."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CallSettings(BaseModel):
    """How one model is reached and sampled: the model under test, or a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    flags: ClassVar[str] = "--"
    """How the flags for these settings begin."""

    def flag(self, setting: str) -> str:
        """How a setting is given, for a sentence that says what to do."""
        return self.flags + ("param" if setting == "params" else setting.replace("_", "-"))

    model: str = Field(min_length=1)
    """Name of the model, as its endpoint knows it."""
    endpoint: EndpointKind = "openai"
    """Wire format: `openai` for OpenAI's chat completions and all that speak like them, `responses` for its
    Responses, `azure` for Azure OpenAI, `anthropic` for Anthropic, `gemini` for Google's own."""
    base_url: str | None = Field(default=None, validate_default=True)
    """Address before `/chat/completions`, `/responses`, `/v1/messages` or `/models`; None: the maker's own.
    Azure needs one: `https://NAME.openai.azure.com`."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: the maker's usual one."""
    concurrency: int = Field(default=64, ge=1, le=10_000)
    """Most calls under way at once. The engine starts lower and grows while no 429 comes."""
    rpm: float | None = Field(default=None, gt=0)
    """Requests a minute."""
    tpm: float | None = Field(default=None, gt=0)
    """Tokens a minute, input and output together."""
    max_tokens: int = Field(default=2048, ge=0)
    """Output token limit sent with each request; 0 sends none (Anthropic requires one)."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; not sent unless set, since reasoning models refuse it."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    """Sampling seed, for endpoints that take one; not sent unless set."""
    image_detail: ImageDetail | None = None
    """How closely images are looked at, in the endpoint's own word: `low`, `high`, `original` or `auto` for
    OpenAI and Azure, `low`, `medium`, `high` or `ultra_high` for Gemini; not sent unless set."""
    prompt_caching: bool = False
    """Ask the endpoint to keep what is alike in all requests, the system message, in its cache. Changes what
    a call costs, not what it answers."""
    params: dict[str, Json] = Field(default_factory=dict)
    """Passed through into the request body as they are; a null removes a field that we would send."""
    stream: bool = False
    """Ask for a streamed reply: some servers cut long ones otherwise; time to first token is measured."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds for one attempt, first byte sent to last byte received."""
    connect_timeout: float = Field(default=15.0, gt=0)
    """Seconds to open a connection."""
    idle_timeout: float = Field(default=300.0, gt=0)
    """Seconds without a byte from the endpoint before the attempt is given up."""
    max_attempts: int = Field(default=6, ge=1)
    """Attempts a row, waiting for Retry-After not counted."""
    max_retry_time: float = Field(default=1800.0, gt=0)
    """Seconds after the first attempt beyond which none is started."""
    batch: bool | None = None
    """Ask in batches: half the price, answers within a day. A judge does as its run unless this is set."""
    batch_size: int | None = Field(default=None, ge=1)
    """Most requests in one batch; None: as many as its provider takes."""
    input_price: float | None = Field(default=None, ge=0)
    """US dollars a million input tokens; None: taken from genai-prices."""
    output_price: float | None = Field(default=None, ge=0)
    """US dollars a million output tokens; None: taken from genai-prices."""

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("endpoint", "openai")
        if value is None:
            if kind not in DEFAULT_BASE_URLS:
                raise ValueError(
                    f"is needed for {kind}: give the resource's address, https://NAME.openai.azure.com"
                )
            return None
        parts = urlsplit(value.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http:// or https:// address with a host")
        try:
            parts.hostname.encode("idna")
            _ = parts.port
        except (UnicodeError, ValueError):
            raise ValueError("has a host or port that cannot exist") from None
        if parts.username or parts.password:
            raise ValueError("must not hold a user name or password; use the environment for keys")
        if any(SECRET_NAME.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
            raise ValueError("must not hold a key in its query; use the environment for keys")
        path = parts.path.rstrip("/")
        if kind == "azure":
            # What the portal shows to be copied.
            path = path.removesuffix("/chat/completions")
        if parts.fragment or path.endswith(ADDED_PATHS[kind]):
            raise ValueError(f"must end before {ADDED[kind]}, which is added")
        if kind == "anthropic" and path.endswith("/v1"):
            raise ValueError("must end before /v1, which is added for Anthropic's format")
        return parts._replace(path=path).geturl()

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, value: str | None) -> str | None:
        """Who takes the setting for the key itself must not find it in a store or a message afterwards."""
        if value is not None and (not _VARIABLE.fullmatch(value) or looks_like_a_key(value)):
            raise ValueError("must be the name of an environment variable that holds the key, not the key")
        return value

    @field_validator("batch")
    @classmethod
    def _batched(cls, value: bool | None, info: ValidationInfo) -> bool | None:
        kind = info.data.get("endpoint", "openai")
        if value and kind not in BATCH_ENDPOINTS:
            known = ", ".join(BATCH_ENDPOINTS)
            raise ValueError(f"batches are known of the endpoints {known} only, not of {kind}")
        return value

    @field_validator("image_detail")
    @classmethod
    def _known_detail(cls, value: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("endpoint", "openai")
        known = IMAGE_DETAILS[kind]
        if value is not None and value not in known:
            raise ValueError(f"{kind} knows {', '.join(known)}" if known else f"{kind} has no such setting")
        return value

    @field_validator("params")
    @classmethod
    def _json_only(cls, value: dict[str, Json]) -> dict[str, Json]:
        if secret := secret_in(value):
            raise ValueError(
                f"must not hold '{secret}', which would be kept with the run; use the environment"
            )
        return {name: plain_json(item, name) for name, item in value.items()}

    @property
    def url(self) -> str:
        return self.base_url or DEFAULT_BASE_URLS[self.endpoint]

    @property
    def host(self) -> str:
        """Host name without port or path: what a report may show."""
        return urlsplit(self.url).hostname or ""

    @property
    def key_variable(self) -> str:
        return self.api_key_env or DEFAULT_KEY_VARIABLES[self.endpoint]

    def api_key(self, environment: Mapping[str, str] | None = None) -> str:
        """The key, or '' for a server of one's own that wants none.

        Raises MissingKeyError where the maker's own address, or a variable named by hand, has none.
        """
        key = (os.environ if environment is None else environment).get(self.key_variable, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(
                f"the API key in {self.key_variable} holds a line end or a character that no key has: "
                "copy it again."
            )
        wanted = self.base_url is None or self.api_key_env or self.host.endswith(".azure.com")
        if not key and wanted:
            raise MissingKeyError(
                f"no API key for {self.model} at {self.host}: set the environment variable "
                f"{self.key_variable}, or name another one with {self.flag('api_key_env')}."
            )
        return key


class JudgeConfig(CallSettings):
    """The judge: its own model, endpoint and limits."""

    flags: ClassVar[str] = "--judge-"

    model: str = OFFICIAL_JUDGE
    """Name of the judge's model, as its endpoint knows it."""
    endpoint: EndpointKind = "anthropic"
    """Wire format of the judge."""
    max_tokens: int = Field(default=512, ge=0)
    """Output token limit of a verdict; a judge that reasons before it writes needs more."""
    name: str | None = None
    """Under which its verdicts are kept; None: the model's name, with a number where settings differ."""

    @property
    def label(self) -> str:
        """What it is called among the judges of a run."""
        return self.name or self.model


class PanelJudge(JudgeConfig):
    """A further judge: all that a judge can have, in a `[[panel]]` table of a settings file."""

    model: str = Field(min_length=1)
    """Name of the judge's model, as its endpoint knows it."""

    def flag(self, setting: str) -> str:
        return f"`{setting}` in the [[panel]] table of {self.label}"


def plain_json(value: Json, name: str) -> Json:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [plain_json(item, name) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain_json(item, name) for key, item in value.items()}
    raise ValueError(f"parameter '{name}' is no JSON value")
