"""Server-sent events: the `data:` of each, from bytes as the network delivers them (WHATWG HTML, 9.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each event; several `data:` lines are joined by a line feed.

    Comments and events without data, which keep a connection alive, are left out. An event that the end of
    the body cuts short is given all the same: some servers leave the last blank line out.
    """
    rest = b""
    data: list[bytes] = []
    begun = False
    async for chunk in chunks:
        rest += chunk
        if not begun:
            if len(rest) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(rest):
                continue
            begun, rest = True, rest.removeprefix(_BYTE_ORDER_MARK)
        lines = rest.splitlines(keepends=True)
        # A carriage return at the very end may be half of a line end.
        rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            if stripped := line.rstrip(b"\r\n"):
                _take(stripped, data)
            elif data:
                yield b"\n".join(data)
                data = []
    _take(rest.rstrip(b"\r"), data)
    if data:
        yield b"\n".join(data)


def _take(line: bytes, data: list[bytes]) -> None:
    if line.startswith(b"data:") and (value := line[5:].removeprefix(b" ")):
        data.append(value)
