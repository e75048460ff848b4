"""Settings of the service itself: where it keeps runs, which endpoints and data its users may name.

Whoever speaks to the service knows endpoints, data sets and benchmarks by name only. Addresses, paths and
names of variables are said here, by who starts it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mmbu_async.config import DEFAULT_KEY_VARIABLES, CallSettings, EndpointKind
from mmbu_async.errors import ConfigError
from mmbu_async.wrong_values import wrong

_STRICT = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class EndpointSettings(BaseModel):
    """An address, its key, and what the key allows all runs together: an `[[endpoint]]` table."""

    model_config = _STRICT

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """By which runs name it."""
    endpoint: EndpointKind = "openai"
    """Wire format; see RunConfig."""
    base_url: str | None = None
    """None: the maker's own address."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: the maker's usual one."""
    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Most calls under way at once, over all runs; None: the most that a run at work was given."""
    rpm: float | None = Field(default=None, gt=0)
    """Requests a minute over all runs; None: the most that a run at work was given."""
    tpm: float | None = Field(default=None, gt=0)
    """Tokens a minute over all runs; None: the most that a run at work was given."""
    models: tuple[str, ...] = ()
    """The only models it may be asked for; none: any."""

    def call_settings(self, model: str = "any") -> CallSettings:
        """Address and key as a run has them. Raises pydantic's error for what cannot be."""
        return CallSettings(
            model=model, endpoint=self.endpoint, base_url=self.base_url, api_key_env=self.api_key_env
        )


def _makers() -> tuple[EndpointSettings, ...]:
    return tuple(
        EndpointSettings(name=kind, endpoint=kind) for kind in ("openai", "responses", "anthropic", "gemini")
    )


class ServiceConfig(BaseModel):
    """All that one service is started with."""

    model_config = _STRICT

    store: Path = Path("mmbu.sqlite")
    """The SQLite file that holds runs and jobs."""
    max_runs: int = Field(default=4, ge=1, le=64)
    """Runs at work at once; others wait in the queue."""
    max_cost: float | None = Field(default=None, gt=0)
    """US dollars that all runs of the service's jobs may have cost together; then jobs wait."""
    data: dict[str, str] = Field(default_factory=dict)
    """Data sets by name: a local folder, or a hub id."""
    benchmarks: dict[str, Path] = Field(default_factory=dict)
    """Descriptions of one's own benchmarks, TOML files, by name."""
    endpoint: tuple[EndpointSettings, ...] = Field(default_factory=_makers)
    """Where models are reached; none: the makers' own addresses, with the keys' usual variables."""

    @field_validator("endpoint")
    @classmethod
    def _known_apart(cls, endpoints: tuple[EndpointSettings, ...]) -> tuple[EndpointSettings, ...]:
        names = [one.name for one in endpoints]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two are called '{twice}'")
        for one in endpoints:
            try:
                one.call_settings()
            except ValidationError as error:
                problem = error.errors()[0]
                what = wrong(problem)
                raise ValueError(f"{one.name}: `{problem['loc'][0]}` {what}") from None
        return endpoints or _makers()


def load_service(
    file: Path | None = None, flags: Mapping[str, Any] | None = None, *, origin: str = "the command line"
) -> ServiceConfig:
    """Join a TOML file and flags, which win; `data` of both holds. Raises ConfigError in one sentence."""
    settings = _read(file) if file is not None else {}
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    if "data" in given and isinstance(settings.get("data"), dict):
        given["data"] = {**settings["data"], **given["data"]}
    try:
        config = ServiceConfig.model_validate(settings | given)
    except ValidationError as error:
        first = error.errors()[0]
        path = [str(part) for part in first["loc"]]
        name = ".".join(str(int(part) + 1) if part.isdecimal() else part for part in path)
        where = origin if path[0] in given or file is None else str(file)
        message = wrong(first)
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"{where}: there is no setting '{name}' of the service.") from None
        raise ConfigError(f"{where}: setting '{name}': {message}.") from None
    return config.model_copy(
        update={
            "store": config.store.expanduser().absolute(),
            "data": {name: _place(value) for name, value in config.data.items()},
            "benchmarks": {name: path.expanduser().absolute() for name, path in config.benchmarks.items()},
        }
    )


def data_sets(pairs: list[str]) -> dict[str, str]:
    """`NAME=PATH` of `--data`, given any number of times. Raises ConfigError."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, mark, place = pair.partition("=")
        if not (mark and name.strip() and place.strip()):
            raise ConfigError(f"--data {pair}: write NAME=FOLDER, the name by which runs ask for it.")
        if name in found:
            raise ConfigError(f"--data {pair}: '{name}' is given twice.")
        found[name] = place
    return found


def key_variables(config: ServiceConfig) -> dict[str, str]:
    """Endpoint -> the variable that holds its key."""
    return {one.name: one.api_key_env or DEFAULT_KEY_VARIABLES[one.endpoint] for one in config.endpoint}


def _place(data: str) -> str:
    folder = Path(data).expanduser()
    return str(folder.absolute()) if folder.is_dir() else data


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such settings file of a service.") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: cannot be read (no UTF-8 text, at byte {error.start}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}.") from None
