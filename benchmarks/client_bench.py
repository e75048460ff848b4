"""What a request costs through the sender of `mmbu bench`: one image, many times.

python -m benchmarks.client_bench URL IMAGE CONCURRENCY REQUESTS plain|bust|stream

`plain` sends bodies that were made before, as a bench does; `bust` makes each anew with other pixels;
`stream` asks for streams. One line of JSON says what it took.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from random import Random

from mmbu_async.api import run_sync
from mmbu_async.bench.measured import Measured
from mmbu_async.bench.money import Money
from mmbu_async.bench.plan import Closed, Ends, Load, Open, StagePlan
from mmbu_async.bench.pool import Caching, Item, Pool
from mmbu_async.bench.quiet import allow_connections, no_long_collections
from mmbu_async.bench.sender import Sender, Target
from mmbu_async.bench.stage import Stage
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.timed import TimedAiohttp
from mmbu_async.endpoints.transport import Timeouts
from mmbu_async.images import find_limits, prepare
from mmbu_async.model import ImageSlot, Prompt

STREAM_S = 1.0
"""How long the simulator's streams are."""
PROMPT = Prompt(parts=(ImageSlot(index=0), "Where is the cell nucleus?"))


async def work(url: str, image: bytes, concurrency: int, requests: int, kind: str) -> None:
    settings = CallSettings(model="bare", base_url=url, stream=kind == "stream")
    wire = WIRE_FORMATS["openai"]()
    target = Target(label="bare", settings=settings, key="none", wire=wire, price=None)
    item = Item(prompt=PROMPT, images=(prepare(image, find_limits("openai", settings.host)),))
    caching = Caching.BUST if kind == "bust" else Caching.SAME
    pool = Pool([item], wire=wire, settings=settings, caching=caching, seed=0)
    pool.warm()
    allow_connections(concurrency)
    async with TimedAiohttp(Timeouts(total=600, connect=60, idle=300), None, time.perf_counter) as transport:
        sender = Sender(target, transport)

        async def stage(count: int) -> Measured:
            load: Load = Closed(concurrency=concurrency)
            if kind == "stream":
                # So many a second as a stream lasts seconds: that many at once, begun one after the other.
                load = Open(rate=concurrency / STREAM_S)
            plan = StagePlan(load=load, ends=Ends(requests=count), watch_saturation=False)
            one = Stage(plan=plan, sender=sender, work=pool, money=Money(None), random=Random(0))
            with no_long_collections():
                return await one.run()

        # Every connection is opened first, so that only requests are measured.
        await stage(concurrency * (1 if kind == "stream" else 4))
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        measured = await stage(requests)
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    assert all(record.ok for record in measured.records), measured.records[-1].message
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    firsts = sorted(record.first_token_s or 0.0 for record in measured.records)
    print(
        json.dumps(
            {
                "cpu_ms": (user + system) / requests * 1e3,
                "system_ms": system / requests * 1e3,
                "requests_a_second": requests / took,
                "events": sum(record.events for record in measured.records),
                "cpu_s": user + system,
                "first_token_p50_s": firsts[len(firsts) // 2],
                "first_token_p99_s": firsts[int(len(firsts) * 0.99)],
            }
        )
    )


def main() -> None:
    url, image, concurrency, requests, kind = sys.argv[1:]
    run_sync(lambda: work(url, Path(image).read_bytes(), int(concurrency), int(requests), kind))


if __name__ == "__main__":
    main()
