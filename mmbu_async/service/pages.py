"""The live page: a shell of HTML that the server fills with nothing foreign but names, and scripts that ask
the API for the rest. No page holds a figure that the API has not."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from typing import Any

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from mmbu_async.report import plain
from mmbu_async.service.auth import COOKIE, Token, let_in
from mmbu_async.service.jobs import Desk
from mmbu_async.service.problems import ApiError, Problem
from mmbu_async.version import VERSION
from mmbu_async.viewer import texts

_JAVASCRIPT = "text/javascript; charset=utf-8"
STATIC: Mapping[str, str] = {
    "service.css": "text/css; charset=utf-8",
    "common.js": _JAVASCRIPT,
    "charts.js": _JAVASCRIPT,
    "runs.js": _JAVASCRIPT,
    "run.js": _JAVASCRIPT,
    "steer.js": _JAVASCRIPT,
    "new.js": _JAVASCRIPT,
    "icon.svg": "image/svg+xml",
}
"""All files that are served, with their types."""
MOST_LOGIN = 4096
"""Bytes of the form with the token."""
LONGEST = 2_000
"""Characters of a foreign text on a page."""
WRONG_TOKEN_S = 0.5
"""Seconds after which a wrong token is refused."""


class Pages:
    """Handlers of the pages, and of their files."""

    def __init__(self, desk: Desk, token: Token | None) -> None:
        self._desk = desk
        self._token = token
        self._files = {name: _read(name) for name in STATIC}
        self._tags = {name: hashlib.sha256(body).hexdigest()[:32] for name, body in self._files.items()}
        self._templates = Environment(
            loader=PackageLoader("mmbu_async.service"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(line=lambda text: texts.line(text, LONGEST), plain=plain.line)
        self._templates.globals.update(version=VERSION, guarded=token is not None)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._runs),
            web.get("/run", self._run),
            web.get("/new", self._new),
            web.get("/login", self._show_login),
            web.post("/login", self._log_in),
            web.post("/logout", self._log_out),
            web.get("/static/{name}", self._static),
        ]

    def login(
        self, request: web.Request, headers: Mapping[str, str] | None = None, *, wrong: bool = False
    ) -> web.Response:
        """The way in; says nothing of the service but that it is one."""
        return self._page(request, "login.html", status=HTTPStatus.UNAUTHORIZED, headers=headers, wrong=wrong)

    def message(
        self, request: web.Request, told: Problem, headers: Mapping[str, str] | None = None
    ) -> web.Response:
        """A problem as a page."""
        return self._page(request, "message.html", status=told.status, headers=headers, told=told)

    async def _runs(self, request: web.Request) -> web.StreamResponse:
        return self._page(request, "runs.html")

    async def _run(self, request: web.Request) -> web.StreamResponse:
        name = request.query.get("name", "")
        # Raises RunNotFoundError for one that the service does not know.
        return self._page(request, "run.html", run=self._desk.job(name).run)

    async def _new(self, request: web.Request) -> web.StreamResponse:
        return self._page(request, "new.html")

    async def _show_login(self, request: web.Request) -> web.StreamResponse:
        if self._token is None or self._token.admits(request):
            raise web.HTTPSeeOther("./")
        return self.login(request)

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        if self._token is None:
            raise web.HTTPSeeOther("./")
        if request.content_type != "application/x-www-form-urlencoded":
            raise ApiError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The token comes by the form of this page.")
        if request.content_length is None or request.content_length > MOST_LOGIN:
            raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is too long for a token.")
        given = (await request.post()).get("token", "")
        if not isinstance(given, str) or not self._token.is_it(given.strip()):
            await asyncio.sleep(WRONG_TOKEN_S)
            return self.login(request, wrong=True)
        answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "./"})
        let_in(answer, self._token, secure=request.secure)
        return answer

    async def _log_out(self, _request: web.Request) -> web.StreamResponse:
        answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "./"})
        answer.del_cookie(COOKIE, path="/")
        return answer

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        # Scripts name each other without a version: a browser asks each time whether they are the same.
        headers = {"ETag": f'"{self._tags[name]}"', "Cache-Control": "no-cache", "Content-Type": STATIC[name]}
        if any(known.value == self._tags[name] for known in request.if_none_match or ()):
            del headers["Content-Type"]
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(body=self._files[name], headers=headers)

    def _page(
        self,
        request: web.Request,
        template: str,
        *,
        status: int = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> web.Response:
        root = "../" * (request.rel_url.raw_path.count("/") - 1) or "./"
        text = self._templates.get_template(template).render(values, root=root)
        return web.Response(status=status, text=text, content_type="text/html", headers=headers)


def _read(name: str) -> bytes:
    return resources.files("mmbu_async.service").joinpath(posixpath.join("static", name)).read_bytes()
