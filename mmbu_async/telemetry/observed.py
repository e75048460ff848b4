"""Watching as flags and environment ask for it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from mmbu_async.telemetry.metrics import Metrics
from mmbu_async.telemetry.nouns import Telemetry, using

log = logging.getLogger(__name__)

ADDRESSES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables that name a collector."""
EXTRA = "mmbu-async[telemetry]"


@contextmanager
def observed(
    *,
    metrics_port: int | None = None,
    metrics: Metrics | None = None,
    environment: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = log.info,
) -> Iterator[Metrics | None]:
    """Watch what is done in the block.

    `metrics_port`: serve metrics at this port of this machine, 0 for any that is free; `metrics`: count into
    these, which somebody else serves; neither: nothing is counted. Spans are sent where the environment names
    a collector. `tell` hears where the metrics are. Raises ConfigError where the port is taken.
    """
    found = os.environ if environment is None else environment
    with ExitStack() as stack:
        watchers: list[Telemetry] = []
        if metrics is None and metrics_port is not None:
            metrics = Metrics()
        if metrics is not None:
            watchers.append(metrics)
            if metrics_port is not None:
                from mmbu_async.telemetry.server import serving

                tell(f"metrics are at {stack.enter_context(serving(metrics.text, metrics_port))}")
        if any(found.get(name, "").strip() for name in ADDRESSES):
            watchers += _spans(stack)
        stack.enter_context(using(*watchers))
        yield metrics


def _spans(stack: ExitStack) -> list[Telemetry]:
    """The variable may be meant for other programs here: that the extra is missing ends nothing."""
    from mmbu_async.telemetry.spans import Spans, in_one_word

    stack.enter_context(in_one_word())
    try:
        spans = stack.enter_context(Spans())
    except ImportError:
        log.warning(
            "the environment names an OpenTelemetry collector, and no spans are sent there: "
            "`pip install '%s'` first.",
            EXTRA,
        )
        return []
    return [spans]
