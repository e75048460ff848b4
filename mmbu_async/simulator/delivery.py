"""How bytes go out, well or badly."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping

from aiohttp import web

_PAGE = (
    "<!DOCTYPE html>\n<html><head><title>{title}</title></head>\n<body><center><h1>{title}</h1></center>"
    "<hr><center>simulator</center></body></html>\n"
)
_BEFORE_RESET_S = 0.03
"""A reset overtakes bytes that the client has not read yet; so long it may read the half that was sent."""


def page(title: str) -> bytes:
    return _PAGE.format(title=title).encode()


def reset(request: web.Request) -> None:
    """Ends the connection with a TCP reset: closing with a linger time of zero sends one."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def cut(request: web.Request) -> None:
    """Closes the connection in good order, whatever was promised."""
    if request.transport is not None:
        request.transport.close()


async def start(
    request: web.Request, status: int, headers: Mapping[str, str], length: int | None
) -> web.StreamResponse:
    """Sends status line and headers; without a length the body is chunked."""
    response = web.StreamResponse(status=status, headers=dict(headers))
    if length is not None:
        response.content_length = length
    await response.prepare(request)
    return response


async def whole(response: web.StreamResponse, body: bytes) -> None:
    await response.write(body)
    await response.write_eof()


async def broken(request: web.Request, response: web.StreamResponse, half: bytes, *, orderly: bool) -> None:
    """Sends a part of what was promised, then ends the connection."""
    await response.write(half)
    if orderly:
        cut(request)
        return
    await asyncio.sleep(_BEFORE_RESET_S)
    reset(request)


async def drip(response: web.StreamResponse, body: bytes, interval_s: float) -> None:
    """A byte at a time."""
    for byte in body:
        await response.write(bytes((byte,)))
        await asyncio.sleep(interval_s)
    await response.write_eof()


async def paced(
    response: web.StreamResponse,
    events: Iterable[tuple[bytes, bool]],
    due: Callable[[int], Awaitable[None]] | None,
) -> None:
    """Events of a stream. `due` waits until the token of that number, from 0, is to go out; None: at once."""
    sent = 0
    for event, is_token in events:
        if is_token and due is not None:
            await due(sent)
            sent += 1
        await response.write(event)


def at_speed(tokens_per_second: float) -> Callable[[int], Awaitable[None]]:
    """Each token at its time on an absolute schedule that begins now, so that delays do not add up."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def due(token: int) -> None:
        await asyncio.sleep(began + token / tokens_per_second - loop.time())

    return due
