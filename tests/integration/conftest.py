"""Whole runs in one process, beside the simulator."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from mmbu_async.config import DEFAULT_KEY_VARIABLES
from mmbu_async.endpoints.retries import RetryPolicy
from mmbu_async.pipeline.breaker import Breaker
from tests.whole_run import KEY, MINI, ROWS


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in DEFAULT_KEY_VARIABLES.values():
        monkeypatch.setenv(variable, KEY)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are those of a night, the waits those of a test."""
    monkeypatch.setattr(
        "mmbu_async.endpoints.client.RetryPolicy", partial(RetryPolicy, base_s=0.01, longest_s=0.02)
    )
    monkeypatch.setattr("mmbu_async.pipeline.run.Breaker", partial(Breaker, pause_s=0.1))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Rows that differ in a number in their question, all to be judged."""
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "retina.jpg").write_bytes((MINI / "images" / "retina.jpg").read_bytes())
    lines = map(json.loads, (MINI / "metadata.jsonl").read_text().splitlines())
    source = next(row for row in lines if row["unique_id"] == "mini-class-retina")
    rows = (
        source | {"unique_id": f"row-{n}", "question": f"Which imaging technique made picture number {n}?"}
        for n in range(ROWS)
    )
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"
