"""Server-sent events: the `data:` of each, from bytes as the network delivers them (WHATWG HTML, 9.2)."""

from __future__ import annotations

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventSplitter:
    """The data of each event, a piece of the body at a time; several `data:` lines are joined by a line feed.

    Comments and events without data, which keep a connection alive, are left out. An event that the end of
    the body cuts short is given all the same: some servers leave the last blank line out.
    """

    __slots__ = ("_begun", "_data", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that this piece completes."""
        if (
            self._begun
            and not (self._rest or self._data)
            and chunk.startswith(b"data: ")
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
        ):
            # One whole event, as a piece mostly is.
            return [chunk[6:-2]]
        rest = self._rest + chunk
        if not self._begun:
            if len(rest) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(rest):
                self._rest = rest
                return []
            self._begun, rest = True, rest.removeprefix(_BYTE_ORDER_MARK)
        lines = rest.splitlines(keepends=True)
        # A carriage return at the very end may be half of a line end.
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        done: list[bytes] = []
        for line in lines:
            if stripped := line.rstrip(b"\r\n"):
                self._take(stripped)
            elif self._data:
                done.append(b"\n".join(self._data))
                self._data = []
        return done

    def end(self) -> list[bytes]:
        """What the end of the body cut short."""
        self._take(self._rest.rstrip(b"\r"))
        left, self._data, self._rest = self._data, [], b""
        return [b"\n".join(left)] if left else []

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:") and (value := line[5:].removeprefix(b" ")):
            self._data.append(value)
