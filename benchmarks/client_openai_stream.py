"""Streams through the openai SDK, run in an environment that has it.

python client_openai_stream.py URL IMAGE CONCURRENCY REQUESTS
"""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import sys
import time
from pathlib import Path

import openai
import uvloop


async def work(url: str, image: bytes, concurrency: int, requests: int) -> None:
    firsts: list[float] = []
    events = 0
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600) as client:

        async def ask() -> None:
            nonlocal events
            data = base64.b64encode(image).decode()
            began, first = time.perf_counter(), None
            stream = await client.chat.completions.create(
                model="bare",
                max_tokens=2048,
                stream=True,
                stream_options={"include_usage": True},
                messages=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
                            {"type": "text", "text": "Where is the cell nucleus?"},
                        ],
                    }
                ],
            )
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    events += 1
                    first = first or time.perf_counter() - began
            firsts.append(first or 0.0)

        async def loops(count: int) -> None:
            left = iter(range(count))

            async def loop(number: int) -> None:
                # One after the other over a second, which is what a stream takes.
                await asyncio.sleep(number / concurrency)
                for _ in left:
                    await ask()

            async with asyncio.TaskGroup() as group:
                for number in range(concurrency):
                    group.create_task(loop(number))

        await loops(concurrency)
        firsts.clear()
        events = 0
        before = resource.getrusage(resource.RUSAGE_SELF)
        await loops(requests)
        after = resource.getrusage(resource.RUSAGE_SELF)
    firsts.sort()
    print(
        json.dumps(
            {
                "events": events,
                "cpu_s": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
                "first_token_p50_s": firsts[len(firsts) // 2],
                "first_token_p99_s": firsts[int(len(firsts) * 0.99)],
            }
        )
    )


def main() -> None:
    url, image, concurrency, requests = sys.argv[1:]
    uvloop.run(work(url, Path(image).read_bytes(), int(concurrency), int(requests)))


if __name__ == "__main__":
    main()
