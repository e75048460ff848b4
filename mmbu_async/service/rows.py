"""The row browser below the service: one for each run that is looked at, of which the latest few stay open.

Its links are relative, so that it does not matter where it lies: `rows/RUN/`, or `rows/RUN/beside/OTHER/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from mmbu_async.pipeline.opening import open_existing
from mmbu_async.store import RunRecord
from mmbu_async.viewer.app import Viewer

MOST = 8
"""Row browsers that stay open; each holds two threads and about a hundred bytes a row."""

_Shown = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True, eq=False)
class _Open:
    viewer: Viewer
    users: int = 0
    retired: bool = False


class RowPages:
    """Row browsers over one store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._open: dict[tuple[str, ...], _Open] = {}
        self._opening: dict[tuple[str, ...], asyncio.Task[_Open]] = {}

    def close(self) -> None:
        """Does not wait for what is under way."""
        for one in self._open.values():
            one.viewer.close()

    def routes(self) -> list[web.RouteDef]:
        pages: dict[str, Callable[[Viewer], _Shown]] = {
            "": lambda viewer: viewer.rows,
            "row": lambda viewer: viewer.row,
            "image": lambda viewer: viewer.image,
            "static/{name}": lambda viewer: viewer.static,
        }
        return [
            web.get(f"/rows/{runs}/{path}", self._showing(page))
            for runs in ("{run}", "{run}/beside/{other}")
            for path, page in pages.items()
        ]

    def _showing(self, page: Callable[[Viewer], _Shown]) -> _Shown:
        async def show(request: web.Request) -> web.StreamResponse:
            names = [request.match_info["run"], request.match_info.get("other")]
            one = await self._get(tuple(dict.fromkeys(name for name in names if name is not None)))
            one.users += 1
            try:
                return await one.viewer.explain(request, page(one.viewer))
            finally:
                one.users -= 1
                _close_idle(one)

        return show

    async def _get(self, names: tuple[str, ...]) -> _Open:
        found = self._open.pop(names, None)
        while found is None or found.retired:
            if names not in self._opening:
                self._opening[names] = asyncio.create_task(self._make(names), name="row browser")
            # Shielded: others may wait for it too, and one of them may have put it away again.
            found = await asyncio.shield(self._opening[names])
        self._open[names] = found
        while len(self._open) > MOST:
            oldest = self._open.pop(next(iter(self._open)))
            oldest.retired = True
            _close_idle(oldest)
        return found

    async def _make(self, names: tuple[str, ...]) -> _Open:
        try:
            return _Open(Viewer(self._store, await asyncio.to_thread(_records, self._store, names)))
        finally:
            del self._opening[names]


def _records(store: Path, names: tuple[str, ...]) -> list[RunRecord]:
    with open_existing(store) as opened:
        return [opened.run(name) for name in names]


def _close_idle(one: _Open) -> None:
    """By the last of its users."""
    if one.retired and not one.users:
        one.viewer.close()
