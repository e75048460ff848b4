"""One request from arrival to end, in the order in which a real endpoint works.

Key, body, model, images, injected refusals, limits, a place in the queue, the reply, its delivery; and one
record in the log, whatever happened.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

from mmbu_async.simulator import delivery, headers, refusals, replies, service
from mmbu_async.simulator.config import unit
from mmbu_async.simulator.desk import Desk
from mmbu_async.simulator.faults import Fault, choose
from mmbu_async.simulator.findings import Findings
from mmbu_async.simulator.limits import Limits, QueueFullError
from mmbu_async.simulator.log import PictureRecord, Record, fingerprint
from mmbu_async.simulator.servers import Servers, Turn
from mmbu_async.simulator.wire import ApiError, ChatRequest, Envelope, Reply, Wire


class Exchange:
    """One request. Its fields fill up on the way and end as the record."""

    def __init__(self, desk: Desk, wire: Wire, http: web.Request) -> None:
        self._desk = desk
        self._wire = wire
        self._http = http
        self._number = desk.arrived.step()
        self._arrived_at, self._arrived = desk.wall(), desk.clock()
        self._key = wire.key(http.headers)
        self._request: ChatRequest | None = None
        self._occurrence = 0
        self._limits: Limits | None = None
        self._queued_s = 0.0
        self._service_s = 0.0
        self._status = 0
        self._error = ""
        self._fault: Fault | None = None
        self._reply: Reply | None = None
        self._bytes_in = 0
        digits = hashlib.sha256(f"{desk.config.seed} {self._number}".encode()).hexdigest()
        self._request_id = f"req_{digits[:32]}" if wire.vendor == "openai" else f"req_011{digits[:21]}"

    async def run(self) -> web.StreamResponse:
        aborted = True
        try:
            try:
                response = await self._answer()
            except ApiError as error:
                response = await self._refuse(error)
            aborted = False
            return response
        except ConnectionError:
            # The client is gone; aiohttp only needs some response to close the books on.
            return web.Response()
        finally:
            self._desk.log.add(self._record(aborted))

    async def _answer(self) -> web.StreamResponse:
        self._check_key()
        body = await self._read()
        request = self._request = self._wire.read(body, self._http.headers, self._desk.config)
        if self._desk.config.models and request.model not in self._desk.config.models:
            raise self._api_error("model_not_found")
        desk, config = self._desk, self._desk.config
        self._occurrence = desk.occurrence(request.content)
        self._fault = choose(
            config.faults,
            role=request.role,
            text=request.text,
            number=self._number,
            seconds=self._arrived - desk.began,
            occurrence=self._occurrence,
            draw=lambda: unit(config.seed, "fault", request.content, self._occurrence),
        )
        if self._fault in refusals.STATUSES:
            raise refusals.injected(self._fault, self._wire, request, config, desk.wall())
        limits = self._limits = desk.limits(self._key, request.model)
        if refusal := limits.admit(request.input_tokens):
            raise refusals.limited(refusal, self._wire, request, desk.wall())
        if self._fault is Fault.RESET:
            delivery.reset(self._http)
            return web.Response()
        if self._fault is Fault.TIMEOUT:
            await asyncio.Event().wait()
        if desk.servers is not None:
            return await self._serve(desk.servers, limits, request)
        async with self._place():
            reply = self._reply = await self._make(request)
            limits.charge_output(reply.usage.output_tokens)
            latency = self._latency_s(request)
            self._service_s = latency + service.talk_s(config, request, reply)
            await asyncio.sleep(latency if request.stream else self._service_s)
            speed = config.tokens_per_second
            return await self._deliver(request, reply, None if speed is None else delivery.at_speed(speed))

    def _check_key(self) -> None:
        config = self._desk.config
        if self._wire.needs_key and not self._key:
            raise self._api_error("no_key")
        if config.keys and self._key not in config.keys:
            raise self._api_error("unauthorized" if self._key else "no_key")

    async def _read(self) -> bytes:
        try:
            body = await self._http.read()
        except web.HTTPRequestEntityTooLarge:
            raise self._api_error("body_too_large") from None
        self._bytes_in = len(body)
        return body

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        places, began = self._desk.places, self._desk.clock()
        try:
            await places.enter()
        except QueueFullError:
            raise self._api_error("overloaded") from None
        finally:
            self._queued_s = self._desk.clock() - began
        try:
            yield
        finally:
            places.leave()

    async def _serve(self, servers: Servers, limits: Limits, request: ChatRequest) -> web.StreamResponse:
        """In exact times. Looking at images comes before: it takes this machine's time, not the servers'."""
        reply = await self._make(request)
        latency = self._latency_s(request)
        self._service_s = latency + service.talk_s(self._desk.config, request, reply)
        began = self._desk.clock()
        try:
            turn = servers.admit(self._service_s)
        except QueueFullError:
            raise self._api_error("overloaded") from None
        self._reply = reply
        self._queued_s = servers.moment(turn.ends) - began - self._service_s
        limits.charge_output(reply.usage.output_tokens)
        await servers.until(turn.begins + latency if request.stream else turn.ends)
        return await self._deliver(request, reply, self._due(servers, turn, latency))

    def _due(self, servers: Servers, turn: Turn, latency: float) -> Callable[[int], Awaitable[None]] | None:
        speed = self._desk.config.tokens_per_second
        if speed is None:
            return None
        return lambda token: servers.until(turn.begins + latency + token / speed)

    async def _make(self, request: ChatRequest) -> Reply:
        findings: Findings | None = None
        if request.pictures and self._desk.config.vision and request.role == "model":
            findings = await self._desk.seen(request.pictures[0])
            if findings is None:
                raise self._api_error("image_parse")
        text = replies.speak(request, findings, self._desk.config.reply_tokens)
        return self._desk.cached(self._key, request, replies.reply(text, request, self._fault))

    def _latency_s(self, request: ChatRequest) -> float:
        return service.latency_s(self._desk, request, self._occurrence, self._fault)

    # ------------------------------------------------------------ sending

    async def _deliver(
        self, request: ChatRequest, reply: Reply, due: Callable[[int], Awaitable[None]] | None
    ) -> web.StreamResponse:
        envelope = self._envelope(request)
        if self._fault in (Fault.HTML_ERROR, Fault.HTML_PAGE):
            bad = self._fault is Fault.HTML_ERROR
            title = "502 Bad Gateway" if bad else "Log in to the network"
            return await self._send(502 if bad else 200, delivery.page(title), "text/html; charset=utf-8")
        if request.stream:
            return await self._stream(request, reply, envelope, due)
        value = self._wire.body(reply, envelope)
        if self._fault is Fault.ERROR_IN_200:
            value = self._wire.failed(self._api_error("server_error"), envelope)
        body = orjson.dumps(value)
        if self._fault is Fault.MALFORMED_JSON:
            body = body[: len(body) * 2 // 3]
        return await self._send(200, body, "application/json")

    async def _send(self, status: int, body: bytes, media_type: str) -> web.StreamResponse:
        self._status = status
        response = await delivery.start(self._http, status, self._headers(media_type), len(body))
        if self._fault in (Fault.RESET_MID_BODY, Fault.CUT_MID_BODY):
            orderly = self._fault is Fault.CUT_MID_BODY
            await delivery.broken(self._http, response, body[: len(body) // 2], orderly=orderly)
        elif self._fault is Fault.DRIP:
            await delivery.drip(response, body, self._desk.config.drip_interval_s)
        else:
            await delivery.whole(response, body)
        return response

    async def _stream(
        self,
        request: ChatRequest,
        reply: Reply,
        envelope: Envelope,
        due: Callable[[int], Awaitable[None]] | None,
    ) -> web.StreamResponse:
        self._status = 200
        headers_ = self._headers("text/event-stream; charset=utf-8") | {"cache-control": "no-cache"}
        response = await delivery.start(self._http, 200, headers_, None)
        events = list(self._wire.events(reply, envelope, request.include_usage))
        half = events[: max(1, len(events) // 2)]
        if self._fault is Fault.DRIP:
            body = b"".join(event for event, _ in events)
            await delivery.drip(response, body, self._desk.config.drip_interval_s)
            return response
        if self._fault in (Fault.RESET_MID_BODY, Fault.CUT_MID_BODY):
            await delivery.paced(response, half, due)
            await delivery.broken(self._http, response, b"", orderly=self._fault is Fault.CUT_MID_BODY)
            return response
        if self._fault is Fault.ERROR_IN_200:
            error = self._wire.error_event(self._api_error("overloaded"), envelope)
            events = [*half, (error, False)]
        elif self._fault is Fault.MALFORMED_JSON:
            broken = events[len(half)][0]
            events = [*half, (broken[: len(broken) * 2 // 3] + b"\n\n", False), *events[len(half) + 1 :]]
        await delivery.paced(response, events, due)
        await response.write_eof()
        return response

    async def _refuse(self, error: ApiError) -> web.StreamResponse:
        self._status, self._error = error.status, error.code
        body = orjson.dumps(self._wire.error(error, self._request_id))
        media_type = "application/json"
        if error.status == 200 and self._request is not None and self._request.stream:
            body, media_type = b"data: " + body + b"\r\n\r\n", "text/event-stream"
        all_headers = self._headers(media_type) | dict(error.headers)
        response = await delivery.start(self._http, error.status, all_headers, len(body))
        await delivery.whole(response, body)
        return response

    def _headers(self, media_type: str) -> dict[str, str]:
        base = {"content-type": media_type}
        if self._wire.vendor == "anthropic":
            base["request-id"] = self._request_id
        if self._wire.vendor == "openai":
            base["x-request-id"] = self._request_id
            base |= {"openai-version": "2020-10-01", "openai-organization": "org-simulator"}
        if self._limits is None:
            return base
        return base | headers.rate_limit_headers(self._wire.vendor, self._limits, self._desk.wall())

    def _envelope(self, request: ChatRequest) -> Envelope:
        digits = hashlib.sha256(f"{request.content} {self._occurrence}".encode()).hexdigest()
        reply_id = self._wire.reply_prefix + digits[:29]
        if self._wire.vendor == "google":
            # Google's replies have one identifier, and it is in the body.
            reply_id = self._request_id
        return Envelope(
            reply_id=reply_id,
            request_id=self._request_id,
            model=request.model,
            created=int(self._desk.wall()),
        )

    def _api_error(self, code: str) -> ApiError:
        return refusals.plain(code, self._wire, self._request)

    # ------------------------------------------------------------ record

    def _record(self, aborted: bool) -> Record:
        request, reply = self._request, self._reply
        pictures = request.pictures if request else ()
        return Record(
            number=self._number,
            arrived_at=self._arrived_at,
            queued_s=self._queued_s,
            service_s=self._service_s,
            ended_at=self._arrived_at + self._desk.clock() - self._arrived,
            path=self._http.path,
            kind=self._wire.name,
            role=request.role if request else "",
            content=request.content if request else "",
            occurrence=self._occurrence,
            status=self._status,
            error=self._error,
            fault=self._fault.value if self._fault else "",
            stream=request.stream if request else False,
            model=request.model if request else "",
            max_tokens=request.max_tokens if request else None,
            input_tokens=reply.usage.input_tokens if reply else 0,
            output_tokens=reply.usage.output_tokens if reply else 0,
            charged=reply is not None,
            request_id=self._request_id,
            auth=fingerprint(self._key),
            aborted=aborted and not self._desk.closing,
            shutdown=aborted and self._desk.closing,
            bytes_in=self._bytes_in,
            pictures=tuple(
                PictureRecord(
                    sha256=picture.sha256,
                    media_type=picture.media_type,
                    width=picture.width,
                    height=picture.height,
                    bytes=len(picture.data),
                )
                for picture in pictures
            ),
        )
