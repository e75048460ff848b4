"""Rows between their reply and the last of their verdicts: counted once each, whatever the judges' number."""

from __future__ import annotations

from mmbu_async.pipeline.judging import Waiting
from mmbu_async.pipeline.monitor import Monitor


def test_a_row_is_done_when_all_its_judges_are() -> None:
    monitor = Monitor(run="r", total=3)
    waiting = Waiting(monitor)
    waiting.begin(1, 3)
    waiting.begin(2, 1)
    waiting.needless()
    assert (monitor.judge_waiting, monitor.done) == (2, 1)
    waiting.end(1, usable=True)
    waiting.end(1, usable=False)
    waiting.end(2, usable=True)
    assert (monitor.judge_waiting, monitor.done, monitor.unjudged) == (1, 2, 0)
    waiting.end(1, usable=True)
    assert (monitor.judge_waiting, monitor.done, monitor.unjudged, monitor.open) == (0, 3, 1, 0)


def test_a_row_that_counted_as_done_is_open_again() -> None:
    monitor = Monitor(run="r", total=2, done_before=2)
    waiting = Waiting(monitor)
    waiting.begin_again(1, 2)
    assert (monitor.open, monitor.judge_waiting) == (1, 1)
    waiting.end(1, usable=False)
    waiting.end(1, usable=False)
    assert (monitor.open, monitor.done, monitor.unjudged) == (0, 1, 1)
    # The next session's rows are counted afresh.
    waiting.begin(1, 1)
    waiting.end(1, usable=True)
    assert monitor.unjudged == 1
