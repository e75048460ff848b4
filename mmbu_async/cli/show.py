"""Printing what the api returns: tables and sentences, nothing computed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rich.console import Console

from mmbu_async.api import DataCheck, Rescored, RunResult, RunStatus, Shown
from mmbu_async.cli.forms import deliver
from mmbu_async.model import Benchmark
from mmbu_async.pipeline.doctor import Finding
from mmbu_async.pipeline.dryrun import ASSUMED_CALL_S, DryRun, SideEstimate
from mmbu_async.pipeline.progress import compact, duration
from mmbu_async.report import (
    ReportData,
    plain,
    print_report,
    print_row,
    print_runs,
    print_status,
    to_json,
    to_leaderboard,
    to_markdown,
)

SHOWN_CHANGES = 20


def report(
    data: ReportData,
    console: Console,
    *,
    form: str | None = None,
    out: Path | None = None,
    full: bool = False,
    more: Mapping[str, Callable[[], str]] = MappingProxyType({}),
) -> None:
    """Print a report, or write it to a file whose ending says the format; `more`: forms that need more than
    the report."""
    forms = {
        "markdown": lambda: to_markdown(data),
        "json": lambda: to_json(data),
        "html": lambda: _html(data),
        "leaderboard": lambda: to_leaderboard(data),
        **more,
    }
    deliver(lambda console: _print(data, console, full), forms, console, form=form, out=out)


def _html(data: ReportData) -> str:
    # matplotlib takes half a second to import, which no other form should pay.
    from mmbu_async.report.html import to_html

    return to_html(data)


def _print(data: ReportData, console: Console, full: bool) -> None:
    if full:
        print_report(data, console, most=None)
    else:
        print_report(data, console)


def status(found: list[RunStatus], console: Console, *, one: bool, store: Path) -> None:
    if one:
        status = found[0]
        print_status(
            status.run,
            status.counts,
            status.totals,
            console,
            flags=_store_flag(store),
            process=status.process,
            paused=status.paused,
            tied=status.tied,
            batches=status.batches,
        )
    else:
        working = {
            status.run.id: "paused" if status.paused else "at work"
            for status in found
            if status.process is not None
        }
        for status in found:
            out = sum(batch.open for batch in status.batches)
            if out:
                said = f"{out} batch{'es' if out > 1 else ''} out"
                working[status.run.id] = ", ".join(filter(None, (working.get(status.run.id), said)))
        print_runs([(status.run, status.counts) for status in found], console, working=working)


def row(shown: Shown, console: Console) -> None:
    print_row(shown.detail, shown.prompts, console)


def how_to_go_on(result: RunResult, console: Console, *, rejudged: bool = False) -> None:
    """The next command, where there is one."""
    counts = result.counts
    if result.stopped is None and counts.coverage < 1:
        _say(console, _coverage(result))
    run = shlex.quote(plain.line(result.run)) + _store_flag(result.store)
    if result.stopped is not None and rejudged:
        # Until it was asked about every row a judge is not the run's own: a resume would ask the earlier one.
        _say(console, "The same `mmbu rejudge` again goes on where this stopped.")
    elif result.stopped is not None or counts.failed or counts.pending:
        _say(console, f"`mmbu resume {run}` goes on where this stopped.")
    elif counts.unjudged or counts.to_judge:
        unjudged = counts.completed - counts.scored
        if result.tied < unjudged:
            _say(console, f"`mmbu rejudge {run}` asks the judge again about the unjudged rows.")
        if result.tied:
            _say(
                console,
                f"The panel is tied on {result.tied:,} of the {unjudged:,} unjudged, and asking it again "
                f"changes nothing: `mmbu rejudge {run}` with one more judge in the file of --panel, or with "
                "--verdict NAME, settles them.",
            )


def _coverage(result: RunResult) -> str:
    """How far the judge came, and whether that was far enough."""
    counts, wanted = result.counts, result.judge_coverage
    # Rounded down: a row that is missing must not be rounded away.
    percent = math.floor(1e4 * counts.coverage) / 100
    found = (
        f"The judge gave a usable verdict on {counts.by_verdict:,} of the {counts.need_judge:,} rows that "
        f"need one ({percent:g} %); --judge-coverage asks for {100 * wanted:g} %"
    )
    if counts.coverage < wanted:
        return f"{found}: too few."
    return f"{found}: enough, so that the unjudged rows alone are no failure; the report stays incomplete."


def _store_flag(store: Path) -> str:
    """What names the store in a command to copy; nothing where it is the default one."""
    if store.absolute() == Path("mmbu.sqlite").absolute():
        return ""
    return f" --store {shlex.quote(plain.line(str(store)))}"


def rescored(done: Rescored, console: Console) -> None:
    moved = (
        f" ({done.right_to_wrong:,} from right to wrong, {done.wrong_to_right:,} from wrong to right)"
        if done.changed
        else ""
    )
    _say(console, f"scored {done.rows:,} rows anew; {len(done.changed):,} changed{moved}; nothing was bought")
    for row in done.changed[:SHOWN_CHANGES]:
        _say(console, f"  {plain.line(row)}")
    if len(done.changed) > SHOWN_CHANGES:
        _say(console, f"  and {len(done.changed) - SHOWN_CHANGES:,} more")


def findings(found: list[Finding], console: Console) -> None:
    """What the doctor saw, one line each."""
    for finding in found:
        mark, style = ("ok", "green") if finding.ok else ("!!", "red")
        console.print(f"[{style}]{mark}[/]", end=" ")
        _say(console, f"{finding.about:7} {plain.line(finding.text)}")


def benchmarks(found: list[Benchmark], console: Console) -> None:
    """A paragraph a benchmark."""
    for benchmark in found:
        _head(console, f"{benchmark.name}: {benchmark.title}")
        data = benchmark.data
        local = ", ".join((*data.tables[:2], *data.archives))
        judge = f", judge {benchmark.judge}" if benchmark.judge else ""
        _say(console, f"  rows      {benchmark.rows}")
        _say(console, f"  routes    {', '.join(benchmark.routes)}")
        _say(console, f"  metric    {benchmark.metric}{judge}")
        _say(console, f"  data      {data.hub} (split {data.split}), or a folder with {local}")
        _say(console, f"  licence   {benchmark.licence}")
        _say(console, f"  cite      {benchmark.citation}")


def data_check(found: DataCheck, console: Console) -> None:
    """What the data are, and what is wrong with them."""
    _say(console, plain.line(found.source))
    for line in found.found:
        _say(console, f"  {plain.line(line)}")
    _rows(found.rows, console)
    if not found.rows.problem_count:
        _say(console, "Nothing is wrong.")


def dry_run(found: DryRun, console: Console) -> None:
    """Prompts first, then what is odd, then what the run would take."""
    for route, prompt in found.prompts.items():
        _head(console, f"Prompt of a row to {route}")
        _say(console, f"[system]\n{plain.block(prompt.system or '')}\n\n[user: the image, then]")
        _say(console, plain.block(prompt.text) + "\n")
    if found.judge_prompt is not None:
        _head(console, "Prompt to the judge (the truth stands in for the model's answer)")
        _say(console, plain.block(found.judge_prompt.text) + "\n")
    _rows(found, console)
    _head(console, "Estimate")
    if found.model is not None:
        _estimate("model", found.model, console)
        for judge in found.judges:
            _estimate("judge", judge, console)
        _learnt(found, (("model", found.model), *(("judge", judge) for judge in found.judges)), console)
        _total((found.model, *found.judges), console)


def _rows(found: DryRun, console: Console) -> None:
    _head(console, "Rows")
    _say(console, f"{found.rows:,} of {found.dataset_rows:,} rows, every one read and valid")
    for family, count in found.families.most_common():
        _say(console, f"  {count:6,}  {plain.line(family)}")
    if found.left_out:
        _say(console, f"{found.left_out:,} rows of the data are none of this benchmark and were left out")
    for note, count in (*found.blemishes.most_common(), *found.converted.most_common()):
        kind = "images converted: " if note in found.converted else ""
        _say(console, f"  {count:6,}  {kind}{plain.line(note)}")
    _problems(found, console)


def _problems(found: DryRun, console: Console) -> None:
    if not found.problem_count:
        return
    _head(console, f"{found.problem_count:,} images cannot be sent; their rows would fail")
    for problem in found.problems:
        _say(console, f"  {plain.line(problem)}")
    if found.problem_count > len(found.problems):
        _say(console, f"  and {found.problem_count - len(found.problems):,} more")


def _estimate(role: str, side: SideEstimate, console: Console) -> None:
    cost = "price unknown" if side.cost_usd is None else f"${side.cost_usd:,.2f} ({side.price_source})"
    how_long = "in batches, each within a day" if side.batched else f"about {duration(side.seconds)}"
    _say(
        console,
        f"{role:6} {side.name}: {side.calls:,} calls, {compact(side.input_tokens)} tokens in, "
        f"{compact(side.output_tokens)} out, {cost}, {how_long}",
    )


def _learnt(found: DryRun, sides: Sequence[tuple[str, SideEstimate]], console: Console) -> None:
    """What the tokens were learnt from, or how they can be."""
    store = plain.line(found.store)
    for role, side in sides:
        if side.replies:
            name = plain.line(side.name)
            _say(console, f"Tokens of {role} {name}: as in {side.replies:,} of its replies in {store}.")
    if found.unread:
        _say(console, f"The store was not learnt from: {plain.line(found.unread)}")
    ruled = [f"{role} {plain.line(side.name)}" for role, side in sides if not side.replies and side.calls]
    if ruled:
        _say(
            console,
            f"Tokens of {', '.join(ruled)}: by rules, which may be wrong by a factor. Run it with --limit 20 "
            "first, and the estimate learns from those rows.",
        )


def _total(sides: Sequence[SideEstimate], console: Console) -> None:
    costs = [side.cost_usd for side in sides if side.cost_usd is not None]
    if len(costs) == len(sides):
        ruled = any(not side.replies for side in sides)
        most = (
            "judges at most: identical prompts are put to a judge once"
            if ruled
            else "rows that have a reply already are among them"
        )
        _say(console, f"total  ${sum(costs):,.2f}; {most}")
    _say(
        console,
        f"Time at the configured limits, a call taken to last {ASSUMED_CALL_S:g} s: `mmbu doctor` measures "
        "one. No call was made.",
    )


def _head(console: Console, text: str) -> None:
    console.print(text, style="bold", markup=False, highlight=False)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
