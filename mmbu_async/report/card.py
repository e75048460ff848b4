"""The card of a run for a paper's appendix: its headline, and everything needed to repeat it, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from mmbu_async.model import Prompt
from mmbu_async.report import markdown_tables as tables
from mmbu_async.report import words
from mmbu_async.report.facts import provenance_facts, row_facts, time_facts
from mmbu_async.report.markdown import scores_text
from mmbu_async.report.model import ReportData
from mmbu_async.report.plain import block, toml_text
from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.recipe import Recipe, UsedPrompt
from mmbu_async.report.sections import sections

SETTINGS_FILE = "settings.toml"
LONGEST_MESSAGE = 4_000
"""Characters of an example."""


def to_card(report: ReportData, recipe: Recipe) -> str:
    """The whole card; ends with a line end."""
    report = replace(report, ran=replace(report.ran, source=recipe.source))
    parts = [
        _opening(report, recipe),
        scores_text(report),
        *(tables.section_text(section) for section in sections(report)),
        _rows(report),
        _repeat(report, recipe),
        "## What was run\n\n" + tables.listed(provenance_facts(report)),
        _images(report, recipe),
        _prompts(recipe),
        _examples(recipe),
        _times(report, recipe),
        "## Versions where this card was written\n\n" + tables.listed(recipe.versions.items()),
    ]
    return "\n".join(part for part in parts if part)


def _opening(report: ReportData, recipe: Recipe) -> str:
    ran = report.ran
    lines = [
        f"# {safe(ran.model.model)} on {safe(recipe.title)}",
        "",
        f"**{safe(report.first_line)}**",
        "",
        *(f"- Note: {safe(note)}" for note in report.notes),
        "- Official settings." if ran.official else f"- Unofficial: {safe('; '.join(ran.unofficial))}.",
        f"- Data: {safe(recipe.home)}; {words.rows(report.rows.dataset)} read from {safe(ran.source)}, "
        f"fingerprint {safe(ran.fingerprint)}",
        f"- Licence of the data: {safe(recipe.licence)}",
        f"- Cite: {safe(recipe.citation)}",
    ]
    return "\n".join(lines) + "\n"


def _rows(report: ReportData) -> str:
    return "## Rows\n\n" + tables.listed(row_facts(report))


def _repeat(report: ReportData, recipe: Recipe) -> str:
    version = report.ran.packages[-1] if report.ran.packages else ""
    commands = "\n".join(
        (
            f"pip install {_word(f'mmbu-async=={version}')}",
            f"mmbu run --config {SETTINGS_FILE}   # the file below",
        )
    )
    text = (
        "## How to repeat it\n\n"
        f"{_fenced(commands, 'sh')}\n"
        f"API keys are taken from the environment: {safe(', '.join(recipe.keys))}. Where the report of the "
        "repeated run names the fingerprint that stands above, its rows are the same.\n"
    )
    if recipe.shortened:
        text += (
            f"Given by the last name of their path only: {safe(', '.join(recipe.shortened))}; run it from "
            "the folder that holds them.\n"
        )
    return f"{text}\n{_fenced(toml_text(recipe.settings), 'toml')}"


def _word(text: str) -> str:
    """A version comes out of a store that anyone may have written; a command holds plain words alone."""
    return re.sub(r"[^A-Za-z0-9.+_=-]", "?", text)


def _images(report: ReportData, recipe: Recipe) -> str:
    facts = [
        ("Scaled down to fit", words.rows(report.rows.scaled)),
        *((f"Limit: {name}", value) for name, value in recipe.images.items()),
    ]
    return (
        "## Images\n\n"
        + tables.listed(facts)
        + "\nAn image that the endpoint takes goes untouched. Others are converted (to PNG, or to JPEG where "
        "a PNG passes the limits), and only where they still pass a limit made smaller, their aspect kept; "
        "boxes that a model gives in such an image are scaled back before they are scored.\n"
    )


def _prompts(recipe: Recipe) -> str:
    if not recipe.prompts:
        return ""
    return "## Prompts\n\n" + "\n".join(map(_prompt, recipe.prompts))


def _prompt(prompt: UsedPrompt) -> str:
    head = f"{safe(prompt.name)}, SHA-256 {safe(prompt.sha256)}:\n\n"
    if prompt.text is None:
        return f"{head}The installed version does not know the text of this hash.\n"
    return head + (_fenced(block(prompt.text), "text") if prompt.text else "(empty)\n")


def _examples(recipe: Recipe) -> str:
    parts = [f"Of route {safe(route)}:\n\n{_message(prompt)}" for route, prompt in recipe.examples.items()]
    return "## Messages of the first row of each route\n\n" + "\n".join(parts) if parts else ""


def _message(prompt: Prompt) -> str:
    parts = [] if prompt.system is None else [f"[system]\n{prompt.system}\n\n[user]\n"]
    parts += [part if isinstance(part, str) else f"[image {part.index + 1}]\n" for part in prompt.parts]
    text = "".join(parts)
    if len(text) > LONGEST_MESSAGE:
        left = words.count(len(text) - LONGEST_MESSAGE)
        text = f"{text[:LONGEST_MESSAGE]}\n[and {left} characters more]"
    return _fenced(block(text), "text")


def _times(report: ReportData, recipe: Recipe) -> str:
    facts = [
        *_sessions(recipe),
        *time_facts(report),
        *(
            (f"Cost, {side}", words.cost(spend))
            for side, spend in (("model", report.model_spend), ("judge", report.judge_spend))
        ),
    ]
    return "## Dates, time and money\n\n" + tables.listed(facts)


def _sessions(recipe: Recipe) -> Iterator[tuple[str, str]]:
    for number, session in enumerate(recipe.sessions, start=1):
        lasted = "" if session.wall_s is None else f", {words.duration(session.wall_s)}"
        yield (
            f"Session {number} ({session.kind})",
            f"{words.moment(session.started_at)}{lasted}, {session.ended or 'not ended'}, "
            f"mmbu-async {session.package_version}",
        )


def _fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"
