"""What each operation of the API does: it asks the scheduler or the store, and no more."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from aiohttp import web

from mmbu_async import tasks
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.pipeline.dryrun import DryRun
from mmbu_async.service import events, schemas
from mmbu_async.service.guard import REPORT_POLICY
from mmbu_async.service.jobs import Desk, Job
from mmbu_async.service.latest import latest_jobs
from mmbu_async.service.operations import Call
from mmbu_async.service.reading import MEDIA_TYPES, Reading
from mmbu_async.service.settings import ServiceConfig

CHUNK = 1 << 18
"""Bytes of an export that are sent at once."""


class Handlers:
    """The operations of one service."""

    def __init__(self, desk: Desk, config: ServiceConfig, reading: Reading, hub: events.Hub) -> None:
        self._desk = desk
        self._config = config
        self._reading = reading
        self._hub = hub

    async def submit(self, call: Call) -> web.StreamResponse:
        asked: schemas.SubmitAsked = call.body
        job = await self._desk.submit(asked.settings, priority=asked.priority, new_run=asked.new_run)
        return _created(job, f"runs/{quote(job.run, safe='')}")

    async def runs(self, call: Call) -> schemas.RunsTold:
        wanted = call.query.state
        jobs = [job for job in latest_jobs(self._desk) if not wanted or job.state in wanted]
        return schemas.RunsTold(runs=[self._run(job) for job in jobs])

    async def run(self, call: Call) -> schemas.RunTold:
        return self._run(self._desk.job(call.run))

    async def watch(self, call: Call) -> web.StreamResponse:
        return await self._hub.serve(call.request, call.run or None)

    async def history(self, call: Call) -> schemas.HistoryTold:
        self._desk.job(call.run)
        points = self._desk.history(call.run)
        return schemas.HistoryTold(points=[schemas.ProgressTold.model_validate(one) for one in points])

    async def logs(self, call: Call) -> schemas.LogsTold:
        self._desk.job(call.run)
        return schemas.LogsTold(lines=list(self._desk.logs(call.run)))

    async def pause(self, call: Call) -> schemas.JobTold:
        return _told(await self._desk.pause(call.run))

    async def resume(self, call: Call) -> schemas.JobTold:
        asked: schemas.ResumeAsked = call.body
        return _told(await self._desk.resume(call.run, asked.changes or None, priority=asked.priority))

    async def cancel(self, call: Call) -> schemas.JobTold:
        return _told(await self._desk.cancel(call.run))

    async def limit(self, call: Call) -> schemas.LimitsTold:
        asked: schemas.LimitAsked = call.body
        changes: dict[str, Json] = {} if asked.model is None else _given(asked.model)
        for name, side in asked.judges.items():
            if name in changes:
                raise ConfigError(f"a judge called '{name}' cannot be given limits here: rename it.")
            changes[name] = _given(side)
        return schemas.LimitsTold(limits=list(await self._desk.limit(call.run, changes)))

    async def priority(self, call: Call) -> schemas.JobTold:
        return _told(await self._desk.prioritize(call.run, call.body.priority))

    async def rejudge(self, call: Call) -> web.StreamResponse:
        asked: schemas.RejudgeAsked = call.body
        job = await self._desk.rejudge(call.run, asked.changes, failed=asked.failed, priority=asked.priority)
        return _created(job, f"../{quote(job.run, safe='')}")

    async def estimate(self, call: Call) -> schemas.EstimateTold:
        return _estimate(await self._desk.estimate(call.body.settings))

    async def report(self, call: Call) -> web.StreamResponse:
        form = call.query.format
        return _document(await self._reading.report(call.run, form), form)

    async def compare(self, call: Call) -> web.StreamResponse:
        form = call.query.format
        return _document(await self._reading.compare(call.query.run, form), form)

    async def export(self, call: Call) -> web.StreamResponse:
        async with self._reading.export(call.run, call.query.format) as found:
            answer = web.StreamResponse(
                headers={
                    "Content-Type": found.media_type,
                    "Content-Disposition": f'attachment; filename="{found.name}"',
                }
            )
            answer.content_length = found.size
            await answer.prepare(call.request)
            with found.file.open("rb") as file:
                while chunk := await self._reading.chunk(lambda: file.read(CHUNK)):
                    await answer.write(chunk)
            await answer.write_eof()
        return answer

    async def stored(self, _call: Call) -> schemas.StoredTold:
        return schemas.StoredTold(runs=await self._reading.stored())

    async def choices(self, _call: Call) -> schemas.ChoicesTold:
        return schemas.ChoicesTold(
            benchmarks=[*tasks.NAMES, *self._config.benchmarks],
            data=list(self._config.data),
            endpoints=[
                schemas.EndpointTold(name=one.name, endpoint=one.endpoint, models=list(one.models))
                for one in self._config.endpoint
            ],
        )

    def _run(self, job: Job) -> schemas.RunTold:
        return schemas.RunTold.model_validate({"job": job, "progress": self._desk.progress(job.run)})


def _told(job: Job) -> schemas.JobTold:
    return schemas.JobTold.model_validate(job)


def _created(job: Job, location: str) -> web.Response:
    return web.Response(
        status=HTTPStatus.CREATED,
        body=_told(job).model_dump_json().encode(),
        content_type="application/json",
        headers={"Location": location},
    )


def _document(text: str, form: str) -> web.Response:
    headers = {"Content-Security-Policy": REPORT_POLICY} if form == "html" else None
    return web.Response(text=text, content_type=MEDIA_TYPES[form], charset="utf-8", headers=headers)


def _given(side: schemas.SideLimits) -> dict[str, Json]:
    """What was named: a null is another thing than nothing."""
    return {name: getattr(side, name) for name in side.model_fields_set}


def _estimate(found: DryRun) -> schemas.EstimateTold:
    sides = [side for side in (found.model, *found.judges) if side is not None and side.calls]
    costs = [side.cost_usd for side in sides]
    return schemas.EstimateTold(
        rows=found.rows,
        dataset_rows=found.dataset_rows,
        families=dict(found.families),
        problem_count=found.problem_count,
        problems=found.problems,
        model=None if found.model is None else schemas.SideTold.model_validate(found.model),
        judges=[schemas.SideTold.model_validate(side) for side in found.judges],
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        seconds=max((side.seconds for side in sides), default=0.0),
    )
