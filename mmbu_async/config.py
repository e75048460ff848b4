"""Settings: file + environment + flags -> one frozen `RunConfig`.

The same names everywhere: a field here is the TOML key, the flag (`max_cost` is `--max-cost`) and the
environment variable (`MMBU_MAX_COST`). Flags win over the environment, the environment over the file.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mmbu_async.errors import ConfigError, MissingKeyError
from mmbu_async.model import Json

EndpointKind = Literal["openai", "anthropic"]

DEFAULT_BASE_URLS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
DEFAULT_KEY_VARIABLES: Mapping[str, str] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
OFFICIAL_JUDGE = "claude-sonnet-5"
"""The judge that official MMBU scores use (MMBU-public dataset card)."""


class CallSettings(BaseModel):
    """How one model is reached and sampled: the model under test, or a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """Name of the model, as its endpoint knows it."""
    endpoint: EndpointKind = "openai"
    """Wire format: `openai` for OpenAI and all that speak like it, `anthropic` for Anthropic."""
    base_url: str | None = None
    """Address before `/chat/completions` or `/v1/messages`; None: the maker's own."""
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
    seed: int | None = None
    """Sampling seed, for endpoints that take one; not sent unless set."""
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
    input_price: float | None = Field(default=None, ge=0)
    """US dollars a million input tokens; None: taken from genai-prices."""
    output_price: float | None = Field(default=None, ge=0)
    """US dollars a million output tokens; None: taken from genai-prices."""

    @field_validator("base_url")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http:// or https:// address with a host")
        if parts.username or parts.password:
            raise ValueError("must not hold a user name or password; use the environment for keys")
        return value.rstrip("/")

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
        if not key and (self.base_url is None or self.api_key_env):
            raise MissingKeyError(
                f"no API key for {self.model} at {self.host}: set the environment variable "
                f"{self.key_variable}, or name another one with --api-key-env."
            )
        return key


class JudgeConfig(CallSettings):
    """The judge: its own model, endpoint and limits."""

    model: str = OFFICIAL_JUDGE
    """Name of the judge's model, as its endpoint knows it."""
    endpoint: EndpointKind = "anthropic"
    """Wire format of the judge: `anthropic` or `openai`."""
    max_tokens: int = Field(default=512, ge=0)
    """Output token limit of a verdict; a judge that reasons before it writes needs more."""
    name: str | None = None
    """Under which its verdicts are kept; None: the model's name, with a number where settings differ."""


class RunConfig(CallSettings):
    """One run: one model on one benchmark with fixed settings, and the judge that reads its answers."""

    benchmark: str = "mmbu-public"
    """Name of the benchmark."""
    name: str | None = None
    """Name of the run; None: made from benchmark and model."""
    store: Path = Path("mmbu.sqlite")
    """The SQLite file that holds the runs."""
    data: str | None = None
    """A local folder, or another hub id; None: the benchmark's own hub id."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first rows of the selection."""
    task: tuple[str, ...] = ()
    """Only rows whose task starts with, or has a topic equal to, one of these."""
    where: dict[str, str] = Field(default_factory=dict)
    """Only rows whose column has this value."""
    max_cost: float | None = Field(default=None, gt=0)
    """US dollars, model and judge together, after which no further call is started."""
    judge: JudgeConfig = JudgeConfig()
    synchronous: Literal["full", "normal"] = "full"
    """SQLite's durability: `full` survives a power cut, `normal` only the end of the process."""
    image_limits: Path | None = None
    """A TOML file laid over the shipped table of what endpoints accept in images."""
    preflight: bool = True
    """Send one row to model and judge before the rest."""

    @field_validator("task", mode="before")
    @classmethod
    def _one_task(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


def load_config(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> RunConfig:
    """Join file, environment and flags. `flags` holds only what the user gave; `judge` is a nested mapping.

    Raises ConfigError with one sentence that names the setting and where it came from.
    """
    settings: dict[str, Any] = {}
    origin = "the command line"
    if file is not None:
        settings = _read_file(file)
        origin = f"{file} or the command line"
    _merge(settings, _from_environment(os.environ if environment is None else environment))
    _merge(settings, dict(flags))
    return build_config(settings, origin)


def build_config(settings: Mapping[str, Any], origin: str = "settings") -> RunConfig:
    """Validate; pydantic's errors become one sentence."""
    try:
        return RunConfig.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = list((JudgeConfig if place.startswith("judge.") else RunConfig).model_fields)
            near = difflib.get_close_matches(place.rpartition(".")[2], known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; known are: {', '.join(known)}."
            raise ConfigError(f"{origin}: there is no setting '{place}'{hint}") from None
        if first["type"] == "missing":
            raise ConfigError(f"{origin}: the setting '{place}' is missing; give --{place}.") from None
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigError(f"{origin}: setting '{place}' = {first['input']!r}: {message}.") from None


def to_toml(config: RunConfig) -> str:
    """The file of a run: everything that differs from the defaults, ready for `--config`."""
    changed = config.model_dump(mode="json", exclude_defaults=True)
    changed["model"] = config.model
    judge = changed.pop("judge", {})
    tables = {"params": changed.pop("params", {}), "where": changed.pop("where", {})}
    lines = [f"{key} = {_toml_value(value)}" for key, value in changed.items()]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in table.items())]
    if judge:
        judge_params = judge.pop("params", {})
        lines += ["", "[judge]", *(f"{key} = {_toml_value(value)}" for key, value in judge.items())]
        if judge_params:
            lines += ["", "[judge.params]"]
            lines += [f"{_toml_key(k)} = {_toml_value(v)}" for k, v in judge_params.items()]
    return "\n".join(lines) + "\n"


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such settings file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}.") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for model, prefix, target in (
        (RunConfig, "MMBU_", found),
        (JudgeConfig, "MMBU_JUDGE_", found.setdefault("judge", {})),
    ):
        for name, info in model.model_fields.items():
            value = environment.get(prefix + name.upper())
            if value is None or name == "judge":
                continue
            structured = info.annotation in (dict[str, Json], dict[str, str], tuple[str, ...])
            target[name] = parse_json(value) if structured and value[:1] in "[{" else value
    if not found["judge"]:
        del found["judge"]
    return found


def parse_json(text: str) -> Json:
    """A JSON value, or the text itself where it is none (`--param reasoning_effort=low`)."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = dict(value) if isinstance(value, Mapping) else value


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _toml_value(value: Json) -> str:
    """TOML for a JSON value. JSON strings are valid TOML basic strings; null has no TOML form."""
    if value is None:
        raise ConfigError("a null in --param cannot be written to a TOML file; leave the parameter out.")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
