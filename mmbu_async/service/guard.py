"""Which requests are looked at at all, and what every answer says about itself.

A site elsewhere can make a reader's browser ask for an address here: under a name of its own (DNS rebinding),
which the Host header tells, or by a form that it posts, which Origin and Sec-Fetch-Site tell. No other site
may embed, read or script what is served: there is no CORS header at all.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import web

from mmbu_async.service.auth import Token
from mmbu_async.service.problems import ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Of a report's page, which brings its style along and has no script."""
HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "mmbu",
}
READING = frozenset({"GET", "HEAD"})
OPEN_ROUTES = frozenset({"/healthz", "/readyz", "/login", "/static/{name}"})
"""What is answered without a token: whether the service lives, the way in, and files of the package."""
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\s]+)(?::\d{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What the service answers to."""

    token: Token | None = None
    """None: anybody on this machine, and nobody else."""
    names: frozenset[str] = frozenset()
    """Host names beside those of this machine, in small letters."""
    beyond: bool = False
    """Whether it listens beyond this machine: then addresses in figures are names of it too. No site can
    give itself one of those."""

    def check(self, request: web.Request) -> None:
        """Raises ApiError for a request that is not for us, or that another site has made."""
        if not self._is_ours(request.headers.get("Host", "")):
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "This service is not known under that host name; --allow-host NAME lets it be.",
            )
        site = request.headers.get("Sec-Fetch-Site")
        if request.method in READING:
            # A link from elsewhere may lead here; an image or a script of another page may not.
            foreign = site == "cross-site" and request.headers.get("Sec-Fetch-Mode") != "navigate"
        else:
            foreign = site not in (None, "same-origin", "none") or not _same_origin(request)
        if foreign:
            raise ApiError(HTTPStatus.FORBIDDEN, "Requests that pages of other sites make are not answered.")

    def admits(self, request: web.Request) -> bool:
        """Whether it has the token, or needs none."""
        if self.token is None:
            return True
        # The route, and no beginning of a path: what is found below decides, not how it was written.
        resource = request.match_info.route.resource
        return (resource is not None and resource.canonical in OPEN_ROUTES) or self.token.admits(request)

    def _is_ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found["name"].strip("[]").lower().rstrip(".")
        return name in _LOCAL_NAMES or name in self.names or (self.beyond and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same_origin(request: web.Request) -> bool:
    """Programs send no Origin; browsers do with everything that is no GET."""
    origin = request.headers.get("Origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == request.headers.get("Host", "").lower()
    except ValueError:
        return False


async def add_headers(_request: web.Request, answer: web.StreamResponse) -> None:
    """A signal handler, so that it reaches error pages too."""
    for name, value in HEADERS.items():
        answer.headers[name] = value
    answer.headers.setdefault("Content-Security-Policy", POLICY)
    answer.headers.setdefault("Cache-Control", "no-store")
