"""The description of the API (OpenAPI 3.1), made of the same table and models as the API itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from mmbu_async.service.operations import JSON, Operation
from mmbu_async.service.problems import MEDIA_TYPE, Problem
from mmbu_async.service.schemas import MOST_TEXT

_Mode = Literal["validation", "serialization"]
_REFERENCE = "#/components/schemas/{model}"


def describe(operations: Sequence[Operation], *, version: str, prefix: str) -> dict[str, Any]:
    """The whole description. `prefix`: the path below which the operations lie."""
    _, defined = models_json_schema(_models(operations), ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(prefix + one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mmbu-async",
            "version": version,
            "description": "Runs of vision-language models on benchmarks: submit, watch, steer, read.",
        },
        "paths": paths,
        "components": {
            "schemas": defined.get("$defs", {}),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "mmbu_session"},
            },
        },
        "security": [{"token": []}, {"session": []}, {}],
    }


def _models(operations: Iterable[Operation]) -> list[tuple[type[BaseModel], _Mode]]:
    """What is read with defaults is optional; what is written is always there."""
    found: dict[tuple[type[BaseModel], _Mode], None] = {(Problem, "serialization"): None}
    for one in operations:
        if one.body is not None:
            found[one.body, "validation"] = None
        if one.answer is not None:
            found[one.answer, "serialization"] = None
    return list(found)


def _operation(one: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": one.id,
        "summary": one.summary,
        "parameters": [*_path_parameters(one), *_query_parameters(one)],
        "responses": {str(one.status.value): _answer(one), **_problems(one)},
    }
    if one.body is not None:
        described["requestBody"] = {
            "required": one.body_needed,
            "content": {JSON: {"schema": _reference(one.body)}},
        }
    return described


def _path_parameters(one: Operation) -> list[dict[str, Any]]:
    if not one.names_run:
        return []
    schema = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}
    return [
        {"name": "run", "in": "path", "required": True, "description": "Name of the run.", "schema": schema}
    ]


def _query_parameters(one: Operation) -> list[dict[str, Any]]:
    if one.query is None:
        return []
    schema = one.query.model_json_schema()
    needed = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "description": found.pop("description", ""),
            "schema": found,
        }
        for name, found in ((name, dict(found)) for name, found in schema["properties"].items())
    ]


def _answer(one: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if one.answer is not None:
        content[JSON] = {"schema": _reference(one.answer)}
    for media_type in one.media_types or ():
        content[media_type] = {"schema": {}} if media_type == JSON else {"schema": {"type": "string"}}
    described: dict[str, Any] = {"description": _said(one), "content": content}
    if one.status == 201:
        described["headers"] = {
            "Location": {
                "description": "Address of the run, relative to that of the request.",
                "schema": {"type": "string"},
            }
        }
    return described


def _said(one: Operation) -> str:
    kinds: Mapping[str, str] = one.media_types or {}
    return "; ".join(f"{media_type}: {what}" for media_type, what in kinds.items()) or "As asked."


def _problems(one: Operation) -> dict[str, Any]:
    return {
        str(status.value): {
            "description": status.phrase,
            "content": {MEDIA_TYPE: {"schema": _reference(Problem)}},
        }
        for status in one.problems
    }


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(model=model.__name__)}
