"""Metrics over HTTP, on this machine alone.

A thread of its own answers, so that a scrape is answered while a run scores its rows or waits for a disk,
and delays no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from mmbu_async.errors import ConfigError
from mmbu_async.telemetry.registry import CONTENT_TYPE

HOST = "127.0.0.1"
PATH = "/metrics"


@contextmanager
def serving(text: Callable[[], str], port: int) -> Iterator[str]:
    """Serve until the block ends; gives the address. Port 0: any that is free. Raises ConfigError where the
    port is taken."""

    class Handler(_Handler):
        read = staticmethod(text)

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "there is no such port"
        raise ConfigError(
            f"--metrics-port {port}: cannot be served at ({why}); give another, or 0 for any that is free."
        ) from None
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    read: Callable[[], str]
    timeout = 10
    """Seconds for a client that connects and says nothing."""

    def do_GET(self) -> None:
        """Called by the base class under this name."""
        if urlsplit(self.path).path != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, explain=f"there is only {PATH}")
            return
        body = self.read().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A scrape every few seconds is no news."""
