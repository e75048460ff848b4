"""Rows and image bytes, streamed: from the hub or from a folder."""

from __future__ import annotations

import re
from pathlib import Path

from mmbu_async.errors import ConfigError
from mmbu_async.model import DataSpec, RawRow
from mmbu_async.sources.base import Source
from mmbu_async.sources.folder import ImageFolder, LocalFolder
from mmbu_async.sources.hub import HubDataset, Load, load_from_hub
from mmbu_async.sources.samples import samples

__all__ = [
    "HubDataset",
    "ImageFolder",
    "LocalFolder",
    "RawRow",
    "Source",
    "open_data",
    "samples",
]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def open_data(data: str | None, spec: DataSpec, *, load: Load = load_from_hub) -> Source:
    """A folder where `data` is one, else the hub's dataset of that id; None: the benchmark's own.

    Raises ConfigError where `data` is neither, and DataError where what it names cannot be used.
    """
    name = spec.hub if data is None else data
    if not name:
        raise ConfigError(
            "the benchmark names no hub id ([source] hub), so that its rows must come from a folder: give "
            f"--data with the one that holds {' or '.join(spec.tables)}."
        )
    path = Path(name).expanduser()
    if data is not None and path.is_dir():
        return LocalFolder(path, spec)
    if data is not None and path.exists():
        raise ConfigError(f"{name}: is a file; give the folder that holds {' or '.join(spec.tables)}.")
    if _HUB_ID.fullmatch(name):
        return HubDataset(name, spec, load=load)
    raise ConfigError(f"{name}: is neither an existing folder nor a hub id like owner/name; correct --data.")
