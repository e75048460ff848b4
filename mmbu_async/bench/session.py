"""A bench from beginning to end: work prepared, endpoints tried, stages measured, a word on how it ended."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass

from mmbu_async.bench.measuring import Lane, Measuring, Tell, silent
from mmbu_async.bench.money import Money
from mmbu_async.bench.plan import Closed, Load
from mmbu_async.bench.pool import Item, Pool
from mmbu_async.bench.quiet import allow_connections
from mmbu_async.bench.rows import MOST_ROWS, Picked, items, pick
from mmbu_async.bench.scoring import Scorer
from mmbu_async.bench.sender import Sender, Target
from mmbu_async.bench.spec import Spec
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.prices import Prices
from mmbu_async.endpoints.timed import TimedAiohttp
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.endpoints.transport import Timeouts, environment_proxy
from mmbu_async.errors import (
    BudgetReachedError,
    ConfigError,
    EndpointDownError,
    EndpointError,
    InterruptedRunError,
    MmbuError,
)
from mmbu_async.images import find_limits
from mmbu_async.model import Json
from mmbu_async.pipeline.opening import Bench, lay_out
from mmbu_async.pipeline.placement import Workshop
from mmbu_async.pipeline.signals import draining_signals
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store.benches import Benches
from mmbu_async.version import VERSION

OPEN_CONNECTIONS = 4000
"""What an open loop without a cap may pile up before it is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A bench that is over."""

    name: str
    stopped: MmbuError | None
    """Why it ended early; None: all was measured."""


async def run(spec: Spec, *, tell: Tell = silent) -> Ended:
    """Measure. Raises ConfigError, DataError or an endpoint's error before anything is measured; what ends it
    later is noted in the result, and all that was measured is in the store."""
    _allow_connections(spec.loads if spec.search is None else (Closed(concurrency=spec.search.most_users),))
    targets = _targets(spec)
    bench = lay_out(spec.config) if spec.synthetic is None else None
    tell(f"preparing {spec.work}")
    picked = None if bench is None else await asyncio.to_thread(pick, bench, MOST_ROWS, spec.seed)
    rows = await asyncio.to_thread(_rows, spec, picked)
    pools = [await asyncio.to_thread(_pool, spec, target, bench, picked, tell) for target in targets]
    with Benches.open(spec.config.store, synchronous=spec.config.synchronous) as benches:
        made = benches.create(
            spec.name or f"bench-{spec.config.model}",
            config=spec.stored() | {"planned": rows, "distinct": min(pool.distinct for pool in pools)},
            host=platform.node(),
            package_version=VERSION,
            now=time.time(),
        )
        stop, ended = Stop(), "aborted"
        result: Json = None
        try:
            async with AsyncExitStack() as stack:
                lanes = [
                    Lane(sender=await _sender(target, stack), work=pool)
                    for target, pool in zip(targets, pools, strict=True)
                ]
                measuring = Measuring(
                    lanes=tuple(lanes),
                    benches=benches,
                    bench_id=made.id,
                    money=Money(spec.config.max_cost),
                    stop=stop,
                    seed=spec.seed,
                    scorer=Scorer(bench.rules.benchmark) if spec.score and bench is not None else None,
                    tell=tell,
                )
                for lane in lanes:
                    stack.enter_context(lane.sender.watched(made.name))
                stack.enter_context(draining_signals(stop, "another one"))
                for lane in lanes:
                    await measuring.preflight(lane)
                if spec.search is None:
                    await measuring.parts(spec.plans(), spec.blocks)
                elif not stop:
                    result = asdict(await measuring.search(lanes[0], spec.search, spec.drain_s))
            ended = _word(stop.reason)
        except MmbuError as error:
            ended = _word(error)
            raise
        finally:
            benches.end(made.id, ended, now=time.time(), result=result)
        return Ended(name=made.name, stopped=_reason(stop, made.name))


_WORDS: tuple[tuple[type[MmbuError], str], ...] = (
    (BudgetReachedError, "budget"),
    (InterruptedRunError, "interrupted"),
    (EndpointError, "refused"),
    (EndpointDownError, "endpoint down"),
)


def _word(reason: MmbuError | None) -> str:
    if reason is None:
        return "done"
    return next((word for kind, word in _WORDS if isinstance(reason, kind)), "stopped")


def _reason(stop: Stop, name: str) -> MmbuError | None:
    if isinstance(stop.reason, InterruptedRunError):
        return InterruptedRunError(f"stopped; what was measured is kept: `mmbu bench show {name}` shows it.")
    return stop.reason


def _targets(spec: Spec) -> list[Target]:
    """Raises ConfigError for a key or a price that is needed and missing."""
    asked: tuple[CallSettings, ...] = (spec.settings, *spec.others)
    names = [settings.model for settings in asked]
    if len(set(names)) < len(names):
        names = [f"{settings.model} at {settings.host}" for settings in asked]
    if len(set(names)) < len(names):
        names = [f"{settings.model} at {settings.url}" for settings in asked]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, start=1)]
    made = []
    for label, settings in zip(names, asked, strict=True):
        price = Prices().find(settings)
        if price is None and spec.config.max_cost is not None:
            raise ConfigError(
                f"--max-cost needs prices, and none is known for {settings.model} at {settings.host}: give "
                f"{settings.flag('input_price')} and {settings.flag('output_price')}."
            )
        made.append(
            Target(
                label=label,
                settings=settings,
                key=settings.api_key(),
                wire=WIRE_FORMATS[settings.endpoint](),
                price=price,
            )
        )
    return made


async def _sender(target: Target, stack: AsyncExitStack) -> Sender:
    settings = target.settings
    timeouts = Timeouts(total=settings.timeout, connect=settings.connect_timeout, idle=settings.idle_timeout)
    clock: Callable[[], float] = time.perf_counter
    transport = TimedAiohttp(timeouts, environment_proxy(settings.url), clock)
    return Sender(target, await stack.enter_async_context(transport), clock)


def _rows(spec: Spec, picked: Picked | None) -> dict[str, Json] | None:
    """The benchmark that a run is planned for, and how many rows it would ask; None: for none."""
    if picked is not None and spec.plan_for in (None, spec.config.benchmark):
        return {"benchmark": spec.config.benchmark, "rows": picked.selected}
    if spec.plan_for is None:
        return None
    # Of synthetic work the selection of rows can only be meant for this.
    elsewhere: dict[str, Json] = (
        {} if picked is None else {"data": None, "limit": None, "task": (), "where": {}}
    )
    other = spec.config.model_copy(update={"benchmark": spec.plan_for, **elsewhere})
    return {"benchmark": spec.plan_for, "rows": pick(lay_out(other), 1, spec.seed).selected}


def _pool(spec: Spec, target: Target, bench: Bench | None, picked: Picked | None, tell: Tell) -> Pool:
    """The requests for one endpoint, made before the first is sent."""
    made: list[Item]
    if bench is None or picked is None:
        made = spec.synthetic.items(spec.seed) if spec.synthetic is not None else []
    else:
        settings = target.settings
        workshop = Workshop(
            benchmark=bench.rules.benchmark,
            read_image=bench.source.read_image,
            limits=find_limits(settings.endpoint, settings.host, spec.config.image_limits),
            wire=target.wire,
            settings=settings,
            estimator=Estimator.of(settings),
        )
        made, broken = items(picked, workshop)
        if broken:
            tell(f"{len(broken):,} rows are left out, whose images cannot be sent ({broken[0].message})")
    pool = Pool(made, wire=target.wire, settings=target.settings, caching=spec.caching, seed=spec.seed)
    pool.warm()
    return pool


def _allow_connections(loads: tuple[Load, ...]) -> None:
    for load in loads:
        sure = load.concurrency if isinstance(load, Closed) else load.most_in_flight
        allow_connections(sure or OPEN_CONNECTIONS, all_needed=sure is not None)
