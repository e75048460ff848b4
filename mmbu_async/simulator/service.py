"""How long a reply takes by the settings: the truth that a measurement from outside must find."""

from __future__ import annotations

import math

from mmbu_async.simulator.config import SimulatorConfig, unit
from mmbu_async.simulator.desk import Desk
from mmbu_async.simulator.faults import Fault
from mmbu_async.simulator.wire import ChatRequest, Reply

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it lie evenly in [0, 1), whichever of them are taken in a row (Weyl's sequence)."""


def latency_s(desk: Desk, request: ChatRequest, occurrence: int, fault: Fault | None) -> float:
    """Seconds from the start of the work to the first token."""
    config = desk.config
    latency = config.latency
    if request.role == "judge" and config.judge_latency is not None:
        latency = config.judge_latency
    if config.even_latency:
        desk.served += 1
        share = (unit(config.seed, "latency") + desk.served * _GOLDEN) % 1.0
    else:
        share = unit(config.seed, "latency", request.content, occurrence)
    return latency.quantile(share) + (config.stall_s if fault is Fault.STALL else 0.0)


def talk_s(config: SimulatorConfig, request: ChatRequest, reply: Reply) -> float:
    """Seconds from the first token to the last one; of a whole reply, one token's time more."""
    speed, tokens = config.tokens_per_second, reply.usage.output_tokens
    if speed is None:
        return 0.0
    return max(0, tokens - 1 if request.stream else tokens) / speed
