"""The same through the openai SDK, run in an environment that has it.

python client_openai.py URL IMAGE CONCURRENCY REQUESTS
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import openai
import uvloop
from client_costs import report


async def work(url: str, image: bytes, concurrency: int, requests: int) -> None:
    # Its 5 s to connect are too few for 1,000 connections at once.
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600) as client:

        async def ask() -> None:
            data = base64.b64encode(image).decode()
            await client.chat.completions.create(
                model="bare",
                max_tokens=2048,
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

        await report(ask, concurrency, requests)


def main() -> None:
    url, image, concurrency, requests = sys.argv[1:]
    uvloop.run(work(url, Path(image).read_bytes(), int(concurrency), int(requests)))


if __name__ == "__main__":
    main()
