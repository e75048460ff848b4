"""Reads requests strictly: what is not known, not asked for or too much is refused, with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, get_origin

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from mmbu_async.service.operations import JSON, Call, Operation
from mmbu_async.service.problems import ApiError
from mmbu_async.service.schemas import MOST_TEXT, Asked
from mmbu_async.wrong_values import wrong

MOST_BYTES = 1 << 18
"""Of a request's body."""
DEEPEST = 24
"""Tables and lists inside of each other."""


async def read_call(request: web.Request, operation: Operation) -> Call:
    """The request as the operation wants it. Raises ApiError where it is at fault."""
    run = request.match_info.get("run", "")
    if len(run) > MOST_TEXT:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, f"A run's name has at most {MOST_TEXT} characters.")
    return Call(
        request=request,
        run=run,
        query=_query(request, operation.query),
        body=await _body(request, operation),
    )


def _query(request: web.Request, model: type[Asked] | None) -> Asked | None:
    fields = {} if model is None else model.model_fields
    given: dict[str, Any] = {}
    for name, value in request.query.items():
        if name not in fields:
            known = f"known are: {', '.join(fields)}" if fields else "it takes none"
            raise ApiError(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"There is no parameter {_shown(name)} here; {known}."
            )
        if get_origin(fields[name].annotation) is list:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, f"The parameter {_shown(name)} is given twice.")
        else:
            given[name] = value
    return None if model is None else _validated(model, given)


async def _body(request: web.Request, operation: Operation) -> BaseModel | None:
    if operation.body is None:
        return None
    content = await _content(request)
    if not content and not operation.body_needed:
        return operation.body()
    if request.content_type != JSON:
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Send JSON, and say so: Content-Type: {JSON}.", Accept=JSON
        )
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"The body is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "The body must be a JSON object.")
    if _is_deeper(found, DEEPEST):
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"The body is nested more than {DEEPEST} levels deep."
        )
    return _validated(operation.body, found)


async def _content(request: web.Request) -> bytes:
    if request.content_length is not None and request.content_length > MOST_BYTES:
        raise _too_large()
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None


def _too_large() -> ApiError:
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body may have at most {MOST_BYTES:,} bytes.")


def _validated(model: type[Asked], given: Mapping[str, Any]) -> Asked:
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        # A name that is none explains why another one is missing.
        found = error.errors()
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            said = f"There is no field {_shown(place)} here."
        elif first["type"] == "missing":
            said = f"The field {_shown(place)} is missing."
        else:
            said = f"The field {_shown(place)} {wrong(first)}."
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, said) from None


def _is_deeper(value: object, most: int) -> bool:
    """Without recursion: the body decides how deep it goes."""
    level: list[object] = [value]
    for _ in range(most + 1):
        if not level:
            return False
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _shown(name: str) -> str:
    return f"'{name if len(name) <= 60 else name[:57] + '...'}'"
