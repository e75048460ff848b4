"""The file of a batch: written to disk request by request, so that memory holds one of them at a time."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from types import TracebackType
from typing import BinaryIO, Self

from mmbu_async.endpoints.batches.format import BatchFormat, custom_id

CHUNK = 2**20
"""Bytes read at once on the way out."""


class TooLargeError(Exception):
    """A request that no batch can hold, since it is larger than the largest file."""


class Upload:
    """A file that grows up to the limits. Use as a context manager; it is gone afterwards."""

    def __init__(
        self, form: BatchFormat, marker: str, url: str, *, most_requests: int, most_bytes: int
    ) -> None:
        self._form = form
        self._url = url
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._file.write(form.opening)
        self.marker = marker
        self.requests = 0
        self._size = len(form.opening)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self._size + len(self._form.closing)

    def add(self, body: bytes) -> int | None:
        """The number of the request in this file; None: it does not fit any more.

        Raises TooLargeError where it would not fit into an empty file.
        """
        number = self.requests
        entry = self._form.entry(custom_id(self.marker, number), self._url, body)
        parts = (self._form.between, entry) if number else (entry,)
        more = sum(map(len, parts))
        if number == 0 and self.size + more > self._most_bytes:
            raise TooLargeError(f"its request of {len(entry):,} bytes is larger than a batch may be")
        if number >= self._most_requests or self.size + more > self._most_bytes:
            return None
        for part in parts:
            self._file.write(part)
        self._size += more
        self.requests += 1
        return number

    async def chunks(self, before: bytes = b"", after: bytes = b"") -> AsyncIterator[bytes]:
        """The file from its beginning, between what a form of upload puts around it."""
        if before:
            yield before
        await asyncio.to_thread(self._file.seek, 0)
        while chunk := await asyncio.to_thread(self._file.read, CHUNK):
            yield chunk
        yield self._form.closing + after
