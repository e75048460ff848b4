"""Stores with a run in them, filled through the store's own doors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.stored_run import MakeRun, RunMaker


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[MakeRun]:
    """Make a store with one run out of rows, or add another run to it; see `stored_run.Row`."""
    with ExitStack() as stack:
        yield RunMaker(tmp_path / "store.sqlite", stack)
