"""Money that is set aside for batches, beside calls."""

from __future__ import annotations

from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import SHOWN_BATCHES, _batches


def budget(cap: float | None, spent: float = 0.0) -> tuple[Budget, list[str]]:
    told: list[str] = []
    return Budget(cap, spent, lambda: told.append("reached")), told


def test_what_is_set_aside_leaves_less_room() -> None:
    purse, _ = budget(10.0, spent=1.0)
    assert purse.reserve(6.0)
    assert not purse.reserve(3.5)
    assert purse.reserve(3.0)
    purse.release(6.0, spent=2.0)
    assert purse.spent == 3.0
    assert purse.reserve(4.0)
    assert not purse.reserve(0.5)


def test_without_a_cap_or_a_price_everything_fits() -> None:
    purse, _ = budget(None)
    assert purse.reserve(1e9)
    capped, _ = budget(1.0)
    assert capped.reserve(None)
    capped.release(None, spent=0.25)
    assert capped.spent == 0.25


def test_a_batch_that_is_out_already_counts_whether_it_fits_or_not() -> None:
    purse, told = budget(5.0)
    purse.take_over(7.0)
    assert not purse.reserve(0.01)
    assert not purse.give_up(0.01)
    purse.release(7.0, spent=1.0)
    assert purse.reserve(4.0)
    assert told == []


def test_the_cap_is_reached_when_nothing_can_give_room() -> None:
    purse, told = budget(5.0, spent=4.0)
    assert not purse.give_up(0.5)
    assert purse.give_up(2.0)
    assert told == ["reached"]
    # Sums of many amounts leave dust, which is nothing that could be given back.
    dusty, told = budget(1.0)
    for _ in range(10):
        assert dusty.reserve(0.1)
    for _ in range(10):
        dusty.release(0.1)
    assert dusty.give_up(1.1)
    assert told == ["reached"]


def test_many_batches_are_told_in_few_lines() -> None:
    monitor = Monitor(run="r")
    monitor.batches["model"] = tuple(f"batch of {n}: in_progress" for n in range(SHOWN_BATCHES))
    assert len(_batches(monitor)) == SHOWN_BATCHES
    monitor.batches["judge strict"] = ("batch of 9: in_progress", "batch of 8: in_progress")
    lines = _batches(monitor)
    assert lines[0] == "model batch of 0: in_progress"
    assert lines[-1] == "and 2 more batches"
    assert len(lines) == SHOWN_BATCHES + 1
