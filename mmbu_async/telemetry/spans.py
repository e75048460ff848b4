"""OpenTelemetry spans: one for each attempt, by the semantic conventions for generative AI.

A span is made when its attempt has ended, with the times that were measured, so that nothing is done before a
request goes out. It is handed to the SDK's queue, and a thread of the SDK's sends it.

The conventions are in development; the attributes are those of version 1.37 and later.
Contents (`gen_ai.input.messages` and the like) and an endpoint's words about an error, which may repeat a
prompt, are never in a span.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mmbu_async.model import Completion, Failure, FailureKind, Usage
from mmbu_async.telemetry.nouns import About, EndpointState, Observer, RunState, Seen
from mmbu_async.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger(__name__)

SCOPE = "mmbu_async"
PROVIDERS: Mapping[str, str] = {
    "openai": "openai",
    "responses": "openai",
    "azure": "azure.ai.openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
}
"""Wire format -> the conventions' word for whose it is, whoever may speak it."""
OPERATIONS: Mapping[str, str] = {"gemini": "generate_content"}
"""Where it is not `chat`."""
CANCELLED = "cancelled"
CLOSE_MS = 5_000
"""How long the end of a run waits for spans that are still to be sent."""

Value = str | int | float | bool | tuple[str, ...]


class Spans:
    """A `Telemetry` that makes spans; use as a context manager. `exporter`: who sends them; None: OTLP over
    HTTP, as the OTEL_… variables say."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        """Raises ImportError where the extra is not installed."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode

        resource = Resource.create()
        if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            # The environment (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) gives it no name.
            resource = resource.merge(Resource({SERVICE_NAME: "mmbu-async"}))
        resource = resource.merge(Resource({SERVICE_VERSION: VERSION}))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._processor = BatchSpanProcessor(exporter or OTLPSpanExporter())
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(SCOPE, VERSION)
        self._kind, self._error = SpanKind.CLIENT, Status(StatusCode.ERROR)

    def __enter__(self) -> Spans:
        return self

    def __exit__(self, *details: object) -> None:
        self._provider.force_flush(CLOSE_MS)
        self._provider.shutdown()

    @contextmanager
    def endpoint(self, about: About, state: Callable[[], EndpointState]) -> Iterator[Observer]:
        yield _Tracing(self, about)

    @contextmanager
    def run(self, name: str, state: Callable[[], RunState]) -> Iterator[None]:
        yield

    def made(
        self, name: str, began_s: float, ended_s: float, values: dict[str, Value], *, failed: bool
    ) -> None:
        """One span, from beginning to end in Unix seconds."""
        span = self._tracer.start_span(
            name, kind=self._kind, start_time=int(began_s * 1e9), attributes=values
        )
        if failed:
            span.set_status(self._error)
        span.end(int(ended_s * 1e9))


class _Tracing:
    """What is the same in all spans of one endpoint, put together once."""

    def __init__(self, spans: Spans, about: About) -> None:
        self._spans = spans
        operation = OPERATIONS.get(about.format, "chat")
        self._name = f"{operation} {about.model}"
        known: dict[str, Value | None] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": PROVIDERS.get(about.format, about.format),
            "gen_ai.request.model": about.model,
            "gen_ai.request.stream": about.stream,
            "gen_ai.request.max_tokens": about.max_tokens or None,
            "gen_ai.request.temperature": about.temperature,
            "gen_ai.request.seed": about.seed,
            "server.address": about.host,
            "server.port": about.port,
            "mmbu.role": about.role,
            "mmbu.run": about.run or None,
        }
        self._same = {name: value for name, value in known.items() if value is not None}

    def ended(self, seen: Seen) -> None:
        outcome = seen.outcome
        values = self._same | _of_outcome(outcome)
        if seen.first_token_s is not None:
            values["gen_ai.response.time_to_first_chunk"] = seen.first_token_s
        if seen.cost_usd is not None:
            values["mmbu.cost_usd"] = seen.cost_usd
        if seen.number > 1:
            values["http.request.resend_count"] = seen.number - 1
        values["http.request.body.size"] = seen.bytes_up
        values["http.response.body.size"] = seen.bytes_down
        self._spans.made(
            self._name,
            seen.started_at,
            seen.started_at + seen.total_s,
            values,
            failed=not isinstance(outcome, Completion),
        )

    def retried(self, kind: FailureKind) -> None:
        """Seen in the next attempt's span."""

    def paused(self, seconds: float) -> None:
        """Seen between two spans."""


def _of_outcome(outcome: Completion | Failure | None) -> dict[str, Value]:
    if isinstance(outcome, Completion):
        values: dict[str, Value] = {
            "gen_ai.response.finish_reasons": (outcome.finish_raw or outcome.finish.value,)
        }
        if outcome.model:
            values["gen_ai.response.model"] = outcome.model
        if outcome.usage.reported:
            values |= _of_usage(outcome.usage)
    else:
        values = {"error.type": CANCELLED if outcome is None else outcome.kind.value}
        if outcome is not None and outcome.status is not None:
            values["http.response.status_code"] = outcome.status
        if outcome is not None and outcome.usage is not None:
            values |= _of_usage(outcome.usage)
    if outcome is not None and outcome.request_id:
        values["gen_ai.response.id"] = outcome.request_id
    return values


def _of_usage(usage: Usage) -> dict[str, Value]:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
    }


class OneWord(logging.Handler):
    """What the SDK says of a collector that is not there: once, and without its tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._told:
            self._told = True
            said = " ".join(record.getMessage().split())[:200]
            log.warning("spans do not reach the OpenTelemetry collector, and the work goes on: %s", said)


@contextmanager
def in_one_word() -> Iterator[None]:
    """Keep the SDK from writing to our log on its own."""
    theirs, handler = logging.getLogger("opentelemetry"), OneWord()
    kept, theirs.propagate = theirs.propagate, False
    theirs.addHandler(handler)
    try:
        yield
    finally:
        theirs.removeHandler(handler)
        theirs.propagate = kept
