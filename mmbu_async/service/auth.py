"""Who may use the service: whoever has its token, in a header, or in exchange for a cookie.

The cookie holds no token, only an end and a seal that nobody can make without the token: it outlives a
restart of the service, and is worth nothing once the token is another one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from mmbu_async.errors import ConfigError

TOKEN_VARIABLE: Final = "MMBU_SERVICE_TOKEN"  # noqa: S105  (the variable's name)
COOKIE: Final = "mmbu_session"
SHORTEST: Final = 16
"""Characters of a token: fewer could be tried out over the network."""
SESSION_S: Final = 7 * 24 * 3600
_SCHEME = "bearer "


class Token:
    """Knows whether a request has it, without keeping it where a traceback or a page could show it."""

    def __init__(self, secret: str, *, clock: Callable[[], float] = time.time) -> None:
        if len(secret) < SHORTEST or not (secret.isascii() and secret.isprintable()) or " " in secret:
            raise ConfigError(
                f"{TOKEN_VARIABLE}: a token has at least {SHORTEST} printable ASCII characters and no blank; "
                "`openssl rand -hex 32` makes one."
            )
        self._digest = hashlib.sha256(secret.encode()).digest()
        self._seal = hmac.digest(secret.encode(), b"mmbu session", "sha256")
        self._clock = clock

    def __repr__(self) -> str:
        return "Token(***)"

    def is_it(self, given: str) -> bool:
        """Takes as long for every wrong one."""
        return hmac.compare_digest(
            hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest(), self._digest
        )

    def admits(self, request: web.BaseRequest) -> bool:
        """A header counts before a cookie: who sends a wrong token is not let in by what a browser adds."""
        header = request.headers.get("Authorization")
        if header is not None:
            return header[: len(_SCHEME)].lower() == _SCHEME and self.is_it(header[len(_SCHEME) :].strip())
        return self._is_session(request.cookies.get(COOKIE, ""))

    def session(self) -> str:
        """What a cookie holds: until when, something random, and the seal over both."""
        content = f"{int(self._clock()) + SESSION_S}.{secrets.token_hex(8)}"
        return f"{content}.{self._sealed(content)}"

    def _is_session(self, value: str) -> bool:
        content, _, seal = value.rpartition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "surrogateescape"), self._sealed(content).encode()):
            return False
        return self._clock() < int(content.partition(".")[0])

    def _sealed(self, content: str) -> str:
        return hmac.new(self._seal, content.encode("utf-8", "surrogateescape"), "sha256").hexdigest()


def token_from(environment: Mapping[str, str]) -> Token | None:
    """The token of the environment; None where it is not set. Raises ConfigError for one that is too weak."""
    secret = environment.get(TOKEN_VARIABLE, "").strip()
    return Token(secret) if secret else None


def let_in(response: web.StreamResponse, token: Token, *, secure: bool) -> None:
    """Scripts cannot read the cookie, and no page of another site makes the browser send it."""
    response.set_cookie(
        COOKIE,
        token.session(),
        max_age=SESSION_S,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=secure,
    )
