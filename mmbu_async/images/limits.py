"""The table of what each provider accepts: `limits.toml` beside this file, and a file of the user's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mmbu_async.errors import ConfigError

MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""What can be accepted at all: the types that the wire formats know."""
UNLIMITED = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """What one endpoint accepts, for one image of a request."""

    name: str
    accepted: frozenset[str] = frozenset(MEDIA_TYPES)
    max_bytes_base64: int = UNLIMITED
    """Size after base64, as it stands in the request."""
    max_edge: int = UNLIMITED
    """Pixels of the longer side."""
    max_pixels: int = UNLIMITED
    """Width times height."""
    many_images: int = UNLIMITED
    many_max_edge: int = UNLIMITED
    """`max_edge` where a request holds more than `many_images` images."""
    source: str = ""
    """Where the numbers are from."""

    def for_images(self, count: int) -> ImageLimits:
        """The limits where the request holds `count` images."""
        if count <= self.many_images:
            return self
        return replace(self, max_edge=min(self.max_edge, self.many_max_edge))


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    endpoint: str
    hosts: list[str] = []
    accepted: frozenset[str] = Field(frozenset(MEDIA_TYPES), min_length=1)
    max_bytes_base64: int = Field(UNLIMITED, ge=1024)
    max_edge: int = Field(UNLIMITED, ge=1)
    max_pixels: int = Field(UNLIMITED, ge=1)
    many_images: int = Field(UNLIMITED, ge=1)
    many_max_edge: int = Field(UNLIMITED, ge=1)
    source: str = ""


_TABLE = TypeAdapter(dict[str, _Entry])


def find_limits(endpoint: str, host: str, file: Path | None = None) -> ImageLimits:
    """The limits of a wire format at a host. `file` may override entries of the shipped table and add some.

    Raises ConfigError where the file cannot be used.
    """
    raw: dict[str, Any] = tomllib.loads(files(__package__).joinpath("limits.toml").read_text("utf-8"))
    if file is not None:
        raw = _joined(raw, _read(file))
    table = _validated(raw, file)
    # The user's own entries come last in the file order and first in precedence.
    for name, entry in reversed(table.items()):
        if entry.endpoint == endpoint and host in entry.hosts:
            return _limits(name, entry)
    if endpoint not in table:
        raise ConfigError(f"image limits: there is no entry [{endpoint}] for the wire format; add one.")
    return _limits(endpoint, table[endpoint])


def _limits(name: str, entry: _Entry) -> ImageLimits:
    return ImageLimits(name=name, **entry.model_dump(exclude={"endpoint", "hosts"}))


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: the image limits cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: the image limits are no valid TOML: {error}.") from None


def _joined(shipped: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The user's entries laid over the shipped ones, key by key."""
    joined = dict(shipped)
    for name, entry in own.items():
        old = joined.pop(name, {})
        joined[name] = {**old, **entry} if isinstance(entry, dict) else entry
    return joined


def _validated(raw: Mapping[str, Any], file: Path | None) -> dict[str, _Entry]:
    where = file or "limits.toml"
    try:
        table = _TABLE.validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        name, *rest = (str(part) for part in first["loc"])
        key = ".".join(rest) or "the entry"
        raise ConfigError(f"{where}: [{name}] {key}: {first['msg']}.") from None
    for name, entry in table.items():
        if unknown := sorted(entry.accepted - set(MEDIA_TYPES)):
            known = ", ".join(MEDIA_TYPES)
            raise ConfigError(f"{where}: [{name}] accepted: {unknown[0]!r} is none of {known}.")
    return table
