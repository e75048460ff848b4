"""Figures of the service for Prometheus, beside those that `telemetry` keeps of the endpoints: runs and their
states, streams of events, and how requests to the service itself are answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mmbu_async.service.events import Hub
from mmbu_async.service.jobs import Desk, JobState, Progress
from mmbu_async.service.latest import latest_jobs
from mmbu_async.telemetry import Metrics as Telemetry

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of how long an answer takes."""
STREAMS = frozenset({"/api/v1/events", "/api/v1/runs/{run}/events"})
"""Whose answers last as long as somebody listens: how long says nothing."""
METHODS = frozenset({"GET", "HEAD", "POST"})

_Gauge = tuple[str, str, Callable[[Progress], float | None]]
_RUNS: tuple[_Gauge, ...] = (
    ("mmbu_run_rows", "Rows of a run.", lambda one: one.total),
    ("mmbu_run_rows_done", "Rows of a run with everything that they need.", lambda one: one.done),
    ("mmbu_run_rows_failed", "Rows of a run that failed.", lambda one: one.failed),
    ("mmbu_run_rows_unjudged", "Rows of a run without a usable verdict.", lambda one: one.done - one.judged),
    ("mmbu_run_judge_queue", "Rows that wait for a verdict.", lambda one: one.queue),
    ("mmbu_run_rows_per_second", "Speed of a run.", lambda one: one.rows_per_s),
    ("mmbu_run_eta_seconds", "Until the end of a run, where known.", lambda one: one.eta_s),
    ("mmbu_run_cost_usd", "US dollars spent on a run, as far as known.", lambda one: one.cost_usd),
    ("mmbu_run_calls_in_flight", "Calls of a run under way.", lambda one: one.in_flight),
    ("mmbu_run_latency_p50_seconds", "Median of a run's latest calls.", lambda one: one.latency_p50_s),
    ("mmbu_run_latency_p95_seconds", "Of a run's latest calls.", lambda one: one.latency_p95_s),
)


class Metrics:
    """Adds the families of the service to a registry, and counts requests."""

    def __init__(self, desk: Desk, hub: Hub, telemetry: Telemetry) -> None:
        self._desk = desk
        self._telemetry = telemetry
        made = telemetry.registry
        self._requests = made.counter(
            "mmbu_http_requests_total", "Requests to the service.", ("route", "method", "status")
        )
        self._took = made.histogram(
            "mmbu_http_request_seconds", "Time to the end of an answer.", BUCKETS_S, ("route",)
        )
        made.asked("mmbu_service_ready", "1: jobs are taken.", lambda: [((), float(desk.ready()))])
        made.asked("mmbu_event_streams", "Streams of events that are open.", lambda: [((), hub.streams)])
        made.asked("mmbu_jobs", "Runs by the state of their newest job.", self._states, ("state",))
        for name, text, read in _RUNS:
            made.asked(name, text, partial(self._runs, read), ("run",))
        made.asked(
            "mmbu_run_errors", "Failed attempts of the present session.", self._errors, ("run", "kind")
        )

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answer. `route`: its pattern, of which there are few."""
        self._requests.of(route, method if method in METHODS else "other", str(status)).add()
        if route not in STREAMS:
            self._took.of(route).add(seconds)

    def text(self) -> str:
        """As Prometheus reads it."""
        return self._telemetry.text()

    def _states(self) -> Iterable[tuple[tuple[str, ...], float]]:
        states = Counter(job.state for job in latest_jobs(self._desk))
        return [((state.value,), states[state]) for state in JobState]

    def _runs(self, read: Callable[[Progress], float | None]) -> Iterator[tuple[tuple[str, ...], float]]:
        for run, progress in self._active():
            if (value := read(progress)) is not None:
                yield (run,), value

    def _errors(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for run, progress in self._active():
            for kind, count in progress.errors.items():
                yield (run, kind), count

    def _active(self) -> Iterator[tuple[str, Progress]]:
        """Of runs that are not over: others do not change any more."""
        for job in latest_jobs(self._desk):
            progress = None if job.state.ended else self._desk.progress(job.run)
            if progress is not None:
                yield job.run, progress
