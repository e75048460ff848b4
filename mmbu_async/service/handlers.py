"""What each operation of the API does: it asks the scheduler or the store, and no more."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
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
from mmbu_async.service.operations import Call, Operation
from mmbu_async.service.reading import EXPORT_TYPES, MEDIA_TYPES, Reading
from mmbu_async.service.settings import ServiceConfig

CHUNK = 1 << 18
"""Bytes of an export that are sent at once."""
_FORMS = {
    "application/json": "`format=json`",
    "text/html": "`format=html`, a page that needs nothing beside it",
    "text/markdown": "`format=md`",
}
_EXPORTS = {media_type: "see the parameter `format`" for media_type, _ in EXPORT_TYPES.values()}
_EVENTS = {
    events.MEDIA_TYPE: "events `job`, `progress`, `log` and `dropped`; their data are "
    '`{"run": NAME, "data": …}` with a job, a progress, a `line`, or how many events were `missed`'
}


class Handlers:
    """The operations of one service."""

    def __init__(self, desk: Desk, config: ServiceConfig, reading: Reading, hub: events.Hub) -> None:
        self._desk = desk
        self._config = config
        self._reading = reading
        self._hub = hub

    def operations(self) -> list[Operation]:
        """All of them."""
        return [*self._on_all(), *self._on_one()]

    def _on_all(self) -> list[Operation]:
        return [
            Operation(
                id="submit",
                method="POST",
                path="/runs",
                summary="Queue a run, or go on with the one of that name.",
                handle=self.submit,
                body=schemas.SubmitAsked,
                answer=schemas.JobTold,
                status=HTTPStatus.CREATED,
                conflicts=True,
                refuses=True,
            ),
            Operation(
                id="runs",
                method="GET",
                path="/runs",
                summary="List the runs of this service, the newest first.",
                handle=self.runs,
                query=schemas.ListAsked,
                answer=schemas.RunsTold,
            ),
            Operation(
                id="watch_all",
                method="GET",
                path="/events",
                summary="Follow all runs as server-sent events.",
                handle=self.watch,
                media_types=_EVENTS,
                conflicts=True,
            ),
            Operation(
                id="estimate",
                method="POST",
                path="/estimate",
                summary="Say what a run would take; nothing is called, nothing is written.",
                handle=self.estimate,
                body=schemas.EstimateAsked,
                answer=schemas.EstimateTold,
                conflicts=True,
                refuses=True,
            ),
            Operation(
                id="compare",
                method="GET",
                path="/compare",
                summary="Compare runs row by row; the first is the baseline.",
                handle=self.compare,
                query=schemas.CompareAsked,
                media_types=_FORMS,
                conflicts=True,
                refuses=True,
            ),
            Operation(
                id="stored",
                method="GET",
                path="/stored",
                summary="List all runs of the store, whoever made them.",
                handle=self.stored,
                answer=schemas.StoredTold,
                conflicts=True,
            ),
            Operation(
                id="choices",
                method="GET",
                path="/choices",
                summary="List what settings may name: benchmarks, data sets, endpoints.",
                handle=self.choices,
                answer=schemas.ChoicesTold,
            ),
        ]

    def _on_one(self) -> list[Operation]:
        def one(
            id: str, method: str, path: str, summary: str, handle: Any, answer: Any = None, **more: Any
        ) -> Operation:
            return Operation(
                id=id,
                method=method,
                path=f"/runs/{{run}}{path}",
                summary=summary,
                handle=handle,
                answer=answer,
                conflicts=method == "POST" or bool(more.get("media_types")),
                **more,
            )

        job = schemas.JobTold
        return [
            one("run", "GET", "", "One run: its newest job, and where it stands.", self.run, schemas.RunTold),
            one("watch", "GET", "/events", "Follow one run.", self.watch, media_types=_EVENTS),
            one(
                "history",
                "GET",
                "/history",
                "Progress of a run over time, for charts.",
                self.history,
                schemas.HistoryTold,
            ),
            one("logs", "GET", "/logs", "The last lines of a run's log.", self.logs, schemas.LogsTold),
            one(
                "pause",
                "POST",
                "/pause",
                "Start no further call; calls under way finish and are kept.",
                self.pause,
                job,
                body=schemas.Nothing,
            ),
            one(
                "resume",
                "POST",
                "/resume",
                "Let a paused run go on, or queue one again that has ended.",
                self.resume,
                job,
                body=schemas.ResumeAsked,
            ),
            one(
                "cancel",
                "POST",
                "/cancel",
                "End a run; calls under way finish, and all that was paid for is kept.",
                self.cancel,
                job,
                body=schemas.Nothing,
            ),
            one(
                "limit",
                "POST",
                "/limit",
                "Change how fast a run may call, at once and for later sessions.",
                self.limit,
                schemas.LimitsTold,
                body=schemas.LimitAsked,
            ),
            one(
                "priority",
                "POST",
                "/priority",
                "Give a run another place in the queue.",
                self.priority,
                job,
                body=schemas.PriorityAsked,
            ),
            one(
                "rejudge",
                "POST",
                "/rejudge",
                "Buy verdicts, and nothing else, for rows that have a reply.",
                self.rejudge,
                job,
                body=schemas.RejudgeAsked,
                status=HTTPStatus.CREATED,
            ),
            one(
                "report",
                "GET",
                "/report",
                "The report of a run as it stands, complete or not.",
                self.report,
                query=schemas.ReportAsked,
                media_types=_FORMS,
            ),
            one(
                "export",
                "GET",
                "/export",
                "Every row of a run with all that is known of it.",
                self.export,
                query=schemas.ExportAsked,
                media_types=_EXPORTS,
            ),
        ]

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
