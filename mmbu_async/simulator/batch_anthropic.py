"""Anthropic's `/v1/messages/batches`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from mmbu_async.model import Json
from mmbu_async.simulator import delivery, refusals
from mmbu_async.simulator.anthropic import VERSIONS
from mmbu_async.simulator.batch_work import Batch, Item, Office, iso, lines
from mmbu_async.simulator.wire import ApiError, Wire

PATH = "/v1/messages/batches"
DAY_S = 86_400
_MOST_REQUESTS = 100_000
_MOST_BYTES = 256_000_000
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ENDS = ("succeeded", "errored", "expired", "canceled")


class AnthropicBatchDesk:
    """The routes."""

    def __init__(self, office: Office, wire: Wire) -> None:
        self._office = office
        self._wire = wire

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post(PATH, self._guarded(self._create)),
            web.get(PATH, self._guarded(self._list)),
            web.get(PATH + "/{id}", self._guarded(self._show)),
            web.get(PATH + "/{id}/results", self._guarded(self._results)),
            web.post(PATH + "/{id}/cancel", self._guarded(self._cancel)),
            web.delete(PATH + "/{id}", self._guarded(self._delete)),
        ]

    def _guarded(
        self, handle: Callable[[web.Request, str], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def guarded(request: web.Request) -> web.StreamResponse:
            key = self._wire.key(request.headers)
            keys = self._office.desk.config.keys
            try:
                if not key or (keys and key not in keys):
                    raise refusals.plain("unauthorized" if key else "no_key", self._wire, None)
                if request.headers.get("anthropic-version") not in VERSIONS:
                    raise ApiError(400, "bad_request", "anthropic-version: header is required")
                return await handle(request, key)
            except ApiError as error:
                return web.json_response(
                    self._wire.error(error, "req_batch"), status=error.status, headers=dict(error.headers)
                )

        return guarded

    async def _create(self, request: web.Request, key: str) -> web.StreamResponse:
        office, config = self._office, self._office.desk.config
        body = b"".join([chunk async for chunk in request.content.iter_any()])
        items = self._items(body)
        if config.batch_queue is not None and office.waiting(key) + len(items) > config.batch_queue:
            office.note(None, path=PATH, kind="anthropic", key=key, status=429, error="queue", size=len(body))
            raise ApiError(
                429,
                "rate_limit",
                "This request would exceed your batch processing queue.",
                headers=self._wait(),
            )
        batch = Batch(
            id=office.name("msgbatch_01"),
            wire=self._wire,
            key=key,
            path="/v1/messages",
            items=items,
            created=office.desk.wall(),
            begun=office.desk.clock(),
            lasts_s=office.lasts_s(),
        )
        office.take(batch)
        lost = office.answer_lost()
        office.note(
            batch, path=PATH, kind="anthropic", key=key, status=0 if lost else 200, error="", size=len(body)
        )
        if lost:
            delivery.reset(request)
            return web.Response()
        return web.json_response(self._batch(batch, request))

    def _wait(self) -> dict[str, str]:
        asked = self._office.desk.config.retry_after_s
        return {} if asked is None else {"retry-after": f"{asked:g}"}

    def _items(self, body: bytes) -> list[Item]:
        config = self._office.desk.config
        if len(body) > (config.batch_max_bytes or _MOST_BYTES):
            raise ApiError(413, "body_too_large", "Request exceeds the maximum size of a batch")
        try:
            requests = orjson.loads(body)["requests"]
            items = [Item(str(one["custom_id"]), orjson.dumps(one["params"])) for one in requests]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise ApiError(400, "bad_request", "requests: Field required") from None
        most = config.batch_max_requests or _MOST_REQUESTS
        if not items or len(items) > most:
            raise ApiError(400, "bad_request", f"requests: List should have 1 to {most} items")
        ids = [item.custom_id for item in items]
        if len(set(ids)) != len(ids) or not all(map(_CUSTOM_ID.fullmatch, ids)):
            raise ApiError(400, "bad_request", "requests: custom_id must be unique and match the pattern")
        return items

    async def _list(self, request: web.Request, key: str) -> web.StreamResponse:
        found = [b for b in self._office.listed(key) if b.wire is self._wire]
        ids = [batch.id for batch in found]
        size = min(1000, max(1, int(request.query.get("limit", 20))))
        begin = 0
        if (after := request.query.get("after_id")) in ids:
            begin = ids.index(after) + 1
        elif (before := request.query.get("before_id")) in ids:
            begin = max(0, ids.index(before) - size)
        page = [self._batch(batch, request) for batch in found[begin : begin + size]]
        return web.json_response(
            {
                "data": page,
                "has_more": begin + size < len(found),
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None,
            }
        )

    def _found(self, request: web.Request, key: str) -> Batch:
        batch = self._office.batches.get(request.match_info["id"])
        if batch is None or batch.key != key or batch.wire is not self._wire:
            raise ApiError(404, "not_found", "message batch not found")
        return batch

    async def _show(self, request: web.Request, key: str) -> web.StreamResponse:
        return web.json_response(self._batch(self._found(request, key), request))

    async def _results(self, request: web.Request, key: str) -> web.StreamResponse:
        batch = self._found(request, key)
        if batch.ended is None:
            raise ApiError(404, "not_found", "the batch has not ended yet")
        # Results come in no order: from the last to the first shows who relies on one.
        found = [{"custom_id": item.custom_id, "result": _result(item)} for item in reversed(batch.items)]
        return web.Response(body=lines(found), content_type="application/binary")

    async def _cancel(self, request: web.Request, key: str) -> web.StreamResponse:
        batch = self._found(request, key)
        if batch.ended is not None:
            raise ApiError(400, "bad_request", "the batch has ended and cannot be canceled")
        if batch.cancelled is None:
            batch.cancelled = self._office.desk.wall()
            batch.stop.set()
        return web.json_response(self._batch(batch, request))

    async def _delete(self, request: web.Request, key: str) -> web.StreamResponse:
        batch = self._found(request, key)
        if batch.ended is None:
            raise ApiError(400, "bad_request", "a batch in progress cannot be deleted")
        del self._office.batches[batch.id]
        return web.json_response({"id": batch.id, "type": "message_batch_deleted"})

    def _batch(self, batch: Batch, request: web.Request) -> dict[str, Json]:
        ended = batch.ended is not None
        counts = {kind: batch.count(kind) if ended else 0 for kind in _ENDS}
        status = "ended" if ended else "in_progress" if batch.cancelled is None else "canceling"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": status,
            # All but the first are zero until the whole batch has ended, as the reference says.
            "request_counts": {"processing": 0 if ended else len(batch.items), **counts},
            "created_at": iso(batch.created),
            "expires_at": iso(batch.created + DAY_S),
            "ended_at": iso(batch.ended),
            "archived_at": None,
            "cancel_initiated_at": iso(batch.cancelled),
            "results_url": f"{request.scheme}://{request.host}{PATH}/{batch.id}/results" if ended else None,
        }


def _result(item: Item) -> Json:
    if item.kind == "succeeded":
        return {"type": "succeeded", "message": item.result}
    if item.kind == "errored":
        return {"type": "errored", "error": item.result["body"]}
    return {"type": item.kind}
