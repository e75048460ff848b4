"""Server-sent events: the `data:` of each, from bytes as the network delivers them (WHATWG HTML, 9.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each event; several `data:` lines are joined by a line feed; comments are skipped."""
    rest = b""
    data: list[bytes] = []
    async for chunk in chunks:
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for raw in lines:
            line = raw.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if data:
        yield b"\n".join(data)
