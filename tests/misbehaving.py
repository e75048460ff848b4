"""A server on real sockets that does exactly what a test wants, good manners or bad."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Request:
    """What came in."""

    line: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    connection: int
    """From 1, in the order in which connections were made."""


Behaviour = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]
"""Answers one request; what it raises or leaves open is its affair."""


@dataclass
class Misbehaving:
    """`async with Misbehaving(behave) as server:`; `server.url` is `http://127.0.0.1:PORT`."""

    behave: Behaviour
    greeting: bytes | None = None
    """Sent as soon as a connection is made; nothing is read then."""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first request has come."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client went away while its request was being answered."""
    url: str = ""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1000)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *details: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer, self.connections))
        self._tasks.add(task)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        try:
            if self.greeting is not None:
                writer.write(self.greeting)
                await asyncio.Event().wait()
            while (request := await _read(reader, connection)) is not None:
                self.requests.append(request)
                self.arrived.set()
                answering = asyncio.ensure_future(self.behave(request, writer))
                watching = asyncio.create_task(reader.read(1))
                done, _ = await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
                if watching in done and answering not in done:
                    self.gone.set()
                    answering.cancel()
                watching.cancel()
                await asyncio.gather(answering, watching, return_exceptions=True)
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, connection: int) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    line, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(line=line, headers=headers, body=body, connection=connection)


def response(body: bytes, *, status: str = "200 OK", promise: int | None = None, **headers: str) -> bytes:
    """An HTTP response; `promise` is the length it claims to have. Underscores in names stand for dashes."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if promise is None else promise}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with a TCP reset: closing with a linger time of zero sends one."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
