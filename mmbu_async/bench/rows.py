"""Work out of a benchmark's own rows: a random part of them, asked as `mmbu run` asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

from mmbu_async.bench.pool import Item
from mmbu_async.errors import DataError
from mmbu_async.model import Sample
from mmbu_async.pipeline.opening import Bench
from mmbu_async.pipeline.placement import BrokenRow, Workshop
from mmbu_async.pipeline.selecting import keeper
from mmbu_async.sources import samples
from mmbu_async.store import StoredSample

MOST_ROWS = 512
"""Different rows that are sent; more would be read and kept in memory for little."""
MOST_BYTES = 256 * 2**20
"""Of their images together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Rows to be asked about."""

    rows: tuple[StoredSample, ...]
    selected: int
    """How many rows the selection has, of which these were drawn: what a whole run would ask."""


def pick(bench: Bench, count: int, seed: int) -> Picked:
    """So many rows, each as likely as any other; all of the selection where it has fewer.

    Reads the whole table once and keeps what is drawn (algorithm R: Vitter, ACM Transactions on Mathematical
    Software 11, 1985). Raises DataError where no row matches.
    """
    config = bench.config
    keep = keeper(config.task, config.where)
    random, drawn, selected = Random(seed), list[StoredSample](), 0
    for sample, family in _limited(samples(bench.source, bench.rules.benchmark), config.limit, keep):
        place = random.randrange(selected + 1) if selected >= count else selected
        selected += 1
        if place >= count:
            continue
        row = StoredSample(key=selected, sample=sample, family=family)
        if place < len(drawn):
            drawn[place] = row
        else:
            drawn.append(row)
    if not drawn:
        raise DataError(
            f"{bench.source.description}: no row matches the selection; loosen --task or --where."
        )
    return Picked(rows=tuple(drawn), selected=selected)


def items(picked: Picked, workshop: Workshop) -> tuple[list[Item], list[BrokenRow]]:
    """The rows with their images as they are sent, and those whose images cannot be."""
    made: list[Item] = []
    broken: list[BrokenRow] = []
    size = 0
    with ThreadPoolExecutor(2, thread_name_prefix="prepare") as pool:
        for row, images in zip(picked.rows, pool.map(workshop.images, picked.rows), strict=True):
            if isinstance(images, BrokenRow):
                broken.append(images)
                continue
            if size > MOST_BYTES and made:
                continue
            size += sum(len(image.data) for image in images)
            made.append(Item(prompt=workshop.benchmark.prompt(row.sample), images=tuple(images), row=row))
    if not made:
        raise DataError(f"not one of {len(broken)} rows has an image that can be sent: {broken[0].message}")
    return made, broken


def _limited(
    found: Iterable[tuple[Sample, str]], limit: int | None, keep: Callable[[Sample], bool] | None
) -> Iterable[tuple[Sample, str]]:
    taken = 0
    for sample, family in found:
        if limit is not None and taken >= limit:
            return
        if keep is None or keep(sample):
            taken += 1
            yield sample, family
