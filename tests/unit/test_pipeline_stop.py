"""Ending a run early."""

from __future__ import annotations

from mmbu_async.errors import BudgetReachedError, InterruptedRunError
from mmbu_async.pipeline.stop import Stop


def test_the_first_reason_wins_and_everybody_drains_once() -> None:
    stop = Stop()
    calls: list[str] = []
    stop.on_request(lambda: calls.append("first"))
    stop.on_request(lambda: calls.append("second"))
    assert not stop
    reason = BudgetReachedError("no money")
    stop.request(reason)
    stop.request(InterruptedRunError("Ctrl-C"))
    assert stop
    assert stop.reason is reason
    assert calls == ["first", "second"]


def test_who_comes_late_drains_at_once() -> None:
    stop = Stop()
    stop.request(BudgetReachedError("no money"))
    calls: list[str] = []
    stop.on_request(lambda: calls.append("late"))
    stop.request(BudgetReachedError("again"))
    assert calls == ["late"]
