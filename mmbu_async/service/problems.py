"""Errors as they are told over HTTP: one sentence, the name of the error, and the status that fits.

The form is that of RFC 9457 (`application/problem+json`), so that a client needs one way to read them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from mmbu_async.errors import (
    BenchNotFoundError,
    BudgetReachedError,
    ConfigError,
    DataError,
    EndpointDownError,
    EndpointError,
    InterruptedRunError,
    MmbuError,
    RunChangedError,
    RunNotFoundError,
    RunStateError,
    ServiceStoppingError,
    StoreError,
    StoreFullError,
    StoreLockedError,
)

MEDIA_TYPE = "application/problem+json"

_STATUSES: Mapping[type[MmbuError], HTTPStatus] = {
    RunNotFoundError: HTTPStatus.NOT_FOUND,
    BenchNotFoundError: HTTPStatus.NOT_FOUND,
    RunChangedError: HTTPStatus.CONFLICT,
    StoreLockedError: HTTPStatus.CONFLICT,
    StoreFullError: HTTPStatus.INSUFFICIENT_STORAGE,
    StoreError: HTTPStatus.INTERNAL_SERVER_ERROR,
    ConfigError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DataError: HTTPStatus.UNPROCESSABLE_ENTITY,
    EndpointError: HTTPStatus.BAD_GATEWAY,
    EndpointDownError: HTTPStatus.BAD_GATEWAY,
    BudgetReachedError: HTTPStatus.CONFLICT,
    InterruptedRunError: HTTPStatus.SERVICE_UNAVAILABLE,
    RunStateError: HTTPStatus.CONFLICT,
    ServiceStoppingError: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""A class that is not named here has the status of the nearest one above it."""


class Problem(BaseModel):
    """What went wrong, in one sentence."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    type: Literal["about:blank"] = "about:blank"
    """As RFC 9457 wants it: `status` and `error` say which problem it is."""
    title: str
    """The status in words."""
    status: int
    """The status of the answer."""
    detail: str
    """One sentence: what is wrong, where, and what to do."""
    error: str
    """Name of the error, as the Python interface raises it; `HTTPError` where the request itself is at
    fault."""
    changes: list[str] = []
    """Of a RunChangedError, one line a difference."""


class ApiError(Exception):
    """A request that is at fault itself, whatever it is about."""

    def __init__(self, status: HTTPStatus, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: MmbuError) -> HTTPStatus:
    """The status that fits the kind of error."""
    return next(
        (_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES),
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def problem_of(error: MmbuError, places: Mapping[str, str]) -> Problem:
    """`places`: where files of the service lie, and what they are called to its users."""
    status, detail = status_of(error), str(error)
    for place, name in places.items():
        detail = detail.replace(place, name)
    return Problem(
        title=status.phrase,
        status=status,
        detail=detail,
        error=type(error).__name__,
        changes=list(error.changes) if isinstance(error, RunChangedError) else [],
    )


def problem(status: HTTPStatus, detail: str) -> Problem:
    """Of the request itself."""
    return Problem(title=status.phrase, status=status, detail=detail, error="HTTPError")


def response(told: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    # A file name that is no UTF-8 has half characters in it; an error is not lost for that.
    text = told.model_copy(update={"detail": told.detail.encode("utf-8", "backslashreplace").decode()})
    return web.Response(
        status=told.status,
        body=text.model_dump_json().encode(),
        content_type=MEDIA_TYPE,
        headers=headers,
    )
