"""What one request asks, whatever the work is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mmbu_async.store import StoredSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request that can go out."""

    body: bytes
    images: int
    pixels: int
    """Of all images together."""
    raw_input: int
    """Input tokens by the rules, uncorrected."""
    row: StoredSample | None = None
    """None: synthetic."""
    image_scale: float = 1.0


class Work(Protocol):
    """Gives requests, one after the other, without end. Called on the event loop: cheap."""

    def next(self) -> Ask:
        """The next request."""
