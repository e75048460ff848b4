"""The table of all operations of the API: what each is called, takes, gives and is described as."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from mmbu_async.service import events, schemas
from mmbu_async.service.handlers import Handlers
from mmbu_async.service.operations import Operation
from mmbu_async.service.reading import EXPORT_TYPES

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


def operations(handlers: Handlers) -> list[Operation]:
    """All of them."""
    return [*_on_all(handlers), *_on_one(handlers)]


def _on_all(handlers: Handlers) -> list[Operation]:
    return [
        Operation(
            id="submit",
            method="POST",
            path="/runs",
            summary="Queue a run, or go on with the one of that name.",
            handle=handlers.submit,
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
            handle=handlers.runs,
            query=schemas.ListAsked,
            answer=schemas.RunsTold,
        ),
        Operation(
            id="watch_all",
            method="GET",
            path="/events",
            summary="Follow all runs as server-sent events.",
            handle=handlers.watch,
            media_types=_EVENTS,
            conflicts=True,
        ),
        Operation(
            id="estimate",
            method="POST",
            path="/estimate",
            summary="Say what a run would take; nothing is called, nothing is written.",
            handle=handlers.estimate,
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
            handle=handlers.compare,
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
            handle=handlers.stored,
            answer=schemas.StoredTold,
            conflicts=True,
        ),
        Operation(
            id="choices",
            method="GET",
            path="/choices",
            summary="List what settings may name: benchmarks, data sets, endpoints.",
            handle=handlers.choices,
            answer=schemas.ChoicesTold,
        ),
    ]


def _on_one(handlers: Handlers) -> list[Operation]:
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
        one("run", "GET", "", "One run: its newest job, and where it stands.", handlers.run, schemas.RunTold),
        one("watch", "GET", "/events", "Follow one run.", handlers.watch, media_types=_EVENTS),
        one(
            "history",
            "GET",
            "/history",
            "Progress of a run over time, for charts.",
            handlers.history,
            schemas.HistoryTold,
        ),
        one("logs", "GET", "/logs", "The last lines of a run's log.", handlers.logs, schemas.LogsTold),
        one(
            "pause",
            "POST",
            "/pause",
            "Start no further call; calls under way finish and are kept.",
            handlers.pause,
            job,
            body=schemas.Nothing,
        ),
        one(
            "resume",
            "POST",
            "/resume",
            "Let a paused run go on, or queue one again that has ended.",
            handlers.resume,
            job,
            body=schemas.ResumeAsked,
        ),
        one(
            "cancel",
            "POST",
            "/cancel",
            "End a run; calls under way finish, and all that was paid for is kept.",
            handlers.cancel,
            job,
            body=schemas.Nothing,
        ),
        one(
            "limit",
            "POST",
            "/limit",
            "Change how fast a run may call, at once and for later sessions.",
            handlers.limit,
            schemas.LimitsTold,
            body=schemas.LimitAsked,
        ),
        one(
            "priority",
            "POST",
            "/priority",
            "Give a run another place in the queue.",
            handlers.priority,
            job,
            body=schemas.PriorityAsked,
        ),
        one(
            "rejudge",
            "POST",
            "/rejudge",
            "Buy verdicts, and nothing else, for rows that have a reply.",
            handlers.rejudge,
            job,
            body=schemas.RejudgeAsked,
            status=HTTPStatus.CREATED,
        ),
        one(
            "report",
            "GET",
            "/report",
            "The report of a run as it stands, complete or not.",
            handlers.report,
            query=schemas.ReportAsked,
            media_types=_FORMS,
        ),
        one(
            "export",
            "GET",
            "/export",
            "Every row of a run with all that is known of it.",
            handlers.export,
            query=schemas.ExportAsked,
            media_types=_EXPORTS,
        ),
    ]
