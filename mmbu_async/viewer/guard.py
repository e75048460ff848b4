"""Who is answered, and what every answer says about itself.

Only pages of this machine are meant to reach the server. A site elsewhere can make a reader's browser ask for
an address of 127.0.0.1 under a name of its own (DNS rebinding): the Host header tells, so only names of this
machine are answered. No page but ours may embed, read or script what is served.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOCAL = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
"""Any port: a tunnel (`ssh -L`) ends at another one than ours."""
METHODS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """For the outermost application."""
    if not _LOCAL.fullmatch(request.headers.get("Host", "")):
        return web.Response(
            status=403, text="This server answers only under the names localhost and 127.0.0.1.\n"
        )
    if request.method not in METHODS:
        return web.Response(
            status=405, headers={"Allow": ", ".join(METHODS)}, text="This server is only read from.\n"
        )
    return await handler(request)


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """A signal handler, so that it reaches error pages too."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
