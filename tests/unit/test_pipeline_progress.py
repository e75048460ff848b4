"""The live panel: within 80 columns, whatever the run is called and whatever went wrong."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import _panel, summary


def stages(*judges: str, pause_left: float = 0.0) -> Any:
    """What the display reads of the running parts."""
    state = SimpleNamespace(in_flight=16, cap=64)
    gate = SimpleNamespace(concurrency=SimpleNamespace(state=state), pause_left=pause_left)
    client = SimpleNamespace(gate=gate)
    of_judges = [SimpleNamespace(client=client, label=label, queue=[0] * 7) for label in judges or ("j",)]
    return SimpleNamespace(infer=SimpleNamespace(client=client), panel=SimpleNamespace(stages=of_judges))


def monitor(**changes: Any) -> Monitor:
    busy: dict[str, Any] = {"total": 3147, "done_before": 1000, "done": 200, "failed": 123, "unjudged": 45}
    return Monitor(run="mmbu-public-a-very-long-name-of-a-model-v2", started=0.0, **busy | changes)


def test_the_panel_keeps_its_lines_whole() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(_panel(monitor(), stages(), 100.0))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("mmbu-public-a-very-long-name")
    assert lines[0].rstrip().endswith("1,200/3,147 rows")
    assert lines[1].rstrip().endswith("123 failed; 45 unjudged")


def test_each_judge_of_several_has_a_line() -> None:
    console = Console(file=io.StringIO(), width=80)
    several = stages("claude-sonnet-5", "a-judge-with-a-name-that-nobody-would-type-" + "x" * 40, "local")
    console.print(_panel(monitor(judge_waiting=12), several, 100.0))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 7
    assert lines[2].startswith("in flight 16/64 model; rows before judges 12; retries 0; 429s 0")
    assert lines[3].rstrip() == "judge claude-sonnet-5: in flight 16/64, queue 7"
    assert "| judge local: in flight 16/64, queue 7 |" in summary(monitor(), several, 100.0)


def test_the_log_line_says_the_same() -> None:
    line = summary(monitor(), stages(), 100.0)
    assert line.startswith("1,200/3,147 rows, 123 failed, 45 unjudged | 3.2 rows/s, 1 min 40 s so far, ETA ")
    done = summary(monitor(done=2147, failed=0, unjudged=0), stages(), 100.0)
    assert done.startswith("3,147/3,147 rows | 21.5 rows/s, 1 min 40 s so far | ")


def test_both_say_what_the_tail_waits_for() -> None:
    """An hour at 99 % without a hint is what other programs are known for."""
    late = monitor(done=2146, failed=0, unjudged=0, under_way={"row-7 at judge j": 40.0, "row-8": 95.0})
    line = summary(late, stages(), 100.0)
    assert line.endswith(" | longest under way: row row-7 at judge j, 1 min 0 s")
    assert "longest" not in summary(late, stages(), 60.0), "not worth a word yet"
    paused = summary(late, stages(pause_left=300.0), 100.0)
    assert "| model: no call for another 5 min 0 s, as it asked or after many failures |" in paused
    assert "| judge j: no call for another 5 min 0 s" in paused
    console = Console(file=io.StringIO(), width=80)
    console.print(_panel(late, stages(pause_left=300.0), 100.0))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "longest under way: row row-7 at judge j, 1 min 0 s" in shown
    assert "model: no call for another 5 min 0 s" in shown
