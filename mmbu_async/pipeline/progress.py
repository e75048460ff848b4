"""Progress while a run runs: a live panel on a terminal, plain log lines where there is none."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.run import Stages, Watch

REFRESH_S = 0.5
LINE_EVERY_S = 15.0
"""Seconds between log lines where output is no terminal."""
TAIL_HINT_S = 30.0
"""A row under way for longer than this is named: it is what the end of a run waits for."""

PAUSE_HINT_S = 5.0
"""A pause of an endpoint that lasts longer than this is told."""

SHOWN_BATCHES = 6
"""Batches that are told one by one."""

NAME_WIDTH = 40
"""Columns for the run's name, before the bar and the number of rows."""

log = logging.getLogger("mmbu_async.progress")


def watcher(console: Console, *, line_every_s: float = LINE_EVERY_S) -> Watch:
    """The display that fits where the output goes."""
    return _live(console) if console.is_terminal else lines(line_every_s)


async def silent(monitor: Monitor, stages: Stages) -> None:
    """No display."""
    await asyncio.Event().wait()


def lines(every_s: float) -> Watch:
    """A log line every so often, and one at the end."""

    async def watch(monitor: Monitor, stages: Stages) -> None:
        try:
            while True:
                await asyncio.sleep(every_s)
                log.info(summary(monitor, stages, time.monotonic()))
        finally:
            log.info(summary(monitor, stages, time.monotonic()))

    return watch


def _live(console: Console) -> Watch:
    async def watch(monitor: Monitor, stages: Stages) -> None:
        def panel() -> Group:
            return _panel(monitor, stages, time.monotonic())

        with Live(panel(), console=console, auto_refresh=False, transient=True) as live:
            await _refresh(live, panel)

    return watch


async def _refresh(live: Live, panel: Callable[[], Group]) -> None:
    while True:
        live.update(panel(), refresh=True)
        await asyncio.sleep(REFRESH_S)


def summary(monitor: Monitor, stages: Stages, now: float) -> str:
    """The state in one line."""
    parts = (_rows(monitor), _speed(monitor, now), *_calls(monitor, stages), _money(monitor))
    return " | ".join((*parts, *_batches(monitor), *waits(monitor, stages, now)))


def _panel(monitor: Monitor, stages: Stages, now: float) -> Group:
    bar = ProgressBar(total=max(1, monitor.total), completed=monitor.total - monitor.open, width=40)
    head = Table.grid(padding=(0, 1))
    head.add_column(no_wrap=True, overflow="ellipsis", max_width=NAME_WIDTH)
    head.add_row(Text(monitor.run, style="bold"), bar, Text(_finished(monitor), no_wrap=True))
    speed = "; ".join((_speed(monitor, now), *_losses(monitor)))
    calls = [Text(line, no_wrap=True, overflow="ellipsis") for line in _calls(monitor, stages)]
    body = [Text(speed), *calls, Text(_money(monitor))]
    body += [Text(line, no_wrap=True, overflow="ellipsis") for line in _batches(monitor)]
    body += [Text(hint, style="yellow") for hint in waits(monitor, stages, now)]
    return Group(head, *body)


def _rows(monitor: Monitor) -> str:
    return ", ".join((_finished(monitor), *_losses(monitor)))


def _finished(monitor: Monitor) -> str:
    return f"{monitor.done_before + monitor.done:,}/{monitor.total:,} rows"


def _losses(monitor: Monitor) -> list[str]:
    counts = ((monitor.failed, "failed"), (monitor.unjudged, "unjudged"))
    return [f"{number:,} {what}" for number, what in counts if number]


def _speed(monitor: Monitor, now: float) -> str:
    rate = monitor.rate(now)
    speed = f"{rate:,.1f} rows/s, {duration(now - monitor.started)} so far"
    if monitor.paused:
        return f"paused, {speed}"
    if not monitor.open:
        return speed
    return f"{speed}, ETA {duration(monitor.open / rate) if rate > 0 else 'not known yet'}"


def _calls(monitor: Monitor, stages: Stages) -> list[str]:
    """One line, and one more for each judge where there are several."""
    model = _in_flight(stages.infer.client)
    judges = [(stage.label, _in_flight(stage.client), len(stage.queue)) for stage in stages.panel.stages]
    trouble = f"retries {monitor.retries:,}; 429s {monitor.rate_limited:,}"
    if len(judges) == 1:
        return [
            f"in flight {model} model, {judges[0][1]} judge; judge queue {monitor.judge_waiting:,}; {trouble}"
        ]
    return [
        f"in flight {model} model; rows before judges {monitor.judge_waiting:,}; {trouble}",
        *(f"judge {name}: in flight {calls}, queue {waiting:,}" for name, calls, waiting in judges),
    ]


def _batches(monitor: Monitor) -> list[str]:
    """What is out in batches: one line each, and of many the first."""
    lines = [f"{side} {line}" for side, out in monitor.batches.items() for line in out]
    rest = len(lines) - SHOWN_BATCHES
    return lines if rest <= 0 else [*lines[:SHOWN_BATCHES], f"and {rest:,} more batches"]


def _in_flight(client: EndpointClient) -> str:
    state = client.gate.concurrency.state
    return f"{state.in_flight}/{state.cap}"


def _money(monitor: Monitor) -> str:
    tokens = f"tokens {compact(monitor.input_tokens)} in, {compact(monitor.output_tokens)} out"
    if monitor.price_known:
        return f"{tokens}; ${monitor.spent:,.2f}"
    return f"{tokens}; cost unknown" + (f" beyond ${monitor.spent:,.2f}" if monitor.spent else "")


def waits(monitor: Monitor, stages: Stages, now: float) -> list[str]:
    """What a run waits for that does not seem to move."""
    clients = [("model", stages.infer.client)]
    clients += [(f"judge {stage.label}", stage.client) for stage in stages.panel.stages]
    hints = [
        f"{who}: no call for another {duration(left)}, as it asked or after many failures"
        for who, client in clients
        if (left := client.gate.pause_left) >= PAUSE_HINT_S
    ]
    slowest = monitor.slowest(now)
    if slowest is not None and slowest[1] >= TAIL_HINT_S:
        hints.append(f"longest under way: row {slowest[0]}, {duration(slowest[1])}")
    return hints


def duration(seconds: float) -> str:
    """`47 s`, `12 min 5 s`, `3 h 20 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def compact(number: float) -> str:
    """`950`, `12.3k`, `4.6M`."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= limit:
            return f"{number / (1e3 if unit == 'k' else limit):,.1f}{unit}"
    return f"{number:,.0f}"
