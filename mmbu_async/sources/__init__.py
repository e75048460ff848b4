"""Rows and image bytes, streamed: from the hub or from a folder."""

from __future__ import annotations

import re
from pathlib import Path

from mmbu_async.errors import ConfigError
from mmbu_async.sources.base import RawRow, Source
from mmbu_async.sources.folder import READERS, ImageFolder
from mmbu_async.sources.hub import HubDataset, Load, load_from_hub
from mmbu_async.sources.samples import samples

__all__ = ["HubDataset", "ImageFolder", "RawRow", "Source", "open_source", "samples"]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def open_source(data: str | None, benchmark_default: str, *, load: Load = load_from_hub) -> Source:
    """A folder where `data` is one, else the hub's dataset of that id; None: the benchmark's own id."""
    name = benchmark_default if data is None else data
    path = Path(name).expanduser()
    if data is not None and path.is_dir():
        return ImageFolder(path)
    if data is not None and path.exists():
        raise ConfigError(f"{name}: is a file; give the folder that holds {' or '.join(READERS)}.")
    if _HUB_ID.fullmatch(name):
        return HubDataset(name, load=load)
    raise ConfigError(f"{name}: is neither an existing folder nor a hub id like owner/name; correct --data.")
