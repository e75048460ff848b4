"""The metrics by name: the same in `run`, `bench` and the service.

Counters live as long as the process. Gauges are asked of whoever is at work when somebody looks; several at
one endpoint, two runs of a service, are added up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from operator import add
from pathlib import Path

from mmbu_async.model import Completion, FailureKind, Usage
from mmbu_async.telemetry.nouns import About, EndpointState, Observer, RunState, Seen
from mmbu_async.telemetry.registry import CONTENT_TYPE, Labels, Registry
from mmbu_async.version import VERSION

WHO: Labels = ("endpoint", "model", "role")
DURATIONS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
"""Seconds."""
FIRST_TOKENS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)
OK = "ok"
CANCELLED = "cancelled"
"""Outcomes of requests beside the kinds of failure."""
_MEMORY = Path("/proc/self/statm")
Join = Callable[[float, float], float]


class Metrics:
    """A `Telemetry` that counts. `text()` is what Prometheus scrapes."""

    def __init__(self, *, runs: bool = True) -> None:
        """`runs` False: somebody else tells of runs, under the same names."""
        self.registry = made = Registry()
        self.requests = made.counter(
            "mmbu_requests_total", "HTTP exchanges that ended, retries included.", (*WHO, "outcome")
        )
        self.replies = made.counter("mmbu_replies_total", "Replies by how they ended.", (*WHO, "finish"))
        self.durations = made.histogram(
            "mmbu_request_duration_seconds",
            "From the start of a request to the last byte of its reply; of replies alone.",
            DURATIONS,
            WHO,
        )
        self.first_tokens = made.histogram(
            "mmbu_time_to_first_token_seconds",
            "From the start of a streamed request to its first token; of replies alone.",
            FIRST_TOKENS,
            WHO,
        )
        self.input_tokens = made.counter("mmbu_input_tokens_total", "As reported, cached ones included.", WHO)
        self.output_tokens = made.counter("mmbu_output_tokens_total", "As reported, reasoning included.", WHO)
        self.reasoning_tokens = made.counter("mmbu_reasoning_tokens_total", "Of the output.", WHO)
        self.cached_tokens = made.counter("mmbu_cached_tokens_total", "Of the input, from a cache.", WHO)
        self.cost = made.counter("mmbu_cost_usd_total", "US dollars, where the cost is known.", WHO)
        self.cost_unknown = made.counter(
            "mmbu_cost_unknown_requests_total", "Exchanges that may have cost what nobody knows.", WHO
        )
        self.bytes_up = made.counter("mmbu_request_bytes_total", "Of bodies of requests.", WHO)
        self.bytes_down = made.counter(
            "mmbu_response_bytes_total", "Of bodies of responses, after decompression.", WHO
        )
        self.retries = made.counter(
            "mmbu_retries_total", "Calls to be attempted again, by what failed.", (*WHO, "reason")
        )
        self.pauses = made.counter("mmbu_pauses_total", "Times the endpoint asked for a pause.", WHO)
        self._endpoints: dict[int, tuple[Labels, Callable[[], EndpointState]]] = {}
        self._runs: dict[int, tuple[str, Callable[[], RunState]]] = {}
        self._numbers = count()
        self._of_process()
        self._of_endpoints()
        if runs:
            self._of_runs()

    def text(self) -> str:
        """As Prometheus reads it."""
        return self.registry.text()

    @contextmanager
    def endpoint(self, about: About, state: Callable[[], EndpointState]) -> Iterator[Observer]:
        number, who = next(self._numbers), (about.endpoint, about.model, about.role)
        self._endpoints[number] = (who, state)
        try:
            yield _Counting(self, who)
        finally:
            del self._endpoints[number]

    @contextmanager
    def run(self, name: str, state: Callable[[], RunState]) -> Iterator[None]:
        number = next(self._numbers)
        self._runs[number] = (name, state)
        try:
            yield
        finally:
            del self._runs[number]

    def _of_process(self) -> None:
        made = self.registry
        made.asked(
            "process_cpu_seconds_total",
            "User and system CPU of this process.",
            lambda: [((), time.process_time())],
            kind="counter",
        )
        made.asked("process_resident_memory_bytes", "Memory of this process.", _resident)
        made.asked("mmbu_build_info", "1, with the version.", lambda: [((VERSION,), 1)], ("version",))

    def _of_endpoints(self) -> None:
        gauges: tuple[tuple[str, str, Callable[[EndpointState], float | None], Join], ...] = (
            ("mmbu_requests_in_flight", "Calls under way.", lambda state: state.in_flight, add),
            ("mmbu_requests_waiting", "Calls that wait for limits.", lambda state: state.waiting, add),
            ("mmbu_concurrency_limit", "Most calls at once, as learnt.", lambda state: state.limit, add),
            ("mmbu_pause_seconds", "Until calls start again; 0: they do.", lambda state: state.pause_s, max),
        )

        def ask(read: Callable[[EndpointState], float | None], join: Join) -> Iterable[tuple[Labels, float]]:
            found: dict[Labels, float] = {}
            for who, state in list(self._endpoints.values()):
                if (value := read(state())) is not None:
                    found[who] = join(found[who], value) if who in found else value
            return found.items()

        for name, text, read, join in gauges:
            self.registry.asked(name, text, partial(ask, read, join), WHO)

    def _of_runs(self) -> None:
        gauges: tuple[tuple[str, str, Callable[[RunState], float]], ...] = (
            ("mmbu_run_rows", "Rows of a run.", lambda state: state.selected),
            (
                "mmbu_run_rows_done",
                "Rows of a run with everything that they need.",
                lambda state: state.done,
            ),
            ("mmbu_run_rows_failed", "Rows of a run that failed.", lambda state: state.failed),
            (
                "mmbu_run_rows_unjudged",
                "Rows of a run without a usable verdict.",
                lambda state: state.unjudged,
            ),
            ("mmbu_run_judge_queue", "Rows that wait for a verdict.", lambda state: state.judge_waiting),
        )

        def ask(read: Callable[[RunState], float]) -> Iterator[tuple[Labels, float]]:
            for name, state in list(self._runs.values()):
                yield (name,), read(state())

        for name, text, read in gauges:
            self.registry.asked(name, text, partial(ask, read), ("run",))


class _Counting:
    """One endpoint's counters, looked up once."""

    def __init__(self, metrics: Metrics, who: Labels) -> None:
        self._metrics, self._who = metrics, who
        self._ok = metrics.requests.of(*who, OK)
        self._duration = metrics.durations.of(*who)
        self._first_token = metrics.first_tokens.of(*who)
        self._input = metrics.input_tokens.of(*who)
        self._output = metrics.output_tokens.of(*who)
        self._reasoning = metrics.reasoning_tokens.of(*who)
        self._cached = metrics.cached_tokens.of(*who)
        self._cost = metrics.cost.of(*who)
        self._cost_unknown = metrics.cost_unknown.of(*who)
        self._up = metrics.bytes_up.of(*who)
        self._down = metrics.bytes_down.of(*who)
        self._pauses = metrics.pauses.of(*who)

    def ended(self, seen: Seen) -> None:
        outcome = seen.outcome
        if isinstance(outcome, Completion):
            self._ok.value += 1
            self._metrics.replies.of(*self._who, outcome.finish).value += 1
            self._duration.add(seen.total_s)
            if seen.first_token_s is not None:
                self._first_token.add(seen.first_token_s)
            self._tokens(outcome.usage)
        else:
            kind = CANCELLED if outcome is None else outcome.kind
            self._metrics.requests.of(*self._who, kind).value += 1
            if outcome is not None and outcome.usage is not None:
                self._tokens(outcome.usage)
        if seen.cost_usd is None:
            self._cost_unknown.value += 1
        else:
            self._cost.value += seen.cost_usd
        self._up.value += seen.bytes_up
        self._down.value += seen.bytes_down

    def retried(self, kind: FailureKind) -> None:
        self._metrics.retries.of(*self._who, kind).add()

    def paused(self, seconds: float) -> None:
        self._pauses.add()

    def _tokens(self, usage: Usage) -> None:
        self._input.value += usage.input_tokens
        self._output.value += usage.output_tokens
        self._reasoning.value += usage.reasoning_tokens
        self._cached.value += usage.cached_tokens


def _resident() -> Iterator[tuple[Labels, float]]:
    """Nothing where the system does not tell."""
    if _MEMORY.exists():
        yield (), int(_MEMORY.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


__all__ = ["CONTENT_TYPE", "Metrics"]
