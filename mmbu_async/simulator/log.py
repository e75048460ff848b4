"""The simulator's own record of every request: the outside view that tests count calls in."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import orjson

from mmbu_async.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRecord:
    """One image of a request."""

    sha256: str
    """Of the decoded bytes."""
    media_type: str
    width: int
    height: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request, from its arrival to its end. Times are Unix seconds."""

    number: int
    """Order of arrival, from 1."""
    arrived_at: float
    queued_s: float
    """Waiting for a place; with `servers`, also while they stand still, by plan: with `service_s` it is how
    long the reply takes from arrival to its last token, whatever this machine is busy with."""
    service_s: float
    """What the reply takes from its place to its last token by the settings; 0 where none was made."""
    ended_at: float
    path: str
    kind: str
    """Wire format: `openai`, `responses`, `azure`, `anthropic` or `gemini`."""
    role: str
    """`model` or `judge`; '' when the request could not be read."""
    content: str
    """SHA-256 over what was asked, hexadecimal; '' when the request could not be read."""
    occurrence: int
    """How often this content has come, this time included."""
    status: int
    """0 when no status line was sent."""
    error: str
    """Our word for the error that was answered, '' for none."""
    fault: str
    """Name of the injected fault, '' for none."""
    stream: bool
    model: str
    max_tokens: int | None
    input_tokens: int
    output_tokens: int
    charged: bool
    """Whether a real endpoint would bill the tokens: a reply was made, delivered or not."""
    request_id: str
    auth: str
    """First 12 hexadecimal digits of the key's SHA-256; '' when none was sent."""
    aborted: bool
    """The client went away before the last byte was handed to the socket."""
    shutdown: bool
    """The simulator was stopped before that."""
    bytes_in: int
    pictures: tuple[PictureRecord, ...] = ()
    batch: str = ""
    """The batch that it came in, or, of a record with role `batch`, that it made; '' for none."""
    custom_id: str = ""
    """Of a request of a batch; of a submission that of its first request."""


def fingerprint(key: str) -> str:
    """What the log says about a key."""
    return hashlib.sha256(key.encode()).hexdigest()[:12] if key else ""


class Milestones:
    """A count that can be waited for."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def step(self) -> int:
        self.count += 1
        for waiter in [waiter for waiter in self._waiting if waiter[0] <= self.count]:
            self._waiting.remove(waiter)
            if not waiter[1].done():
                waiter[1].set_result(None)
        return self.count

    async def until(self, count: int) -> None:
        if self.count < count:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((count, turn))
            await turn


class RequestLog:
    """Appends each record as one line in one write (O_APPEND), and keeps the newest in memory."""

    def __init__(self, path: Path | None, memory: int) -> None:
        self._records: deque[Record] = deque(maxlen=memory)
        self.ended = Milestones()
        self._file: int | None = None
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise ConfigError(f"the request log {path} cannot be opened: {error.strerror}.") from None

    def add(self, record: Record) -> None:
        self._records.append(record)
        self.ended.step()
        if self._file is not None:
            os.write(self._file, orjson.dumps(asdict(record)) + b"\n")

    @property
    def records(self) -> Sequence[Record]:
        """In order of their end."""
        return tuple(self._records)

    def __enter__(self) -> RequestLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
