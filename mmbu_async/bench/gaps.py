"""Times between tokens: too many to keep one by one, so histograms.

One for each stretch of time, and not one for all, since intervals are found by drawing stretches anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence

from mmbu_async.bench.histogram import Histogram
from mmbu_async.model import Json

FIRST_STRETCH_S = 0.25
MOST_STRETCHES = 64
"""With one more than that, two neighbours become one everywhere."""
BUFFER = 4096
"""Values that are put into a histogram at once: one by one would cost ten times as much."""


class Gaps:
    """Seconds between tokens, by stretch of the stage."""

    def __init__(self) -> None:
        self.stretch_s = FIRST_STRETCH_S
        self._stretches: dict[int, Histogram] = {}
        self._buffers: dict[int, array[float]] = {}

    def add(self, intended_s: float, gaps: Sequence[float]) -> None:
        """Those of one reply. `intended_s` counts from the stage's begin."""
        if not gaps:
            return
        place = int(max(0.0, intended_s) / self.stretch_s)
        while place >= MOST_STRETCHES:
            self._halve()
            place //= 2
        buffer = self._buffers.setdefault(place, array("d"))
        buffer.extend(gaps)
        if len(buffer) >= BUFFER:
            self._flush(place)

    def stretches(self) -> Iterator[Histogram]:
        """In order; only those that hold something."""
        for place in list(self._buffers):
            self._flush(place)
        for place in sorted(self._stretches):
            yield self._stretches[place]

    def whole(self) -> Histogram:
        """All of them together."""
        made = Histogram()
        for one in self.stretches():
            made.merge(one)
        return made

    def dump(self) -> Json:
        """As JSON that `load` reads."""
        return [one.dump() for one in self.stretches()]

    @classmethod
    def load(cls, dumped: Sequence[Mapping[str, Json]]) -> Gaps:
        made = cls()
        made._stretches = {place: Histogram.load(one) for place, one in enumerate(dumped)}
        return made

    def _flush(self, place: int) -> None:
        if (buffer := self._buffers.pop(place, None)) is not None:
            self._stretches.setdefault(place, Histogram()).add(buffer)

    def _halve(self) -> None:
        for place in list(self._buffers):
            self._flush(place)
        halved: dict[int, Histogram] = {}
        for place, one in sorted(self._stretches.items()):
            halved.setdefault(place // 2, Histogram()).merge(one)
        self._stretches = halved
        self.stretch_s *= 2
