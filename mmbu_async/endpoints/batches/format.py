"""What every batch API has: a file of requests, a batch that is looked at until it ends, a file of results.

A result names its request by a custom id, and comes in any order. The custom id is the batch's marker and the
request's number, so that a result says of itself which batch it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import failure_from_response
from mmbu_async.endpoints.wire import WireFormat, read_response
from mmbu_async.model import Completion, Failure, Json

Settings = TypeVar("Settings", bound=CallSettings)
_CUSTOM_ID = re.compile(r"(mmbu[0-9a-f]{20})-(\d{1,6})")


def custom_id(marker: str, number: int) -> str:
    """Both vendors take up to 64 letters, digits, hyphens and underscores."""
    return f"{marker}-{number}"


def number_of(custom: str, marker: str) -> int | None:
    """The number of a request of this batch; None: the id is none of ours."""
    found = _CUSTOM_ID.fullmatch(custom)
    return int(found[2]) if found and found[1] == marker else None


def marker_of(custom: str) -> str:
    """The batch of which an id speaks; '' where it is none of ours."""
    found = _CUSTOM_ID.fullmatch(custom)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that a vendor takes in one batch."""

    requests: int
    bytes: int
    """Of the whole file."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a vendor would not begin a batch."""

    code: str
    message: str
    line: int | None = None
    """From 1: the request that it does not like; None: it is about the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBatch:
    """A batch as the vendor tells of it."""

    id: str
    status: str
    """The vendor's own word."""
    ended: bool
    """Nothing more will be done; what is there can be fetched."""
    refused: bool = False
    """It was never begun, for the `problems`."""
    total: int = 0
    finished: int = 0
    marker: str = ""
    """Ours, where the vendor keeps one with the batch."""
    created_at: float | None = None
    """Unix seconds, by the vendor's clock."""
    results: tuple[str, ...] = ()
    """What to fetch: names of files, or the batch itself."""
    problems: tuple[Problem, ...] = ()


class End(StrEnum):
    """How one request of a batch ended."""

    ANSWERED = "answered"
    """With a reply or an error of its own."""
    EXPIRED = "expired"
    """Its time was over before its turn came; not charged."""
    CANCELLED = "cancelled"
    """Not charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one request."""

    custom_id: str
    end: End
    outcome: Completion | Failure | None = None
    """None unless it was answered."""


class BatchFormat(Protocol):
    """One vendor's files and words. Pure."""

    limits: BatchLimits
    opening: bytes
    between: bytes
    closing: bytes
    """What stands before, between and after the requests in the file."""

    def entry(self, custom: str, url: str, body: bytes) -> bytes:
        """One request in the file. `url` is what it would be posted to, below the host."""

    def remote(self, payload: Mapping[str, Json]) -> RemoteBatch:
        """Raises KeyError, TypeError or ValueError for something that is no batch."""

    def result(self, line: Mapping[str, Json], wire: WireFormat, *, now: float) -> Result:
        """Raises KeyError, TypeError or ValueError for a line that is no result."""


def without_stream(settings: Settings) -> Settings:
    """In a batch nothing is streamed."""
    return settings.model_copy(update={"stream": False}) if settings.stream else settings


def answered(status: int, body: bytes, wire: WireFormat, *, now: float) -> Completion | Failure:
    """A request's own answer, read as if it had come alone."""
    if 200 <= status < 300:
        return read_response(wire, status, {}, body)
    return failure_from_response(status, {}, body, now=now)
