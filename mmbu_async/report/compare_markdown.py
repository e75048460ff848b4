"""A comparison as GitHub-flavoured Markdown: every stratum, every interval."""

from __future__ import annotations

from collections.abc import Iterator

from mmbu_async.report import compare_sections as cells
from mmbu_async.report import markdown_tables as tables
from mmbu_async.report import words
from mmbu_async.report.comparison import Comparison, PairComparison
from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.plain import short

LONGEST = 200
"""Characters of an answer that are shown."""


def comparison_to_markdown(found: Comparison) -> str:
    """The whole comparison; ends with a line end."""
    return "\n".join(
        (_opening(found), *(part for pair in found.pairs for part in _pair(found, pair)), _end(found))
    )


def _opening(found: Comparison) -> str:
    names = ", ".join(run.name for run in found.runs)
    lines = [f"**{safe(found.first_line)}**", "", f"# {safe(found.benchmark)} · {safe(names)}", ""]
    lines += [f"- Left out: {safe(note)}" for note in found.left_out]
    lines += [f"- Note: {safe(note)}" for note in found.notes]
    lines.append(f"- Fingerprint of the dataset: {safe(found.fingerprint)}")
    lines += [
        f"- Judge of {safe(run.name)}: {safe(run.judge or 'none')}"
        f"{', official settings' if run.official else ''}"
        for run in found.runs
    ]
    return "\n".join((*lines, "", tables.section_text(cells.run_table(found))))


def _pair(found: Comparison, pair: PairComparison) -> Iterator[str]:
    if not found.common_rows:
        return
    yield f"# {safe(pair.second)} against {safe(pair.first)}\n\n" + tables.listed(
        cells.pair_facts(found, pair)
    )
    yield tables.section_text(cells.everything("By task family", pair.families))
    for attribute in pair.attributes:
        yield tables.section_text(cells.everything(cells.attribute_title(attribute), attribute.strata))
    if cells.has_small(pair):
        yield f"{safe(cells.MARK)}\n"
    if pair.flips:
        yield _flips(pair)


def _flips(pair: PairComparison) -> str:
    flipped = words.count(pair.wins + pair.losses)
    lines = (
        f"- {flip.direction} {safe(short(flip.row_id, LONGEST))} ({safe(short(flip.family, LONGEST))}): "
        f"{safe(short(flip.first_answer, LONGEST))} \u2192 {safe(short(flip.second_answer, LONGEST))}; "
        f"truth {safe(short(flip.truth, LONGEST))}\n"
        for flip in pair.flips
    )
    title = f"## Rows that flipped, {len(pair.flips)} of {flipped}, in dataset order\n\n"
    return title + "".join(lines)


def _end(found: Comparison) -> str:
    resampled = f"{words.percent(found.level)} paired bootstrap, {words.count(found.resamples)} resamples"
    verdicts = "".join(f"\n{safe(cells.verdict(found, pair))}\n" for pair in found.pairs if pair.n)
    rules = f"{safe(found.convention)}\n\n{safe(found.correction)}\n\nCI: {resampled}.\n"
    return f"# How it is counted\n\n{rules}{verdicts}"
