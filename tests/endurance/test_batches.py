"""The short form of `python -m tests.endurance.batches`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance.batches import Play


@pytest.mark.parametrize(("endpoint", "kills"), [("openai", 1), ("anthropic", 2)])
def test_a_run_in_batches_survives_its_kills(endpoint: str, kills: int, tmp_path: Path) -> None:
    play = Play(
        folder=tmp_path, endpoint=endpoint, rows=20, kills=kills, seed=5, latency="uniform:0.2,0.6", size=8
    )
    figures = play.play()
    assert figures["broken"] == []
    assert sum(figures["kills"].values()) == kills
    assert figures["batches_taken"] >= 3
