"""What a run (the driver) and a worker say to each other, over one connection each.

Both sides run the same version of the package, which is checked before; so these are plain objects.
Either side writes what has gathered while its last message was on its way, so that many rows share one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from distributed.protocol import to_serialize

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.exchange import Body, Exchanged
from mmbu_async.images import ImageLimits
from mmbu_async.model import DataSpec, ImageRef, Prompt
from mmbu_async.pipeline.placement import Request

OPERATION = "mmbu_async"
"""Under which a worker knows us, beside Dask's own operations."""
_SAID = "said"


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Where the driver reads images, and how a worker can tell that it sees the same."""

    place: str
    spec: DataSpec
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The driver's first words."""

    sides: tuple[CallSettings, ...]
    """Whom the worker will call: the model under test, judges. Settings hold no key."""
    limits: ImageLimits
    data: Data | None
    """None: the driver sends the bytes of images."""
    own: bool
    """Whether the driver started the worker on its own machine: a Ctrl-C in the terminal reaches both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The worker's answer."""

    keys_wanted: tuple[int, ...]
    """Sides whose key is not in the worker's environment."""
    sees_data: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Keys that were asked for, by side. Never shown."""

    of: dict[int, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row to prepare."""

    number: int
    """Of the body that is made."""
    prompt: Prompt
    images: tuple[ImageRef, ...]
    originals: tuple[bytes, ...] | None
    """The bytes of the images; None: the worker reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Make the bodies of these rows and keep them."""

    ask: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmade:
    """Why there is no body."""

    problem: str
    unread: bool
    """The image was not found or could not be read here; the driver may see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One result a row, in order. Bodies stay on the worker."""

    ask: int
    results: tuple[Request | Unmade, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Make one call."""

    ask: int
    side: int
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of it."""

    ask: int
    made: Exchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A kept body will not be sent again."""

    number: int


@dataclass(frozen=True, slots=True)
class _Said:
    """A message as a whole: Dask would look into a list, and pickle each of its items by itself."""

    message: Any = field(repr=False)


async def say(comm: Any, message: Any) -> None:
    """Raises CommClosedError. What Dask does not know it pickles, as it does for all its tasks: a worker runs
    whatever its clients send it, and this opens no door that is not open."""
    await comm.write({_SAID: to_serialize(_Said(message))})


async def heard(comm: Any) -> Any:
    """What the other side said next. Raises CommClosedError."""
    said: _Said = (await comm.read())[_SAID]
    return said.message
