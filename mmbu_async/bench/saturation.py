"""Is more asked of an endpoint than it serves? Told while a stage runs, so that it need not run to its end.

In an open loop beyond the capacity requests pile up and waiting grows for as long as the stage lasts: every
figure of such a stage says how long it was, not what the endpoint can do. But piles also grow by chance, most
of all just below the capacity. So three things must hold together: more requests are outstanding than chance
makes of as many arrivals; they have risen steadily, part by part; and so has waiting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PARTS = 6
"""Into which the time so far is cut."""
SIGMAS = 3.0
"""How many standard deviations of a random walk the pile must have grown."""
SERVICE_VARIANCE = 0.5
"""Squared variation of what the endpoint does in a time, as chance has it; arrivals bring their own."""
STEADY = 3.0
"""How many of its standard errors the slope of the parts must be."""
RISE = 0.4
"""By how much of what it was waiting must have risen."""
FEWEST = 40
"""Replies below which nothing is said."""
SHORTEST_S = 2.0


Values = Sequence[float] | NDArray[np.float64]


def oversaturated(
    outstanding: tuple[Values, Values], waits: tuple[Values, Values], *, arrived: int, arrival_variance: float
) -> bool:
    """`outstanding`: moments, sampled evenly since what does not count has passed, and how many requests were
    due and had not ended. `waits`: the ends of the replies since then and how long each was waited for, in
    seconds. `arrived`: requests that fell due since then; `arrival_variance`: that of their gaps over the
    squared mean."""
    moments = outstanding[0]
    if len(waits[0]) < FEWEST or len(moments) < PARTS * 2:
        return False
    begin, end = moments[0], moments[-1]
    if end - begin < SHORTEST_S:
        return False
    pile = _parts(*outstanding, begin, end)
    # Of what counts the first reply may come long after the first start.
    wait = _parts(*waits, waits[0][0], waits[0][-1])
    if pile is None or wait is None:
        return False
    grown = pile[-1] - pile[0]
    by_chance = math.sqrt(arrived * (arrival_variance + SERVICE_VARIANCE))
    # The parts' means are half a part away from both ends.
    grown *= PARTS / (PARTS - 1)
    return grown > SIGMAS * by_chance and _steady(pile) and _steady(wait) and wait[-1] > wait[0] * (1 + RISE)


def _parts(moments: Values, values: Values, begin: float, end: float) -> list[float] | None:
    """The mean of each part; None where one is empty."""
    times = np.asarray(moments, dtype=np.float64)
    place = np.clip(((times - begin) / (end - begin) * PARTS).astype(int), 0, PARTS - 1)
    counts = np.bincount(place, minlength=PARTS)
    if (counts == 0).any():
        return None
    means: list[float] = (np.bincount(place, weights=values, minlength=PARTS) / counts).tolist()
    return means


def _steady(parts: Sequence[float]) -> bool:
    """A slope that stands well above what the parts scatter around it."""
    x = np.arange(len(parts)) - (len(parts) - 1) / 2
    y = np.array(parts)
    slope = float((x * y).sum() / (x * x).sum())
    rest = y - y.mean() - slope * x
    error = math.sqrt(float((rest * rest).sum()) / (len(parts) - 2) / float((x * x).sum()))
    return slope > STEADY * error
