"""In which form a multiple-choice row is asked: as it stands, with its options shuffled, or in all rotations.

A model that likes the first letter shows it when the options move. Shuffling is by a seed and the row's id,
so that a re-run asks the same; circular evaluation asks each row once for every rotation of its options and
counts it right only when all of them are (Liu et al., MMBench, arXiv:2307.06281).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_uppercase

from mmbu_async.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How options are shown."""

    shuffle: int | None = None
    """Seed of the order; None: as the row has them."""
    circular: bool = False

    @property
    def suffix(self) -> str:
        """Told apart in the name under which the rows are registered; '' for the plain form."""
        shuffled = "" if self.shuffle is None else f"+shuffled-{self.shuffle}"
        return shuffled + ("+circular" if self.circular else "")


AS_GIVEN = Form()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One order of a row's options."""

    order: tuple[int, ...]
    """For each letter shown, the place that the option has in the row."""
    rotation: int | None = None

    def options(self, options: Sequence[str]) -> tuple[str, ...]:
        return tuple(options[place] for place in self.order)

    def letter(self, place: int) -> str:
        """Under which letter the row's option `place` is shown."""
        return ascii_uppercase[self.order.index(place)]

    def fields(self, row_id: str) -> dict[str, Json]:
        """What the stored row says about its form."""
        order = "".join(ascii_uppercase[place] for place in self.order)
        shown: dict[str, Json] = {"shown_order": order}
        if self.rotation is not None:
            shown |= {"circular_row": row_id, "rotation": str(self.rotation)}
        return shown


def shown_orders(form: Form, row_id: str, options: int) -> Iterator[Shown]:
    """Every order in which a row with so many options is asked."""
    order = list(range(options))
    if form.shuffle is not None:
        digest = hashlib.sha256(f"{form.shuffle}\x1f{row_id}".encode()).digest()
        Random(int.from_bytes(digest[:8])).shuffle(order)
    if not form.circular:
        yield Shown(order=tuple(order))
        return
    for rotation in range(options):
        yield Shown(order=tuple(order[rotation:] + order[:rotation]), rotation=rotation)
