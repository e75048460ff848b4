"""What the API can do, as a table: the routes are made of it, and so is their description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from mmbu_async.service.schemas import Asked

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to an operation, read and checked."""

    request: web.Request
    run: str
    """'' where the path names none."""
    query: Any
    """Of the operation's model, as `body`; None where it has none."""
    body: Any


Handle = Callable[[Call], Awaitable[BaseModel | web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    id: str
    method: str
    path: str
    """Below the API's own; `{run}` stands for the name of a run."""
    summary: str
    """One sentence."""
    handle: Handle
    query: type[Asked] | None = None
    body: type[Asked] | None = None
    answer: type[BaseModel] | None = None
    """None: no JSON that a model describes."""
    media_types: Mapping[str, str] | None = None
    """Of other answers than one in JSON: the type, and what it holds."""
    status: HTTPStatus = HTTPStatus.OK
    conflicts: bool = False
    """Whether the state of a run can forbid it, or the scheduler be stopping."""
    refuses: bool = False
    """Whether a request that is well formed can still ask for what cannot be."""

    @property
    def names_run(self) -> bool:
        return "{run}" in self.path

    @property
    def body_needed(self) -> bool:
        """A body whose fields all have defaults may be left out."""
        return self.body is not None and any(one.is_required() for one in self.body.model_fields.values())

    @property
    def problems(self) -> list[HTTPStatus]:
        """The statuses of its problems."""
        found = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR}
        if self.names_run or self.refuses:
            found |= {HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE}
        if self.body is not None:
            found |= {
                HTTPStatus.BAD_REQUEST,
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            }
        if self.query is not None or self.body is not None or self.refuses or self.names_run:
            found.add(HTTPStatus.UNPROCESSABLE_ENTITY)
        if self.conflicts:
            found |= {
                HTTPStatus.CONFLICT,
                HTTPStatus.SERVICE_UNAVAILABLE,
                HTTPStatus.INSUFFICIENT_STORAGE,
            }
        return sorted(found)
