"""The short form of `python -m tests.endurance.batches`."""

from __future__ import annotations

from pathlib import Path

from tests.endurance.batches import Play


def test_a_run_in_batches_survives_its_kills(tmp_path: Path) -> None:
    """With the vendor that tells least of its batches; the command plays both."""
    play = Play(
        folder=tmp_path, endpoint="anthropic", rows=20, kills=2, seed=5, latency="uniform:0.2,0.6", size=8
    )
    figures = play.play()
    assert figures["broken"] == []
    assert sum(figures["kills"].values()) == 2
    assert figures["batches_taken"] >= 3
