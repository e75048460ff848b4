"""In which parts a session is done, where some of its sides ask in batches and others one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a session."""

    batched: bool
    model: bool
    """Whether the model under test is asked."""
    judges: tuple[int, ...]
    """Numbers of the judges that are asked."""
    cancel: bool = False
    """Of a part in batches: hand nothing in, cancel what is out, and take what has been done."""


def parts(
    *, model: bool | None, judges: Sequence[tuple[int, bool]], out: Collection[int | None]
) -> tuple[Part, ...]:
    """The parts, in order.

    `model`: whether the model asks in batches, None: it is not asked. `judges`: the same of each judge.
    `out`: whose batches are out; a side that has some and asks one by one now calls them back first, for its
    rows must not be bought twice.
    """
    batched = tuple(number for number, in_batches in judges if in_batches)
    online = tuple(number for number, in_batches in judges if not in_batches)
    called_back = tuple(number for number in online if number in out)
    found: list[Part] = []
    if called_back or (model is False and None in out):
        back = model is False and None in out
        found.append(Part(batched=True, model=back, judges=called_back, cancel=True))
        if back and online:
            # Replies that came back with the model's batches: the next part looks at earlier sessions' only.
            found.append(Part(batched=False, model=False, judges=online))
    if model is False:
        found.append(Part(batched=False, model=True, judges=online))
        if batched:
            found.append(Part(batched=True, model=False, judges=batched))
    else:
        if model or batched:
            found.append(Part(batched=True, model=bool(model), judges=batched))
        if online or not (model or batched):
            found.append(Part(batched=False, model=False, judges=online))
    return tuple(found)


def call_back(judges: Sequence[int], out: Collection[int | None]) -> tuple[Part, ...]:
    """Only cancel what is out. Batches of judges that the run has no more are left to whoever sent them."""
    back = tuple(number for number in judges if number in out)
    if not back and None not in out:
        return ()
    return (Part(batched=True, model=None in out, judges=back, cancel=True),)
