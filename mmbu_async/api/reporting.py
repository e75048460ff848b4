"""What a run holds: its report, its rows, and both as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.api.scoring import bring_up_to_date
from mmbu_async.errors import ConfigError
from mmbu_async.pipeline.looking import open_to_look
from mmbu_async.pipeline.opening import config_of, rules_of
from mmbu_async.pipeline.recipe import recipe
from mmbu_async.pipeline.takes import takes
from mmbu_async.report import ReportData, build_report, to_card, write_leaderboard, write_submission
from mmbu_async.report import export as write_export
from mmbu_async.store import RowDetail, RowRecord

SUBMISSION = ".submission.json"
LEADERBOARD = ".leaderboard.json"
PARQUET = ".parquet"


def report(run: str, *, store: Path = Path("mmbu.sqlite")) -> ReportData:
    """The report of a run as it stands, complete or not; scores are brought up to date first."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        bring_up_to_date(opened, found, store)
        return build_report(opened, opened.run(run))


def rows(run: str, *, store: Path = Path("mmbu.sqlite")) -> Iterator[RowRecord]:
    """Every selected row with everything known of it, in dataset order, streamed."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        bring_up_to_date(opened, found, store)
        yield from opened.rows(found.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row, and the prompts it was or would be sent with."""

    detail: RowDetail
    prompts: Mapping[str, str]


def show(run: str, row_id: str, *, store: Path = Path("mmbu.sqlite")) -> Shown:
    """Everything known of one row, every attempt included. Raises DataError for an unknown row."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        bring_up_to_date(opened, found, store)
        detail = opened.row(found.id, row_id)
        rules = rules_of(config_of(found, store))
        prompt = rules.benchmark.prompt(detail.record.sample)
        texts = {"system": prompt.system or "", "user": prompt.text}
        if detail.record.answer is not None:
            item = rules.benchmark.judge_item(detail.record.sample, detail.record.answer)
            if item is not None:
                texts["judge"] = rules.fill(item).text
        return Shown(detail=detail, prompts=texts)


def export(run: str, out: Path, *, store: Path = Path("mmbu.sqlite")) -> int:
    """Write every selected row, one row a sample, with everything known of it; returns how many.

    The ending of `out` says the format: .jsonl, .csv or .parquet; a name that ends in .submission.json gets
    one answer a row, for the server of a benchmark whose answers are not public; one in .leaderboard.json
    gets a single flat object with the figures of the run.
    """
    with open_to_look(store) as opened:
        found = opened.run(run)
        bring_up_to_date(opened, found, store)
        if out.name.endswith(SUBMISSION):
            return write_submission(opened, found, out)
        if out.name.endswith(LEADERBOARD):
            write_leaderboard(build_report(opened, opened.run(run)), out)
            return 1
        return write_export(opened, found, out)


def export_long(
    runs: Sequence[str], out: Path, *, store: Path = Path("mmbu.sqlite"), every_judge: bool = False
) -> int:
    """Write the outcomes of several runs into one Parquet file in long form; returns how many lines.

    A row gives a line for each value that it has of each attribute; see `report.longform`. `every_judge`:
    also as each further judge that gave verdicts would score the rows.
    """
    # pyarrow takes half a second to import, which no other command should pay.
    from mmbu_async.report.longform import write_long

    if out.suffix.lower() != PARQUET:
        raise ConfigError(f"{out}: the long form is written as Parquet; let the name end in {PARQUET}.")
    with open_to_look(store) as opened:
        found = [opened.run(name) for name in dict.fromkeys(runs)]
        for run in found:
            bring_up_to_date(opened, run, store)
        others = {run.id: rules_of(config_of(run, store)) if every_judge else None for run in found}
        return write_long((take for run in found for take in takes(opened, run, others=others[run.id])), out)


def card(run: str, *, store: Path = Path("mmbu.sqlite"), report: ReportData | None = None) -> str:
    """What a paper's appendix says of a run so that others can repeat it, as Markdown. `report`: the run's,
    where it is at hand already."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        config = config_of(found, store)
        benchmark = rules_of(config).benchmark
        if report is None:
            bring_up_to_date(opened, found, store)
            report = build_report(opened, opened.run(run))
        return to_card(report, recipe(opened, found, config, benchmark))
