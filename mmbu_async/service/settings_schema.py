"""Settings of a run as a client of the service may give them, as a JSON schema made of the settings' own
model: a setting that is new there is described here too."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mmbu_async.config import RunConfig
from mmbu_async.service.naming import REFUSED

NAMED: Mapping[str, str] = {
    "endpoint": "Name of an endpoint of this service; see the operation `choices`.",
    "data": "Name of a data set of this service; null: the benchmark's own.",
    "benchmark": "Name of a benchmark; see the operation `choices`.",
}
"""Settings that mean something else here than in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Annotates a table whose names and values are settings: the API takes it as it is and hands it on to the
    scheduler, which says what is wrong with it."""

    whole: bool

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        """Asked for by pydantic under this name, and only when somebody wants the description."""
        return settings_schema(whole=self.whole)


def settings_schema(*, whole: bool) -> dict[str, Any]:
    """Of all settings. `whole`: the model must be named, as for a run that is new; else any part will do."""
    schema = RunConfig.model_json_schema()
    tables = schema.pop("$defs")
    found = _table(schema)
    found["properties"]["judge"] = _table(tables["JudgeConfig"])
    found["properties"]["panel"] = {"type": "array", "items": _table(tables["PanelJudge"], ("model",))}
    if whole:
        found["required"] = ["model"]
    return found


def _table(schema: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    properties = {
        name: _property(name, one) for name, one in schema["properties"].items() if name not in REFUSED
    }
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": list(required)} if required else {})


def _property(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(dict(schema))
    if name in NAMED:
        kinds = {"anyOf": [{"type": "string"}, {"type": "null"}]} if name == "data" else {"type": "string"}
        return {**kinds, "description": NAMED[name]}
    return found
