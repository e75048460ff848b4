"""What requests to endpoints are seen doing from outside: Prometheus metrics, OpenTelemetry spans.

    with observed(metrics_port=9464):
        await evaluate(config)

Nobody who works asks whether anybody watches: the endpoint clients look once, when they are opened, and where
nobody does there is nothing to be told. Neither metrics nor spans hold a prompt, a reply, an image or a key.
"""

from mmbu_async.telemetry.metrics import CONTENT_TYPE, Metrics
from mmbu_async.telemetry.nouns import (
    About,
    EndpointState,
    Observer,
    RunState,
    Seen,
    Telemetry,
    current,
    using,
)
from mmbu_async.telemetry.observed import observed
from mmbu_async.telemetry.registry import Registry

__all__ = [
    "CONTENT_TYPE",
    "About",
    "EndpointState",
    "Metrics",
    "Observer",
    "Registry",
    "RunState",
    "Seen",
    "Telemetry",
    "current",
    "observed",
    "using",
]
