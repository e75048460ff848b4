"""Files, environment and flags as layers of settings."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmbu_async.config.building import Layer, build_config
from mmbu_async.config.run import RunConfig
from mmbu_async.config.settings import JudgeConfig
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.toml import toml_text

_TABLES: Mapping[str, Any] = {
    "params": {},
    "where": {},
    "judge": {"params": {}},
    "panel": [{"params": {}}],
    "dask_options": {},
}
"""Settings that are tables, and the tables in them; in brackets: any number of tables."""


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


def with_panel_file(origin: str, settings: Mapping[str, Any]) -> list[Layer]:
    """A layer of settings, and below it that of the file which it names for the panel, if it names one."""
    file = settings.get("panel")
    if not isinstance(file, str):
        return [(origin, settings)]
    rest = {name: value for name, value in settings.items() if name != "panel"}
    return [(file, read_panel(Path(file))), (origin, rest)]


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
