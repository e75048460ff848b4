"""Batches in the simulator: what they hold, and how their requests are worked off one after the other.

A request of a batch is answered as if it had come alone, its faults included: the same words get the same
reply, so that a run in batches and a run without must come to the same scores. Each is one record in the log.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import orjson

from mmbu_async.model import Json
from mmbu_async.simulator import refusals, replies
from mmbu_async.simulator.config import unit
from mmbu_async.simulator.desk import Desk
from mmbu_async.simulator.faults import Fault, choose
from mmbu_async.simulator.log import Record, fingerprint
from mmbu_async.simulator.wire import ApiError, ChatRequest, Envelope, Wire

_CONNECTION = frozenset({Fault.RESET, Fault.RESET_MID_BODY, Fault.CUT_MID_BODY, Fault.TIMEOUT, Fault.DRIP})
"""What befalls a connection befalls no request of a batch: these are internal errors of the provider."""
TURN_S = 0.01
"""Requests that fall due within it are worked off in one turn."""


@dataclass(slots=True)
class Item:
    """One request of a batch."""

    custom_id: str
    body: bytes
    result: Json = None
    """In the vendor's spelling; None until it is worked off."""
    kind: str = ""
    """`succeeded`, `errored`, `expired` or `canceled`; '' until then."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch."""

    id: str
    wire: Wire
    key: str
    path: str
    """What its requests are posted to."""
    items: list[Item]
    created: float
    """Unix seconds."""
    begun: float
    """Monotonic seconds."""
    lasts_s: float
    fields: dict[str, Json] = field(default_factory=dict)
    """What the vendor keeps with it: input file, metadata."""
    problems: list[Json] = field(default_factory=list)
    """Why it was never begun."""
    cancelled: float | None = None
    """Unix seconds."""
    ended: float | None = None
    """Unix seconds."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is cancelled."""

    def count(self, kind: str) -> int:
        return sum(item.kind == kind for item in self.items)

    @property
    def open(self) -> int:
        """Requests that wait."""
        return 0 if self.problems else self.count("")


class Office:
    """All batches of one simulator. Use as an async context manager."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.batches: dict[str, Batch] = {}
        self.submitted = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self, batch: Batch) -> None:
        """Begin to work on a batch."""
        self.batches[batch.id] = batch
        if batch.problems:
            batch.ended = self.desk.wall()
            return
        task = asyncio.create_task(self._work(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def name(self, prefix: str) -> str:
        """A name like the vendor's."""
        self.submitted += 1
        digits = hashlib.sha256(f"batch {self.desk.config.seed} {self.submitted}".encode()).hexdigest()
        return prefix + digits[:24]

    def lasts_s(self) -> float:
        """How long the batch named last takes."""
        return self.desk.config.batch_latency.quantile(unit(self.desk.config.seed, "batch", self.submitted))

    def waiting(self, key: str) -> int:
        """Requests of a key that wait in batches."""
        return sum(batch.open for batch in self.batches.values() if batch.key == key)

    def answer_lost(self) -> bool:
        """Whether the answer to the batch named last never arrives."""
        config = self.desk.config
        return unit(config.seed, "lost answer", self.submitted) < config.batch_lost_answers

    def listed(self, key: str) -> list[Batch]:
        """Newest first; a batch shows up in lists a little after it was taken."""
        lag = self.desk.config.batch_listing_lag_s
        now = self.desk.clock()
        found = [b for b in self.batches.values() if b.key == key and now - b.begun >= lag]
        return found[::-1]

    def note(
        self, batch: Batch | None, *, path: str, kind: str, key: str, status: int, error: str, size: int
    ) -> None:
        """The record of a submission."""
        now = self.desk.wall()
        self.desk.log.add(
            Record(
                **_BLANK,
                number=self.desk.arrived.step(),
                arrived_at=now,
                ended_at=now,
                path=path,
                kind=kind,
                role="batch",
                content="",
                occurrence=0,
                status=status,
                error=error,
                fault="lost_answer" if status == 0 else "",
                model="",
                max_tokens=None,
                input_tokens=0,
                output_tokens=0,
                charged=False,
                request_id="",
                auth=fingerprint(key),
                bytes_in=size,
                batch=batch.id if batch else "",
                custom_id=batch.items[0].custom_id if batch and batch.items else "",
            )
        )

    async def _work(self, batch: Batch) -> None:
        desk, clock = self.desk, self.desk.clock
        share = batch.lasts_s / max(1, len(batch.items))
        for place, item in enumerate(batch.items, 1):
            due = batch.begun + place * share
            if not batch.stop.is_set() and clock() < due - TURN_S:
                with suppress(TimeoutError):
                    await asyncio.wait_for(batch.stop.wait(), due - clock())
            elif place % 16 == 0:
                await asyncio.sleep(0)
            if batch.stop.is_set():
                item.kind, item.body = "canceled", b""
                continue
            await self._answer(batch, item)
            item.body = b""
        batch.ended = desk.wall()

    async def _answer(self, batch: Batch, item: Item) -> None:
        desk, config, wire = self.desk, self.desk.config, batch.wire
        number, began = desk.arrived.step(), desk.wall()
        request: ChatRequest | None = None
        occurrence, fault, charged, error = 0, "", False, None
        digits = hashlib.sha256(f"item {config.seed} {number}".encode()).hexdigest()[:24]
        usage = (0, 0)
        try:
            request = wire.read(item.body, {"anthropic-version": "2023-06-01"}, config)
            if request.stream:
                raise ApiError(400, "bad_request", "stream: is not supported in a batch")
            if config.models and request.model not in config.models:
                raise refusals.plain("model_not_found", wire, request)
            occurrence = desk.occurrence(request.content)
            if unit(config.seed, "expire", request.content, occurrence) < config.batch_expire:
                item.kind, fault = "expired", "batch_expired"
            else:
                met = choose(
                    config.faults,
                    role=request.role,
                    text=request.text,
                    number=number,
                    seconds=desk.clock() - desk.began,
                    occurrence=occurrence,
                    draw=lambda: unit(config.seed, "fault", request.content, occurrence) if request else 1.0,
                )
                fault = met.value if met else ""
                if met in refusals.STATUSES:
                    raise refusals.injected(met, wire, request, config, desk.wall())
                if met in _CONNECTION:
                    raise refusals.plain("server_error", wire, request)
                reply = replies.reply(await self._speech(request), request, met)
                charged = True
                usage = (reply.usage.input_tokens, reply.usage.output_tokens)
                prefix = "chatcmpl-" if wire.name == "openai" else "msg_01"
                envelope = Envelope(
                    reply_id=prefix + digits,
                    request_id=f"req_{digits}",
                    model=request.model,
                    created=int(desk.wall()),
                )
                item.kind, item.result = "succeeded", wire.body(reply, envelope)
        except ApiError as raised:
            error = raised
            item.kind = "errored"
            item.result = {"status": raised.status, "body": wire.error(raised, f"req_{digits}")}
        status = 200 if item.kind == "succeeded" else error.status if error else 0
        desk.log.add(
            Record(
                **_BLANK,
                number=number,
                arrived_at=began,
                ended_at=desk.wall(),
                path=batch.path,
                kind=wire.name,
                role=request.role if request else "",
                content=request.content if request else "",
                occurrence=occurrence,
                status=status,
                error=error.code if error else "",
                fault=fault,
                model=request.model if request else "",
                max_tokens=request.max_tokens if request else None,
                input_tokens=usage[0],
                output_tokens=usage[1],
                charged=charged,
                request_id=f"req_{digits}",
                auth=fingerprint(batch.key),
                bytes_in=len(item.body),
                batch=batch.id,
                custom_id=item.custom_id,
            )
        )

    async def _speech(self, request: ChatRequest) -> str:
        desk, findings = self.desk, None
        if request.pictures and desk.config.vision and request.role == "model":
            findings = await desk.seen(request.pictures[0])
            if findings is None:
                raise ApiError(400, "image_parse", "Could not process image")
        return replies.speak(request, findings, desk.config.reply_tokens)


_BLANK: Mapping[str, Json] = {
    "queued_s": 0.0,
    "service_s": 0.0,
    "stream": False,
    "aborted": False,
    "shutdown": False,
}


def lines(items: Sequence[Json]) -> bytes:
    """JSON Lines."""
    return b"".join(orjson.dumps(item) + b"\n" for item in items)


def iso(seconds: float | None) -> str | None:
    """RFC 3339, in UTC."""
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"
