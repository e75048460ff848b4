"""No night is burnt on a dead endpoint: many rows in a row that fail alike first pause, then stop the run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from mmbu_async.model import TRANSIENT_KINDS, Failure

THRESHOLD = 10
"""Rows in a row."""
PAUSE_S = 30.0
PROBES = 3
"""Rows that may fail after the pause before the run stops."""
REFUSALS = 100
"""Rows in a row that may be refused once a reply has shown that the settings are not to blame: neighbours in
a dataset can break one and the same rule of the endpoint."""


class Step(Enum):
    """What to do after a row's outcome."""

    GO_ON = auto()
    PAUSE = auto()
    STOP = auto()


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Counts rows whose failure stands; any reply resets it.

    All kinds that waiting may mend are alike, since a dead endpoint shows itself as a time-out here and a 502
    there; they are given one pause of `pause_s` seconds, during which calls that were already under way do
    not count. Others are alike when they have the same kind and status (each row refused with 400, say); they
    stop the run at the threshold, or at `refusals` where the settings are `proven`.
    """

    threshold: int = THRESHOLD
    probes: int = PROBES
    pause_s: float = PAUSE_S
    refusals: int = REFUSALS
    proven: bool = False
    """Whether these settings ever got a reply, in this session or before."""
    _alike: tuple[object, ...] = ()
    _count: int = 0
    _paused_until: float = -math.inf
    _paused: bool = False

    def success(self) -> None:
        self._count = 0
        self._paused = False
        self.proven = True

    def failure(self, failure: Failure, now: float) -> Step:
        """`now` is monotonic, in seconds."""
        mendable = failure.kind in TRANSIENT_KINDS
        alike = ("mendable",) if mendable else (failure.kind, failure.status)
        if alike != self._alike:
            self._alike, self._count, self._paused = alike, 0, False
        if self._paused and now < self._paused_until:
            return Step.GO_ON
        self._count += 1
        if self._paused:
            return Step.STOP if self._count >= self.probes else Step.GO_ON
        if not mendable:
            most = self.refusals if self.proven else self.threshold
            return Step.STOP if self._count >= most else Step.GO_ON
        if self._count < self.threshold:
            return Step.GO_ON
        self._paused = True
        self._paused_until = now + self.pause_s
        self._count = 0
        return Step.PAUSE
