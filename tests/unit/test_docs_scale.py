"""The arithmetic of docs/several_machines.md is that of the command which the page names."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.scale import Campaign, Measured, tables

MEASURED = Measured(scored=1000.0, judged=500.0, driver_ms=0.5)


def test_the_page_has_the_figures_that_were_measured() -> None:
    assert scale.update(check=True), "run `python -m benchmarks.table`"


def test_the_arithmetic() -> None:
    text = tables(Campaign(rows=3600, set_ups=2, models=5, judged=0.5), MEASURED)
    assert "| runs: 2 set-ups × 5 models | 10 |" in text
    assert "| rows in all | 36,000 |" in text
    assert "| calls, 50% of the rows judged | 54,000 |" in text
    # 500 requests a minute: 8.33 a second, 432 s a run, 4,320 s for ten of them.
    assert "| a key with 500 requests a minute | 8.33 | 7.20 minutes | 1.20 hours | 1% | 1.56 MB/s |" in text
    # Half of the rows at 1 ms, half at 2 ms: 667 a second.
    assert "| one process, nothing else in the way | 667 | 5.40 s | 54.0 s | 100% | 124 MB/s |" in text
    assert "bounds it at 2,000 rows/s" in text


def test_without_a_figure_of_the_driver_none_is_told() -> None:
    text = tables(Campaign(), Measured(scored=1000.0, judged=500.0, driver_ms=None))
    assert "driver" not in text


def test_only_what_is_between_the_marks_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"head {scale.BEGIN} old {scale.END} tail")
    monkeypatch.setattr(scale, "PAGE", page)
    assert not scale.update(check=True)
    assert not scale.update(check=False)
    assert scale.update(check=True)
    head, _, rest = page.read_text().partition(scale.BEGIN)
    assert head == "head "
    assert rest.endswith(f"{scale.END} tail")
