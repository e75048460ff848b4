"""`mmbu demo`: the whole way in under a minute, without a network."""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console

from mmbu_async import api
from mmbu_async.cli import show
from mmbu_async.cli.forms import writing
from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.errors import ConfigError, RunChangedError
from mmbu_async.pipeline.progress import silent
from mmbu_async.simulator import Latency, Simulator, SimulatorConfig
from mmbu_async.simulator.demo import draw_split

MODEL = "simulated-vlm"
JUDGE = "simulated-judge"
RUN = "demo"
_LATENCY = Latency.parse("lognormal:0.15,0.4")


def run_demo(folder: Path, *, rows: int, seed: int, console: Console) -> None:
    """Draw data, serve model and judge, run, report. A second demo in the folder goes on with the first.

    Raises ConfigError where the folder cannot be written, or holds other data than this demo's.
    """

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    data = folder / "data"
    if not _is_free(data / "metadata.jsonl"):
        raise ConfigError(f"{data}: holds data that are no demo's; name another folder with --folder.")
    with writing(data):
        draw_split(data, rows=rows, seed=seed)
    say(f"Drew {rows} rows in the MMBU layout: {data}")
    try:
        result = api.run_sync(lambda: _run(folder, data, seed))
    except RunChangedError:
        raise ConfigError(
            f"{folder}: holds a demo of other rows or another seed; name another folder with --folder."
        ) from None
    report = result.report()
    show.report(report, console)
    report_files = [folder / "report.md", folder / "report.html"]
    for file in report_files:
        show.report(report, console, out=file)
    say("")
    say("Model and judge were simulated: these numbers say nothing about any real model.")
    say("Where everything lies:")
    say(f"  data    {data}")
    say(f"  store   {folder / 'demo.sqlite'}")
    say(f"  report  {report_files[0]}, and with figures {report_files[1]}")
    say(f"  calls   {folder / 'simulator.jsonl'}   (the simulated endpoint's own log)")
    first = next(iter(result)).sample.id
    program = "mmbu" if shutil.which("mmbu") else sys.argv[0]
    say("Look closer:")
    store, out = (shlex.quote(str(folder / name)) for name in ("demo.sqlite", "rows.csv"))
    say(f"  {program} show {RUN} {first} --store {store}")
    say(f"  {program} export {RUN} --out {out} --store {store}")


def _is_free(metadata: Path) -> bool:
    """Whether nothing is there, or an earlier demo."""
    try:
        with metadata.open("rb") as file:
            return b'"demo-' in file.readline()
    except OSError:
        return True


async def _run(folder: Path, data: Path, seed: int) -> api.RunResult:
    logging.getLogger("mmbu_async").setLevel(logging.ERROR)
    simulated = SimulatorConfig(seed=seed, latency=_LATENCY, log=folder / "simulator.jsonl")
    async with Simulator(simulated) as simulator:
        config = RunConfig(
            name=RUN,
            model=MODEL,
            endpoint="openai",
            base_url=f"{simulator.url}/v1",
            data=str(data),
            store=folder / "demo.sqlite",
            # The simulator charges nothing; stated, so that the report shows money rather than 'unknown'.
            input_price=0.0,
            output_price=0.0,
            judge=JudgeConfig(
                model=JUDGE,
                endpoint="openai",
                base_url=f"{simulator.url}/v1",
                input_price=0.0,
                output_price=0.0,
            ),
        )
        return await api.evaluate(config, watch=silent, check=False)
