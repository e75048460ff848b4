"""A row browser over a real store, for tests: runs made by the simulator, and the server in a thread."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mmbu_async import api
from mmbu_async.config import JudgeConfig
from mmbu_async.viewer.server import serving
from tests.whole_run import MINI, config, simulated

FIRST, SECOND = "first", "second"
FAULTS = (
    "truncated@model=text:green mask",
    "bad_request@model=text:brown colour",
    "refusal@model=text:a single cell or",
    "untagged@model=text:red box",
    "rate_limit@model=first:1",
    "other_verdict@judge=0.3",
)


def two_runs(folder: Path, data: Path = MINI) -> Path:
    """A store with a run that met no fault, and one over the same rows that met some and has two judges."""

    async def run() -> None:
        async with simulated() as simulator:
            await api.evaluate(config(simulator, store, data, name=FIRST))
        async with simulated(*FAULTS, retry_after_s=0.0) as simulator:
            settings = config(simulator, store, data, name=SECOND, judge={"model": "odd-judge"})
            await api.evaluate(settings, check=False)
        async with simulated() as simulator:
            judge = JudgeConfig(
                model="plain-judge", endpoint="openai", base_url=f"{simulator.url}/v1", input_price=1.0
            )
            await api.rejudge(SECOND, store=store, judge=judge, check=False)

    store = folder / "store.sqlite"
    asyncio.run(run())
    return store


@contextmanager
def served(store: Path, *runs: str) -> Iterator[str]:
    """The address of the pages, served from a thread of its own."""
    found: list[str] = []
    up = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        try:
            async with serving(store, runs) as address:
                found.append(address)
                up.set()
                await stop.wait()
        finally:
            up.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    up.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


class Page(HTMLParser):
    """What a reader of the page's text gets, and what a browser would do with it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """Attributes of every such tag; `class_` names one of its classes."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            found
            for name, found in self.tags
            if name == tag
            and all(
                value in found.get(key, "").split() if key == "class" else found.get(key) == value
                for key, value in wanted.items()
            )
        ]

    @property
    def rows(self) -> list[str]:
        """Addresses of the rows of a list."""
        return [link["href"] for link in self.all("a", class_="open")]


def metadata(folder: Path = MINI) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metadata.jsonl").read_text("utf-8").splitlines()]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the server said to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def page(self) -> Page:
        return Page(self.text)


def fetch(base: str, path: str = "", method: str = "GET", **headers: str) -> Answered:
    """One request over a connection of its own, its path sent as it is. Underscores of headers are dashes."""
    address = urlsplit(base)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, f"/{path}", skip_host="Host" in given, skip_accept_encoding=True)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return Answered(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()
