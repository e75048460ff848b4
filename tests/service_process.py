"""A process with a scheduler in it, for tests that kill it.

    python -m tests.service_process SETTINGS.json RUN [RUN ...]

SETTINGS.json has the service's settings and those of a run. Runs that the store has no job for are submitted;
when all have ended, their states are printed and the process ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mmbu_async.api import run_sync
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.service.settings import ServiceConfig
from tests.scheduler_kit import ends


async def work(given: dict[str, Any], runs: list[str]) -> str:
    """What has become of the runs, as JSON."""
    async with Scheduler(ServiceConfig.model_validate(given["service"]), look_s=0.1) as desk:
        known = {job.run for job in desk.jobs()}
        for run in runs:
            if run not in known:
                await desk.submit({**given["run"], "name": run})
        await ends(desk, *runs)
        return json.dumps({run: [desk.job(run).state, desk.job(run).message] for run in runs})


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text())
    sys.stdout.write(run_sync(lambda: work(settings, sys.argv[2:])))
