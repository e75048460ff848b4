"""OpenAI's `/v1/files` and `/v1/batches`."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import orjson
from aiohttp import web

from mmbu_async.model import Json
from mmbu_async.simulator import delivery, refusals
from mmbu_async.simulator.batch_work import Batch, Item, Office, lines
from mmbu_async.simulator.wire import ApiError, Wire, bearer

DAY_S = 86_400
_MOST_REQUESTS = 50_000
_MOST_BYTES = 200_000_000


@dataclass(slots=True)
class _File:
    id: str
    name: str
    data: bytes
    key: str
    purpose: str
    created: float


class OpenAIBatchDesk:
    """The routes and the files."""

    def __init__(self, office: Office, wires: Mapping[str, Wire]) -> None:
        self._office = office
        self._wires = wires
        self._files: dict[str, _File] = {}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self._guarded(self._upload)),
            web.get("/v1/files", self._guarded(self._list_files)),
            web.get("/v1/files/{id}", self._guarded(self._show_file)),
            web.delete("/v1/files/{id}", self._guarded(self._delete_file)),
            web.get("/v1/files/{id}/content", self._guarded(self._content)),
            web.post("/v1/batches", self._guarded(self._create)),
            web.get("/v1/batches", self._guarded(self._list)),
            web.get("/v1/batches/{id}", self._guarded(self._show)),
            web.post("/v1/batches/{id}/cancel", self._guarded(self._cancel)),
        ]

    def _guarded(
        self, handle: Callable[[web.Request, str], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def guarded(request: web.Request) -> web.StreamResponse:
            wire = self._wires["/v1/chat/completions"]
            key = bearer(request.headers)
            keys = self._office.desk.config.keys
            try:
                if keys and key not in keys:
                    raise refusals.plain("unauthorized" if key else "no_key", wire, None)
                return await handle(request, key)
            except ApiError as error:
                return web.json_response(wire.error(error, ""), status=error.status)

        return guarded

    async def _upload(self, request: web.Request, key: str) -> web.StreamResponse:
        reader = await request.multipart()
        purpose, name, data = "", "", b""
        async for part in reader:
            if getattr(part, "name", None) == "purpose":
                purpose = (await part.read()).decode()  # type: ignore[union-attr]
            elif getattr(part, "name", None) == "file":
                name = getattr(part, "filename", None) or ""
                data = bytes(await part.read())  # type: ignore[union-attr]
        most = self._office.desk.config.batch_max_bytes or _MOST_BYTES
        if purpose != "batch" or not name:
            raise _bad("'purpose' must be 'batch' and 'file' a file")
        if len(data) > most:
            raise ApiError(413, "body_too_large", f"The file is larger than the {most} bytes of a batch.")
        file = self._keep(name, data, key, "batch")
        return web.json_response(_file(file))

    def _keep(self, name: str, data: bytes, key: str, purpose: str) -> _File:
        digits = hashlib.sha256(f"file {len(self._files)} {name}".encode()).hexdigest()[:22]
        file = _File(f"file-{digits}", name, data, key, purpose, self._office.desk.wall())
        self._files[file.id] = file
        return file

    async def _list_files(self, request: web.Request, key: str) -> web.StreamResponse:
        purpose = request.query.get("purpose")
        found = [f for f in self._files.values() if f.key == key and purpose in (None, f.purpose)]
        if request.query.get("order", "desc") == "desc":
            found.reverse()
        return web.json_response(_page([_file(f) for f in found], request, default=10_000, most=10_000))

    def _known(self, request: web.Request, key: str) -> _File:
        file = self._files.get(request.match_info["id"])
        if file is None or file.key != key:
            raise ApiError(404, "not_found", f"No such File object: {request.match_info['id']}")
        return file

    async def _show_file(self, request: web.Request, key: str) -> web.StreamResponse:
        return web.json_response(_file(self._known(request, key)))

    async def _delete_file(self, request: web.Request, key: str) -> web.StreamResponse:
        file = self._known(request, key)
        del self._files[file.id]
        return web.json_response({"id": file.id, "object": "file", "deleted": True})

    async def _content(self, request: web.Request, key: str) -> web.StreamResponse:
        return web.Response(body=self._known(request, key).data, content_type="application/octet-stream")

    async def _create(self, request: web.Request, key: str) -> web.StreamResponse:
        office, config = self._office, self._office.desk.config
        payload = orjson.loads(await request.read())
        file = self._files.get(payload.get("input_file_id"))
        if file is None or file.key != key:
            raise _bad(f"Invalid input_file_id: {payload.get('input_file_id')}")
        path = payload.get("endpoint")
        if path not in self._wires or payload.get("completion_window") != "24h":
            raise _bad("Invalid 'endpoint' or 'completion_window'.")
        items, problems = _read(file.data, path, config.batch_max_requests or _MOST_REQUESTS)
        if config.batch_queue is not None and office.waiting(key) + len(items) > config.batch_queue:
            problems = [
                _problem(
                    "token_limit_exceeded",
                    "Enqueued token limit reached for this model in organization org-simulator. Please try "
                    "again once some in_progress batches have been completed.",
                )
            ]
        batch = Batch(
            id=office.name("batch_"),
            wire=self._wires[path],
            key=key,
            path=path,
            items=items,
            created=office.desk.wall(),
            begun=office.desk.clock(),
            lasts_s=office.lasts_s(),
            fields={"input_file_id": file.id, "metadata": payload.get("metadata"), "endpoint": path},
            problems=problems,
        )
        office.take(batch)
        lost = office.answer_lost()
        office.note(
            batch,
            path="/v1/batches",
            kind="openai",
            key=key,
            status=0 if lost else 200,
            error="",
            size=len(file.data),
        )
        if lost:
            delivery.reset(request)
            return web.Response()
        return web.json_response(self._batch(batch))

    async def _list(self, request: web.Request, key: str) -> web.StreamResponse:
        found = [
            self._batch(batch) for batch in self._office.listed(key) if batch.wire in self._wires.values()
        ]
        return web.json_response(_page(found, request, default=20, most=100))

    def _found(self, request: web.Request, key: str) -> Batch:
        batch = self._office.batches.get(request.match_info["id"])
        if batch is None or batch.key != key or batch.wire not in self._wires.values():
            raise ApiError(404, "not_found", f"No batch found with id '{request.match_info['id']}'.")
        return batch

    async def _show(self, request: web.Request, key: str) -> web.StreamResponse:
        return web.json_response(self._batch(self._found(request, key)))

    async def _cancel(self, request: web.Request, key: str) -> web.StreamResponse:
        batch = self._found(request, key)
        if batch.ended is not None:
            raise ApiError(409, "bad_request", f"Cannot cancel a batch with status '{_status(batch)}'.")
        if batch.cancelled is None:
            batch.cancelled = self._office.desk.wall()
            batch.stop.set()
        return web.json_response(self._batch(batch))

    def _batch(self, batch: Batch) -> Json:
        status = _status(batch)
        if batch.ended is not None and not batch.problems and "output_file_id" not in batch.fields:
            self._write(batch)
        expired = batch.count("expired") + batch.count("canceled")
        return {
            "id": batch.id,
            "object": "batch",
            "errors": {"object": "list", "data": batch.problems} if batch.problems else None,
            "completion_window": "24h",
            "status": status,
            "output_file_id": None,
            "error_file_id": None,
            **batch.fields,
            "created_at": int(batch.created),
            "in_progress_at": int(batch.created),
            "expires_at": int(batch.created) + DAY_S,
            "completed_at": int(batch.ended) if batch.ended is not None else None,
            "request_counts": {
                "total": 0 if batch.problems else len(batch.items),
                "completed": batch.count("succeeded"),
                "failed": batch.count("errored") + expired,
            },
        }

    def _write(self, batch: Batch) -> None:
        """The two files of results, each of which is left out where it would be empty."""
        good, bad = [], []
        # Results come in no order: from the last to the first shows who relies on one.
        for item in reversed(batch.items):
            line: dict[str, Json] = {
                "id": f"batch_req_{item.custom_id}",
                "custom_id": item.custom_id,
                "response": None,
                "error": None,
            }
            if item.kind == "succeeded":
                line["response"] = {
                    "status_code": 200,
                    "request_id": f"req-{item.custom_id}",
                    "body": item.result,
                }
                good.append(line)
                continue
            if item.kind == "errored":
                line["response"] = {
                    "status_code": item.result["status"],
                    "request_id": f"req-{item.custom_id}",
                    "body": item.result["body"],
                }
            elif item.kind == "expired":
                words = "This request could not be executed before the completion window expired."
                line["error"] = {"code": "batch_expired", "message": words}
            else:
                line["error"] = {"code": "batch_cancelled", "message": "This batch was cancelled."}
            bad.append(line)
        names = {}
        for name, found in (("output", good), ("error", bad)):
            file = self._keep(f"{batch.id}_{name}.jsonl", lines(found), batch.key, "batch_output")
            names[f"{name}_file_id"] = file.id if found else None
        batch.fields |= names


def _status(batch: Batch) -> str:
    if batch.problems:
        return "failed"
    if batch.ended is None:
        return "in_progress" if batch.cancelled is None else "cancelling"
    if batch.cancelled is not None:
        return "cancelled"
    return "expired" if batch.count("expired") else "completed"


def _read(data: bytes, path: str, most: int) -> tuple[list[Item], list[Json]]:
    """The requests of a file, and what is wrong with it."""
    items: list[Item] = []
    problems: list[Json] = []
    seen: set[str] = set()
    for number, line in enumerate(filter(None, data.split(b"\n")), 1):
        try:
            payload = orjson.loads(line)
            custom, body = str(payload["custom_id"]), payload["body"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            problems.append(_problem("invalid_json_line", "This line is no valid JSON.", number))
            continue
        if custom in seen:
            problems.append(_problem("duplicate_custom_id", f"{custom} was used twice.", number))
        if payload.get("url") != path or payload.get("method") != "POST":
            problems.append(_problem("mismatched_url", "The URL does not match that of the batch.", number))
        seen.add(custom)
        items.append(Item(custom, orjson.dumps(body)))
    if not items:
        problems.append(_problem("empty_file", "The batch input file is empty."))
    if len(items) > most:
        problems.append(_problem("too_many_tasks", f"{len(items)} requests; the limit is {most}."))
    return items, problems


def _problem(code: str, message: str, line: int | None = None) -> Json:
    return {"code": code, "message": message, "param": None, "line": line}


def _file(file: _File) -> dict[str, Json]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.data),
        "created_at": int(file.created),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }


def _page(found: list[dict[str, Json]], request: web.Request, *, default: int, most: int) -> Json:
    after = request.query.get("after")
    ids = [one["id"] for one in found]
    begin = ids.index(after) + 1 if after in ids else 0
    size = min(most, max(1, int(request.query.get("limit", default))))
    page = found[begin : begin + size]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": begin + size < len(found),
    }


def _bad(message: str) -> ApiError:
    return ApiError(400, "bad_request", message)
