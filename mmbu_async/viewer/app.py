"""The pages of the row browser as an application of aiohttp.web.

All links are relative, so that the application may be served at the root or below any path that ends in a
slash. A row is asked for by its key and an image by its number in the row: nothing that a client says becomes
the name of a file.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from mmbu_async.errors import MmbuError
from mmbu_async.model import PreparedImage
from mmbu_async.pipeline.opening import open_existing
from mmbu_async.store import Browser, RowFilter, RunRecord
from mmbu_async.version import VERSION
from mmbu_async.viewer.address import (
    FINISH_WORDS,
    FLIP_WORDS,
    LARGEST_KEY,
    OUTCOME_WORDS,
    Address,
    BadAddressError,
    read_address,
    read_number,
    stratum_text,
)
from mmbu_async.viewer.desk import Desk, RunRules
from mmbu_async.viewer.guard import Handler, add_headers
from mmbu_async.viewer.pages import VALUES_A_STRATUM, RowRead, ShownImage, read_list, read_row, show_image
from mmbu_async.viewer.pictures import Missing, Picture, Pictures
from mmbu_async.viewer.texts import FILTERS

STATIC = {
    "viewer.css": "text/css; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "no-image.svg": "image/svg+xml",
}
"""All files that are served, with their types."""
PATIENCE_S = 5.0
"""How long a page waits for an image that is slow to come; the data's source may have to be opened first."""
SLOW = Missing(reason="it is still being read; load the page again in a moment.")


def application(store: Path, runs: Sequence[str], *, middlewares: Sequence[Any] = ()) -> web.Application:
    """Pages over some runs of a store; the first is shown where an address names none, with the second beside
    it. Raises RunNotFoundError or StoreError where they cannot be had."""
    with open_existing(store) as opened:
        records = [opened.run(name) for name in dict.fromkeys(runs)]
    viewer = Viewer(store, records)
    app = web.Application(middlewares=[*middlewares, viewer.explain])
    app.on_response_prepare.append(add_headers)
    app.cleanup_ctx.append(viewer.context)
    app.add_routes(
        [
            web.get("/", viewer.rows),
            web.get("/row", viewer.row),
            web.get("/image", viewer.image),
            web.get("/static/{name}", viewer.static),
        ]
    )
    return app


class Viewer:
    """Handlers, and what they share."""

    def __init__(self, store: Path, runs: Sequence[RunRecord]) -> None:
        self._names = [run.name for run in runs]
        self._desk = Desk(store, runs)
        self._pictures = Pictures()
        self._files = {name: _read(f"static/{name}") for name in STATIC}
        self._pages = _environment(hashlib.sha256(b"".join(self._files.values())).hexdigest()[:12])
        self._pages.globals["runs"] = self._names

    async def context(self, _app: web.Application) -> AsyncIterator[None]:
        yield
        self.close()

    def close(self) -> None:
        """Does not wait for what is under way."""
        self._desk.close()
        self._pictures.close()

    @web.middleware
    async def explain(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors as pages of one sentence."""
        try:
            return await handler(request)
        except BadAddressError as error:
            return self._say(400, "This address means nothing", str(error))
        except web.HTTPNotFound:
            return self._say(404, "There is nothing here", "No page has this address.")
        except MmbuError as error:
            return self._say(500, "This cannot be shown", str(error))

    async def rows(self, request: web.Request) -> web.StreamResponse:
        address = read_address(request.query.items(), self._names)
        if any(not value for value in request.query.values()):
            # A form sends its empty fields too; an address that is kept should be short.
            raise web.HTTPSeeOther(address.here)
        pair = address.run, address.beside
        page = await self._desk.read(pair, lambda browser: read_list(browser, address))
        return self._page("list.html", address=address, page=page, problem=self._desk.problem(pair))

    async def row(self, request: web.Request) -> web.StreamResponse:
        address = read_address(request.query.items(), self._names)
        key = _needed(request, "key")
        rules = await self._desk.rules(address.run)
        beside = None if address.beside is None else await self._desk.rules(address.beside)
        pair = address.run, address.beside
        read = await self._desk.read(pair, lambda browser: read_row(browser, address, key, rules, beside))
        if read is None:
            return self._say(404, "There is no such row", f"Run “{address.run}” has no row of key {key}.")
        images = await self._images(address, read, rules)
        problem = self._desk.problem(pair)
        return self._page("row.html", address=address, read=read, images=images, problem=problem)

    async def image(self, request: web.Request) -> web.StreamResponse:
        address = read_address(request.query.items(), self._names)
        key, index = _needed(request, "key"), _needed(request, "n")
        small = request.query.get("size") == "small"
        picture = await self._picture(address, key, index, small=small)
        if not isinstance(picture, PreparedImage):
            if small:
                # A list is full of them; the row's own page says why.
                return _file(self._files["no-image.svg"], STATIC["no-image.svg"])
            return self._say(404, "There is no such image", picture.reason if picture else "")
        tag = f"{picture.original_sha256[:32]}{'-small' if small else ''}"
        headers = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache"}
        if any(known.value == tag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=picture.data, content_type=picture.media_type, headers=headers)

    async def static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        return _file(self._files[name], STATIC[name])

    async def _images(self, address: Address, read: RowRead, rules: RunRules) -> list[ShownImage]:
        row = read.side.row
        waiting = [
            self._picture(address, row.key, index, small=False) for index in range(len(row.sample.images))
        ]
        found = await asyncio.gather(*(_patient(one) for one in waiting))
        return [show_image(read, rules, index, picture or SLOW) for index, picture in enumerate(found)]

    async def _picture(self, address: Address, key: int, index: int, *, small: bool) -> Picture | None:
        """None where there is no such row or image."""
        rules = await self._desk.rules(address.run)
        if rules.config is None or rules.rules is None:
            return Missing(reason=rules.problem)
        known = self._pictures.kept((address.run, key, index, small))
        if known is not None:
            return known

        def locate(browser: Browser) -> Any:
            detail = browser.row(key)
            images = () if detail is None else detail.record.sample.images
            return images[index] if index < len(images) else None

        ref = await self._desk.read((address.run, address.beside), locate)
        if ref is None:
            return None
        return await self._pictures.get(
            (address.run, key, index, small), ref, rules.config, rules.rules.benchmark
        )

    def _say(self, status: int, title: str, sentence: str) -> web.Response:
        return self._page("message.html", status=status, title=title, sentence=sentence)

    def _page(self, template: str, *, status: int = 200, **values: Any) -> web.Response:
        text = self._pages.get_template(template).render(values)
        return web.Response(status=status, text=text, content_type="text/html")


def _environment(static_version: str) -> Environment:
    pages = Environment(
        loader=PackageLoader("mmbu_async.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(FILTERS)
    pages.globals.update(
        version=VERSION,
        static_version=static_version,
        outcome_words=OUTCOME_WORDS,
        finish_words=FINISH_WORDS,
        flip_words=FLIP_WORDS,
        stratum_text=stratum_text,
        nothing_wanted=RowFilter(),
        last_key=LARGEST_KEY,
        values_a_stratum=VALUES_A_STRATUM,
    )
    return pages


async def _patient(picture: Awaitable[Picture | None]) -> Picture | None:
    try:
        return await asyncio.wait_for(picture, PATIENCE_S)
    except TimeoutError:
        return None


def _needed(request: web.Request, name: str) -> int:
    number = read_number(request.query, name)
    if number is None:
        raise BadAddressError(f"The address lacks “{name}”.")
    return number


def _read(name: str) -> bytes:
    return resources.files("mmbu_async.viewer").joinpath(name).read_bytes()


def _file(body: bytes, kind: str) -> web.Response:
    # Their addresses change with their contents.
    return web.Response(
        body=body, headers={"Content-Type": kind, "Cache-Control": "private, max-age=86400, immutable"}
    )
