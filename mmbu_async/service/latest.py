"""The newest job of each run: what the service shows as the run."""

from __future__ import annotations

from mmbu_async.service.jobs import Desk, Job


def latest_jobs(desk: Desk) -> list[Job]:
    """The newest first."""
    found: dict[str, Job] = {}
    for job in desk.jobs():
        found.setdefault(job.run, job)
    return list(found.values())
