"""A stored run's settings, changed for a later session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmbu_async.config import RunConfig, build_config, with_panel_file
from mmbu_async.model import Json


def with_changes(config: RunConfig, changes: Mapping[str, Json] | None) -> RunConfig:
    """The settings of a run with others in their place, as a resume or a rejudge is given them."""
    if not changes:
        return config
    settings: dict[str, Any] = config.model_dump(mode="python")
    layers = with_panel_file("the command line", changes)
    for name, value in (item for _, layer in layers for item in layer.items()):
        if name == "judge" and isinstance(value, Mapping):
            settings[name] = {**_lasting(settings[name], value), **value}
        else:
            settings[name] = value
    return build_config(settings, "the command line", layers)


def _lasting(judge: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """What still holds of a judge's settings under these changes.

    Another model has another price, and its verdicts another name; another wire format, another address.
    """
    gone: set[str] = set()
    if changes.get("model", judge["model"]) != judge["model"]:
        gone |= {"name", "input_price", "output_price"}
    if changes.get("endpoint", judge["endpoint"]) != judge["endpoint"]:
        gone |= {"base_url", "api_key_env", "image_detail"}
    return {name: value for name, value in judge.items() if name not in gone}
