"""Ending a run early without losing anything."""

from __future__ import annotations

from collections.abc import Callable

from mmbu_async.errors import MmbuError


class Stop:
    """The first reason to stop wins; whoever starts calls is told to drain."""

    def __init__(self) -> None:
        self.reason: MmbuError | None = None
        self._drains: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return self.reason is not None

    def on_request(self, drain: Callable[[], None]) -> None:
        """`drain` is called once when the stop is requested; at once if it was already."""
        self._drains.append(drain)
        if self:
            drain()

    def request(self, reason: MmbuError) -> None:
        """Start no further call; calls under way finish and are stored."""
        if self.reason is None:
            self.reason = reason
            for drain in self._drains:
                drain()
