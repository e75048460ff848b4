"""A row of each way to ask, of every benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mmbu_async import tasks
from mmbu_async.model import Benchmark, Json, Sample
from mmbu_async.sources import open_data, samples
from tests.integration.test_further_benchmarks import LAYOUTS, built
from tests.whole_run import MINI

NAMES = [name for name in tasks.NAMES if name in LAYOUTS or name.startswith("mmbu")]

Asked = tuple[Benchmark, Sample]


@dataclass(frozen=True, slots=True)
class Known:
    """What the small copies of all benchmarks hold."""

    asked: tuple[Asked, ...]
    """A sample of each route of each benchmark."""
    rows: Mapping[str, Sequence[dict[str, Json]]]
    """Some raw rows of each benchmark, without their images."""


@cache
def known() -> Known:
    asked: dict[tuple[str, str], Asked] = {}
    rows: dict[str, list[dict[str, Json]]] = {}
    with TemporaryDirectory() as folder:
        for name in NAMES:
            place = Path(folder) / name
            place.mkdir()
            data = str(built(place, LAYOUTS[name]) / "data") if name in LAYOUTS else str(MINI)
            benchmark = tasks.load(name)
            source = open_data(data, benchmark.data)
            rows[name] = [dict(raw.fields) for raw in islice(source.rows(), 6)]
            for sample, _ in samples(source, benchmark):
                asked.setdefault((name, sample.route), (benchmark, sample))
    return Known(tuple(asked.values()), rows)


@pytest.fixture(scope="session")
def asked() -> tuple[Asked, ...]:
    return known().asked
