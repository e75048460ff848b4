"""Settings: file + environment + flags -> one frozen `RunConfig`.

The same names everywhere: a field here is the TOML key, the flag (`max_cost` is `--max-cost`) and the
environment variable (`MMBU_MAX_COST`). Flags win over the environment, the environment over the file.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from mmbu_async.errors import ConfigError, MissingKeyError
from mmbu_async.model import Json
from mmbu_async.toml import toml_text
from mmbu_async.wrong_values import wrong

EndpointKind = Literal["openai", "responses", "azure", "anthropic", "gemini"]
ImageDetail = Literal["low", "medium", "high", "ultra_high", "original", "auto"]
Layer = tuple[str, Mapping[str, Any]]
"""Where settings came from, in words, and the settings."""

DEFAULT_BASE_URLS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
"""Azure has no address of its own: each resource has one."""
DEFAULT_KEY_VARIABLES: Mapping[str, str] = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
_OPENAI_DETAILS = ("low", "high", "original", "auto")
IMAGE_DETAILS: Mapping[str, tuple[str, ...]] = {
    "openai": _OPENAI_DETAILS,
    "responses": _OPENAI_DETAILS,
    "azure": _OPENAI_DETAILS,
    "anthropic": (),
    "gemini": ("low", "medium", "high", "ultra_high"),
}
"""Values of `image_detail` that a wire format knows."""
_ADDED_PATHS: Mapping[str, tuple[str, ...]] = {
    "openai": ("/chat/completions", "/messages"),
    "responses": ("/responses", "/chat/completions"),
    "azure": ("/responses", "/messages"),
    "anthropic": ("/messages", "/chat/completions"),
    "gemini": ("/models", "Content"),
}
"""Ends of addresses that hold what is added to them."""
_ADDED: Mapping[str, str] = {
    "openai": "/chat/completions",
    "responses": "/responses",
    "azure": "/openai/...",
    "anthropic": "/v1/messages",
    "gemini": "/models",
}
BATCH_ENDPOINTS = ("openai", "responses", "anthropic")
"""Wire formats whose batch API is known."""
_TABLES: Mapping[str, Any] = {
    "params": {},
    "where": {},
    "judge": {"params": {}},
    "panel": [{"params": {}}],
    "dask_options": {},
}
"""Settings that are tables, and the tables in them; in brackets: any number of tables."""
_SECRET_NAME = re.compile(r"key|token|secret|passw|signature|^sig$", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r"(x-)?(api[_-]?key|access[_-]?token|authorization|password|secret)", re.IGNORECASE
)
"""Names under which gateways take a key in a request's body or its extra headers."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST_KEY = 20
"""Characters."""
_HIDDEN = ("api_key_env", "params")
"""Settings whose value a message does not repeat: somebody may have put a key there."""
MAJORITY = "majority"
DECIDERS = ("judge", MAJORITY)
"""Values of `verdict` that are no judge's name."""
_CLUSTER_PARTS = ("scheduler", "workers", "jobqueue", "options")
CLUSTER = ("executor", *(f"dask_{part}" for part in _CLUSTER_PARTS))
"""Settings that say which machines work. Not kept with a run: it can go on elsewhere."""
OFFICIAL_JUDGE = "claude-sonnet-5"
"""The judge that official MMBU scores use (MMBU-public dataset card)."""


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
        if any(_SECRET_NAME.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
            raise ValueError("must not hold a key in its query; use the environment for keys")
        path = parts.path.rstrip("/")
        if kind == "azure":
            # What the portal shows to be copied.
            path = path.removesuffix("/chat/completions")
        if parts.fragment or path.endswith(_ADDED_PATHS[kind]):
            raise ValueError(f"must end before {_ADDED[kind]}, which is added")
        if kind == "anthropic" and path.endswith("/v1"):
            raise ValueError("must end before /v1, which is added for Anthropic's format")
        return parts._replace(path=path).geturl()

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, value: str | None) -> str | None:
        """Who takes the setting for the key itself must not find it in a store or a message afterwards."""
        if value is not None and (not _VARIABLE.fullmatch(value) or _looks_like_a_key(value)):
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
        if secret := _secret_in(value):
            raise ValueError(
                f"must not hold '{secret}', which would be kept with the run; use the environment"
            )
        return {name: _plain_json(item, name) for name, item in value.items()}

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
    shuffle_options: int | None = None
    """Seed by which multiple-choice options are shuffled; None: as the rows have them."""
    circular: bool = False
    """Ask each multiple-choice row in every rotation of its options; right only when all are."""
    max_cost: float | None = Field(default=None, gt=0)
    """US dollars, model and judge together, after which no further call is started."""
    judge: JudgeConfig = JudgeConfig()
    panel: tuple[PanelJudge, ...] = Field(default=(), validate_default=True)
    """Further judges, each a `[[panel]]` table with the judge's settings; all are asked about every row."""
    verdict: str = "judge"
    """Whose word makes the score: `judge`, the `majority` of judge and panel, or one of them by name."""
    judge_coverage: float = Field(default=1.0, ge=0, le=1)
    """Share of the rows that need a judge which must have a usable verdict, else the command exits with 3.
    From it on, unjudged rows alone are no failure, and the report still says incomplete."""
    synchronous: Literal["full", "normal"] = "full"
    """SQLite's durability: `full` survives a power cut, `normal` only the end of the process."""
    image_limits: Path | None = None
    """A TOML file laid over the shipped table of what endpoints accept in images."""
    preflight: bool = True
    """Send one row to model and judge before the rest."""
    batch_poll: float = Field(default=60.0, gt=0)
    """Seconds between two looks at batches that are out, at most; the first looks come sooner."""
    dask_scheduler: str | None = None
    """Address of the scheduler of a running Dask cluster, tcp://HOST:PORT or tls://HOST:PORT."""
    dask_workers: int | None = Field(default=None, ge=1, le=1000)
    """Dask workers to start: processes of this machine, or jobs with `dask_jobqueue`."""
    dask_jobqueue: Literal["slurm", "pbs"] | None = None
    """Batch system whose jobs the workers are, `slurm` or `pbs`, through the package dask-jobqueue."""
    dask_options: dict[str, Json] = Field(default_factory=dict)
    """Given to dask-jobqueue's cluster as they are: queue, account, walltime, memory, interface and more."""
    executor: Literal["local", "dask"] | None = Field(default=None, validate_default=True)
    """Who makes calls and prepares images: `local` this process, `dask` the workers of a Dask cluster; None:
    `dask` where a `dask_...` setting says which."""

    @field_validator("where", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        """A settings file may write numbers and truth values as such."""
        if not isinstance(value, Mapping):
            return value
        return {
            key: str(item) if isinstance(item, bool | int | float) else item for key, item in value.items()
        }

    @field_validator("task", mode="before")
    @classmethod
    def _one_task(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("panel", mode="before")
    @classmethod
    def _any_judges(cls, value: Any) -> Any:
        """From Python, judges of a panel may be given as what they are."""
        if isinstance(value, Mapping):
            raise ValueError("is a single table; write [[panel]] above each judge, not [panel]")
        if not isinstance(value, list | tuple):
            raise ValueError("is no list of judges; write a [[panel]] table for each")
        return tuple(item.model_dump() if isinstance(item, JudgeConfig) else item for item in value)

    @field_validator("panel")
    @classmethod
    def _distinct(cls, panel: tuple[PanelJudge, ...], info: ValidationInfo) -> tuple[PanelJudge, ...]:
        judge = info.data.get("judge")
        called: dict[str, str] = {}
        judges = [("the run's own judge", judge)] if judge else []
        judges += [(f"[[panel]] table {number}", one) for number, one in enumerate(panel, 1)]
        for who, one in judges:
            label = one.label
            if label in DECIDERS:
                raise ValueError(f"a judge cannot be called '{label}', which is a value of `verdict`")
            if label in called:
                raise ValueError(
                    f"two judges are called '{label}', {called[label]} and {who}; give one a `name` "
                    "of its own"
                )
            called[label] = who
        return panel

    @field_validator("verdict")
    @classmethod
    def _decides(cls, verdict: str, info: ValidationInfo) -> str:
        judge, panel = info.data.get("judge"), info.data.get("panel")
        if judge is None or panel is None:
            # One of them is wrong, which is said in its place.
            return verdict
        labels = [one.label for one in (judge, *panel)]
        if verdict == MAJORITY and not panel:
            raise ValueError("needs further judges: one has no majority")
        if verdict not in (*DECIDERS, *labels):
            raise ValueError(
                f"must be {', '.join(map(repr, DECIDERS))} or a judge's name ({', '.join(labels)})"
            )
        return verdict

    @field_validator("dask_scheduler")
    @classmethod
    def _scheduler(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value.strip())
        try:
            complete = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
        except ValueError:
            complete = False
        if not complete or parts.path.strip("/") or parts.query or "@" in parts.netloc:
            raise ValueError("must be a scheduler's address like tcp://HOST:8786 or tls://HOST:8786")
        return f"{parts.scheme}://{parts.netloc}"

    @field_validator("dask_options")
    @classmethod
    def _options(cls, value: dict[str, Json]) -> dict[str, Json]:
        if secret := _secret_in(value):
            raise ValueError(f"must not hold '{secret}'; use the environment")
        return {name: _plain_json(item, name) for name, item in value.items()}

    @field_validator("executor")
    @classmethod
    def _whole(cls, executor: str | None, info: ValidationInfo) -> str | None:
        """Which cluster is meant, if one is."""
        given = {name: info.data.get(name) for name in CLUSTER if name != "executor"}
        scheduler, workers, jobs, options = (given[f"dask_{name}"] for name in _CLUSTER_PARTS)
        if executor == "local":
            return executor
        if options and jobs is None:
            raise ValueError("dask_options are for a dask_jobqueue, and none is given")
        if scheduler is not None and (workers is not None or jobs is not None):
            raise ValueError(
                "dask_scheduler names a cluster that runs: leave out dask_workers and dask_jobqueue"
            )
        if workers is None and (jobs is not None or (executor == "dask" and scheduler is None)):
            raise ValueError(
                "dask_workers must say how many to start, or dask_scheduler which cluster to use"
            )
        return executor

    @property
    def on_cluster(self) -> bool:
        """Whether the workers of a Dask cluster do the work."""
        if self.executor is None:
            return self.dask_scheduler is not None or self.dask_workers is not None
        return self.executor == "dask"

    @property
    def judges(self) -> tuple[JudgeConfig, ...]:
        """All that are asked about a row, the judge first. They ask in batches where the run does, can, and
        nothing else was said."""
        return tuple(
            one.model_copy(update={"batch": one.endpoint in BATCH_ENDPOINTS})
            if self.batch and one.batch is None
            else one
            for one in (self.judge, *self.panel)
        )


def load_config(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> RunConfig:
    """Join file, environment and flags. `flags` holds only what the user gave; `judge` is a nested mapping.

    Raises ConfigError with one sentence that names the setting and where it came from.
    """
    found = _from_environment(os.environ if environment is None else environment)
    layers = [*with_panel_file("the environment", found), *with_panel_file("the command line", flags)]
    if file is not None:
        layers.insert(0, (str(file), _read_file(file)))
    settings: dict[str, Any] = {}
    for _, layer in layers:
        _merge(settings, layer, _TABLES)
    return build_config(settings, "the settings", layers)


def build_config(
    settings: Mapping[str, Any], origin: str = "settings", layers: Sequence[Layer] = ()
) -> RunConfig:
    """Validate; pydantic's errors become one sentence. It says which of the `layers` set what is wrong, the
    last that did, and `origin` where none did."""

    def origin_of(place: tuple[str, ...]) -> str:
        return next((name for name, layer in reversed(layers) if _holds(layer, place)), origin)

    return _validated(settings, origin_of)


def with_panel_file(origin: str, settings: Mapping[str, Any]) -> list[Layer]:
    """A layer of settings, and below it that of the file which it names for the panel, if it names one."""
    file = settings.get("panel")
    if not isinstance(file, str):
        return [(origin, settings)]
    rest = {name: value for name, value in settings.items() if name != "panel"}
    return [(file, read_panel(Path(file))), (origin, rest)]


def _validated(settings: Mapping[str, Any], origin: Callable[[tuple[str, ...]], str]) -> RunConfig:
    """`origin` says where the setting at a place came from."""
    try:
        return RunConfig.model_validate(dict(settings))
    except ValidationError as error:
        # A name that is none explains why another one is missing.
        found = error.errors()
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
        loc = tuple(str(part) for part in first["loc"])
        place, where = _place(loc), origin(loc)
        if where == "the environment":
            where = f"the environment variable MMBU_{'_'.join(loc[: 1 + (loc[0] == 'judge')]).upper()}"
        if first["type"] == "extra_forbidden":
            known = list((JudgeConfig if loc[0] in ("judge", "panel") else RunConfig).model_fields)
            near = difflib.get_close_matches(loc[-1], known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; known are: {', '.join(known)}."
            raise ConfigError(f"{where}: there is no setting '{place}'{hint}") from None
        if first["type"] == "missing":
            give = "" if len(loc) > 1 else f"; give --{place} or MMBU_{place.upper()}"
            raise ConfigError(f"{where}: the setting '{place}' is missing{give}.") from None
        shown = (
            ""
            if loc == ("panel",) or first["input"] is None or any(part in _HIDDEN for part in loc)
            else f" = {_shown(first['input'])}"
        )
        raise ConfigError(f"{where}: setting '{place}'{shown}: {wrong(first)}.") from None


def _place(loc: tuple[str, ...]) -> str:
    """A setting's name, with the tables in which it stands; those of a list are counted from 1."""
    return ".".join(str(int(part) + 1) if part.isdecimal() else part for part in loc)


def read_panel(file: Path) -> dict[str, Any]:
    """The settings in a panel's own file: its judges, and whose word counts, where it says so."""
    found = _read_file(file)
    if stray := sorted(found.keys() - {"panel", "verdict"}):
        raise ConfigError(
            f"{file}: holds '{stray[0]}', and the file of a panel has [[panel]] tables and `verdict` only: "
            "put the rest into the file of --config."
        )
    if not found.get("panel"):
        raise ConfigError(f"{file}: has no [[panel]] table: write one for each further judge.")
    # What is wrong with a judge is said with the file's name; whom `verdict` means is known later.
    build_config({"model": "any", "judge": {"name": "\0"}, "panel": found["panel"]}, str(file))
    return found


def to_toml(config: RunConfig) -> str:
    """The file of a run: everything that differs from the defaults, ready for `--config`."""
    changed = config.model_dump(mode="json", exclude_defaults=True)
    return toml_text({"model": config.model} | changed, _TABLES)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        # Windows editors begin a file with a byte order mark.
        return _with_tables(tomllib.loads(file.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such settings file.") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: cannot be read (no UTF-8 text, at byte {error.start}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}.") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """An empty variable is one that is not set, as container files write it."""
    found: dict[str, Any] = {}
    judge: dict[str, Any] = {}
    for model, prefix, target in ((RunConfig, "MMBU_", found), (JudgeConfig, "MMBU_JUDGE_", judge)):
        for name in model.model_fields.keys() - {"judge"}:
            if value := environment.get(prefix + name.upper()):
                in_json = name in ("task", "panel") and value.startswith("[")
                target[name] = parse_json(value) if in_json else value
    return _with_tables(found | ({"judge": judge} if judge else {}))


def _with_tables(settings: dict[str, Any], tables: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Tables that are written as JSON text become tables."""
    for name, inner in (_TABLES if tables is None else tables).items():
        value = settings.get(name)
        if isinstance(value, str) and value.startswith("{"):
            settings[name] = parse_json(value)
        elif isinstance(inner, list):
            for item in value if isinstance(value, list) else ():
                if isinstance(item, dict):
                    _with_tables(item, inner[0])
        elif isinstance(value, dict):
            _with_tables(value, inner)
    return settings


def parse_json(text: str) -> Json:
    """A JSON value, or the text itself where it is none (`--param reasoning_effort=low`)."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _merge(base: dict[str, Any], over: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    """Settings of a table win one by one; a value, be it a table to somebody else, wins as a whole."""
    for key, value in over.items():
        if key in tables and isinstance(value, Mapping):
            inner = base.get(key)
            base[key] = dict(inner) if isinstance(inner, Mapping) else {}
            _merge(base[key], value, tables[key])
        else:
            base[key] = value


def _holds(layer: Mapping[str, Any], place: tuple[str, ...]) -> bool:
    """Whether a layer set what stands at a place, or the table in which it stands."""
    value: Any = layer
    for part in place:
        if not isinstance(value, Mapping):
            return True
        if part not in value:
            return False
        value = value[part]
    return True


def _shown(value: Any) -> str:
    """Short, and without a password or a key that stands in an address."""
    text = re.sub(r"//[^/@\s]*@", "//***@", repr(value))
    if "://" in text:
        text = re.sub(r"=[^&'\"\s]+", "=***", text)
    return text if len(text) <= 80 else text[:77] + "..."


def _looks_like_a_key(name: str) -> bool:
    """Some keys could be names of variables. In those no word is as long, with small letters and digits."""
    words = (word for word in name.split("_") if len(word) >= _SHORTEST_KEY)
    return any(re.search(r"[a-z]", word) and re.search(r"\d", word) for word in words)


def _secret_in(value: Json) -> str:
    """The name of a field that holds a key, at any depth; '' where there is none."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(name, str) and item is not None and _SECRET_FIELD.fullmatch(name):
                return name
            if found := _secret_in(item):
                return found
    elif isinstance(value, list | tuple):
        return next(filter(None, map(_secret_in, value)), "")
    return ""


def _plain_json(value: Json, name: str) -> Json:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_plain_json(item, name) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain_json(item, name) for key, item in value.items()}
    raise ValueError(f"parameter '{name}' is no JSON value")
