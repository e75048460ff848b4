"""What a call costs through our client: one image, many times.

python -m benchmarks.client_ours URL IMAGE CONCURRENCY REQUESTS
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from benchmarks.client_costs import report
from mmbu_async.api import run_sync
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import EndpointClient, Expected
from mmbu_async.images import find_limits, prepare
from mmbu_async.model import Attempt, Completion, ImageSlot, Prompt

PROMPT = Prompt(parts=(ImageSlot(index=0), "Where is the cell nucleus?"))
EXPECTED = Expected(input_tokens=1200, most_output_tokens=2048, usual_output_tokens=200)


class NoPurse:
    """No money is counted here."""

    async def hold(self, usd: float | None) -> None:
        return

    def settle(self, held: float | None, spent: float | None) -> None:
        return


async def keep(attempt: Attempt, final: bool) -> None:
    return


async def work(url: str, image: bytes, concurrency: int, requests: int) -> None:
    settings = CallSettings(model="bare", base_url=url, concurrency=concurrency)
    limits = find_limits(settings.endpoint, settings.host)
    client = EndpointClient(settings, key="none", purse=NoPurse(), price=None, random=Random(0))
    async with client:

        async def ask() -> None:
            body = client.wire.body(settings, PROMPT, (prepare(image, limits),))
            assert isinstance(await client.call(body, EXPECTED, keep), Completion)

        await report(ask, concurrency, requests)


def main() -> None:
    url, image, concurrency, requests = sys.argv[1:]
    run_sync(lambda: work(url, Path(image).read_bytes(), int(concurrency), int(requests)))


if __name__ == "__main__":
    main()
