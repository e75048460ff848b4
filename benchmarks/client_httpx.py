"""The same through httpx, run in an environment that has it.

python client_httpx.py URL IMAGE CONCURRENCY REQUESTS
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import httpx
import uvloop
from client_costs import report


async def work(url: str, image: bytes, concurrency: int, requests: int) -> None:
    # Its own limit is 100 connections, and nobody is told.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=600) as client:

        async def ask() -> None:
            data = base64.b64encode(image).decode()
            response = await client.post(
                f"{url}/chat/completions",
                headers={"Authorization": "Bearer none"},
                json={
                    "model": "bare",
                    "max_tokens": 2048,
                    "messages": [
                        {
                            "role": "user",
                            "content": [
                                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
                                {"type": "text", "text": "Where is the cell nucleus?"},
                            ],
                        }
                    ],
                },
            )
            response.raise_for_status()
            response.json()

        await report(ask, concurrency, requests)


def main() -> None:
    url, image, concurrency, requests = sys.argv[1:]
    uvloop.run(work(url, Path(image).read_bytes(), int(concurrency), int(requests)))


if __name__ == "__main__":
    main()
