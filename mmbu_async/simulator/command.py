"""The simulator's own flags. One line of JSON on standard output says where it listens."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from mmbu_async.errors import ConfigError
from mmbu_async.simulator.bare import serve_bare
from mmbu_async.simulator.config import Latency, SimulatorConfig
from mmbu_async.simulator.faults import FaultRule
from mmbu_async.simulator.server import serve, stop_on_signals


def parser() -> argparse.ArgumentParser:
    """The flags; each is the field of SimulatorConfig with dashes."""
    flags = argparse.ArgumentParser(prog="mmbu simulate", description="An endpoint like the real ones.")
    add = flags.add_argument
    add("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    add("--seed", type=int, default=0)
    add("--latency", default="0", help="SECONDS, uniform:LOW,HIGH, lognormal:MEDIAN,SIGMA, exponential:MEAN")
    add("--judge-latency", default=None, help="the same for judge requests")
    add("--tokens-per-second", type=float, default=None)
    add("--max-concurrent", type=int, default=None, help="replies made at once; others wait in order")
    add("--max-queue", type=int, default=None, help="requests that may wait")
    add("--servers", type=int, default=None, help="the same with exact times, for measuring: instead of it")
    add("--freeze", action="append", default=[], help="A-B: with --servers, seconds in which all stand still")
    add("--even", action="store_true", help="latencies spread evenly over their distribution")
    add("--reply-tokens", type=int, default=None, help="length of every reply, which then says nothing")
    add("--rpm", type=float, default=None, help="requests a minute, for each key and model")
    add("--tpm", type=float, default=None, help="tokens a minute, for each key and model")
    add("--limit-burst-s", type=float, default=60.0, help="seconds of its rate that a limit can save up")
    add("--key", action="append", default=[], help="a key that is let in; none: any")
    add("--model", action="append", default=[], help="a model that exists; none: any")
    add("--max-body-bytes", type=int, default=32 * 1024 * 1024)
    add("--max-image-base64", type=int, default=None, help="characters")
    add("--max-image-edge", type=int, default=None, help="pixels")
    add("--max-image-pixels", type=int, default=None)
    add("--unsupported-parameter", action="append", default=[], help="a request field that is refused")
    add("--fault", action="append", default=[], help="NAME[@model|@judge]=RATE | first:N | text:WORDS | ...")
    add("--schedule", type=Path, default=None, help="file with one fault rule a line")
    add("--retry-after-s", type=float, default=1.0, help="what injected refusals ask for; below 0: nothing")
    add("--retry-after-style", default="seconds", help="seconds, ms, both, date or reset")
    add("--drip-interval-s", type=float, default=1.0)
    add("--stall-s", type=float, default=2.0)
    add("--blind", action="store_true", help="do not look at images")
    add("--vision-workers", type=int, default=1)
    add("--vision-cache", type=int, default=4096)
    add(
        "--bare", action="store_true", help="drain bodies and send one fixed reply; only --port and --latency"
    )
    add("--batch-latency", default="0", help="seconds from a batch's acceptance to its end, like --latency")
    add("--batch-expire", type=float, default=0.0, help="share of requests in batches that expire")
    add("--batch-lost-answers", type=float, default=0.0, help="share of accepted batches with a lost answer")
    add("--batch-listing-lag-s", type=float, default=0.0, help="until an accepted batch is listed")
    add("--batch-max-requests", type=int, default=None, help="in one batch")
    add("--batch-max-bytes", type=int, default=None, help="of one batch's file")
    add("--batch-queue", type=int, default=None, help="requests of a key that may wait in batches")
    add("--log", type=Path, default=None, help="JSON Lines file that requests are appended to")
    return flags


def configure(arguments: argparse.Namespace) -> SimulatorConfig:
    rules = [FaultRule.parse(text) for text in arguments.fault]
    if arguments.schedule is not None:
        try:
            rules += FaultRule.parse_schedule(arguments.schedule.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the schedule {arguments.schedule} cannot be read: {error}.") from None
    judge_latency = arguments.judge_latency
    return SimulatorConfig(
        port=arguments.port,
        seed=arguments.seed,
        latency=Latency.parse(arguments.latency),
        judge_latency=None if judge_latency is None else Latency.parse(judge_latency),
        tokens_per_second=arguments.tokens_per_second,
        max_concurrent=arguments.max_concurrent,
        max_queue=arguments.max_queue,
        servers=arguments.servers,
        freezes=tuple(map(_window, arguments.freeze)),
        even_latency=arguments.even,
        reply_tokens=arguments.reply_tokens,
        rpm=arguments.rpm,
        tpm=arguments.tpm,
        limit_burst_s=arguments.limit_burst_s,
        keys=frozenset(arguments.key),
        models=frozenset(arguments.model),
        max_body_bytes=arguments.max_body_bytes,
        max_image_base64=arguments.max_image_base64,
        max_image_edge=arguments.max_image_edge,
        max_image_pixels=arguments.max_image_pixels,
        unsupported_parameters=frozenset(arguments.unsupported_parameter),
        faults=tuple(rules),
        retry_after_s=arguments.retry_after_s if arguments.retry_after_s >= 0 else None,
        retry_after_style=arguments.retry_after_style,
        drip_interval_s=arguments.drip_interval_s,
        stall_s=arguments.stall_s,
        vision=not arguments.blind,
        vision_workers=arguments.vision_workers,
        vision_cache=arguments.vision_cache,
        batch_latency=Latency.parse(arguments.batch_latency),
        batch_expire=arguments.batch_expire,
        batch_lost_answers=arguments.batch_lost_answers,
        batch_listing_lag_s=arguments.batch_listing_lag_s,
        batch_max_requests=arguments.batch_max_requests,
        batch_max_bytes=arguments.batch_max_bytes,
        batch_queue=arguments.batch_queue,
        log=arguments.log,
        log_memory=0,
    )


def _window(text: str) -> tuple[float, float]:
    begin, _, end = text.partition("-")
    try:
        return float(begin), float(end)
    except ValueError:
        raise ConfigError(f"--freeze {text}: write it as BEGIN-END in seconds, as 5-7.") from None


def announce(url: str) -> None:
    bases = {
        "openai": url + "/v1",
        "responses": url + "/v1",
        "azure": url,
        "anthropic": url,
        "gemini": url + "/v1beta",
    }
    sys.stdout.write(json.dumps({"url": url} | bases) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; the exit code is that of the named error, or 0."""
    options = parser().parse_args(arguments)
    try:
        config = configure(options)
        if options.bare:
            run(_bare(config))
        else:
            run(serve(config, ready=announce))
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


async def _bare(config: SimulatorConfig) -> None:
    if config.latency.kind != "fixed":
        raise ConfigError("--bare answers after a fixed time: give --latency in seconds.")
    stop = stop_on_signals()
    tally = await serve_bare(port=config.port, latency_s=config.latency.first, stop=stop, ready=announce)
    sys.stdout.write(json.dumps({"model_requests": tally.model, "judge_requests": tally.judge}) + "\n")


def run(serving: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one: the simulator must not be what a benchmark measures."""
    if sys.platform == "win32":
        asyncio.run(serving)
        return
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serving)
