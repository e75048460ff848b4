"""A whole service in a thread: real scheduler, real runs against a simulator, real pages."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mmbu_async.service.app import application
from mmbu_async.service.auth import Token
from mmbu_async.service.guard import Guard
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.service.settings import EndpointSettings, ServiceConfig
from tests.service_kit import Answered, Site, api, opened
from tests.whole_run import MINI, simulated

PATIENCE_S = 60.0


class Service:
    """A site with a token that it sends by itself."""

    def __init__(self, site: Site, token: str) -> None:
        self.site = site
        self.url = site.url
        self._headers: dict[str, Any] = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str) -> Answered:
        return self.site.fetch(path, **self._headers)

    def post(self, path: str, body: Any = None) -> Answered:
        return self.site.post(path, body, **self._headers)

    def submit(self, name: str, **settings: Any) -> Any:
        """A run over the small split; its job."""
        here = {"endpoint": "here", "input_price": 1.0, "output_price": 2.0}
        plain = {"name": name, "model": "m", "data": "mini", "preflight": False} | here
        body = {"settings": plain | {"judge": {"model": "j"} | here} | settings}
        answer = self.post(api(path="/runs"), body)
        assert answer.status == 201, answer.text
        return answer.json

    def state(self, name: str) -> str:
        return str(self.get(api(name)).json["job"]["state"])

    def wait_for(self, name: str, *states: str) -> str:
        """Until the run is in one of the states."""
        self.wait(lambda: self.state(name) in states)
        return self.state(name)

    def wait(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.02)


@contextmanager
def whole_service(
    folder: Path, *faults: str, token: str = "", max_runs: int = 4, **options: Any
) -> Iterator[Service]:
    """Over a store in that folder, until the block ends; runs drain then. `options` are the simulator's."""

    @asynccontextmanager
    async def made() -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            simulator = await stack.enter_async_context(simulated(*faults, **options))
            endpoint = EndpointSettings(name="here", base_url=f"{simulator.url}/v1", models=())
            config = ServiceConfig(
                store=folder / "store.sqlite",
                data={"mini": str(MINI)},
                endpoint=(endpoint,),
                max_runs=max_runs,
            )
            desk = await stack.enter_async_context(Scheduler(config, look_s=0.1))
            yield application(desk, config, guard=Guard(token=Token(token) if token else None)), desk

    with opened(made) as site:
        yield Service(site, token)
